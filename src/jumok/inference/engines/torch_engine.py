"""The engine that runs any model as it is: torch, and the searches of this room over its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.corpus.batches import padded_batch
from jumok.decoding.beam_search import beam
from jumok.decoding.engine import like_lengths
from jumok.decoding.walk import greedy, sample
from jumok.pages import reuse_pages
from jumok.values import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.decoding.engine import Found, Watch
    from jumok.decoding.plan import Listener, Sampling, SearchPlan, SearchStep
    from jumok.decoding.shortlist import Shortlist
    from jumok.models import TranslationModel
    from jumok.values import Batch, Hypothesis

__all__ = ["TorchEngine"]

BATCH_TOKENS = 2048


class TorchEngine:
    """Searches over the steps of a model. It works when it is asked for the next batch.

    With a shortlist, translations are made of its pieces; those with a prefix are not limited.
    """

    name = "torch"

    def __init__(self, model: TranslationModel, *, why: str = "", shortlist: Shortlist | None = None) -> None:
        reuse_pages()
        self.model = model
        self.why = why
        self.shortlist = shortlist

    def cannot(self, sampling: Sampling | None, longest: int = 0) -> str:
        return ""

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
        generator = torch.Generator().manual_seed(sampling.seed) if sampling else None
        shortlist = None if any(prefixes) else self.shortlist
        for group in like_lengths([len(source) + 1 for source in sources], batch_tokens or BATCH_TOKENS):
            those = [sources[i] for i in group]
            model = self.model
            if shortlist is not None:
                model = model.limited_to(torch.tensor(shortlist.pieces(those)))
            begins = [prefixes[i] for i in group]
            listener = None if watch is None else _listener(group, watch)
            yield group, _search(model, padded_batch(those), plan, begins, sampling, generator, listener)


@torch.inference_mode()
def _search(
    model: TranslationModel,
    batch: Batch,
    plan: SearchPlan,
    prefixes: Sequence[Sequence[int]],
    sampling: Sampling | None,
    generator: torch.Generator | None,
    listener: Listener | None,
) -> list[list[Hypothesis]]:
    if sampling is not None and generator is not None:
        return sample(model, batch, plan, sampling, generator=generator, prefixes=prefixes)
    if plan.beam == plan.n_best == 1:
        return greedy(model, batch, plan, prefixes=prefixes, listener=listener)
    return beam(model, batch, plan, prefixes=prefixes)


def _listener(group: Sequence[int], watch: Watch) -> Listener:
    """Puts together what a greedy search says of each sentence of a batch."""
    so_far: dict[int, list[int]] = {i: [] for i in group}

    def listen(step: SearchStep) -> None:
        for row, piece in zip(step.sentences.tolist(), step.tokens[:, 0].tolist(), strict=True):
            if piece != END:
                so_far[group[row]].append(piece)
                watch(group[row], so_far[group[row]])

    return listen
