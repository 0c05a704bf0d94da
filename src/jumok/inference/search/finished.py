"""Hypotheses that are finished, and how they are ranked.

    score(y) = log p(y | x) / |y|^α  +  β Σᵢ log min(Σₜ aₜᵢ, 1)          after Wu et al. 2016, equation 14

as in CTranslate2: |y| counts the steps that made y, so `</s>` is counted (a translation that was cut has
none), and so is a forced prefix, though it adds nothing to the sum. The coverage sums the attention of the
same steps. A source place that was given none at all costs as much as the least that can be written; padding
costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from jumok.values import PAD, Hypothesis

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.decoding.plan import SearchPlan
    from jumok.values import Batch

__all__ = ["Finished", "first_coverage", "rank", "ranking_scores"]


@dataclass(frozen=True, slots=True)
class Finished:
    """Hypotheses that became finished in one step, all in the same way: ended or cut."""

    sentences: Tensor  # (hypothesis,)
    ids: Tensor  # (hypothesis, piece), all equally long
    scores: Tensor  # (hypothesis,) as they are ranked
    log_probs: Tensor  # (hypothesis,) plain sums


def ranking_scores(sums: Tensor, steps: int, coverage: Tensor | None, plan: SearchPlan) -> Tensor:
    """The formula above for sums (…) of hypotheses that took as many steps. `coverage` is (…, source)."""
    scores = sums / float(steps**plan.length_penalty)
    if coverage is None:
        return scores
    attended = coverage.clamp(torch.finfo(coverage.dtype).tiny, 1.0)
    return scores + plan.coverage_penalty * attended.log().sum(dim=-1)


def first_coverage(batch: Batch) -> Tensor:
    """The coverage before the first step, (batch, source): none, and padding is covered for good."""
    return (batch.source == PAD) * 1.0


def rank(finished: list[Finished], *, sentences: int, n_best: int) -> list[list[Hypothesis]]:
    """The best hypotheses of each sentence, best first; of equal ones, the one that was found first."""
    ranked: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    for group in finished:
        columns = (group.sentences, group.ids, group.scores, group.log_probs)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for sentence, ids, score, log_prob in rows:
            ranked[sentence].append(Hypothesis(tuple(ids), score, log_prob))
    for hypotheses in ranked:
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
        del hypotheses[n_best:]
    return ranked
