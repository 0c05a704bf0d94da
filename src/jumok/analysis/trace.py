"""Recompute one attention weight from the model's parameters, and follow it to the produced token.

The other layers are called as usual. In the layer of the weight, every step is computed separately:

    embedding + position → states → query, key, value → scores → mask → softmax → Σ weight · value
      → heads side by side → W_O → add & norm → feed-forward → … → logits        Transformer, decoder-only
    s, h → scores → softmax → context → what predicts the next token → logits    recurrent

A cell of the encoder is followed only to the output of its block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from jumok.analysis.mechanism_steps import HeadInputs, number, over_keys, score_steps, vector
from jumok.analysis.steps import Cell, CellSteps, Step
from jumok.attention import Attention, Edit, MultiHead, bind_edit, padding_mask
from jumok.attention.contract import Call
from jumok.data.batching import padded_batch
from jumok.errors import UnsupportedError
from jumok.models.decoder_only import DecoderOnly
from jumok.models.layers import ACTIVATIONS, Embedding, FeedForward, PostNorm, Residual
from jumok.models.patch_embedding import PatchEmbedding
from jumok.models.probe import Probe
from jumok.models.recurrent import AttendAfter, AttendBefore, Recurrent
from jumok.models.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.attention import Mechanism
    from jumok.models.decoder_only import DecoderOnlyBlock
    from jumok.models.model import OutputLayer, TranslationModel
    from jumok.models.transformer import DecoderBlock, EncoderBlock
    from jumok.types import Batch


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """One attention layer with its inputs for one sentence, and the indices of the traced cell."""

    attention: Attention
    query_states: Tensor  # (1, query, width)
    key_states: Tensor  # (1, key, width)
    query: int
    key: int
    head: int
    query_offset: int = 0
    edit: Edit | None = None
    site: str = ""  # the name that the model reports to an edit
    layer: int = 0

    def project(self, projection: str, states: Tensor) -> Tensor:
        """Return the queries, keys or values of every head, (1, head, length, width).

        `projection` is "query", "key" or "value". An attention without heads counts as one head.
        """
        if not isinstance(self.attention, MultiHead):
            return states[:, None]
        module: torch.nn.Linear = getattr(self.attention, projection)
        count = self.attention.heads if projection == "query" else self.attention.groups
        split: Tensor = module(states).unflatten(-1, (count, -1)).transpose(1, 2)
        return split.repeat_interleave(self.attention.heads // count, dim=1)

    def steps(self) -> tuple[list[Step], Tensor]:
        """Return the steps from query, key and value to the context, and the contexts (head, width)."""
        mechanism = cast("Mechanism[Any]", self.attention.mechanism)
        queries, keys = self.project("query", self.query_states), self.project("key", self.key_states)
        values = self.project("value", self.key_states)
        bias = None
        if isinstance(self.attention, MultiHead):  # `MultiHead` applies positions to queries, keys and scores
            positions = self.attention.positions
            queries, keys = positions.rotate(queries, self.query_offset), positions.rotate(keys, 0)
            scale = mechanism.scale(queries.shape[-1])
            bias = positions.bias(queries, keys.shape[2], self.query_offset, scale)
        all_allowed = torch.ones(1, keys.shape[2], dtype=torch.bool, device=keys.device)
        memory = mechanism.prepare(keys, values, all_allowed)
        inputs = HeadInputs(
            mechanism,
            queries,
            keys,
            memory,
            self.head,
            self.query,
            self.key,
            query_offset=self.query_offset,
            bias=bias,
        )
        weights, contexts = self._attend(inputs, None)
        row = weights[self.query]
        steps = [vector("query", "q", inputs.query_vector), vector("key", "kᵢ", inputs.key_vector)]
        steps += [vector("value", "vᵢ", values[0, self.head, self.key]), *score_steps(inputs, weights)]
        steps.append(over_keys("weights", "α", row))
        if self.edit is not None:
            weights, contexts = self._attend(inputs, self.edit)
            if not torch.equal(row, weights[self.query]):  # the edit may change only other heads or queries
                steps.append(over_keys("edited weights", "α after the edit", weights[self.query]))
            row = weights[self.query]
        steps.append(number("weight", "αᵢ", row[self.key]))
        steps.append(vector("weighted value", "αᵢ vᵢ", row[self.key] * values[0, self.head, self.key]))
        steps.append(vector("context", "Σᵢ αᵢ vᵢ", row @ values[0, self.head]))
        return steps, contexts

    def _attend(self, inputs: HeadInputs, edit: Edit | None) -> tuple[Tensor, Tensor]:
        """Return the weights (query, key) of the traced head, and all heads' contexts of the traced query.

        The contexts are (head, width).
        """
        rows = torch.zeros(1, dtype=torch.int64, device=inputs.queries.device)
        weight_edit = bind_edit(edit, site=self.site, layer=self.layer, rows=rows)
        call = Call(query_offset=self.query_offset, edit=weight_edit, need_weights=True, bias=inputs.bias)
        attended = inputs.mechanism.attend(inputs.queries, inputs.memory, call)
        weights = cast("Tensor", attended.weights)
        return weights[0, self.head], attended.context[0, :, self.query]


@torch.inference_mode()
def trace_cell(
    model: TranslationModel, source: Sequence[int], target: Sequence[int], cell: Cell, *, edit: Edit | None
) -> CellSteps:
    """Return the steps of one cell.

    `source` and `target` are token ids without special tokens. A source may also be the patches of a picture.
    """
    batch = padded_batch([source], [target]).to(model.device)
    if isinstance(model, Transformer):
        return CellSteps(cell, tuple(_transformer(model, batch, cell, edit)))
    if isinstance(model, DecoderOnly):
        return CellSteps(cell, tuple(_decoder_only(model, batch, cell, edit)))
    if isinstance(model, Recurrent) and model.has_cross_attention:
        return CellSteps(cell, tuple(_recurrent(model, batch, cell, edit)))
    raise UnsupportedError(
        f"There are no steps of attention to show. Received: {type(model).__name__} without attention."
    )


def _transformer(model: Transformer, batch: Batch, cell: Cell, edit: Edit | None) -> Iterator[Step]:
    probe = _probe(edit, model)
    target = _target(batch)
    source_input = (model.source_embedding, batch.source)
    target_input = (model.target_embedding, target)
    query_input = source_input if cell.site == "encoder" else target_input
    key_input = target_input if cell.site == "decoder" else source_input
    yield from _embedding_steps("query", *query_input, cell.query)
    yield from _embedding_steps("key", *key_input, cell.key)

    allowed = padding_mask(batch.source_lengths, batch.source.shape[1])
    states = model.source_embedding(batch.source)
    for layer, encoder_block in enumerate(cast("list[EncoderBlock]", list(model.encoder))):
        is_traced = (cell.site, cell.layer) == ("encoder", layer)
        attention, feed_forward = encoder_block.attention, encoder_block.feed_forward
        if is_traced:
            yield from _block_steps(encoder_block.around_attention, attention, states, None, cell, edit)
        with _FeedForwardInput(feed_forward) as feed_forward_input:
            states = encoder_block(states, allowed_keys=allowed, layer=layer, probe=probe)
        if is_traced:
            yield from _feed_forward_steps(feed_forward, feed_forward_input.states, states, cell.query)
            return
    source = model.after_encoder(states)
    states = model.target_embedding(target)
    for layer, block in enumerate(cast("list[DecoderBlock]", list(model.decoder))):
        block_input = states
        if layer == cell.layer:
            if cell.site == "cross":
                # Compute the states after self-attention for the trace. `block` below computes them again.
                normed = block.around_attention.sublayer_input(block_input)
                self_attention_edit = probe.edit_at("decoder", layer)
                attended = block.attention.attend_self(normed, edit=self_attention_edit, need_weights=True)
                states = block.around_attention.add_output(block_input, attended.context)
                yield from _block_steps(block.around_cross, block.cross_attention, states, source, cell, edit)
            else:
                yield from _block_steps(
                    block.around_attention, block.attention, block_input, None, cell, edit
                )
        memory = block.cross_attention.prepare(source, source, allowed)
        with _FeedForwardInput(block.feed_forward) as feed_forward_input:
            states = block(block_input, memory, layer=layer, probe=probe)
        if layer == cell.layer:
            yield from _feed_forward_steps(block.feed_forward, feed_forward_input.states, states, cell.query)
    yield from _output_steps(
        model.output, model.after_decoder(states, None)[0, cell.query], batch, cell.query
    )


def _decoder_only(model: DecoderOnly, batch: Batch, cell: Cell, edit: Edit | None) -> Iterator[Step]:
    probe = _probe(edit, model)
    target = _target(batch)
    source_length = batch.source.shape[1]
    length = source_length + target.shape[1]
    positions = torch.arange(length, device=model.device)[None]
    query = cell.query + (0 if cell.site == "encoder" else source_length)
    key = cell.key + (source_length if cell.site == "decoder" else 0)
    for name, position in (("query", query), ("key", key)):
        reads_target = position >= source_length
        tokens = target if reads_target else batch.source
        table = model.target_embedding if reads_target else model.source_embedding
        yield from _embedding_steps(
            name, table, tokens, position - source_length * reads_target, position=position
        )
    states = joint_states(model, batch)
    all_allowed = torch.ones_like(positions, dtype=torch.bool)
    joint_cell = Cell("decoder", cell.layer, cell.head, query, key)
    for layer, block in enumerate(cast("list[DecoderOnlyBlock]", list(model.blocks))):
        if layer == cell.layer:
            yield from _block_steps(block.around_attention, block.attention, states, None, joint_cell, edit)
        with _FeedForwardInput(block.feed_forward) as feed_forward_input:
            states, _ = block.read(states, all_allowed, layer=layer, probe=probe)
        if layer == cell.layer:
            yield from _feed_forward_steps(block.feed_forward, feed_forward_input.states, states, query)
            if cell.site == "encoder":
                return
    yield from _output_steps(model.output, model.after_blocks(states, None)[0, query], batch, cell.query)


def joint_states(model: DecoderOnly, batch: Batch) -> Tensor:
    """Return the embedded source and target of one pair as one sequence, (1, source + target, width)."""
    target, source_length = _target(batch), batch.source.shape[1]
    length = source_length + target.shape[1]
    positions = torch.arange(length, device=model.device)[None]
    return torch.cat(
        [
            model.source_embedding.at_positions(batch.source, positions[:, :source_length], end=length),
            model.target_embedding.at_positions(target, positions[:, source_length:], end=length),
        ],
        dim=1,
    )


def _embedding_steps(
    name: str, table: Embedding | PatchEmbedding, tokens: Tensor, index: int, *, position: int | None = None
) -> Iterator[Step]:
    """Yield the steps of the embedding of the token in column `index`.

    `position` is its position, which is `index` by default. In a decoder-only model, the positions of the
    target continue those of the source.
    """
    position = index if position is None else position
    if isinstance(table, PatchEmbedding):
        token_vector = table.project(tokens)[0, index]
        position_vector = table.positions(tokens.shape[1])[position]
        yield vector(f"{name} embedding", "E · patch", token_vector)
    else:
        token_vector = table.weight[tokens[0, index]] * table.scale
        position_vector = table.positions(position + 1)[position]
        yield vector(f"{name} embedding", "√d · E[token]", token_vector)
    yield vector(f"{name} position", "what the position adds", position_vector)
    yield vector(f"{name} input", "embedding + position", token_vector + position_vector)


def _block_steps(
    residual: Residual,
    attention: Attention,
    states: Tensor,
    source: Tensor | None,
    cell: Cell,
    edit: Edit | None,
) -> Iterator[Step]:
    """Yield the steps of one attention layer with its residual and norm.

    The keys and values are computed from `source`. If `source` is None, they are computed from the states.
    """
    normed = residual.sublayer_input(states)
    key_states = normed if source is None else source
    yield vector("query state", "the layer's input at the query", states[0, cell.query])
    yield vector(
        "key state", "the layer's input at the key", (states if source is None else source)[0, cell.key]
    )
    if not isinstance(residual, PostNorm):
        yield vector("query normed", "norm(x)", normed[0, cell.query])
        if source is None:
            yield vector("key normed", "norm(x)", normed[0, cell.key])
    call = AttentionCall(
        attention,
        normed,
        key_states,
        cell.query,
        cell.key,
        cell.head,
        edit=edit,
        site=cell.site,
        layer=cell.layer,
    )
    steps, contexts = call.steps()
    yield from steps
    multi_head = cast("MultiHead", attention)
    heads = contexts.flatten()  # (head × width of a head,)
    output = multi_head.out(heads)
    residual_sum = states[0, cell.query] + output
    yield vector("heads", "the contexts of all heads, concatenated", heads)
    yield vector("output", "heads · W_O", output)
    yield vector("added", "x + output", residual_sum)
    if isinstance(residual, PostNorm):
        yield vector("normed", "norm(x + output)", residual.norm(residual_sum[None])[0])


def _recurrent(model: Recurrent, batch: Batch, cell: Cell, edit: Edit | None) -> Iterator[Step]:
    probe = _probe(edit, model)
    decoder = cast("AttendBefore | AttendAfter", model.decoder)
    source_embeddings = model.source_embedding(batch.source)
    states, last = model.encoder(source_embeddings, batch.cpu_source_lengths)
    memory = decoder.attention.prepare(
        states, states, padding_mask(batch.source_lengths, batch.source.shape[1])
    )
    tokens = model.target_embedding(_target(batch))  # (1, target, embedding)
    state_before = state_after = decoder.begin(last)
    for step in range(cell.query + 1):
        state_before = state_after
        token = tokens[:, step : step + 1]
        _, state_after = decoder(token, state_before, (memory,), position=step, probe=probe)
    attends_before = isinstance(decoder, AttendBefore)
    state = state_before.query if attends_before else state_after.query  # (1, 1, width)
    previous = tokens[0, cell.query]
    yield vector("key embedding", "√d · E[source token]", source_embeddings[0, cell.key])
    yield vector("key state", "hᵢ", states[0, cell.key])
    yield vector("query embedding", "yₜ₋₁ = √d · E[previous token]", previous)
    yield vector("query state", "sₜ₋₁" if attends_before else "sₜ", state[0, 0])
    call = AttentionCall(
        decoder.attention, state, states, 0, cell.key, 0, query_offset=cell.query, edit=edit, site="cross"
    )
    steps, contexts = call.steps()
    yield from steps
    context = contexts[0]
    new_state = state_after.query[0, 0]
    if isinstance(decoder, AttendBefore):
        yield vector("cell input", "[yₜ₋₁ ; cₜ]", torch.cat([previous, context]))
        yield vector("new state", "sₜ = cell([yₜ₋₁ ; cₜ], sₜ₋₁)", new_state)
        output = torch.tanh(decoder.read_out(torch.cat([new_state, context, previous])))
        yield vector("output", "rₜ = tanh(W_r [sₜ ; cₜ ; yₜ₋₁])", output)
    else:
        output = torch.tanh(decoder.combine(torch.cat([context, new_state])))
        yield vector("output", "h̃ₜ = tanh(W_c [cₜ ; sₜ])", output)
    yield from _output_steps(model.output, output, batch, cell.query)


class _FeedForwardInput:
    """A context manager that stores the input of a feed-forward network, (1, length, width), in `states`."""

    states: Tensor

    def __init__(self, network: FeedForward) -> None:
        self._network = network

    def __enter__(self) -> _FeedForwardInput:
        self._handle = self._network.register_forward_pre_hook(self._keep)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()

    def _keep(self, module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self.states = inputs[0]


def _feed_forward_steps(
    network: FeedForward, inputs: Tensor, block_output: Tensor, query: int
) -> Iterator[Step]:
    """Yield the steps of the feed-forward network of a block, and the block's output."""
    projected = network.widen(inputs[0, query])
    hidden = ACTIVATIONS[network.activation](projected.clone())  # relu changes its input
    yield vector("feed-forward hidden", f"{network.activation}(x W₁ + b₁)", hidden)
    yield vector("feed-forward output", "hidden · W₂ + b₂", network.narrow(hidden))
    yield vector("block output", "the layer's output at the query", block_output[0, query])


def _output_steps(output: OutputLayer, state: Tensor, batch: Batch, query: int) -> Iterator[Step]:
    """Yield the steps from the last state to the log-probability of the token that the step produces."""
    logits = output(state).float()
    logit = logits[cast("Tensor", batch.target)[0, query + 1]]
    log_sum = logits.logsumexp(dim=-1)
    yield vector("final state", "what predicts the next token", state)
    yield number("logit", "W[produced token] · state", logit)
    yield number("log sum", "log Σ exp(logits)", log_sum)
    yield number("log-probability", "logit − log Σ exp(logits)", logit - log_sum)


def _probe(edit: Edit | None, model: TranslationModel) -> Probe:
    """Return a probe for one pair that collects weights.

    The weights are not used. But layers that collect weights compute exactly as they do for the maps.
    """
    rows = torch.zeros(1, dtype=torch.int64, device=model.device)
    return Probe(rows=rows, edit=edit, collect_weights=True)


def _target(batch: Batch) -> Tensor:
    """Return the decoder's input, `<s>` and the tokens, (1, target)."""
    if batch.target is None:
        raise UnsupportedError(
            "Steps need a sentence with its translation. Received: a batch without a target."
        )
    return batch.target[:, :-1]
