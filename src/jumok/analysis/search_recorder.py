"""Record a beam search as a `SearchTree`, with the cross-attention of its steps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy

from jumok.analysis.search_tree import Candidate, SearchTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from jumok.analysis.bound_model import BoundModel
    from jumok.inference.search.plan import SearchPlan, SearchStep
    from jumok.text.protocol import AnyTokenizer
    from jumok.types import ReadOut


class SearchRecorder:
    """A callback that collects the steps of the search for one sentence.

    `on_partial` receives the text of the best hypothesis after each step, until that hypothesis is finished.
    """

    def __init__(
        self, plan: SearchPlan, tokenizer: AnyTokenizer, on_partial: Callable[[str], None] | None
    ) -> None:
        self._plan = plan
        self._tokenizer = tokenizer
        self._on_partial = on_partial
        self._steps: list[tuple[Candidate, ...]] = []
        # Index of a candidate in the previous report → its index in the tree.
        self._tree_index: dict[int, int] = {}

    def __call__(self, report: SearchStep) -> None:
        fields = (
            report.parents,
            report.tokens,
            report.constrained_log_probs,
            report.log_probs,
            report.scores,
            report.kept,
            report.finished,
        )
        rows = list(zip(*(field[0].tolist() for field in fields), strict=True))  # one per candidate
        # A row whose constrained log-probability (index 2) is −∞ is padding or a disallowed token.
        candidate_rows = {index: row for index, row in enumerate(rows) if row[2] > -numpy.inf}
        tokens = self._tokenizer.tokens([row[1] for row in candidate_rows.values()])
        candidates = tuple(
            Candidate(
                parent=self._tree_index[parent] if report.step else -1,
                id=id_,
                token=token,
                constrained_log_prob=constrained_log_prob,
                log_prob=log_prob,
                kept=kept,
                finished=finished,
                score=score if finished else None,
            )
            for token, (parent, id_, constrained_log_prob, log_prob, score, kept, finished) in zip(
                tokens, candidate_rows.values(), strict=True
            )
        )
        self._tree_index = {reported: index for index, reported in enumerate(candidate_rows)}
        self._steps.append(candidates)
        self._report_partial(report.step, candidates)

    def tree(self, bound_model: BoundModel, read_out: ReadOut | None) -> SearchTree:
        """Return all steps, with their cross-attention if the model has any."""
        tree = self._tree()
        return _with_attention(tree, bound_model, read_out) if bound_model.model.has_cross_attention else tree

    def _tree(self) -> SearchTree:
        return SearchTree(self._plan.beam, self._plan.length_penalty, tuple(self._steps))

    def _report_partial(self, step: int, candidates: tuple[Candidate, ...]) -> None:
        """Report the text of the step's most probable candidate, until such a candidate is finished."""
        if self._on_partial is None or not candidates:
            return
        self._on_partial(self._tokenizer.decode(self._tree().ids(step, 0)))
        if candidates[0].finished:
            self._on_partial = None


def _with_attention(tree: SearchTree, bound_model: BoundModel, read_out: ReadOut | None) -> SearchTree:
    """Return the tree with the cross-attention of each candidate that was not pruned.

    The heads of the read-out are averaged. The attention of a step depends only on the tokens before the
    step. So one pass over a prefix also gives the attention for all its shorter prefixes.
    """
    prefixes = {
        (step, index): tree.ids(step - 1, candidate.parent) if step else ()
        for step, candidates in enumerate(tree.steps)
        for index, candidate in enumerate(candidates)
        if candidate.kept or candidate.finished
    }
    ordered = sorted(set(prefixes.values()))
    # After sorting, a prefix that is the beginning of a longer prefix comes right before such a prefix.
    pairs = pairwise([*ordered, ()])  # the empty tuple marks the end
    longest = [ids for ids, next_ids in pairs if not next_ids or next_ids[: len(ids)] != ids]
    attention: list[NDArray[Any]] = []
    row_of: dict[tuple[int, ...], int] = {}
    for ids, weights in zip(longest, bound_model.weights(longest), strict=True):
        heads = (read_out or bound_model.default_read_out(*weights["cross"].shape[:2])).heads
        rows = numpy.mean([weights["cross"][head] for head in heads], axis=0)  # (step, key)
        for length in range(len(ids) + 1):
            if ids[:length] not in row_of:
                row_of[ids[:length]] = len(attention)
                attention.append(rows[length])
    steps = tuple(
        tuple(
            replace(candidate, attention_row=row_of[prefixes[step, index]])
            if (step, index) in prefixes
            else candidate
            for index, candidate in enumerate(candidates)
        )
        for step, candidates in enumerate(tree.steps)
    )
    # The reshape keeps the width even if there is no row.
    table = numpy.array(attention, dtype=numpy.float32).reshape(-1, bound_model.source_length)
    return SearchTree(tree.beam, tree.length_penalty, steps, table)
