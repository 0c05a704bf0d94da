"""Greedy search and sampling: one hypothesis per row, token after token.

Greedy search takes the most probable token, and sampling draws a token. In both, translations end and are
scored by the rules of CTranslate2 (see `finished.py`). The score of a sampled translation is computed from
the constrained log-probabilities, without temperature, top_k and top_p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import torch

from jumok.inference.search.constraints import NEG_INF, Prefixes, columns_of, mask_disallowed, tokens_of
from jumok.inference.search.finished import (
    FinishedHypotheses,
    initial_coverage,
    rank_hypotheses,
    ranking_scores,
)
from jumok.inference.search.plan import SearchStep
from jumok.inference.search.stepper import advance
from jumok.types import BEGIN, END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.inference.search.plan import OnStep, Sampling, SearchPlan
    from jumok.inference.search.stepper import Stepper
    from jumok.types import Batch, Hypothesis, LogProbs

State = TypeVar("State")
ChooseColumns = Callable[["Tensor"], "Tensor"]
"""A function from log-probabilities (row, column) to the chosen column of each row, (row,)."""


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """The arguments that are the same in all steps."""

    plan: SearchPlan
    prefixes: Prefixes
    max_lengths: Tensor  # (batch,)
    choose: ChooseColumns

    @classmethod
    def for_batch(
        cls,
        batch: Batch,
        plan: SearchPlan,
        prefixes: Sequence[Sequence[int]] | None,
        choose: ChooseColumns,
    ) -> Self:
        forced_prefixes = Prefixes.from_lists(prefixes, num_sentences=len(batch), device=batch.source.device)
        max_lengths = plan.max_lengths(batch).maximum(forced_prefixes.lengths + 1)
        return cls(plan, forced_prefixes, max_lengths, choose)


@dataclass(frozen=True, slots=True)
class Rows:
    """The unfinished translations, one per row of the stepper's state."""

    sentences: Tensor  # (row,) index into the batch
    constrained_log_probs: Tensor  # (row,) sums; a forced token adds 0
    log_probs: Tensor  # (row,) sums of the model's own log-probabilities
    history: Tensor  # (row, step) tokens so far
    coverage: Tensor | None  # (row, source) attention so far

    @classmethod
    def start(cls, batch: Batch, plan: SearchPlan) -> Self:
        """Return `plan.n_best` rows per sentence."""
        device = batch.source.device
        sentences = torch.arange(len(batch), device=device).repeat_interleave(plan.n_best)
        zeros = torch.zeros(len(sentences), device=device)
        coverage = initial_coverage(batch)[sentences] if plan.coverage_penalty else None
        return cls(sentences, zeros, zeros, sentences.new_empty(len(sentences), 0), coverage)

    @property
    def step(self) -> int:
        return self.history.shape[1]

    def extend(self, tokens: Tensor, attention: Tensor | None) -> Self:
        """Return the rows with one token appended to each, and this attention added to the coverage."""
        coverage = self.coverage
        if coverage is not None and attention is not None:
            coverage = coverage + attention
        return replace(self, history=torch.cat([self.history, tokens[:, None]], dim=1), coverage=coverage)

    def select(self, rows: Tensor) -> Self:
        """Return only the rows with these indices."""
        coverage = None if self.coverage is None else self.coverage[rows]
        return replace(
            self,
            sentences=self.sentences[rows],
            constrained_log_probs=self.constrained_log_probs[rows],
            log_probs=self.log_probs[rows],
            history=self.history[rows],
            coverage=coverage,
        )


@torch.no_grad()
def greedy_search(
    stepper: Stepper[State],
    batch: Batch,
    plan: SearchPlan,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    on_step: OnStep | None = None,
) -> list[list[Hypothesis]]:
    """Return one hypothesis per sentence, with the most probable token at every step.

    A beam search with a beam of 1 gives the same hypotheses, but is slower. `plan.beam` and `plan.n_best` are
    not used.
    """
    context = DecodeContext.for_batch(batch, replace(plan, n_best=1), prefixes, _argmax)
    finished = _decode(stepper, stepper.begin(batch), batch, context, on_step)
    return rank_hypotheses(finished, num_sentences=len(batch), n_best=1)


@torch.no_grad()
def sample(
    stepper: Stepper[State],
    batch: Batch,
    plan: SearchPlan,
    sampling: Sampling,
    *,
    generator: torch.Generator,
    prefixes: Sequence[Sequence[int]] | None = None,
    on_step: OnStep | None = None,
) -> list[list[Hypothesis]]:
    """Return `plan.n_best` independent draws per sentence, best score first. Two draws may be the same."""

    def choose(values: Tensor) -> Tensor:
        return _draw(values, sampling, generator)

    context = DecodeContext.for_batch(batch, plan, prefixes, choose)
    order = torch.arange(len(batch), device=batch.source.device).repeat_interleave(plan.n_best)
    state = stepper.reorder(stepper.begin(batch), order)
    finished = _decode(stepper, state, batch, context, on_step)
    return rank_hypotheses(finished, num_sentences=len(batch), n_best=plan.n_best)


