"""The interface of an engine, which searches for translations of token ids.

`TorchEngine` runs the model as it was trained, step by step; `CTranslate2Engine` runs a converted copy. Both
follow the same rules of search, so a `Translator` treats them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.inference.search.plan import Sampling, SearchPlan
    from jumok.types import Hypothesis

    SearchResult = tuple[Sequence[int], Sequence[list[Hypothesis]]]
    """Indices of sentences, and the hypotheses of each, best first."""

OnToken = Callable[[int, Sequence[int]], None]
"""Receives, after every step, the index of a sentence and the tokens of its translation so far.

The tokens are one list that grows. If CTranslate2 searches a sentence a second time, its tokens start again.
"""


class Engine(Protocol):
    """Searches for translations. It may be used from several threads at once."""

    name: str
    fallback_reason: str
    """Why this engine runs instead of the preferred engine; "" if this is the preferred engine."""

    def unsupported_reason(self, plan: SearchPlan, sampling: Sampling | None, max_length: int = 0) -> str:
        """Return why this engine cannot search for translations of up to `max_length` tokens, or "".

        `max_length` counts the prefix; 0 means that the length is not checked.
        A `CTranslate2Engine` with `strict` raises an UnsupportedError instead of returning a reason.
        """
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
        on_token: OnToken | None = None,
    ) -> Iterator[SearchResult]:
        """Search, and yield the hypotheses of each batch when it is done.

        CTranslate2 starts at once and computes all batches in the background (but sampling ends before
        `search` returns). torch computes a batch when the caller requests the next result.

        Sources are token ids without special tokens; of pictures, patches. Each source has a prefix, which
        may be empty. Sources are searched in batches of similar length with about `batch_tokens` tokens
        (None: the engine's default). Without `scores`, the scores of a greedy search may be NaN if that saves
        time. Only a greedy search calls `on_token`: during a beam search the best hypothesis is not known
        yet.
        """
        ...


def length_buckets(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield indices of `lengths` in groups of similar length, longest first.

    A padded group has at most `batch_tokens` positions, or only one row.
    """
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if group and (len(group) + 1) * lengths[group[0]] > batch_tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
