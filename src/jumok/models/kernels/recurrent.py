"""Recurrent layers and Bahdanau's decoder with gradients by hand: what training goes through.

A step of a recurrent network waits for the one before it, so all that does not wait is taken out of the loop.
Going forward, the inputs of all steps are multiplied by their weights before it, in one product. Going back,
the gradient of a weight is one product over all steps after the loop: torch's own gradients would make a
product for every step and add them up. `recurrent_cells.py` has the equations of the cells.

Attention before the step, with K the projected keys, H the values, s' the state before it and q = s' W_q:

    hᵢ = tanh(Kᵢ + q),  a = softmax(vᵀ hᵢ),  c = Σᵢ aᵢ Hᵢ         Bahdanau et al. 2015, appendix A.1.2
    βᵢ = ∂(vᵀ hᵢ) = aᵢ (∂c · Hᵢ - Σⱼ aⱼ ∂c · Hⱼ)
    ∂q = v Σᵢ βᵢ (1 - hᵢ²) = -v Σᵢ βᵢ hᵢ²                         because Σᵢ βᵢ = 0
    ∂Kᵢ = v Σₜ βᵢ (1 - hᵢ²)    ∂v = Σₜᵢ βᵢ hᵢ    ∂Hᵢ = Σₜ aᵢ ∂c

The hidden layer h of a step, by far the largest thing here, is formed again on the way back: one fits into
the processor's cache, and those of all steps do not.

`recurrent.py` holds the plain twins: packed sequences for the encoder, and the loop over single steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from jumok.models.recurrent_cells import TRACES, Gradients, States, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.attention import Additive, KeyValues
    from jumok.models.dropout import Dropout

__all__ = ["attend_before_steps", "read_sentences", "run_layer"]


class _Run(torch.autograd.Function):
    """A layer over whole sentences; several directions are run side by side."""

    @staticmethod
    def forward(
        context: Any, kind: type[Trace], inputs: Tensor, recurrent: Tensor, bias: Tensor, *first: Tensor
    ) -> tuple[Tensor, ...]:
        trace = kind(first, len(inputs), 0)
        for time, entering in enumerate(inputs.unbind(0)):
            torch.baddbmm(bias, trace.state[time], recurrent, out=trace.made[time])
            trace.step(time, entering)
        context.trace = trace
        context.save_for_backward(recurrent)
        return trace.states[1:], *trace.last()

    @staticmethod
    @once_differentiable
    def backward(context: Any, of_states: Tensor, *of_last: Tensor) -> tuple[Tensor | None, ...]:
        (recurrent,) = context.saved_tensors
        trace: Trace = _taken(context, "trace")
        blocks, back = Gradients(trace), recurrent.transpose(1, 2).contiguous()
        carried = trace.begin_back(of_last)
        for time in range(len(of_states) - 1, -1, -1):
            direct = trace.back(time, of_states[time] + carried, blocks.step[time])
            carried = _product(direct, blocks.recurring_step[time], back)
        before = trace.states[:-1].transpose(0, 1).flatten(1, 2)  # (direction, step · row, width)
        of_made = blocks.recurring.transpose(0, 1).flatten(1, 2)
        of_recurrent = torch.bmm(before.transpose(1, 2), of_made)
        of_bias = of_made.sum(dim=1, keepdim=True)
        return None, blocks.entering, of_recurrent, of_bias, carried, *trace.gradients_of_first()


def _taken(context: Any, name: str) -> Any:
    """What the way there left for the way back, which is gone once: its loss may be kept long after it.

    Torch lets go of saved tensors by itself; a trace is none.
    """
    left = getattr(context, name)
    if left is None:
        raise RuntimeError("a recurrent model's traces were freed by backward(), which goes back once only")
    setattr(context, name, None)
    return left


def _product(start: Tensor | None, rows: Tensor, weight: Tensor) -> Tensor:
    """`start + rows @ weight`, of matrices or of batches of them."""
    if start is None:
        return rows @ weight
    return start.addmm_(rows, weight) if weight.dim() == 2 else start.baddbmm_(rows, weight)


class _Turn(torch.autograd.Function):
    """Rows in an order that undoes itself, so that the gradient takes the same way."""

    @staticmethod
    def forward(context: Any, rows: Tensor, order: Tensor) -> Tensor:
        context.save_for_backward(order)
        return rows.index_select(0, order)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (order,) = context.saved_tensors
        return gradient.index_select(0, order), None


class _Weights(NamedTuple):
    """A layer's weights in one direction, as the loops want them."""

    entering: Tensor  # (inputs, gates · width)
    entering_bias: Tensor
    recurrent: Tensor  # (width, gates · width)
    recurrent_bias: Tensor


