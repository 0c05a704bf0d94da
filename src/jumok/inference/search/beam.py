"""Beam search: every step continues only the best hypotheses.

The rules are the rules of CTranslate2, so that both engines give the same translations:

- A step considers the 2·beam best candidates by the sum of log-probabilities. If a candidate ends in `</s>`,
  it is finished if it is among the first `beam` candidates, and dropped if it is not. The first `beam`
  candidates that do not end in `</s>` continue.
- A sentence is done when `SearchPlan.max_finished` hypotheses are finished (beam · patience_factor, rounded),
  or at its maximum length. At the maximum length, all of the first `beam` candidates are finished, also those
  without `</s>`. If the length penalty and the coverage penalty are both 0, a sentence is done as soon as the
  best candidate of some step has ended and n_best hypotheses are finished.
- The tokens of a forced prefix add 0 to the sum of log-probabilities. In the first step after a prefix,
  `</s>` is only accepted as the best candidate (CTranslate2 issue 277). If `</s>` is another of the first
  `beam` candidates, its slot stays empty, so one hypothesis fewer continues.
- Length and coverage penalties apply only when finished hypotheses are ranked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import torch
from torch.nn import functional

from jumok.inference.search.constraints import NEG_INF, Prefixes, columns_of, mask_disallowed, tokens_of
from jumok.inference.search.finished import (
    FinishedHypotheses,
    initial_coverage,
    rank_hypotheses,
    ranking_scores,
)
from jumok.inference.search.plan import SearchStep
from jumok.inference.search.stepper import advance
from jumok.inference.search.top_k import top_k
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.inference.search.plan import OnStep, SearchPlan
    from jumok.inference.search.stepper import Stepper
    from jumok.types import Batch, Hypothesis, LogProbs

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class LiveHypotheses:
    """The hypotheses that are continued. Each sentence that is not done has one hypothesis per slot.

    With n slots per sentence, row r of the stepper's state is slot r mod n of sentence r div n.
    """

    sentences: Tensor  # (sentence,) index into the batch
    constrained_log_probs: Tensor  # (sentence, slot) sums; a forced token adds 0; -inf: the slot is empty
    log_probs: Tensor  # (sentence, slot) sums of the model's own log-probabilities
    history: Tensor  # (row, step) tokens so far
    coverage: Tensor | None  # (row, source) attention so far
    origins: Tensor  # (sentence, slot) index of the candidate of the last step that became this hypothesis
    num_finished: Tensor  # (sentence,)
    best_ended: Tensor  # (sentence,) bool: the best candidate of an earlier step has ended

    @classmethod
    def start(cls, batch: Batch, *, need_coverage: bool) -> Self:
        count, device = len(batch), batch.source.device
        zeros = torch.zeros(count, 1, device=device)
        return cls(
            sentences=torch.arange(count, device=device),
            constrained_log_probs=zeros,
            log_probs=zeros,
            history=torch.empty(count, 0, dtype=torch.int64, device=device),
            coverage=initial_coverage(batch) if need_coverage else None,
            origins=torch.zeros(count, 1, dtype=torch.int64, device=device),
            num_finished=torch.zeros(count, dtype=torch.int64, device=device),
            best_ended=torch.zeros(count, dtype=torch.bool, device=device),
        )

    @property
    def step(self) -> int:
        return self.history.shape[1]

    def add_coverage(self, attention: Tensor | None) -> Self:
        """Return the hypotheses with the attention (row, source) of this step added, if coverage is used."""
        if self.coverage is None or attention is None:
            return self
        return replace(self, coverage=self.coverage + attention)

    def rows(self, slots: Tensor) -> Tensor:
        """Return the rows of the state for some slots of each sentence: (sentence, n) -> (sentence, n)."""
        count, num_slots = self.constrained_log_probs.shape
        return slots + torch.arange(0, count * num_slots, num_slots, device=slots.device)[:, None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best continuations of each sentence, best first."""

    parents: Tensor  # (sentence, candidate) the slot that is continued
    tokens: Tensor  # (sentence, candidate)
    constrained_log_probs: Tensor  # (sentence, candidate) sums, as in `LiveHypotheses`
    log_probs: Tensor  # (sentence, candidate) sums of the model's own log-probabilities

    @property
    def is_valid(self) -> Tensor:
        """False for padding and for disallowed tokens, (sentence, candidate)."""
        return self.constrained_log_probs > NEG_INF

    @property
    def ended(self) -> Tensor:
        """True for valid candidates that end in `</s>`, (sentence, candidate)."""
        return (self.tokens == END) & self.is_valid


