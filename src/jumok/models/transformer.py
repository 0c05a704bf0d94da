"""The Transformer: an encoder and a decoder built from attention.

Vaswani et al. 2017, "Attention is all you need", figure 1. The attention sites are named "encoder" (source to
source), "decoder" (target to the target so far) and "cross" (target to source).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from torch import Tensor, nn

from jumok.attention import Attention, Edit, Memory, padding_mask
from jumok.models.model import OutputLayer, TranslationModel, is_identity_order, target_inputs
from jumok.models.probe import Probe, batch_rows
from jumok.models.shared_sources import share_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.models.layers import Embedding, FeedForward, Residual
    from jumok.models.patch_embedding import PatchEmbedding
    from jumok.types import Batch, LogProbs


class EncoderBlock(nn.Module):
    """Self-attention, then the position-wise network.

    `residuals` has one residual for each of these two sublayers, in this order.
    """

    def __init__(
        self, *, attention: Attention, feed_forward: FeedForward, residuals: Sequence[Residual]
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        # Stored models have the norms of the residuals under these names.
        self.around_attention, self.around_feed_forward = residuals

    def forward(self, states: Tensor, *, allowed_keys: Tensor, layer: int, probe: Probe) -> Tensor:
        """(batch, source, width) -> (batch, source, width)."""
        attended = self.attention.attend_self(
            self.around_attention.sublayer_input(states, allowed_keys),
            allowed_keys=allowed_keys,
            edit=probe.edit_at("encoder", layer),
            need_weights=probe.collect_weights,
        )
        probe.collect("encoder", attended)
        return self.after_attention(states, attended.context, allowed_keys)

    def after_attention(self, states: Tensor, context: Tensor, not_padding: Tensor | None = None) -> Tensor:
        """Run the rest of the block after attention. `not_padding` (batch, length) is False at padding."""
        states = self.around_attention.add_output(states, context, not_padding)
        output = self.feed_forward(self.around_feed_forward.sublayer_input(states, not_padding))
        return self.around_feed_forward.add_output(states, output, not_padding)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the encoder's states, then the position-wise network."""

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
        self, states: Tensor, source: Memory, *, layer: int, probe: Probe, not_padding: Tensor | None = None
    ) -> Tensor:
        """Whole sentences, teacher forced: (batch, target, width) -> (batch, target, width).

        Padding follows the last token, so the causal mask already hides padding from attention. `not_padding`
        (batch, target) hides padding from norms.
        """
        attended = self.attention.attend_self(
            self.around_attention.sublayer_input(states, not_padding),
            edit=probe.edit_at("decoder", layer),
            need_weights=probe.collect_weights,
        )
        probe.collect("decoder", attended)
        states = self.around_attention.add_output(states, attended.context, not_padding)
        return self._after_self_attention(
            states, source, position=0, layer=layer, probe=probe, not_padding=not_padding
        )

    def step(
        self, states: Tensor, cache: Memory, source: Memory, *, position: int, layer: int, probe: Probe
    ) -> tuple[Tensor, Memory]:
        """Run the block over one more position, (row, 1, width). Return its state and the extended cache."""
        inputs = self.around_attention.sublayer_input(states)
        cache = self.attention.extend(cache, inputs, inputs)
        attended = self.attention(
            inputs,
            cache,
            query_offset=position,
            edit=probe.edit_at("decoder", layer),
            need_weights=probe.collect_weights,
        )
        probe.collect("decoder", attended)
        states = self.around_attention.add_output(states, attended.context)
        return self._after_self_attention(states, source, position=position, layer=layer, probe=probe), cache

    def _after_self_attention(
        self,
        states: Tensor,
        source: Memory,
        *,
        position: int,
        layer: int,
        probe: Probe,
        not_padding: Tensor | None = None,
    ) -> Tensor:
        attended = self.cross_attention(
            self.around_cross.sublayer_input(states, not_padding),
            source,
            query_offset=position,
            edit=probe.edit_at("cross", layer),
            need_weights=probe.collect_weights,
        )
        probe.collect("cross", attended)
        states = self.around_cross.add_output(states, attended.context, not_padding)
        output = self.feed_forward(self.around_feed_forward.sublayer_input(states, not_padding))
        return self.around_feed_forward.add_output(states, output, not_padding)


@dataclass(frozen=True, slots=True)
class TransformerState:
    """The decoding state. Each source is stored once and shared by the rows that translate it."""

    caches: tuple[Memory, ...]  # per layer: the target so far; one row per hypothesis
    sources: tuple[Memory, ...]  # per layer: the source; one row per sentence (`shared_sources.py`)
    sentence: Tensor  # (row,) int64: the sentence, in the batch given to `begin`, that each row translates
    position: int  # of the next token
    edit: Edit | None


