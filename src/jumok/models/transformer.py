"""The Transformer: encoder and decoder built of attention alone.

Vaswani et al. 2017, "Attention is all you need", figure 1. Sites of attention are named "encoder" (source to
source), "decoder" (target to the target so far) and "cross" (target to source).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from jumok.attention import Attention, Edit, Memory, padding
from jumok.models.model import OutputLayer, TranslationModel
from jumok.models.probe import Probe, rows_of
from jumok.models.sources import share_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.models.layers import Embedding, FeedForward, Residual
    from jumok.values import Batch, LogProbs

__all__ = ["DecoderBlock", "EncoderBlock", "Transformer", "TransformerState", "encode", "real_targets"]


class EncoderBlock(nn.Module):
    """Self-attention, then the position-wise network. `residuals` are those round each, in that order."""

    def __init__(
        self, *, attention: Attention, feed_forward: FeedForward, residuals: Sequence[Residual]
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.around_attention, self.around_feed_forward = residuals

    def forward(self, states: Tensor, *, allowed_keys: Tensor, layer: int, probe: Probe) -> Tensor:
        """(batch, source, width) -> (batch, source, width)."""
        attended = self.attention.attend_self(
            self.around_attention.enter(states, allowed_keys),
            allowed_keys=allowed_keys,
            edit=probe.edit_at("encoder", layer),
            need_weights=probe.gathers,
        )
        return self.after_attention(states, probe.note("encoder", attended), allowed_keys)

    def after_attention(self, states: Tensor, change: Tensor, real: Tensor | None = None) -> Tensor:
        """The rest of the block, given what was attended to; `real` (batch, length) is False at padding."""
        states = self.around_attention.leave(states, change, real)
        change = self.feed_forward(self.around_feed_forward.enter(states, real))
        return self.around_feed_forward.leave(states, change, real)


class DecoderBlock(nn.Module):
    """Masked self-attention, attention to the encoder, the position-wise network."""

    def __init__(
        self,
        *,
        attention: Attention,
        cross_attention: Attention,
        feed_forward: FeedForward,
        residuals: Sequence[Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_attention, self.around_cross, self.around_feed_forward = residuals

    def forward(
        self, states: Tensor, source: Memory, *, layer: int, probe: Probe, real: Tensor | None = None
    ) -> Tensor:
        """Whole sentences, teacher forced: (batch, target, width) -> (batch, target, width).

        Padding stands after the last piece, where the look-ahead mask already hides it from attention; `real`
        (batch, target) hides it from norms.
        """
        attended = self.attention.attend_self(
            self.around_attention.enter(states, real),
            edit=probe.edit_at("decoder", layer),
            need_weights=probe.gathers,
        )
        states = self.around_attention.leave(states, probe.note("decoder", attended), real)
        return self._after_attention(states, source, first=0, layer=layer, probe=probe, real=real)

    def step(
        self, states: Tensor, cache: Memory, source: Memory, *, first: int, layer: int, probe: Probe
    ) -> tuple[Tensor, Memory]:
        """One more position, (row, 1, width), and the cache that knows it."""
        entered = self.around_attention.enter(states)
        cache = self.attention.extend(cache, entered, entered)
        attended = self.attention(
            entered,
            cache,
            first=first,
            edit=probe.edit_at("decoder", layer),
            need_weights=probe.gathers,
        )
        states = self.around_attention.leave(states, probe.note("decoder", attended))
        return self._after_attention(states, source, first=first, layer=layer, probe=probe), cache

    def _after_attention(
        self,
        states: Tensor,
        source: Memory,
        *,
        first: int,
        layer: int,
        probe: Probe,
        real: Tensor | None = None,
    ) -> Tensor:
        attended = self.cross_attention(
            self.around_cross.enter(states, real),
            source,
            first=first,
            edit=probe.edit_at("cross", layer),
            need_weights=probe.gathers,
        )
        states = self.around_cross.leave(states, probe.note("cross", attended), real)
        change = self.feed_forward(self.around_feed_forward.enter(states, real))
        return self.around_feed_forward.leave(states, change, real)


@dataclass(frozen=True, slots=True)
class TransformerState:
    """What decoding remembers. Sources are kept once a sentence and shared by the rows that continue it."""

    caches: tuple[Memory, ...]  # a layer: the target so far, one row a row
    sources: tuple[Memory, ...]  # a layer: the source, one row a sentence
    sentence: Tensor  # (row,) int64: the sentence of the first batch that each row translates
    position: int
    edit: Edit | None


class Transformer(TranslationModel):
    """Encoder and decoder, of the parts that it is handed (`build.py` makes them)."""

    def __init__(
        self,
        *,
        source_embedding: Embedding,
        target_embedding: Embedding,
        encoder: Sequence[EncoderBlock],
        decoder: Sequence[DecoderBlock],
        after_encoder: nn.Module,
        after_decoder: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = nn.ModuleList(encoder)
        self.decoder = nn.ModuleList(decoder)
        self.after_encoder = after_encoder
        self.after_decoder = after_decoder
        self.output = output

    def begin(self, source: Batch, *, edit: Edit | None = None) -> TransformerState:
        rows = rows_of(source)
        sources = self._sources(source, Probe(rows=rows, edit=edit))
        nothing = self.output.weight.new_empty(len(source), 0, self.output.weight.shape[1])
        caches = tuple(block.attention.prepare(nothing, nothing) for block in self._decoder_blocks())
        return TransformerState(caches, sources, sentence=rows, position=0, edit=edit)

    def step(self, state: TransformerState, last: Tensor) -> tuple[LogProbs, TransformerState]:
        return self._step(state, last, Probe(rows=state.sentence, edit=state.edit))

    def step_with_attention(
        self, state: TransformerState, last: Tensor
    ) -> tuple[LogProbs, TransformerState, Tensor]:
        """As `step`, and where the last layer looked: (row, source), the mean over its heads."""
        probe = Probe(rows=state.sentence, edit=state.edit, gathers=True)
        log_probs, state = self._step(state, last, probe)
        return log_probs, state, probe.gathered["cross"][-1][:, :, 0].mean(dim=1)

    def _step(self, state: TransformerState, last: Tensor, probe: Probe) -> tuple[LogProbs, TransformerState]:
        states = self.target_embedding(last[:, None], first=state.position)  # (row, 1, width)
        caches = []
        for layer, block in enumerate(self._decoder_blocks()):
            states, cache = block.step(
                states,
                state.caches[layer],
                state.sources[layer],
                first=state.position,
                layer=layer,
                probe=probe,
            )
            caches.append(cache)
        following = self.output.following(self.after_decoder(states[:, 0]))
        after = TransformerState(tuple(caches), state.sources, state.sentence, state.position + 1, state.edit)
        return following, after

    def reorder(self, state: TransformerState, order: Tensor) -> TransformerState:
        rows = len(state.sentence)
        if len(order) == rows and torch.equal(order, torch.arange(rows, device=order.device)):
            return state
        caches = tuple(cache.select(order) for cache in state.caches)
        sources = share_sources(state.sources, rows, order)
        return TransformerState(caches, sources, state.sentence[order], state.position, state.edit)

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        if batch.target is None:
            raise ValueError("A teacher-forced pass needs the target. Received: a batch without one.")
        sources = self._sources(batch, probe)
        states = self.target_embedding(batch.target[:, :-1])  # (batch, target - 1, width)
        real = real_targets(batch)
        for layer, block in enumerate(self._decoder_blocks()):
            states = block(states, sources[layer], layer=layer, probe=probe, real=real)
        return cast("Tensor", self.after_decoder(states, real))

    def _sources(self, batch: Batch, probe: Probe) -> tuple[Memory, ...]:
        """The encoded source as the cross-attention of each decoder block remembers it."""
        blocks = cast("list[EncoderBlock]", list(self.encoder))
        states, allowed_keys = encode(batch, self.source_embedding, blocks, self.after_encoder, probe)
        return tuple(
            block.cross_attention.prepare(states, states, allowed_keys) for block in self._decoder_blocks()
        )

    def _decoder_blocks(self) -> list[DecoderBlock]:
        return cast("list[DecoderBlock]", list(self.decoder))


def real_targets(batch: Batch) -> Tensor | None:
    """Which pieces that a target is read from (all but its last) are no padding, (batch, target - 1)."""
    if batch.target is None or batch.target_lengths is None:
        return None
    return padding(batch.target_lengths - 1, batch.target.shape[1] - 1)


def encode(
    batch: Batch, embedding: Embedding, blocks: Sequence[EncoderBlock], after: nn.Module, probe: Probe
) -> tuple[Tensor, Tensor]:
    """The source through the encoder, (batch, source, width), and which of its places are no padding."""
    allowed_keys = padding(batch.source_lengths, batch.source.shape[1])  # (batch, source)
    states: Tensor = embedding(batch.source)  # (batch, source, width)
    for layer, block in enumerate(blocks):
        states = block(states, allowed_keys=allowed_keys, layer=layer, probe=probe)
    return after(states, allowed_keys), allowed_keys