def _weights(layer: nn.RNNBase, direction: str = "") -> _Weights:
    entering, recurrent = (getattr(layer, f"weight_{name}_l0{direction}") for name in ("ih", "hh"))
    entering_bias, recurrent_bias = (getattr(layer, f"bias_{name}_l0{direction}") for name in ("ih", "hh"))
    if isinstance(layer, nn.GRU):  # u begins with n, so that ∂u and ∂x are each of one piece
        recurrent = recurrent.roll(layer.hidden_size, 0)
        recurrent_bias = recurrent_bias.roll(layer.hidden_size, 0)
    return _Weights(entering.t(), entering_bias, recurrent.t().contiguous(), recurrent_bias)


def run_layer(layer: nn.RNNBase, inputs: Tensor, first: States) -> tuple[Tensor, States]:
    """What `layer` makes of (row, step, inputs) in one direction, from `first`, (1, row, width) each, on."""
    weights = _weights(layer)
    projected = (inputs.transpose(0, 1) @ weights.entering + weights.entering_bias)[:, None]
    states, *last = _run(layer, projected, weights.recurrent[None], weights.recurrent_bias[None, None], first)
    return states[:, 0].transpose(0, 1), tuple(last)


def _run(layer: nn.RNNBase, inputs: Tensor, recurrent: Tensor, bias: Tensor, first: States) -> States:
    outputs: States = _Run.apply(TRACES[type(layer)], inputs, recurrent, bias, *first)  # type: ignore[no-untyped-call]
    return outputs