class Transformer(TranslationModel):
    """Encoder and decoder, from parts that `build.py` makes."""

    def __init__(
        self,
        *,
        source_embedding: Embedding | PatchEmbedding,
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
        self.after_encoder = after_encoder  # the final norm of the encoder
        self.after_decoder = after_decoder  # the final norm of the decoder
        self.output = output

    def begin(self, source: Batch, *, edit: Edit | None = None) -> TransformerState:
        source = source.to(self.device)
        rows = batch_rows(source)
        sources = self._encode_sources(source, Probe(rows=rows, edit=edit))
        no_states = self.output.weight.new_empty(len(source), 0, self.output.weight.shape[1])
        caches = tuple(block.attention.prepare(no_states, no_states) for block in self._decoder_blocks())
        return TransformerState(caches, sources, sentence=rows, position=0, edit=edit)

    def step(self, state: TransformerState, last_tokens: Tensor) -> tuple[LogProbs, TransformerState]:
        return self._step(state, last_tokens, Probe(rows=state.sentence, edit=state.edit))

    def step_with_attention(
        self, state: TransformerState, last_tokens: Tensor
    ) -> tuple[LogProbs, TransformerState, Tensor]:
        """Do the same as `step`, and return the attention to the source: (row, source).

        The attention is the mean over the heads of the last layer.
        """
        probe = Probe(rows=state.sentence, edit=state.edit, collect_weights=True)
        log_probs, state = self._step(state, last_tokens, probe)
        return log_probs, state, probe.collected["cross"][-1][:, :, 0].mean(dim=1)

    def _step(
        self, state: TransformerState, last_tokens: Tensor, probe: Probe
    ) -> tuple[LogProbs, TransformerState]:
        states = self.target_embedding(last_tokens[:, None], offset=state.position)  # (row, 1, width)
        caches = []
        for layer, block in enumerate(self._decoder_blocks()):
            states, cache = block.step(
                states,
                state.caches[layer],
                state.sources[layer],
                position=state.position,
                layer=layer,
                probe=probe,
            )
            caches.append(cache)
        log_probs = self.output.next_log_probs(self.after_decoder(states[:, 0]))
        next_state = TransformerState(
            tuple(caches), state.sources, state.sentence, state.position + 1, state.edit
        )
        return log_probs, next_state

    def reorder(self, state: TransformerState, order: Tensor) -> TransformerState:
        rows = len(state.sentence)
        if is_identity_order(order, rows):
            return state
        caches = tuple(cache.select(order) for cache in state.caches)
        sources = share_sources(state.sources, rows, order)
        return TransformerState(caches, sources, state.sentence[order], state.position, state.edit)

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        sources = self._encode_sources(batch, probe)
        states = self.target_embedding(target_inputs(batch))  # (batch, target - 1, width)
        not_padding = target_not_padding(batch)
        for layer, block in enumerate(self._decoder_blocks()):
            states = block(states, sources[layer], layer=layer, probe=probe, not_padding=not_padding)
        return cast("Tensor", self.after_decoder(states, not_padding))

    def _encode_sources(self, batch: Batch, probe: Probe) -> tuple[Memory, ...]:
        """Return the cross-attention memory of each decoder block, made from the encoded source."""
        blocks = cast("list[EncoderBlock]", list(self.encoder))
        states, allowed_keys = encode(batch, self.source_embedding, blocks, self.after_encoder, probe)
        return tuple(
            block.cross_attention.prepare(states, states, allowed_keys) for block in self._decoder_blocks()
        )

    def _decoder_blocks(self) -> list[DecoderBlock]:
        return cast("list[DecoderBlock]", list(self.decoder))


def target_not_padding(batch: Batch) -> Tensor | None:
    """Return a mask (batch, target - 1) of `target_inputs`, which is False from `</s>` on.

    None if the batch has no target.
    """
    if batch.target is None or batch.target_lengths is None:
        return None
    return padding_mask(batch.target_lengths - 1, batch.target.shape[1] - 1)


def encode(
    batch: Batch,
    embedding: Embedding | PatchEmbedding,
    blocks: Sequence[EncoderBlock],
    final_norm: nn.Module,
    probe: Probe,
) -> tuple[Tensor, Tensor]:
    """Return the encoder's states (batch, source, width), and a mask that is False at padding."""
    states: Tensor = embedding(batch.source)  # (batch, source, width)
    # 1 if the embedding puts a class token in front of the source, else 0.
    num_class_tokens = states.shape[1] - batch.source.shape[1]
    allowed_keys = padding_mask(batch.source_lengths + num_class_tokens, states.shape[1])  # (batch, source)
    for layer, block in enumerate(blocks):
        states = block(states, allowed_keys=allowed_keys, layer=layer, probe=probe)
    return final_norm(states, allowed_keys), allowed_keys
