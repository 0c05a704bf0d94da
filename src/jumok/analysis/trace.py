"""Recomputing one weight of a model from its own parameters, and following it to the layer's output.

The model's blocks are called up to the layer that is asked for; from there every step is taken apart:

    embedding + position → states → query, key, value → scores → mask → softmax → Σ weight · value
      → heads side by side → W_O → add & norm                                    Transformer, decoder alone
    s, h → scores → softmax → context → what predicts the next piece             recurrent
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from jumok.attention import Attention, Edit, MultiHead, edit_at, padding
from jumok.attention.contract import Call
from jumok.corpus.batches import padded_batch
from jumok.errors import UnsupportedError
from jumok.explain.mechanism_steps import HeadInputs, number, over_keys, score_steps, vector
from jumok.explain.steps import Cell, CellSteps, Step
from jumok.models import DecoderOnly, Recurrent, Transformer, TranslationModel
from jumok.models.layers import Embedding, PostNorm, Residual
from jumok.models.probe import Probe
from jumok.models.recurrent import AttendAfter, AttendBefore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.attention import Mechanism
    from jumok.models.decoder_only import DecoderOnlyBlock
    from jumok.models.transformer import DecoderBlock, EncoderBlock
    from jumok.values import Batch

__all__ = ["trace_cell"]


@dataclass(frozen=True, slots=True)
class Scene:
    """One attention of a model at work on one sentence, and the places of the cell in it."""

    attention: Attention
    entered: Tensor  # (1, query, width) the states that ask
    remembered: Tensor  # (1, key, width) the states that are asked
    query: int
    key: int
    head: int
    first: int = 0
    edit: Edit | None = None
    site: str = ""  # as the model names it to an edit
    layer: int = 0

    def heads(self, projection: str, states: Tensor) -> Tensor:
        """Queries, keys or values of every head, (1, head, length, width)."""
        if not isinstance(self.attention, MultiHead):
            return states[:, None]
        module: torch.nn.Linear = getattr(self.attention, projection)
        count = self.attention.heads if projection == "query" else self.attention.groups
        split: Tensor = module(states).unflatten(-1, (count, -1)).transpose(1, 2)
        return split.repeat_interleave(self.attention.heads // count, dim=1)

    def steps(self) -> tuple[list[Step], Tensor]:
        """From query, key and value to the contexts (head, width) of the query."""
        mechanism = cast("Mechanism[Any]", self.attention.mechanism)
        queries, keys = self.heads("query", self.entered), self.heads("key", self.remembered)
        values = self.heads("value", self.remembered)
        bias = None
        if isinstance(self.attention, MultiHead):  # where it is told of places, as it compares them
            positions = self.attention.positions
            queries, keys = positions.turn(queries, self.first), positions.turn(keys, 0)
            scale = mechanism.scale(queries.shape[-1])
            bias = positions.bias(queries, keys.shape[2], self.first, scale)
        everyone = torch.ones(1, keys.shape[2], dtype=torch.bool)
        memory = mechanism.prepare(keys, values, everyone)
        inputs = HeadInputs(
            mechanism, queries, keys, memory, self.head, self.query, self.key, first=self.first, bias=bias
        )
        weights, contexts = self._attended(inputs, None)
        row = weights[self.query]
        found = [vector("query", "q", inputs.own_query), vector("key", "kᵢ", inputs.own_key)]
        found += [vector("value", "vᵢ", values[0, self.head, self.key]), *score_steps(inputs, weights)]
        found.append(over_keys("weights", "α", row))
        if self.edit is not None:
            weights, contexts = self._attended(inputs, self.edit)
            row = weights[self.query]
            found.append(over_keys("edited weights", "α after the edit", row))
        found.append(number("weight", "αᵢ", row[self.key]))
        found.append(vector("weighted value", "αᵢ vᵢ", row[self.key] * values[0, self.head, self.key]))
        found.append(vector("context", "Σᵢ αᵢ vᵢ", row @ values[0, self.head]))
        return found, contexts

    def _attended(self, inputs: HeadInputs, edit: Edit | None) -> tuple[Tensor, Tensor]:
        """The weights (query, key) of the watched head, and the contexts (head, width) of the query."""
        rows = torch.zeros(1, dtype=torch.int64)
        hook = edit_at(edit, site=self.site, layer=self.layer, rows=rows)
        call = Call(first=self.first, edit=hook, need_weights=True, bias=inputs.bias)
        attended = inputs.mechanism.attend(inputs.queries, inputs.memory, call)
        weights = cast("Tensor", attended.weights)
        return weights[0, self.head], attended.context[0, :, self.query]


@torch.inference_mode()
def trace_cell(
    model: TranslationModel, source: Sequence[int], target: Sequence[int], cell: Cell, *, edit: Edit | None
) -> CellSteps:
    """The steps of one cell while the model reads these pieces, which are given without marks."""
    batch = padded_batch([source], [target])
    if isinstance(model, Transformer):
        return CellSteps(cell, tuple(_transformer(model, batch, cell, edit)))
    if isinstance(model, DecoderOnly):
        return CellSteps(cell, tuple(_decoder_only(model, batch, cell, edit)))
    if isinstance(model, Recurrent) and model.looks_at_source:
        return CellSteps(cell, tuple(_recurrent(model, batch, cell, edit)))
    raise UnsupportedError(
        f"There are no steps of attention to show. Received: {type(model).__name__}, which does not attend."
    )


def _transformer(model: Transformer, batch: Batch, cell: Cell, edit: Edit | None) -> Iterator[Step]:
    probe = _probe(edit)
    target = _target(batch)
    of_query = batch.source if cell.site == "encoder" else target
    of_key = target if cell.site == "decoder" else batch.source
    embeddings = (model.source_embedding, model.target_embedding)
    yield from _embedded("query", embeddings[of_query is target], of_query, cell.query)
    yield from _embedded("key", embeddings[of_key is target], of_key, cell.key)

    allowed = padding(batch.source_lengths, batch.source.shape[1])
    states = model.source_embedding(batch.source)
    for layer, encoder in enumerate(cast("list[EncoderBlock]", list(model.encoder))):
        if (cell.site, cell.layer) == ("encoder", layer):
            yield from _block_steps(encoder.around_attention, encoder.attention, states, None, cell, edit)
            return
        states = encoder(states, allowed_keys=allowed, layer=layer, probe=probe)
    source = model.after_encoder(states)
    states = model.target_embedding(target)
    for layer, block in enumerate(cast("list[DecoderBlock]", list(model.decoder))):
        if layer == cell.layer:
            if cell.site == "cross":
                entered = block.around_attention.enter(states)
                edited = probe.edit_at("decoder", layer)
                looked = block.attention.attend_self(entered, edit=edited, need_weights=True).context
                states = block.around_attention.leave(states, looked)
                yield from _block_steps(block.around_cross, block.cross_attention, states, source, cell, edit)
            else:
                yield from _block_steps(block.around_attention, block.attention, states, None, cell, edit)
            return
        memory = block.cross_attention.prepare(source, source, allowed)
        states = block(states, memory, layer=layer, probe=probe)


def _decoder_only(model: DecoderOnly, batch: Batch, cell: Cell, edit: Edit | None) -> Iterator[Step]:
    probe = _probe(edit)
    target = _target(batch)
    columns = batch.source.shape[1]
    places = torch.arange(columns + target.shape[1])[None]
    query = cell.query + (0 if cell.site == "encoder" else columns)
    key = cell.key + (columns if cell.site == "decoder" else 0)
    for name, place in (("query", query), ("key", key)):
        reads_target = place >= columns
        pieces = target if reads_target else batch.source
        table = model.target_embedding if reads_target else model.source_embedding
        yield from _embedded(name, table, pieces, place - columns * reads_target, place=place)
    states = torch.cat(
        [
            model.source_embedding.at(batch.source, places[:, :columns]),
            model.target_embedding.at(target, places[:, columns:]),
        ],
        dim=1,
    )
    everyone = torch.ones_like(places, dtype=torch.bool)
    here = Cell("decoder", cell.layer, cell.head, query, key)
    for layer, block in enumerate(cast("list[DecoderOnlyBlock]", list(model.blocks))):
        if layer == cell.layer:
            yield from _block_steps(block.around_attention, block.attention, states, None, here, edit)
            return
        states, _ = block.read(states, everyone, layer=layer, probe=probe)


def _embedded(
    name: str, table: Embedding, pieces: Tensor, index: int, *, place: int | None = None
) -> Iterator[Step]:
    place = index if place is None else place
    piece = table.weight[pieces[0, index]] * table.scale
    position = table.positions(place + 1)[place]
    yield vector(f"{name} embedding", "√d · E[piece]", piece)
    yield vector(f"{name} position", "what is added for the place", position)
    yield vector(f"{name} input", "embedding + position", piece + position)


def _block_steps(
    around: Residual,
    attention: Attention,
    states: Tensor,
    source: Tensor | None,
    cell: Cell,
    edit: Edit | None,
) -> Iterator[Step]:
    """One attention of a block with what stands round it. `source` is what is asked, where not the states."""
    entered = around.enter(states)
    remembered = entered if source is None else source
    yield vector("query state", "what enters this layer at the query", states[0, cell.query])
    yield vector("key state", "what is asked at the key", (states if source is None else source)[0, cell.key])
    if not isinstance(around, PostNorm):
        yield vector("query normed", "norm(x)", entered[0, cell.query])
        if source is None:
            yield vector("key normed", "norm(x)", entered[0, cell.key])
    scene = Scene(
        attention,
        entered,
        remembered,
        cell.query,
        cell.key,
        cell.head,
        edit=edit,
        site=cell.site,
        layer=cell.layer,
    )
    found, contexts = scene.steps()
    yield from found
    multi_head = cast("MultiHead", attention)
    heads = contexts.flatten()  # (head × width of a head,)
    output = multi_head.out(heads)
    added = states[0, cell.query] + output
    yield vector("heads", "the contexts of all heads side by side", heads)
    yield vector("output", "heads · W_O", output)
    yield vector("added", "x + output", added)
    if isinstance(around, PostNorm):
        yield vector("normed", "norm(x + output)", around.norm(added[None])[0])


def _recurrent(model: Recurrent, batch: Batch, cell: Cell, edit: Edit | None) -> Iterator[Step]:
    probe = _probe(edit)
    decoder = cast("AttendBefore | AttendAfter", model.decoder)
    read = model.source_embedding(batch.source)
    states, last = model.encoder(read, batch.source_lengths)
    memory = decoder.attention.prepare(states, states, padding(batch.source_lengths, batch.source.shape[1]))
    pieces = model.target_embedding(_target(batch))  # (1, target, embedding)
    before = after = decoder.begin(last)
    for place in range(cell.query + 1):
        before = after
        _, after = decoder(pieces[:, place : place + 1], before, (memory,), first=place, probe=probe)
    asks_before = isinstance(decoder, AttendBefore)
    state = before.query if asks_before else after.query  # (1, 1, width)
    written = pieces[0, cell.query]
    yield vector("key embedding", "√d · E[source piece]", read[0, cell.key])
    yield vector("key state", "hᵢ", states[0, cell.key])
    yield vector("query embedding", "yₜ₋₁ = √d · E[piece before]", written)
    yield vector("query state", "sₜ₋₁" if asks_before else "sₜ", state[0, 0])
    scene = Scene(decoder.attention, state, states, 0, cell.key, 0, first=cell.query, edit=edit, site="cross")
    found, contexts = scene.steps()
    yield from found
    context = contexts[0]
    now = after.query[0, 0]
    if isinstance(decoder, AttendBefore):
        yield vector("cell input", "[yₜ₋₁ ; cₜ]", torch.cat([written, context]))
        yield vector("new state", "sₜ = cell([yₜ₋₁ ; cₜ], sₜ₋₁)", now)
        output = torch.tanh(decoder.read_out(torch.cat([now, context, written])))
        yield vector("output", "rₜ = tanh(W_r [sₜ ; cₜ ; yₜ₋₁])", output)
    else:
        output = torch.tanh(decoder.combine(torch.cat([context, now])))
        yield vector("output", "h̃ₜ = tanh(W_c [cₜ ; sₜ])", output)


def _probe(edit: Edit | None) -> Probe:
    """It gathers, so that the layers below take the path on which the maps were made, rounding included."""
    return Probe(rows=torch.zeros(1, dtype=torch.int64), edit=edit, gathers=True)


def _target(batch: Batch) -> Tensor:
    """What the decoder reads: `<s>` and the pieces, (1, target)."""
    if batch.target is None:
        raise UnsupportedError("Steps are shown for a sentence with its translation. Received: no target.")
    return batch.target[:, :-1]
