"""What a Translator asks of an engine: search for the translations of these pieces.

An engine runs a model. `TorchEngine` runs it as it was trained, step by step; others run a copy that was
converted for speed. All of them follow the same rules of search, so a Translator does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.decoding.plan import Sampling, SearchPlan
    from jumok.values import Hypothesis

    Found = tuple[Sequence[int], Sequence[list[Hypothesis]]]

__all__ = ["Engine", "Watch", "like_lengths"]

Watch = Callable[[int, Sequence[int]], None]
"""Is told, after every step, which sentence it was and the pieces that its translation has so far."""


class Engine(Protocol):
    """Something that translates pieces. It may be used from several threads at once."""

    name: str
    why: str
    """Why it is this engine, where another might have been expected; "" where there is nothing to say."""

    def cannot(self, sampling: Sampling | None, longest: int = 0) -> str:
        """Why it cannot search, or sample, for translations of up to `longest` pieces; "" where it can."""
        ...

    def search(
        self,
        sources: Sequence[Sequence[int]],
        plan: SearchPlan,
        *,
        prefixes: Sequence[Sequence[int]],
        sampling: Sampling | None = None,
        scores: bool = True,
        batch_tokens: int | None = None,
        watch: Watch | None = None,
    ) -> Iterator[Found]:
        """Begin to search, and hand over which sentences are done with their hypotheses, best first.

        Sentences are pieces without marks and are searched in batches of like length, about `batch_tokens`
        pieces each (what suits the engine if None). Engines that can do so work on before they are asked for
        the next batch. Without `scores` those of a greedy search may be NaN, where that saves time. Only a
        greedy search is watched: of a beam nobody knows which way will win.
        """
        ...


def like_lengths(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices in groups of like length, longest first: at most `batch_tokens` places a group, or one row."""
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if group and (len(group) + 1) * lengths[group[0]] > batch_tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