def _decode(
    stepper: Stepper[State], state: State, batch: Batch, context: DecodeContext, on_step: OnStep | None
) -> list[FinishedHypotheses]:
    """Extend all rows until they are finished. `state` must have `context.plan.n_best` rows per sentence."""
    need_attention = context.plan.coverage_penalty != 0
    rows = Rows.start(batch, context.plan)
    row_ids = torch.arange(len(rows.sentences), device=batch.source.device)
    last_tokens = torch.full_like(row_ids, BEGIN)
    finished: list[FinishedHypotheses] = []
    while len(row_ids):
        log_probs, state, attention = advance(stepper, state, last_tokens, need_attention=need_attention)
        last_tokens, rows = _choose_tokens(log_probs, rows, context)
        ended = last_tokens == END
        cut = ~ended & (context.max_lengths[rows.sentences] == rows.step + 1)
        done = ended | cut
        rows = rows.extend(last_tokens, attention)
        if on_step is not None:
            on_step(_search_step(rows, row_ids, last_tokens, done, context.plan))
        finished.extend(_collect_finished(rows, ended, cut, context.plan))
        active = (~done).nonzero().squeeze(1)
        if 0 < len(active) < len(row_ids):
            state = stepper.reorder(state, active)
        rows, row_ids, last_tokens = rows.select(active), row_ids[active], last_tokens[active]
    return finished


def _choose_tokens(log_probs: LogProbs, rows: Rows, context: DecodeContext) -> tuple[Tensor, Rows]:
    """Return the next token of each row, (row,), and the rows with the sums of log-probabilities after it.

    The token itself is not appended yet: see `Rows.extend`.
    """
    model_log_probs, masked = mask_disallowed(log_probs, rows.history, context.plan)
    columns = context.choose(masked)
    tokens = tokens_of(log_probs.ids, columns)
    gain = masked.gather(1, columns[:, None]).squeeze(1)
    if context.prefixes.any_at(rows.step):
        prefix_tokens, forced = context.prefixes.at(rows.step, rows.sentences)
        tokens = torch.where(forced, prefix_tokens, tokens)
        columns = torch.where(forced, columns_of(log_probs.ids, prefix_tokens), columns)
        gain = gain.masked_fill(forced, 0.0)
    model_gain = model_log_probs.gather(1, columns.clamp(min=0)[:, None]).squeeze(1)
    model_gain = model_gain.masked_fill(columns < 0, NEG_INF)
    constrained_log_probs, summed_log_probs = rows.constrained_log_probs + gain, rows.log_probs + model_gain
    return tokens, replace(rows, constrained_log_probs=constrained_log_probs, log_probs=summed_log_probs)


def _collect_finished(rows: Rows, ended: Tensor, cut: Tensor, plan: SearchPlan) -> list[FinishedHypotheses]:
    """Return the rows that ended, without their `</s>`, and the rows cut at their maximum length."""
    groups: list[FinishedHypotheses] = []
    for selected, length in ((ended, rows.step - 1), (cut, rows.step)):
        if selected.any():
            finished = rows.select(selected.nonzero().squeeze(1))
            scores = ranking_scores(finished.constrained_log_probs, finished.step, finished.coverage, plan)
            groups.append(
                FinishedHypotheses(
                    finished.sentences, finished.history[:, :length], scores, finished.log_probs
                )
            )
    return groups


def _search_step(rows: Rows, row_ids: Tensor, tokens: Tensor, done: Tensor, plan: SearchPlan) -> SearchStep:
    """Return the argument of the `on_step` callback for the step that was just made."""
    return SearchStep(
        step=rows.step - 1,
        sentences=row_ids,
        parents=torch.zeros_like(row_ids)[:, None],
        tokens=tokens[:, None],
        constrained_log_probs=rows.constrained_log_probs[:, None],
        log_probs=rows.log_probs[:, None],
        scores=ranking_scores(rows.constrained_log_probs, rows.step, rows.coverage, plan)[:, None],
        kept=~done[:, None],
        finished=done[:, None],
    )


def _argmax(values: Tensor) -> Tensor:
    return values.argmax(dim=-1)


def _draw(values: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    """Return one column per row, drawn from softmax(values / temperature) as `Sampling` limits it."""
    columns: Tensor | None = None
    if 0 < sampling.top_k < values.shape[1]:
        values, columns = values.topk(sampling.top_k)
    elif sampling.top_p < 1:
        values, columns = values.sort(dim=-1, descending=True)
    probs = (values / sampling.temperature).softmax(dim=-1)
    if columns is not None and sampling.top_p < 1:
        before = probs.cumsum(dim=-1) - probs  # the probability of all more probable tokens
        probs = probs.masked_fill(before >= sampling.top_p, 0.0)
    drawn = probs.cpu().multinomial(1, generator=generator).to(probs.device)  # the same on every device
    return (drawn if columns is None else columns.gather(1, drawn)).squeeze(1)
