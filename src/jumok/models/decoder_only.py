"""The decoder alone: source and target are one sequence, and every piece is predicted from those before it.

    x₁ … xₙ </s> <s> y₁ … yₘ                 Radford et al. 2018; as a translator after Zhang et al. 2022

There is no cross-attention. A target piece looks at the source through the same masked self-attention that
looks at the target so far; that part of the map is what viewers and alignments are given as "cross". Sources
are padded on the left, so that all targets of a batch begin in one column, and positions count from the first
real piece.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from jumok.models.model import OutputLayer, TranslationModel
from jumok.models.probe import Probe, rows_of
from jumok.models.transformer import EncoderBlock, real_targets
from jumok.values import PAD, Batch, LogProbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.attention import Attended, Edit, Memory
    from jumok.models.layers import Embedding

__all__ = ["DecoderOnly", "DecoderOnlyBlock", "DecoderOnlyState"]


class DecoderOnlyBlock(EncoderBlock):
    """The encoder's block with a mask, whole or step by step."""

    def read(
        self, states: Tensor, allowed_keys: Tensor, *, layer: int, probe: Probe, real: Tensor | None = None
    ) -> tuple[Tensor, Memory]:
        """Whole sequences (batch, length, width) from their beginning, and the memory of them.

        `allowed_keys` is False at padding on the left; `real`, for norms, at that on the right as well.
        """
        entered = self.around_attention.enter(states, real)
        memory = self.attention.prepare(entered, entered, allowed_keys)
        return self.after_attention(states, self._attend(entered, memory, 0, layer, probe), real), memory

    def step(
        self, states: Tensor, memory: Memory, *, first: int, layer: int, probe: Probe
    ) -> tuple[Tensor, Memory]:
        """One more position, (row, 1, width), and the memory that knows it."""
        entered = self.around_attention.enter(states)
        memory = self.attention.extend(memory, entered, entered)
        return self.after_attention(states, self._attend(entered, memory, first, layer, probe)), memory

    def _attend(self, entered: Tensor, memory: Memory, first: int, layer: int, probe: Probe) -> Tensor:
        attended: Attended = self.attention(
            entered,
            memory,
            first=first,
            edit=probe.edit_at("decoder", layer),
            need_weights=probe.gathers,
        )
        return probe.note("decoder", attended)


@dataclass(frozen=True, slots=True)
class DecoderOnlyState:
    """What decoding remembers: a memory a layer, with one row a row."""

    memories: tuple[Memory, ...]
    missing: Tensor  # (row,) int64: how many places of padding stand before the source
    sentence: Tensor  # (row,) int64: the sentence of the first batch that each row translates
    columns: int  # how many places were read so far, padding counted
    source_columns: int
    edit: Edit | None


