"""Finished hypotheses and their ranking.

    score(y) = log p(y | x) / |y|^α  +  β Σᵢ log min(Σₜ aₜᵢ, 1)          after Wu et al. 2016, equation 14

As in CTranslate2, |y| counts the steps that produced y. So |y| includes `</s>`, except in a hypothesis that
was cut at its maximum length. |y| also includes the tokens of a forced prefix, although their
log-probabilities are not part of log p. The coverage sums the attention of the same steps. A source position
without any attention adds β times −87.3, the logarithm of the smallest normal float. Padding adds 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from jumok.types import PAD, Hypothesis

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.inference.search.plan import SearchPlan
    from jumok.types import Batch


@dataclass(frozen=True, slots=True)
class FinishedHypotheses:
    """Hypotheses that finished in one step. Either all ended with `</s>`, or all were cut."""

    sentences: Tensor  # (hypothesis,) index into the batch
    ids: Tensor  # (hypothesis, token) without `</s>`, all of the same length
    scores: Tensor  # (hypothesis,) ranking scores
    log_probs: Tensor  # (hypothesis,) sums of the model's log-probabilities


def ranking_scores(sums: Tensor, steps: int, coverage: Tensor | None, plan: SearchPlan) -> Tensor:
    """Return score(y) of hypotheses with `steps` steps: (…).

    `sums` (…) are their summed constrained log-probabilities. `coverage` (…, source) is their summed
    attention, or None if there is no coverage penalty.
    """
    scores = sums / float(steps**plan.length_penalty)
    if coverage is None:
        return scores
    covered = coverage.clamp(torch.finfo(coverage.dtype).tiny, 1.0)
    return scores + plan.coverage_penalty * covered.log().sum(dim=-1)


def initial_coverage(batch: Batch) -> Tensor:
    """Return the coverage before the first step, (batch, source): 0, and 1 for padding."""
    return (batch.source == PAD) * 1.0


def rank_hypotheses(
    finished: list[FinishedHypotheses], *, num_sentences: int, n_best: int
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each sentence, best first.

    Equal scores keep the order of `finished`.
    """
    ranked: list[list[Hypothesis]] = [[] for _ in range(num_sentences)]
    for group in finished:
        fields = (group.sentences, group.ids, group.scores, group.log_probs)
        rows = zip(*(field.tolist() for field in fields), strict=True)
        for sentence, ids, score, log_prob in rows:
            ranked[sentence].append(Hypothesis(tuple(ids), score, log_prob))
    for hypotheses in ranked:
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
        del hypotheses[n_best:]
    return ranked
