"""The engine `torch`: runs any model, with the searches of `jumok.inference.search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.data.batching import padded_batch
from jumok.inference.engines.protocol import length_buckets
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search, sample
from jumok.system.memory import reuse_freed_memory
from jumok.types import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.inference.engines.protocol import OnToken, SearchResult
    from jumok.inference.search.plan import OnStep, Sampling, SearchPlan, SearchStep
    from jumok.inference.shortlist import Shortlist
    from jumok.models.model import TranslationModel
    from jumok.types import Batch, Hypothesis

BATCH_TOKENS = 2048
"""Source tokens per batch, padding and `</s>` included."""


class TorchEngine:
    """Searches with a model. It computes a batch when the caller asks for it.

    With a shortlist, translations consist of its tokens. If a sentence of a search has a prefix, the
    shortlist is not used for any sentence of this search.
    """

    name = "torch"

    def __init__(
        self, model: TranslationModel, *, fallback_reason: str = "", shortlist: Shortlist | None = None
    ) -> None:
        reuse_freed_memory()
        self.model = model
        self.fallback_reason = fallback_reason
        self.shortlist = shortlist

    def unsupported_reason(self, plan: SearchPlan, sampling: Sampling | None, max_length: int = 0) -> str:
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
        on_token: OnToken | None = None,
    ) -> Iterator[SearchResult]:
        generator = torch.Generator().manual_seed(sampling.seed) if sampling else None
        shortlist = None if any(prefixes) else self.shortlist
        for group in length_buckets([len(source) + 1 for source in sources], batch_tokens or BATCH_TOKENS):
            group_sources = [sources[i] for i in group]
            group_prefixes = [prefixes[i] for i in group]
            model = self.model
            if shortlist is not None:
                model = model.restrict_to(
                    torch.tensor(shortlist.tokens(group_sources), device=self.model.device)
                )
            on_step = None if on_token is None else _collect_tokens(group, on_token)
            batch = padded_batch(group_sources).to(self.model.device)
            with model.autocast():
                hypotheses = _search(model, batch, plan, group_prefixes, sampling, generator, on_step)
            yield group, hypotheses


@torch.inference_mode()
def _search(
    model: TranslationModel,
    batch: Batch,
    plan: SearchPlan,
    prefixes: Sequence[Sequence[int]],
    sampling: Sampling | None,
    generator: torch.Generator | None,
    on_step: OnStep | None,
) -> list[list[Hypothesis]]:
    if sampling is not None and generator is not None:
        return sample(model, batch, plan, sampling, generator=generator, prefixes=prefixes)
    if plan.beam == plan.n_best == 1:
        return greedy_search(model, batch, plan, prefixes=prefixes, on_step=on_step)
    return beam_search(model, batch, plan, prefixes=prefixes)


def _collect_tokens(group: Sequence[int], on_token: OnToken) -> OnStep:
    """Return a callback for greedy search that calls `on_token` with the tokens of each sentence so far."""
    tokens_so_far: dict[int, list[int]] = {i: [] for i in group}

    def on_step(step: SearchStep) -> None:
        for row, token in zip(step.sentences.tolist(), step.tokens[:, 0].tolist(), strict=True):
            if token != END:
                tokens_so_far[group[row]].append(token)
                on_token(group[row], tokens_so_far[group[row]])

    return on_step