def read_sentences(layer: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """What an encoder's layer makes of (row, step, inputs): states (row, step, width), the last (row, width).

    To be read backwards, each sentence is turned within its own length; padding then follows it either way.
    """
    rows, steps, _ = inputs.shape
    places = torch.arange(steps, device=inputs.device)[:, None]  # (step, 1)
    real = places < lengths  # (step, row)
    row = torch.arange(rows, device=inputs.device)
    turned = (torch.where(real, lengths - 1 - places, places) * rows + row).flatten()
    directions = ["", "_reverse"] if layer.bidirectional else [""]
    weights = [_weights(layer, direction) for direction in directions]
    flat = inputs.transpose(0, 1).flatten(0, 1)  # (step · row, inputs)
    projected = [torch.addmm(each.entering_bias, flat, each.entering) for each in weights]
    if layer.bidirectional:
        projected[1] = _turn(projected[1], turned)
    entering = torch.stack([each.view(steps, rows, -1) for each in projected], dim=1)
    recurrent = torch.stack([each.recurrent for each in weights])
    bias = torch.stack([each.recurrent_bias for each in weights])[:, None]
    nothing = inputs.new_zeros(len(weights), rows, layer.hidden_size)
    first = (nothing, nothing) if isinstance(layer, nn.LSTM) else (nothing,)
    states, *_ = _run(layer, entering, recurrent, bias, first)  # (step, direction, row, width)
    last = states[lengths - 1, :, row].flatten(1)
    ways = list(states.unbind(1))
    if layer.bidirectional:
        ways[1] = _turn(ways[1].flatten(0, 1), turned).view_as(ways[0])
    both = torch.cat(ways, dim=-1).masked_fill(~real[:, :, None], 0.0)
    return both.transpose(0, 1).contiguous(), last


def _turn(rows: Tensor, order: Tensor) -> Tensor:
    turned: Tensor = _Turn.apply(rows, order)  # type: ignore[no-untyped-call]
    return turned


class _Looking(NamedTuple):
    """What the attention of a decoder looks at, and with."""

    keys: Tensor  # (row, key, units) projected
    values: Tensor  # (row, key, width)
    shut: Tensor | None  # (row, 1, key) added to the scores: 0, or so little that the weight is 0
    energy: Tensor  # (units,) v


class _InLoop(NamedTuple):
    """A layer of a decoder that attends before its step. The top one's `recurrent` begins with W_q."""

    entering: Tensor  # (what enters, gates · width): the context, or the state of the layer below
    entering_bias: Tensor | None  # of the first layer a part of the inputs
    recurrent: Tensor  # (width, units if on top + gates · width)
    recurrent_bias: Tensor
    kept: Tensor | None  # (step, row, width) dropout of what enters, as factors


class _AttendBefore(torch.autograd.Function):
    """All steps of a decoder that attends before each: the states on top and what was attended to."""

    @staticmethod
    def forward(
        context: Any, kind: type[Trace], number: int, inputs: Tensor, *tensors: Any
    ) -> tuple[Tensor, ...]:
        looking, layers, first = _sorted_out(number, tensors)
        steps, units = len(inputs), len(looking.energy)
        traces = [kind(each, steps, 0) for each in first[:-1]] + [kind(first[-1], steps, units)]
        rows, keys, width = looking.values.shape
        weights, contexts = inputs.new_empty(steps, rows, 1, keys), inputs.new_empty(steps, rows, 1, width)
        attended = contexts[:, :, 0].unbind(0)
        queries = traces[-1].recurring[..., None, :units].unbind(0)
        hidden, entering = torch.empty_like(looking.keys), torch.empty_like(inputs[0])
        scores = inputs.new_empty(rows, 1, keys)
        flat_hidden, flat_scores = hidden.view(-1, units), scores.view(-1)
        stack = list(zip(layers, traces, strict=True))
        for time, (piece, weight, room) in enumerate(
            zip(inputs.unbind(0), weights.unbind(0), contexts.unbind(0), strict=True)
        ):
            for layer, trace in stack:
                torch.addmm(layer.recurrent_bias, trace.state[time], layer.recurrent, out=trace.made[time])
            torch.add(looking.keys, queries[time], out=hidden).tanh_()
            torch.mv(flat_hidden, looking.energy, out=flat_scores)
            if looking.shut is not None:
                scores += looking.shut
            torch.softmax(scores, dim=2, out=weight)
            torch.bmm(weight, looking.values, out=room)
            torch.addmm(piece, attended[time], layers[0].entering, out=entering)
            state = traces[0].step(time, entering)
            for layer, trace in stack[1:]:
                state = state if layer.kept is None else state * layer.kept[time]
                state = trace.step(time, linear(state, layer.entering.t(), layer.entering_bias))
        contexts = contexts[:, :, 0]
        context.number, context.traces = number, traces
        # As an attribute, an output would hold the graph that holds it; torch's own keeping sees to that.
        context.save_for_backward(*tensors, weights, contexts)
        return traces[-1].states[1:], contexts, *(part for trace in traces for part in trace.last())

    @staticmethod
    @once_differentiable
    def backward(
        context: Any, of_states: Tensor, of_contexts: Tensor, *of_last: Tensor
    ) -> tuple[Tensor | None, ...]:
        *tensors, weights, contexts = context.saved_tensors
        looking, layers, _ = _sorted_out(context.number, tensors)
        traces: list[Trace] = _taken(context, "traces")
        parts = len(of_last) // len(traces)
        lasts = [of_last[start : start + parts] for start in range(0, len(of_last), parts)]
        carried = [trace.begin_back(last) for trace, last in zip(traces, lasts, strict=True)]
        every = [Gradients(trace) for trace in traces]
        recurrent = [layer.recurrent.t().contiguous() for layer in layers]
        entering = [layer.entering.t().contiguous() for layer in layers]
        looks = _LooksBack(looking, weights, traces[-1], every[-1])
        of_state, of_context = of_states.unbind(0), of_contexts.unbind(0)
        for time in range(len(of_states) - 1, -1, -1):
            gradient = of_state[time]
            direct: list[Tensor | None] = [None] * len(layers)
            for number in range(len(layers) - 1, -1, -1):
                blocks, kept = every[number], layers[number].kept
                direct[number] = traces[number].back(time, gradient + carried[number], blocks.step[time])
                if number:
                    gradient = blocks.entering_step[time] @ entering[number]
                    gradient = gradient if kept is None else gradient.mul_(kept[time])
            torch.addmm(
                of_context[time], every[0].entering_step[time], entering[0], out=looks.of_contexts[time]
            )
            looks.back(time)
            carried = [
                _product(part, blocks.recurring_step[time], weight)
                for part, blocks, weight in zip(direct, every, recurrent, strict=True)
            ]
        of_keys, of_values, of_energy = looks.gradients()
        of_layers: list[Tensor | None] = []
        entered = contexts
        for layer, trace, blocks in zip(layers, traces, every, strict=True):
            entered = entered if layer.kept is None else entered * layer.kept
            of_entering, of_made = blocks.entering.flatten(0, 1), blocks.recurring.flatten(0, 1)
            of_layers += [
                entered.flatten(0, 1).t() @ of_entering,
                None if layer.entering_bias is None else of_entering.sum(dim=0),
                trace.states[:-1].flatten(0, 1).t() @ of_made,
                of_made.sum(dim=0),
                None,
            ]
            entered = trace.states[1:]
        of_first = [
            part
            for state, trace in zip(carried, traces, strict=True)
            for part in (state, *trace.gradients_of_first())
        ]
        return None, None, every[0].entering, of_keys, of_values, None, of_energy, *of_layers, *of_first


class _LooksBack:
    """The way back through the attention of every step, last step first."""

    def __init__(self, looking: _Looking, weights: Tensor, top: Trace, blocks: Gradients) -> None:
        units = len(looking.energy)
        self.looking = looking
        self.weights = weights  # (step, row, 1, key)
        self.weight = weights.unbind(0)
        self.query = top.recurring[..., None, :units].unbind(0)
        self.of_query = blocks.whole[..., None, :units].unbind(0)
        self.scores = torch.empty_like(weights)  # β
        self.of_scores, self.of_flat_scores = self.scores.unbind(0), self.scores.flatten(1).unbind(0)
        self.of_score_columns = self.scores.transpose(2, 3).unbind(0)
        rows, _, width = looking.values.shape
        self.contexts = looking.values.new_empty(len(weights), rows, width)  # ∂c, which the loop fills in
        self.of_contexts, self.of_context_rows = self.contexts.unbind(0), self.contexts[:, :, None].unbind(0)
        self.read = looking.values.transpose(1, 2)
        self.minus_energy = -looking.energy
        self.hidden = torch.empty_like(looking.keys)
        self.flat_hidden = self.hidden.view(-1, units).t()
        self.squares = torch.zeros_like(looking.keys)  # Σₜ β h²
        self.energy = torch.zeros_like(looking.energy)

    def back(self, time: int) -> None:
        """From ∂c of that step to ∂q."""
        weight = self.weight[time]
        of_weight = torch.bmm(self.of_context_rows[time], self.read).mul_(weight)  # (row, 1, key)
        of_scores = torch.addcmul(
            of_weight, weight, of_weight.sum(dim=2, keepdim=True), value=-1, out=self.of_scores[time]
        )
        hidden = torch.add(self.looking.keys, self.query[time], out=self.hidden).tanh_()
        self.energy.addmv_(self.flat_hidden, self.of_flat_scores[time])
        hidden.mul_(hidden)
        self.squares.addcmul_(hidden, self.of_score_columns[time])
        torch.mul(torch.bmm(of_scores, hidden), self.minus_energy, out=self.of_query[time])

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Those of the keys, the values and v."""
        of_keys = (self.scores.sum(dim=0).transpose(1, 2) - self.squares).mul_(self.looking.energy)
        of_values = torch.bmm(self.weights[:, :, 0].permute(1, 2, 0), self.contexts.transpose(0, 1))
        return of_keys, of_values, self.energy


def _sorted_out(number: int, tensors: Sequence[Any]) -> tuple[_Looking, list[_InLoop], list[States]]:
    """What `_AttendBefore` was handed, for autograd's sake, as one row of tensors."""
    looking, rest = tensors[:4], tensors[4:]
    layers, states = rest[: 5 * number], rest[5 * number :]
    parts = len(states) // number
    return (
        _Looking(*looking),
        [_InLoop(*layers[start : start + 5]) for start in range(0, len(layers), 5)],
        [tuple(states[start : start + parts]) for start in range(0, len(states), parts)],
    )


def attend_before_steps(
    layers: Sequence[nn.RNNBase],
    mechanism: Additive,
    pieces: Tensor,
    first: Sequence[States],
    memory: KeyValues,
    dropout: Dropout,
) -> tuple[Tensor, Tensor, tuple[States, ...]]:
    """All steps over pieces (row, step, embedding): the states on top, the contexts and what is handed on.

    States and contexts are (row, step, width).
    """
    values = memory.values[:, 0].contiguous()
    looking = _Looking(memory.keys[:, 0].contiguous(), values, _shut(memory), mechanism.energies()[0])
    weights = [_weights(layer) for layer in layers]
    of_piece, of_context = torch.split(weights[0].entering, [pieces.shape[2], values.shape[2]])
    inputs = linear(pieces.transpose(0, 1), of_piece.t(), weights[0].entering_bias)  # (step, row, …)
    weights[0] = weights[0]._replace(entering=of_context)
    stack = [
        _InLoop(each.entering.contiguous(), None, each.recurrent, each.recurrent_bias, None)
        for each in weights
    ]
    for number in range(1, len(stack)):
        kept = dropout(pieces.new_ones(*inputs.shape[:2], layers[number].hidden_size))
        stack[number] = stack[number]._replace(entering_bias=weights[number].entering_bias, kept=kept)
    stack[-1] = stack[-1]._replace(
        recurrent=torch.cat([mechanism.query[0], stack[-1].recurrent], dim=1),
        recurrent_bias=torch.cat([torch.zeros_like(looking.energy), stack[-1].recurrent_bias]),
    )
    states, contexts, *last = _AttendBefore.apply(  # type: ignore[no-untyped-call]
        TRACES[type(layers[0])],
        len(stack),
        inputs,
        *looking,
        *(tensor for layer in stack for tensor in layer),
        *(part[0] for parts in first for part in parts),
    )
    every = len(last) // len(stack)
    return (
        states.transpose(0, 1),
        contexts.transpose(0, 1),
        tuple(tuple(part[None] for part in last[at : at + every]) for at in range(0, len(last), every)),
    )


def _shut(memory: KeyValues) -> Tensor | None:
    if memory.allowed is None:
        return None
    shut = torch.zeros_like(memory.allowed[:, None], dtype=memory.keys.dtype)  # (row, 1, key)
    return shut.masked_fill_(~memory.allowed[:, None], torch.finfo(shut.dtype).min)
