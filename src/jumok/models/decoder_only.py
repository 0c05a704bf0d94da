"""A decoder without an encoder: source and target form one causal sequence.

    x₁ … xₙ </s> <s> y₁ … yₘ                 Radford et al. 2018; as a translator after Zhang et al. 2022

There is no separate cross-attention: a target token attends to the source and to the target so far in one
causal self-attention. Viewers and alignments read the weights from target to source as the site "cross".
Sources are padded on the left, so that all targets of a batch begin in the same column. Positions are
counted from the first token that is not padding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from jumok.models.model import OutputLayer, TranslationModel, is_identity_order, target_inputs
from jumok.models.probe import Probe, batch_rows
from jumok.models.transformer import EncoderBlock, target_not_padding
from jumok.types import PAD, Batch, LogProbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.attention import Attended, Edit, Memory
    from jumok.models.layers import Embedding


class DecoderOnlyBlock(EncoderBlock):
    """An encoder block with causal attention. It runs over whole sequences or step by step."""

    def read(
        self,
        states: Tensor,
        allowed_keys: Tensor,
        *,
        layer: int,
        probe: Probe,
        not_padding: Tensor | None = None,
    ) -> tuple[Tensor, Memory]:
        """Run the block over whole sequences (batch, length, width), and return their states and memory.

        `allowed_keys` is False at padding on the left. `not_padding` is False at padding on either side; only
        batch norm uses it, and only in training.
        """
        inputs = self.around_attention.sublayer_input(states, not_padding)
        memory = self.attention.prepare(inputs, inputs, allowed_keys)
        context = self._attend(inputs, memory, 0, layer, probe)
        return self.after_attention(states, context, not_padding), memory

    def step(
        self, states: Tensor, memory: Memory, *, column: int, layer: int, probe: Probe
    ) -> tuple[Tensor, Memory]:
        """Run the block over one more position, (row, 1, width). Return its state and the extended memory.

        `column` is the column of this position, padding included.
        """
        inputs = self.around_attention.sublayer_input(states)
        memory = self.attention.extend(memory, inputs, inputs)
        return self.after_attention(states, self._attend(inputs, memory, column, layer, probe)), memory

    def _attend(self, inputs: Tensor, memory: Memory, column: int, layer: int, probe: Probe) -> Tensor:
        attended: Attended = self.attention(
            inputs,
            memory,
            query_offset=column,
            edit=probe.edit_at("decoder", layer),
            need_weights=probe.collect_weights,
        )
        probe.collect("decoder", attended)
        return attended.context


@dataclass(frozen=True, slots=True)
class DecoderOnlyState:
    """The decoding state: one memory per layer, with one row per hypothesis."""

    memories: tuple[Memory, ...]
    num_padding: Tensor  # (row,) int64: columns of padding before the source
    sentence: Tensor  # (row,) int64: the sentence, in the batch given to `begin`, that each row translates
    columns: int  # columns read so far, padding included
    source_columns: int  # columns of the source, padding included
    edit: Edit | None


class DecoderOnly(TranslationModel):
    """One stack of blocks for both languages, from parts that `build.py` makes."""

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
        self.after_blocks = after_blocks  # the final norm
        self.output = output

    def attention(self, batch: Batch, *, edit: Edit | None = None) -> dict[str, Tensor]:
        """Return site -> weights (batch, layer, head, query, key) of one teacher-forced pass.

        "encoder" are the weights within the source, "decoder" within the target, and "cross" from the target
        to the source.
        """
        batch = batch.to(self.device)
        weights = super().attention(batch, edit=edit)["decoder"]  # (batch, layer, head, column, column)
        source_columns = batch.source.shape[1]
        from_target = weights[..., source_columns:, :]  # the rows whose queries are target tokens
        within_source = weights[..., :source_columns, :source_columns]
        num_padding = _num_padding(batch)
        # The keys of the source are aligned first, and then, after a transposition, its queries.
        keys_aligned = _left_aligned(within_source, num_padding).transpose(-2, -1)
        return {
            "encoder": _left_aligned(keys_aligned, num_padding).transpose(-2, -1),
            "decoder": from_target[..., source_columns:],
            "cross": _left_aligned(from_target[..., :source_columns], num_padding),
        }

    def begin(self, source: Batch, *, edit: Edit | None = None) -> DecoderOnlyState:
        source = source.to(self.device)
        rows = batch_rows(source)
        num_padding, source_columns = _num_padding(source), source.source.shape[1]
        states = self._embed_source(source, num_padding)
        allowed = _not_left_padding(num_padding, source_columns)
        _, memories = self._read(states, allowed, Probe(rows=rows, edit=edit))
        return DecoderOnlyState(
            memories, num_padding, rows, columns=source_columns, source_columns=source_columns, edit=edit
        )

    def step(self, state: DecoderOnlyState, last_tokens: Tensor) -> tuple[LogProbs, DecoderOnlyState]:
        return self._step(state, last_tokens, Probe(rows=state.sentence, edit=state.edit))

    def step_with_attention(
        self, state: DecoderOnlyState, last_tokens: Tensor
    ) -> tuple[LogProbs, DecoderOnlyState, Tensor]:
        """Do the same as `step`, and return the attention to the source: (row, source).

        The attention is the mean over the heads of the last layer. Without an edit it sums to less than 1,
        because the token also attends to the target so far.
        """
        probe = Probe(rows=state.sentence, edit=state.edit, collect_weights=True)
        log_probs, next_state = self._step(state, last_tokens, probe)
        weights = probe.collected["decoder"][-1][:, :, 0, : state.source_columns].mean(dim=1)  # (row, column)
        return log_probs, next_state, _left_aligned(weights, state.num_padding)

    def reorder(self, state: DecoderOnlyState, order: Tensor) -> DecoderOnlyState:
        if is_identity_order(order, len(state.sentence)):
            return state
        return replace(
            state,
            memories=tuple(memory.select(order) for memory in state.memories),
            num_padding=state.num_padding[order],
            sentence=state.sentence[order],
        )

    def _step(
        self, state: DecoderOnlyState, last_tokens: Tensor, probe: Probe
    ) -> tuple[LogProbs, DecoderOnlyState]:
        positions = (state.columns - state.num_padding)[:, None]  # (row, 1)
        end = int(positions.max()) + 1 if positions.numel() else 0
        states = self.target_embedding.at_positions(last_tokens[:, None], positions, end=end)
        memories = []
        for layer, block in enumerate(self._blocks()):
            states, memory = block.step(
                states, state.memories[layer], column=state.columns, layer=layer, probe=probe
            )
            memories.append(memory)
        log_probs = self.output.next_log_probs(self.after_blocks(states[:, 0]))
        return log_probs, replace(state, memories=tuple(memories), columns=state.columns + 1)

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        target = target_inputs(batch)
        num_padding, source_columns = _num_padding(batch), batch.source.shape[1]
        positions = _positions(num_padding, source_columns, target.shape[1])  # (batch, target - 1)
        end = _longest_source(batch) + target.shape[1]
        states = torch.cat(
            [
                self._embed_source(batch, num_padding),
                self.target_embedding.at_positions(target, positions, end=end),
            ],
            dim=1,
        )  # (batch, source + target - 1, width)
        # `allowed` says nothing about padding of the target: it follows the last token, so the causal mask
        # hides it.
        allowed = _not_left_padding(num_padding, states.shape[1])
        in_target = target_not_padding(batch)
        not_padding = None
        if in_target is not None:
            not_padding = torch.cat([allowed[:, :source_columns], in_target], dim=1)
        states, _ = self._read(states, allowed, probe, not_padding=not_padding)
        return states[:, source_columns:]

    def _embed_source(self, batch: Batch, num_padding: Tensor) -> Tensor:
        """Return the embedded source with its padding moved to the left, (batch, source, width)."""
        positions = _positions(num_padding, 0, batch.source.shape[1])  # (batch, source): below 0 at padding
        tokens = batch.source.gather(1, positions.clamp(min=0)).masked_fill(positions < 0, PAD)
        return self.source_embedding.at_positions(tokens, positions.clamp(min=0), end=_longest_source(batch))

    def _read(
        self, states: Tensor, allowed: Tensor, probe: Probe, *, not_padding: Tensor | None = None
    ) -> tuple[Tensor, tuple[Memory, ...]]:
        memories = []
        for layer, block in enumerate(self._blocks()):
            states, memory = block.read(states, allowed, layer=layer, probe=probe, not_padding=not_padding)
            memories.append(memory)
        return self.after_blocks(states, not_padding), tuple(memories)

    def _blocks(self) -> list[DecoderOnlyBlock]:
        return cast("list[DecoderOnlyBlock]", list(self.blocks))


def _num_padding(batch: Batch) -> Tensor:
    """The number of padding tokens of each source, (batch,)."""
    return batch.source.shape[1] - batch.source_lengths


def _longest_source(batch: Batch) -> int:
    """The number of tokens of the longest source; 0 for an empty batch."""
    return int(batch.cpu_source_lengths.max()) if len(batch) else 0


def _positions(num_padding: Tensor, first_column: int, length: int) -> Tensor:
    """Return the positions of `length` columns from `first_column` on: (row, length).

    They are below 0 at padding on the left.
    """
    return torch.arange(first_column, first_column + length, device=num_padding.device) - num_padding[:, None]


def _not_left_padding(num_padding: Tensor, columns: int) -> Tensor:
    """Return a mask of `columns` columns that is False at padding on the left: (row, column)."""
    return torch.arange(columns, device=num_padding.device) >= num_padding[:, None]


def _left_aligned(weights: Tensor, num_padding: Tensor) -> Tensor:
    """Return weights (row, …, column) with the padding on the right, where other model families have it.

    The weights of padding are set to 0.
    """
    columns = weights.shape[-1]
    shape = (len(num_padding), *([1] * (weights.dim() - 2)), columns)
    index = (torch.arange(columns, device=num_padding.device) + num_padding[:, None]).view(shape)
    moved = weights.gather(-1, index.clamp(max=columns - 1).expand_as(weights))
    return moved.masked_fill(index >= columns, 0.0)