class DecoderOnly(TranslationModel):
    """One stack of blocks for both languages (`build.py` makes them)."""

    def __init__(
        self,
        *,
        source_embedding: Embedding,
        target_embedding: Embedding,
        blocks: Sequence[DecoderOnlyBlock],
        after_blocks: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.blocks = nn.ModuleList(blocks)
        self.after_blocks = after_blocks
        self.output = output

    def attention(self, batch: Batch, *, edit: Edit | None = None) -> dict[str, Tensor]:
        """Under "encoder" the sources among themselves, under "decoder" the targets; "cross" is between."""
        every = super().attention(batch, edit=edit)["decoder"]  # (batch, layer, head, place, place)
        columns = batch.source.shape[1]
        targets = every[..., columns:, :]  # the queries that read a target piece
        missing = _missing(batch)
        sources = _to_the_left(every[..., :columns, :columns], missing).transpose(-2, -1)
        return {
            "encoder": _to_the_left(sources, missing).transpose(-2, -1),
            "decoder": targets[..., columns:],
            "cross": _to_the_left(targets[..., :columns], missing),
        }

    def begin(self, source: Batch, *, edit: Edit | None = None) -> DecoderOnlyState:
        rows = rows_of(source)
        missing, columns = _missing(source), source.source.shape[1]
        states, allowed = self._embedded_source(source, missing), _real(missing, columns)
        _, memories = self._read(states, allowed, Probe(rows=rows, edit=edit))
        return DecoderOnlyState(memories, missing, rows, columns, columns, edit)

    def step(self, state: DecoderOnlyState, last: Tensor) -> tuple[LogProbs, DecoderOnlyState]:
        return self._step(state, last, Probe(rows=state.sentence, edit=state.edit))

    def step_with_attention(
        self, state: DecoderOnlyState, last: Tensor
    ) -> tuple[LogProbs, DecoderOnlyState, Tensor]:
        """As `step`, and where in the source the last layer looked: (row, source), the mean of its heads."""
        probe = Probe(rows=state.sentence, edit=state.edit, gathers=True)
        log_probs, after = self._step(state, last, probe)
        looked = probe.gathered["decoder"][-1][:, :, 0, : state.source_columns].mean(dim=1)  # (row, column)
        return log_probs, after, _to_the_left(looked, state.missing)

    def reorder(self, state: DecoderOnlyState, order: Tensor) -> DecoderOnlyState:
        rows = len(state.sentence)
        if len(order) == rows and torch.equal(order, torch.arange(rows, device=order.device)):
            return state
        return replace(
            state,
            memories=tuple(memory.select(order) for memory in state.memories),
            missing=state.missing[order],
            sentence=state.sentence[order],
        )

    def _step(self, state: DecoderOnlyState, last: Tensor, probe: Probe) -> tuple[LogProbs, DecoderOnlyState]:
        places = (state.columns - state.missing)[:, None]  # (row, 1)
        states = self.target_embedding.at(last[:, None], places)  # (row, 1, width)
        memories = []
        for layer, block in enumerate(self._blocks()):
            states, memory = block.step(
                states, state.memories[layer], first=state.columns, layer=layer, probe=probe
            )
            memories.append(memory)
        following = self.output.following(self.after_blocks(states[:, 0]))
        return following, replace(state, memories=tuple(memories), columns=state.columns + 1)

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        if batch.target is None:
            raise ValueError("A teacher-forced pass needs the target. Received: a batch without one.")
        target = batch.target[:, :-1]
        missing, columns = _missing(batch), batch.source.shape[1]
        places = _places(missing, columns, target.shape[1])  # (batch, target - 1)
        states = torch.cat(
            [self._embedded_source(batch, missing), self.target_embedding.at(target, places)], dim=1
        )  # (batch, source + target - 1, width)
        # What is padded behind a target stands after its last piece, where the look-ahead mask hides it.
        allowed = _real(missing, states.shape[1])
        targets = real_targets(batch)
        real = None if targets is None else torch.cat([allowed[:, :columns], targets], dim=1)
        states, _ = self._read(states, allowed, probe, real=real)
        return states[:, columns:]

    def _embedded_source(self, batch: Batch, missing: Tensor) -> Tensor:
        """The source moved to the right end of its columns, (batch, source, width)."""
        columns = batch.source.shape[1]
        wanted = _places(missing, 0, columns)  # (batch, source): below 0 at padding
        pieces = batch.source.gather(1, wanted.clamp(min=0)).masked_fill(wanted < 0, PAD)
        return self.source_embedding.at(pieces, wanted.clamp(min=0))

    def _read(
        self, states: Tensor, allowed: Tensor, probe: Probe, *, real: Tensor | None = None
    ) -> tuple[Tensor, tuple[Memory, ...]]:
        memories = []
        for layer, block in enumerate(self._blocks()):
            states, memory = block.read(states, allowed, layer=layer, probe=probe, real=real)
            memories.append(memory)
        return self.after_blocks(states, real), tuple(memories)

    def _blocks(self) -> list[DecoderOnlyBlock]:
        return cast("list[DecoderOnlyBlock]", list(self.blocks))


def _missing(batch: Batch) -> Tensor:
    """How many places of padding each source has, (batch,)."""
    return batch.source.shape[1] - batch.source_lengths


def _places(missing: Tensor, first: int, length: int) -> Tensor:
    """Places of `length` columns from column `first` on, counted from the first real piece: (row, length)."""
    return torch.arange(first, first + length, device=missing.device) - missing[:, None]


def _real(missing: Tensor, columns: int) -> Tensor:
    """Which columns are no padding on the left, (row, columns)."""
    return torch.arange(columns, device=missing.device) >= missing[:, None]


def _to_the_left(weights: Tensor, missing: Tensor) -> Tensor:
    """Weights over columns (row, …, column), padded on the left, as others have them: padded on the right."""
    columns = weights.shape[-1]
    shape = (len(missing), *([1] * (weights.dim() - 2)), columns)
    wanted = (torch.arange(columns, device=missing.device) + missing[:, None]).view(shape)  # (row, …, column)
    moved = weights.gather(-1, wanted.clamp(max=columns - 1).expand_as(weights))
    return moved.masked_fill(wanted >= columns, 0.0)
