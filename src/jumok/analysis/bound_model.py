"""A model bound to one source sentence and one edit: the passes that explanations are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch

from jumok.analysis.change_edits import silence_per_row
from jumok.analysis.cost import count_weights
from jumok.analysis.trace import trace_cell
from jumok.data.batching import padded_batch
from jumok.inference.alignment.readout import default_read_out, last_layer_read_out
from jumok.inference.teacher_forcing import next_log_probs, site_weights
from jumok.models.decoder_only import DecoderOnly
from jumok.types import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.analysis.change_edits import HeadGroup
    from jumok.analysis.cost import CostLimits
    from jumok.analysis.steps import Cell, CellSteps
    from jumok.attention import Edit
    from jumok.models.model import TranslationModel
    from jumok.types import ReadOut

MAX_BATCH_TOKENS = 4096
"""The maximum number of target tokens in one batch, including `</s>` and padding."""
MAX_BATCH_WEIGHTS = 8_000_000
"""The maximum number of attention weights in one batch. A batch of a single target may exceed both limits."""


@dataclass(frozen=True)
class BoundModel:
    """A model, a source, and an edit that is applied to all attention of the model.

    A source is token ids without `</s>`, or the patches of a picture, an array (patch, value) of bytes.
    If `limits` are given, the methods `weights`, `silencing_effects` and `erasing_effects` check the limits
    before they compute anything. Call `check_cost` before other passes.
    """

    model: TranslationModel
    source: Sequence[Any]
    edit: Edit | None = None
    limits: CostLimits | None = None

    @property
    def reads_picture(self) -> bool:
        return isinstance(self.source, numpy.ndarray)

    @property
    def source_length(self) -> int:
        """The number of keys of the source: its tokens and `</s>`, or its patches."""
        return len(self.source) + (not self.reads_picture)

    def default_read_out(self, layers: int, heads: int) -> ReadOut:
        """Return the read-out to use if none was chosen for the model when it was trained."""
        choose = last_layer_read_out if self.reads_picture else default_read_out
        return choose(layers, heads)

    def check_cost(self, targets: Sequence[Sequence[int]]) -> None:
        """Refuse passes over these targets that the limits do not allow."""
        if self.limits is not None:
            self.limits.check(self.model, len(self.source), [len(target) for target in targets])

    def weights(self, targets: Sequence[Sequence[int]]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield, per target, site → weights (layer, head, query, key) of one teacher-forced pass."""
        self.check_cost(targets)
        for batch in self.batches(targets):
            yield from site_weights(self.model, [self.source] * len(batch), batch, edit=self.edit)

    def log_probs(self, target: Sequence[int]) -> Tensor:
        """Return the log-probability of every token at every step, (step, token)."""
        return next_log_probs(self.model, self.source, target, edit=self.edit)

    def log_prob(self, target: Sequence[int], *, ended: bool = True) -> float:
        """Return the log-probability of a whole target. If the target `ended`, its `</s>` is included."""
        [log_probs] = self._token_log_probs([target], self.edit, ended=ended)
        return float(log_probs.sum())

    def steps(self, target: Sequence[int], cell: Cell) -> CellSteps:
        """Return the computation of one cell's weight and of what follows from the weight, step by step."""
        return trace_cell(self.model, self.source, target, cell, edit=self.edit)

    def silencing_effects(
        self, target: Sequence[int], groups: Sequence[HeadGroup], *, ended: bool = True
    ) -> NDArray[numpy.float64]:
        """Return, per group, how each log-probability changes when the group's heads are silenced.

        The array is (group, step); the last step is `</s>` if the target `ended`. Each row sums to the change
        in the log-probability of the whole target.
        """
        self.check_cost([target] * len(groups))
        [original_log_probs] = self._token_log_probs([target], self.edit, ended=ended)
        effects: list[NDArray[numpy.float64]] = []
        for batch in self.batches([target] * len(groups)):
            batch_groups = groups[len(effects) : len(effects) + len(batch)]
            edit = silence_per_row(batch_groups, self.model, self.source_length, self.edit)
            batch_log_probs = self._token_log_probs(batch, edit, ended=ended)
            effects.extend(log_probs - original_log_probs for log_probs in batch_log_probs)
        return numpy.stack(effects) if effects else numpy.zeros((0, len(original_log_probs)))

    def erasing_effects(
        self, target: Sequence[int], erased: Sequence[Sequence[int]], *, ended: bool = True
    ) -> NDArray[numpy.float64]:
        """Return, per entry of `erased`, how each log-probability changes when source tokens are deleted.

        An entry has the positions of the tokens that are deleted together. The array is (entry, step); the
        last step is `</s>` if the target `ended`. The source must be token ids: patches cannot be deleted.
        """
        self.check_cost([target] * len(erased))
        sources = [
            [token for position, token in enumerate(self.source) if position not in positions]
            for positions in map(set, erased)
        ]
        [original_log_probs] = self._token_log_probs([target], self.edit, ended=ended)
        # In a decoder-only model, targets follow the padded sources, and the edit was made for targets that
        # begin at `source_length`. One more row, with the whole source, pads all sources to this length.
        needs_whole_source = self.edit is not None and isinstance(self.model, DecoderOnly)
        padding_rows = [self.source] * needs_whole_source
        effects: list[NDArray[numpy.float64]] = []
        for batch in self.batches([target] * len(erased)):
            batch_sources = [*sources[len(effects) : len(effects) + len(batch)], *padding_rows]
            batch_targets = [*batch, *[target] * len(padding_rows)]
            log_probs_by_row = self._token_log_probs(
                batch_targets, self.edit, ended=ended, sources=batch_sources
            )
            effects.extend(log_probs - original_log_probs for log_probs in log_probs_by_row[: len(batch)])
        return numpy.stack(effects) if effects else numpy.zeros((0, len(original_log_probs)))

    @torch.inference_mode()
    def _token_log_probs(
        self,
        targets: Sequence[Sequence[int]],
        edit: Edit | None,
        *,
        ended: bool,
        sources: Sequence[Sequence[Any]] | None = None,
    ) -> list[NDArray[numpy.float64]]:
        """Return the log-probabilities of each target's tokens, and of its `</s>` if the target `ended`.

        Without `sources`, every target belongs to the source of this object. To save memory, the output layer
        computes one target at a time.
        """
        states = self.model(padded_batch(sources or [self.source] * len(targets), targets), edit=edit)
        rows = []
        for row, target in zip(states, targets, strict=True):
            tokens = torch.tensor([*target, END] if ended else list(target), dtype=torch.int64)
            with self.model.autocast():
                log_probs = self.model.output.log_probs(row[: len(tokens)])
            token_log_probs = log_probs.gather(1, tokens[:, None].to(row.device))[:, 0]
            rows.append(token_log_probs.double().cpu().numpy())
        return rows

    def batches(self, targets: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
        """Yield the targets in order, as many per batch as `MAX_BATCH_…` allow, and at least one."""
        max_length = max(map(len, targets), default=0)
        num_weights = count_weights(self.model, len(self.source), max_length)  # 0 without attention
        size = max(1, min(MAX_BATCH_TOKENS // (max_length + 1), MAX_BATCH_WEIGHTS // max(1, num_weights)))
        for start in range(0, len(targets), size):
            yield targets[start : start + size]
