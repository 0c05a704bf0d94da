"""One hypothesis a sentence, piece after piece: greedy search takes the best piece, sampling draws one.

Both follow CTranslate2 in what ends a translation and in its score (see `finished.py`): the score of a drawn
translation is made of the model's log-probabilities, not of those that the temperature bent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import torch

from jumok.decoding.finished import Finished, first_coverage, rank, ranking_scores
from jumok.decoding.guards import NEVER, Prefixes, columns_of, guard, pieces_of
from jumok.decoding.plan import SearchStep
from jumok.decoding.stepper import advance
from jumok.values import BEGIN, END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.decoding.plan import Listener, Sampling, SearchPlan
    from jumok.decoding.stepper import Stepper
    from jumok.values import Batch, Hypothesis, LogProbs

__all__ = ["greedy", "sample"]

State = TypeVar("State")
Choice = Callable[["Tensor"], "Tensor"]
"""From log-probabilities (row, column) the column that each row takes: (row,)."""


@dataclass(frozen=True, slots=True)
class Route:
    """What is the same for the whole walk."""

    plan: SearchPlan
    prefixes: Prefixes
    limits: Tensor  # (batch,)
    choose: Choice

    @classmethod
    def of(
        cls, batch: Batch, plan: SearchPlan, prefixes: Sequence[Sequence[int]] | None, choose: Choice
    ) -> Self:
        forced = Prefixes.of(prefixes, sentences=len(batch), device=batch.source.device)
        return cls(plan, forced, plan.limits(batch).maximum(forced.lengths + 1), choose)


@dataclass(frozen=True, slots=True)
class Walks:
    """The translations under way, one a row."""

    sentences: Tensor  # (row,) index into the batch
    scores: Tensor  # (row,) what is ranked by: guards and prefix applied
    log_probs: Tensor  # (row,) the model's own
    history: Tensor  # (row, step)
    coverage: Tensor | None  # (row, source) attention so far

    @classmethod
    def start(cls, batch: Batch, plan: SearchPlan) -> Self:
        """`plan.n_best` rows a sentence."""
        device = batch.source.device
        sentences = torch.arange(len(batch), device=device).repeat_interleave(plan.n_best)
        zeros = torch.zeros(len(sentences), device=device)
        coverage = first_coverage(batch)[sentences] if plan.coverage_penalty else None
        return cls(sentences, zeros, zeros, sentences.new_empty(len(sentences), 0), coverage)

    @property
    def step(self) -> int:
        return self.history.shape[1]

    def extended(self, last: Tensor, attention: Tensor | None) -> Self:
        """One piece (row,) further."""
        coverage = self.coverage
        if coverage is not None and attention is not None:
            coverage = coverage + attention
        return replace(self, history=torch.cat([self.history, last[:, None]], dim=1), coverage=coverage)

    def only(self, rows: Tensor) -> Self:
        """These rows."""
        coverage = None if self.coverage is None else self.coverage[rows]
        return replace(
            self,
            sentences=self.sentences[rows],
            scores=self.scores[rows],
            log_probs=self.log_probs[rows],
            history=self.history[rows],
            coverage=coverage,
        )


@torch.no_grad()
def greedy(
    stepper: Stepper[State],
    batch: Batch,
    plan: SearchPlan,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    listener: Listener | None = None,
) -> list[list[Hypothesis]]:
    """One translation a sentence: the likeliest piece at every step. The same as a beam of 1, but faster."""
    route = Route.of(batch, replace(plan, n_best=1), prefixes, _likeliest)
    found = _walk(stepper, stepper.begin(batch), batch, route, listener)
    return rank(found, sentences=len(batch), n_best=1)


@torch.no_grad()
def sample(
    stepper: Stepper[State],
    batch: Batch,
    plan: SearchPlan,
    sampling: Sampling,
    *,
    generator: torch.Generator,
    prefixes: Sequence[Sequence[int]] | None = None,
    listener: Listener | None = None,
) -> list[list[Hypothesis]]:
    """`plan.n_best` independent draws a sentence, best score first. Two draws may be the same."""

    def draw(values: Tensor) -> Tensor:
        return _drawn(values, sampling, generator)

    route = Route.of(batch, plan, prefixes, draw)
    order = torch.arange(len(batch), device=batch.source.device).repeat_interleave(plan.n_best)
    state = stepper.reorder(stepper.begin(batch), order)
    found = _walk(stepper, state, batch, route, listener)
    return rank(found, sentences=len(batch), n_best=plan.n_best)


def _walk(
    stepper: Stepper[State], state: State, batch: Batch, route: Route, listener: Listener | None
) -> list[Finished]:
    """Walk all rows to their ends."""
    attend = route.plan.coverage_penalty != 0
    walks = Walks.start(batch, route.plan)
    names = torch.arange(len(walks.sentences), device=batch.source.device)
    last = torch.full_like(names, BEGIN)
    found: list[Finished] = []
    while len(names):
        following, state, attention = advance(stepper, state, last, attend=attend)
        last, walks = _chosen(following, walks, route)
        ended = last == END
        cut = ~ended & (route.limits[walks.sentences] == walks.step + 1)
        done = ended | cut
        walks = walks.extended(last, attention)
        if listener is not None:
            listener(_report(walks, names, last, done, route.plan))
        found.extend(_finished(walks, ended, cut, route.plan))
        rows = (~done).nonzero().squeeze(1)
        if 0 < len(rows) < len(names):
            state = stepper.reorder(state, rows)
        walks, names, last = walks.only(rows), names[rows], last[rows]
    return found


def _chosen(following: LogProbs, walks: Walks, route: Route) -> tuple[Tensor, Walks]:
    """The next piece of each row (row,), and the walks with its log-probability added."""
    values = guard(following, walks.history, route.plan)
    columns = route.choose(values)
    tokens = pieces_of(following, columns)
    gain = values.gather(1, columns[:, None]).squeeze(1)
    if route.prefixes.forces(walks.step):
        pieces, forced = route.prefixes.at(walks.step, walks.sentences)
        tokens = torch.where(forced, pieces, tokens)
        columns = torch.where(forced, columns_of(following, pieces), columns)
        gain = gain.masked_fill(forced, 0.0)
    plain = following.values.gather(1, columns.clamp(min=0)[:, None]).squeeze(1)
    plain = plain.masked_fill(columns < 0, NEVER)
    return tokens, replace(walks, scores=walks.scores + gain, log_probs=walks.log_probs + plain)


def _finished(walks: Walks, ended: Tensor, cut: Tensor, plan: SearchPlan) -> list[Finished]:
    """The rows that took `</s>`, which is left out, and those cut at their longest length."""
    groups: list[Finished] = []
    for chosen, pieces in ((ended, walks.step - 1), (cut, walks.step)):
        if chosen.any():
            ends = walks.only(chosen.nonzero().squeeze(1))
            scores = ranking_scores(ends.scores, ends.step, ends.coverage, plan)
            groups.append(Finished(ends.sentences, ends.history[:, :pieces], scores, ends.log_probs))
    return groups


def _report(walks: Walks, names: Tensor, last: Tensor, done: Tensor, plan: SearchPlan) -> SearchStep:
    """The step that was just taken, as a listener hears it."""
    return SearchStep(
        step=walks.step - 1,
        sentences=names,
        parents=torch.zeros_like(names)[:, None],
        tokens=last[:, None],
        scores=walks.scores[:, None],
        log_probs=walks.log_probs[:, None],
        ranking=ranking_scores(walks.scores, walks.step, walks.coverage, plan)[:, None],
        kept=~done[:, None],
        finished=done[:, None],
    )


def _likeliest(values: Tensor) -> Tensor:
    return values.argmax(dim=-1)


def _drawn(values: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    """One column a row, drawn from softmax(values / temperature) cut to its top k and top p."""
    columns: Tensor | None = None
    if 0 < sampling.top_k < values.shape[1]:
        values, columns = values.topk(sampling.top_k)
    elif sampling.top_p < 1:
        values, columns = values.sort(dim=-1, descending=True)
    probs = (values / sampling.temperature).softmax(dim=-1)
    if columns is not None and sampling.top_p < 1:
        before = probs.cumsum(dim=-1) - probs  # the mass of the likelier pieces
        probs = probs.masked_fill(before >= sampling.top_p, 0.0)
    drawn = probs.multinomial(1, generator=generator)
    return (drawn if columns is None else columns.gather(1, drawn)).squeeze(1)
