"""Beam search: the best few beginnings are kept at every step.

Its rules are those of CTranslate2, so that its engine gives the same translations:

- The 2·beam best candidates of a step are looked at, by the plain sum of log-probabilities. Those among the
  first `beam` that end in `</s>` are finished; those further down that end are dropped. The first `beam` that
  do not end go on.
- A sentence is done when `beam · patience` hypotheses are finished, or at its longest length, where the first
  `beam` candidates are finished as they stand. With neither length nor coverage penalty, it is done as soon
  as a best candidate has ended and n_best hypotheses are finished.
- While a prefix is forced, its pieces cost nothing. At the first free step after it, `</s>` is only taken if
  it is the best candidate (CTranslate2 issue 277).
- Length and coverage matter only when finished hypotheses are ranked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import torch
from torch.nn import functional

from jumok.decoding.finished import Finished, first_coverage, rank, ranking_scores
from jumok.decoding.guards import NEVER, Prefixes, columns_of, guard, pieces_of
from jumok.decoding.plan import SearchStep
from jumok.decoding.stepper import advance
from jumok.decoding.top import top
from jumok.values import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.decoding.plan import Listener, SearchPlan
    from jumok.decoding.stepper import Stepper
    from jumok.values import Batch, Hypothesis, LogProbs

__all__ = ["beam"]

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Beams:
    """The hypotheses being continued: `slot` of them for each sentence that is still searched.

    Row r of the stepper's state is slot r mod width of sentence r div width.
    """

    sentences: Tensor  # (sentence,) index into the batch
    scores: (
        Tensor  # (sentence, slot) what is searched by: guards and prefix applied; -inf where nothing lives
    )
    log_probs: Tensor  # (sentence, slot) the model's own
    history: Tensor  # (row, step) pieces so far
    coverage: Tensor | None  # (row, source) attention so far
    origins: Tensor  # (sentence, slot) the candidate of the last step that stands here
    num_finished: Tensor  # (sentence,)
    best_ended: Tensor  # (sentence,) bool: a best candidate has ended before

    @classmethod
    def start(cls, batch: Batch, *, attend: bool) -> Self:
        count, device = len(batch), batch.source.device
        zeros = torch.zeros(count, 1, device=device)
        return cls(
            sentences=torch.arange(count, device=device),
            scores=zeros,
            log_probs=zeros,
            history=torch.empty(count, 0, dtype=torch.int64, device=device),
            coverage=first_coverage(batch) if attend else None,
            origins=torch.zeros(count, 1, dtype=torch.int64, device=device),
            num_finished=torch.zeros(count, dtype=torch.int64, device=device),
            best_ended=torch.zeros(count, dtype=torch.bool, device=device),
        )

    @property
    def step(self) -> int:
        return self.history.shape[1]

    def after_look(self, attention: Tensor | None) -> Self:
        """With the attention (row, source) of the step under way counted, where coverage is."""
        if self.coverage is None or attention is None:
            return self
        return replace(self, coverage=self.coverage + attention)

    def rows(self, slots: Tensor) -> Tensor:
        """The rows of the state at which slots (sentence, any) stand."""
        count, width = self.scores.shape
        return slots + torch.arange(0, count * width, width, device=slots.device)[:, None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best continuations of each sentence, best first."""

    parents: Tensor  # (sentence, candidate) slot that is continued
    tokens: Tensor  # (sentence, candidate)
    scores: Tensor  # (sentence, candidate)
    log_probs: Tensor  # (sentence, candidate)

    @property
    def alive(self) -> Tensor:
        return self.scores > NEVER

    @property
    def ended(self) -> Tensor:
        return (self.tokens == END) & self.alive


@torch.no_grad()
def beam(
    stepper: Stepper[State],
    batch: Batch,
    plan: SearchPlan,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    listener: Listener | None = None,
) -> list[list[Hypothesis]]:
    """The n best translations of every sentence that beam search finds, best first."""
    plan.check_n_best()
    attend = plan.coverage_penalty != 0
    forced = Prefixes.of(prefixes, sentences=len(batch), device=batch.source.device)
    limits = plan.limits(batch).maximum(forced.lengths + 1)
    beams = Beams.start(batch, attend=attend)
    last = torch.full((len(batch),), BEGIN, device=batch.source.device)
    found: list[Finished] = []
    state = stepper.begin(batch)
    while len(beams.sentences):
        following, state, attention = advance(stepper, state, last, attend=attend)
        beams = beams.after_look(attention)
        candidates = _forced(_candidates(following, beams, plan), following, beams, forced)
        final = limits[beams.sentences] == beams.step + 1  # (sentence,)
        ending = _ending(candidates, final, plan.beam)
        found.extend(_finished(candidates, ending, beams, plan))
        order, continued = _continued(candidates, ending, beams, plan, final=final)
        if listener is not None:
            listener(_report(candidates, ending, beams, continued, plan))
        beams = continued
        if len(order):
            state = stepper.reorder(state, order)
            last = beams.history[:, -1]
    return rank(found, sentences=len(batch), n_best=plan.n_best)