@torch.no_grad()
def beam_search(
    stepper: Stepper[State],
    batch: Batch,
    plan: SearchPlan,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    on_step: OnStep | None = None,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of every sentence, best first, or fewer if fewer were finished.

    `on_step` is called after every step.
    """
    plan.check_n_best()
    need_attention = plan.coverage_penalty != 0
    forced_prefixes = Prefixes.from_lists(prefixes, num_sentences=len(batch), device=batch.source.device)
    max_lengths = plan.max_lengths(batch).maximum(forced_prefixes.lengths + 1)
    live = LiveHypotheses.start(batch, need_coverage=need_attention)
    last_tokens = torch.full((len(batch),), BEGIN, device=batch.source.device)
    finished: list[FinishedHypotheses] = []
    state = stepper.begin(batch)
    while len(live.sentences):
        log_probs, state, attention = advance(stepper, state, last_tokens, need_attention=need_attention)
        live = live.add_coverage(attention)
        candidates = _candidates(log_probs, live, plan, forced_prefixes)
        at_max_length = max_lengths[live.sentences] == live.step + 1  # (sentence,)
        finishes_now = _finishes_now(candidates, at_max_length, plan.beam)
        finished.extend(_collect_finished(candidates, finishes_now, live, plan))
        order, continued = _continue(candidates, finishes_now, live, plan, at_max_length=at_max_length)
        if on_step is not None:
            on_step(_search_step(candidates, finishes_now, live, continued, plan))
        live = continued
        if len(order):
            state = stepper.reorder(state, order)
            last_tokens = live.history[:, -1]
    return rank_hypotheses(finished, num_sentences=len(batch), n_best=plan.n_best)


def _candidates(
    log_probs: LogProbs, live: LiveHypotheses, plan: SearchPlan, prefixes: Prefixes
) -> Candidates:
    """Return the 2·beam best continuations of each sentence, padded if there are fewer."""
    model_log_probs, masked = mask_disallowed(log_probs, live.history, plan)  # (row, column) each
    num_sentences, count = len(live.sentences), 2 * plan.beam
    best, columns = top_k(masked, count)  # (row, k): only the best k of a row can be among the best k of all
    sums = (live.constrained_log_probs.view(-1, 1) + best).view(num_sentences, -1)  # (sentence, slot × k)
    best_sums, indices = sums.topk(min(count, sums.shape[1]))
    parents = indices // best.shape[1]
    columns = columns.view(num_sentences, -1).gather(1, indices)
    model_sums = model_log_probs[live.rows(parents), columns] + live.log_probs.gather(1, parents)
    padding = (0, count - best_sums.shape[1])
    candidates = Candidates(
        parents=functional.pad(parents, padding),
        tokens=functional.pad(tokens_of(log_probs.ids, columns), padding, value=PAD),
        constrained_log_probs=functional.pad(best_sums, padding, value=NEG_INF),
        log_probs=functional.pad(model_sums, padding, value=NEG_INF),
    )
    return _apply_prefixes(candidates, model_log_probs, log_probs.ids, live, prefixes)


def _apply_prefixes(
    candidates: Candidates,
    model_log_probs: Tensor,
    ids: Tensor | None,
    live: LiveHypotheses,
    prefixes: Prefixes,
) -> Candidates:
    """Make the forced token, if there is one, the only valid candidate of its sentence.

    In the first step after a prefix, make candidates with `</s>` invalid, except the best candidate.
    """
    is_best = torch.arange(candidates.tokens.shape[1], device=candidates.tokens.device) == 0
    weak_end = prefixes.just_ended(live.step, live.sentences)[:, None] & candidates.ended & ~is_best
    constrained_log_probs = candidates.constrained_log_probs.masked_fill(weak_end, NEG_INF)
    if not prefixes.any_at(live.step):
        return replace(candidates, constrained_log_probs=constrained_log_probs)
    tokens, forced = (tensor[:, None] for tensor in prefixes.at(live.step, live.sentences))
    columns = columns_of(ids, tokens)
    rows = live.rows(torch.zeros_like(tokens))
    model_sums = model_log_probs[rows, columns].masked_fill(columns < 0, NEG_INF) + live.log_probs[:, :1]
    forced_sums = torch.where(is_best, 0.0, NEG_INF)
    return Candidates(
        parents=candidates.parents.masked_fill(forced, 0),
        tokens=torch.where(forced, tokens, candidates.tokens),
        constrained_log_probs=torch.where(forced, forced_sums, constrained_log_probs),
        log_probs=torch.where(forced, model_sums, candidates.log_probs),
    )


def _finishes_now(candidates: Candidates, at_max_length: Tensor, beam: int) -> Tensor:
    """Return which candidates are finished now, (sentence, candidate) bool. Only the first `beam` can be."""
    finishes_now = candidates.ended | (at_max_length[:, None] & candidates.is_valid)
    finishes_now[:, beam:] = False
    return finishes_now


def _collect_finished(
    candidates: Candidates, finishes_now: Tensor, live: LiveHypotheses, plan: SearchPlan
) -> list[FinishedHypotheses]:
    """Return the hypotheses that finish in this step, without their `</s>`."""
    groups: list[FinishedHypotheses] = []
    for selected, cut in ((finishes_now & candidates.ended, False), (finishes_now & ~candidates.ended, True)):
        sentence, candidate = selected.nonzero(as_tuple=True)
        if not len(sentence):
            continue
        row = live.rows(candidates.parents)[sentence, candidate]
        ids = live.history[row]
        if cut:
            ids = torch.cat([ids, candidates.tokens[sentence, candidate, None]], dim=1)
        sums = candidates.constrained_log_probs[sentence, candidate]
        coverage = None if live.coverage is None else live.coverage[row]
        scores = ranking_scores(sums, live.step + 1, coverage, plan)
        model_sums = candidates.log_probs[sentence, candidate]
        groups.append(FinishedHypotheses(live.sentences[sentence], ids, scores, model_sums))
    return groups


def _continue(
    candidates: Candidates,
    finishes_now: Tensor,
    live: LiveHypotheses,
    plan: SearchPlan,
    *,
    at_max_length: Tensor,
) -> tuple[Tensor, LiveHypotheses]:
    """Return the rows of the state that are continued, (row,), and the live hypotheses after this step."""
    # The sort is stable: the first candidates are now the best that did not end.
    survivors = candidates.ended.sort(dim=1, stable=True).indices[:, : plan.beam]
    sums = candidates.constrained_log_probs.gather(1, survivors)
    num_finished = live.num_finished + finishes_now.sum(dim=1)
    best_ended = live.best_ended | finishes_now[:, 0]
    done = at_max_length | _has_enough(num_finished, best_ended, plan) | (sums.amax(dim=1) == NEG_INF)
    active = (~done).nonzero().squeeze(1)
    order = live.rows(candidates.parents.gather(1, survivors))[active].view(-1)
    tokens = candidates.tokens.gather(1, survivors)[active].view(-1, 1)
    continued = LiveHypotheses(
        sentences=live.sentences[active],
        constrained_log_probs=sums[active],
        log_probs=candidates.log_probs.gather(1, survivors)[active],
        history=torch.cat([live.history[order], tokens], dim=1),
        coverage=None if live.coverage is None else live.coverage[order],
        origins=survivors[active],
        num_finished=num_finished[active],
        best_ended=best_ended[active],
    )
    return order, continued


def _has_enough(num_finished: Tensor, best_ended: Tensor, plan: SearchPlan) -> Tensor:
    """Return whether each sentence has enough finished hypotheses: (sentence,) bool."""
    if plan.length_penalty == 0 and plan.coverage_penalty == 0:
        return best_ended & (num_finished >= plan.n_best)
    return num_finished >= plan.max_finished


def _search_step(
    candidates: Candidates,
    finishes_now: Tensor,
    live: LiveHypotheses,
    continued: LiveHypotheses,
    plan: SearchPlan,
) -> SearchStep:
    """Return the argument of the `on_step` callback."""
    coverage = None if live.coverage is None else live.coverage[live.rows(candidates.parents)]
    kept = torch.zeros_like(finishes_now)
    active = torch.isin(live.sentences, continued.sentences)
    kept[active] = kept[active].scatter(1, continued.origins, value=True)
    return SearchStep(
        step=live.step,
        sentences=live.sentences,
        parents=live.origins.gather(1, candidates.parents),
        tokens=candidates.tokens,
        constrained_log_probs=candidates.constrained_log_probs,
        log_probs=candidates.log_probs,
        scores=ranking_scores(candidates.constrained_log_probs, live.step + 1, coverage, plan),
        kept=kept & candidates.is_valid,
        finished=finishes_now,
    )