def _candidates(following: LogProbs, beams: Beams, plan: SearchPlan) -> Candidates:
    """The 2·beam best continuations of each sentence. Fewer exist where a first step knows fewer pieces."""
    values = guard(following, beams.history, plan)  # (row, column)
    sentences, count = len(beams.sentences), 2 * plan.beam
    best, columns = top(values, count)  # (row, k): no more than the best k of a row can be among all best
    sums = (beams.scores.view(-1, 1) + best).view(sentences, -1)  # (sentence, slot × k)
    scores, chosen = sums.topk(min(count, sums.shape[1]))
    parents = chosen // best.shape[1]
    columns = columns.view(sentences, -1).gather(1, chosen)
    plain = following.values[beams.rows(parents), columns] + beams.log_probs.gather(1, parents)
    missing = (0, count - scores.shape[1])
    return Candidates(
        parents=functional.pad(parents, missing),
        tokens=functional.pad(pieces_of(following, columns), missing, value=PAD),
        scores=functional.pad(scores, missing, value=NEVER),
        log_probs=functional.pad(plain, missing, value=NEVER),
    )


def _forced(candidates: Candidates, following: LogProbs, beams: Beams, prefixes: Prefixes) -> Candidates:
    """Candidates that respect the prefixes: one only while a piece is forced, and no weak end after it."""
    is_best = torch.arange(candidates.tokens.shape[1], device=candidates.tokens.device) == 0
    weak_end = prefixes.just_ended(beams.step, beams.sentences)[:, None] & candidates.ended & ~is_best
    scores = candidates.scores.masked_fill(weak_end, NEVER)
    if not prefixes.forces(beams.step):
        return replace(candidates, scores=scores)
    pieces, forced = (part[:, None] for part in prefixes.at(beams.step, beams.sentences))
    columns = columns_of(following, pieces)
    rows = beams.rows(torch.zeros_like(pieces))
    plain = following.values[rows, columns].masked_fill(columns < 0, NEVER) + beams.log_probs[:, :1]
    only = torch.where(is_best, 0.0, NEVER)
    return Candidates(
        parents=candidates.parents.masked_fill(forced, 0),
        tokens=torch.where(forced, pieces, candidates.tokens),
        scores=torch.where(forced, only, scores),
        log_probs=torch.where(forced, plain, candidates.log_probs),
    )


def _ending(candidates: Candidates, final: Tensor, beam: int) -> Tensor:
    """Which candidates become hypotheses: (sentence, candidate) bool. Never those beyond the first `beam`."""
    ending = candidates.ended | (final[:, None] & candidates.alive)
    ending[:, beam:] = False
    return ending


def _finished(candidates: Candidates, ending: Tensor, beams: Beams, plan: SearchPlan) -> list[Finished]:
    """The hypotheses of this step: those that ended, and those that were cut with their last piece."""
    groups: list[Finished] = []
    for chosen, cut in ((ending & candidates.ended, False), (ending & ~candidates.ended, True)):
        sentence, place = chosen.nonzero(as_tuple=True)
        if not len(sentence):
            continue
        row = beams.rows(candidates.parents)[sentence, place]
        ids = beams.history[row]
        if cut:
            ids = torch.cat([ids, candidates.tokens[sentence, place, None]], dim=1)
        sums = candidates.scores[sentence, place]
        coverage = None if beams.coverage is None else beams.coverage[row]
        scores = ranking_scores(sums, beams.step + 1, coverage, plan)
        groups.append(Finished(beams.sentences[sentence], ids, scores, candidates.log_probs[sentence, place]))
    return groups


def _continued(
    candidates: Candidates, ending: Tensor, beams: Beams, plan: SearchPlan, *, final: Tensor
) -> tuple[Tensor, Beams]:
    """The beams after this step, and the rows of the state that they continue: (row,)."""
    kept = candidates.ended.sort(dim=1, stable=True).indices[:, : plan.beam]  # the first that did not end
    scores = candidates.scores.gather(1, kept)
    num_finished = beams.num_finished + ending.sum(dim=1)
    best_ended = beams.best_ended | ending[:, 0]
    done = final | _enough(num_finished, best_ended, plan) | (scores.amax(dim=1) == NEVER)
    goes_on = (~done).nonzero().squeeze(1)
    order = beams.rows(candidates.parents.gather(1, kept))[goes_on].view(-1)
    tokens = candidates.tokens.gather(1, kept)[goes_on].view(-1, 1)
    continued = Beams(
        sentences=beams.sentences[goes_on],
        scores=scores[goes_on],
        log_probs=candidates.log_probs.gather(1, kept)[goes_on],
        history=torch.cat([beams.history[order], tokens], dim=1),
        coverage=None if beams.coverage is None else beams.coverage[order],
        origins=kept[goes_on],
        num_finished=num_finished[goes_on],
        best_ended=best_ended[goes_on],
    )
    return order, continued


def _enough(num_finished: Tensor, best_ended: Tensor, plan: SearchPlan) -> Tensor:
    """Whether a sentence has all the hypotheses it needs: (sentence,) bool."""
    if plan.length_penalty == 0 and plan.coverage_penalty == 0:
        return best_ended & (num_finished >= plan.n_best)
    return num_finished >= plan.wanted


def _report(
    candidates: Candidates, ending: Tensor, beams: Beams, continued: Beams, plan: SearchPlan
) -> SearchStep:
    """The step as a listener hears it."""
    coverage = None if beams.coverage is None else beams.coverage[beams.rows(candidates.parents)]
    kept = torch.zeros_like(ending)
    goes_on = torch.isin(beams.sentences, continued.sentences)
    kept[goes_on] = kept[goes_on].scatter(1, continued.origins, value=True)
    return SearchStep(
        step=beams.step,
        sentences=beams.sentences,
        parents=beams.origins.gather(1, candidates.parents),
        tokens=candidates.tokens,
        scores=candidates.scores,
        log_probs=candidates.log_probs,
        ranking=ranking_scores(candidates.scores, beams.step + 1, coverage, plan),
        kept=kept & candidates.alive,
        finished=ending,
    )
