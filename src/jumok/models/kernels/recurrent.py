"""Recurrent layers over whole sequences in training, with hand-written gradients.

A step of a recurrent network waits for the step before it, so all other work is moved out of the loop. In the
forward pass, the inputs of all steps are multiplied by their weights in one product before the loop. In the
backward pass, the gradient of a weight is one product over all steps after the loop. torch's autograd would
compute one product per step and add the products. `recurrent_cells.py` has the equations of the cells.

The plain twins are torch's own layers: `plain_run_layer`, and packed sequences in `plain_encode_layer`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.models.kernels.device import runs_fast_kernels
from jumok.models.kernels.recurrent_cells import (
    ACTIVATIONS_OF_LAYER,
    CellActivations,
    GateGradients,
    LayerState,
)


def run_layer(layer: nn.RNNBase, inputs: Tensor, initial: LayerState) -> tuple[Tensor, LayerState]:
    """Run a layer over inputs (row, step, input width), starting from the state `initial`.

    Returns the states (row, step, width) and the final state. The tensors of `initial` and of the final state
    are (1, row, width).
    """
    fast = inputs.shape[1] > 1 and torch.is_grad_enabled() and runs_fast_kernels(inputs)
    return (fast_run_layer if fast else plain_run_layer)(layer, inputs, initial)


def plain_run_layer(layer: nn.RNNBase, inputs: Tensor, initial: LayerState) -> tuple[Tensor, LayerState]:
    states, last = layer(inputs, initial if len(initial) > 1 else initial[0])
    return states, last if isinstance(last, tuple) else (last,)


def fast_run_layer(layer: nn.RNNBase, inputs: Tensor, initial: LayerState) -> tuple[Tensor, LayerState]:
    weights = direction_weights(layer)
    projected = (inputs.transpose(0, 1) @ weights.input_weight + weights.input_bias)[:, None]
    states, *last = _run_directions(
        layer, projected, weights.recurrent_weight[None], weights.recurrent_bias[None, None], initial
    )
    return states[:, 0].transpose(0, 1), tuple(last)


def encode_layer(layer: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run an encoder layer over sentences (row, step, inputs) of these lengths, without their padding.

    The lengths must be on the CPU, even if the inputs are not, because torch's packed sequences need this.

    Return the states (row, step, width) and the last state of each sentence (row, width). With two
    directions, both are joined along the width, and the last state of the backward direction is its state at
    the first token.
    """
    fast = torch.is_grad_enabled() and runs_fast_kernels(inputs)
    return (fast_encode_layer if fast else plain_encode_layer)(layer, inputs, lengths)


def plain_encode_layer(layer: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run torch's layer over packed sequences.

    This function sorts the rows by length. If torch sorted the rows, it would wait for the device.
    """
    lengths, order = torch.sort(lengths, descending=True)
    inverse = torch.empty_like(order).scatter_(0, order, torch.arange(len(order))).to(inputs.device)
    packed = pack_padded_sequence(inputs.index_select(0, order.to(inputs.device)), lengths, batch_first=True)
    outputs, final = layer(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    hidden = final[0] if isinstance(final, tuple) else final  # (direction, row, width of a direction)
    return states.index_select(0, inverse), hidden.index_select(1, inverse).transpose(0, 1).flatten(1)


def fast_encode_layer(layer: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run both directions side by side, each from step 0 to the last step.

    For the backward direction, the tokens of each sentence are reversed, while padding stays at the end.
    """
    rows, steps, _ = inputs.shape
    positions = torch.arange(steps, device=inputs.device)[:, None]  # (step, 1)
    not_padding = positions < lengths  # (step, row)
    row = torch.arange(rows, device=inputs.device)
    # For each (step, row) as one index: the index of the same row at the reversed step.
    reversal = (torch.where(not_padding, lengths - 1 - positions, positions) * rows + row).flatten()
    suffixes = ["", "_reverse"] if layer.bidirectional else [""]
    weights = [direction_weights(layer, suffix) for suffix in suffixes]
    flat = inputs.transpose(0, 1).flatten(0, 1)  # (step · row, inputs)
    projected = [torch.addmm(direction.input_bias, flat, direction.input_weight) for direction in weights]
    if layer.bidirectional:
        projected[1] = _permute(projected[1], reversal)
    stacked = torch.stack([gate_inputs.view(steps, rows, -1) for gate_inputs in projected], dim=1)
    recurrent_weight = torch.stack([direction.recurrent_weight for direction in weights])
    bias = torch.stack([direction.recurrent_bias for direction in weights])[:, None]
    zeros = inputs.new_zeros(len(weights), rows, layer.hidden_size)
    initial = (zeros, zeros) if isinstance(layer, nn.LSTM) else (zeros,)
    states, *_ = _run_directions(layer, stacked, recurrent_weight, bias, initial)
    last = states[lengths - 1, :, row].flatten(1)
    by_direction = list(states.unbind(1))
    if layer.bidirectional:
        by_direction[1] = _permute(by_direction[1].flatten(0, 1), reversal).view_as(by_direction[0])
    joined = torch.cat(by_direction, dim=-1).masked_fill(~not_padding[:, :, None], 0.0)
    return joined.transpose(0, 1).contiguous(), last


class DirectionWeights(NamedTuple):
    """The weights of a layer in one direction, transposed, for `states @ weights`."""

    input_weight: Tensor  # (inputs, gates · width)
    input_bias: Tensor
    recurrent_weight: Tensor  # (width, gates · width)
    recurrent_bias: Tensor


def direction_weights(layer: nn.RNNBase, suffix: str = "") -> DirectionWeights:
    """Return the weights of the direction whose parameter names end in `suffix`."""
    input_weight, recurrent_weight = (getattr(layer, f"weight_{name}_l0{suffix}") for name in ("ih", "hh"))
    input_bias, recurrent_bias = (getattr(layer, f"bias_{name}_l0{suffix}") for name in ("ih", "hh"))
    if isinstance(layer, nn.GRU):
        # recurrent_cells.py stores the gradients as ∂u_n, ∂a_r, ∂a_z, ∂x_n, so that each of ∂u and ∂x is one
        # slice. Therefore the recurrent weights are ordered n, r, z here. torch has r, z, n.
        recurrent_weight = recurrent_weight.roll(layer.hidden_size, 0)
        recurrent_bias = recurrent_bias.roll(layer.hidden_size, 0)
    return DirectionWeights(input_weight.t(), input_bias, recurrent_weight.t().contiguous(), recurrent_bias)


def _run_directions(
    layer: nn.RNNBase, inputs: Tensor, recurrent_weight: Tensor, bias: Tensor, initial: LayerState
) -> tuple[Tensor, ...]:
    """Run the directions side by side over projected inputs (step, direction, row, gates · width).

    The recurrent weight is (direction, width, gates · width), and its bias (direction, 1, gates · width).
    Returns the states (step, direction, row, width), then the tensors of the last state.
    """
    cell = ACTIVATIONS_OF_LAYER[type(layer)]
    outputs: tuple[Tensor, ...] = _RunDirections.apply(  # type: ignore[no-untyped-call]
        cell, inputs, recurrent_weight, bias, *initial
    )
    return outputs


class _RunDirections(torch.autograd.Function):
    """All steps of one or two directions: the states, and the last state."""

    @staticmethod
    def forward(
        context: Any,
        cell: type[CellActivations],
        inputs: Tensor,
        recurrent_weight: Tensor,
        bias: Tensor,
        *initial: Tensor,
    ) -> tuple[Tensor, ...]:
        activations = cell(initial, len(inputs), extra_columns=0)
        for time, x in enumerate(inputs.unbind(0)):
            torch.baddbmm(
                bias, activations.state_at[time], recurrent_weight, out=activations.state_products_at[time]
            )
            activations.step(time, x)
        context.activations = activations
        context.save_for_backward(recurrent_weight)
        return activations.states[1:], *activations.final_state()

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_states: Tensor, *grad_last: Tensor) -> tuple[Tensor | None, ...]:
        (recurrent_weight,) = context.saved_tensors
        activations: CellActivations = pop_saved(context, "activations")
        gradients = GateGradients(activations)
        weight_transposed = recurrent_weight.transpose(1, 2).contiguous()
        carried = activations.begin_backward(grad_last)
        for time in range(len(grad_states) - 1, -1, -1):
            gradient = grad_states[time] + carried
            direct_gradient = activations.backward_step(time, gradient, gradients.blocks_at[time])
            carried = add_product(direct_gradient, gradients.grad_products_at[time], weight_transposed)
        # Both are (direction, step · row, …).
        states_before = activations.states[:-1].transpose(0, 1).flatten(1, 2)
        grad_u = gradients.grad_products.transpose(0, 1).flatten(1, 2)
        grad_weight = torch.bmm(states_before.transpose(1, 2), grad_u)
        grad_bias = grad_u.sum(dim=1, keepdim=True)
        return None, gradients.grad_inputs, grad_weight, grad_bias, carried, *activations.grad_initial_cell()


def pop_saved(context: Any, name: str) -> Any:
    """Return an attribute that forward saved on the context, and clear the attribute to free its memory.

    Torch frees tensors of `save_for_backward` by itself, but attributes live as long as the loss.
    """
    saved = getattr(context, name)
    if saved is None:
        raise RuntimeError("backward() of a recurrent model frees its activations, so it can run only once")
    setattr(context, name, None)
    return saved


def add_product(start: Tensor | None, rows: Tensor, weight: Tensor) -> Tensor:
    """Return `start + rows @ weight`, for matrices or batches of matrices. This overwrites `start`.

    None stands for a `start` of 0.
    """
    if start is None:
        return rows @ weight
    return start.addmm_(rows, weight) if weight.dim() == 2 else start.baddbmm_(rows, weight)


class _Permute(torch.autograd.Function):
    """Permute rows by an order that is its own inverse, so the backward pass uses the same order."""

    @staticmethod
    def forward(context: Any, rows: Tensor, order: Tensor) -> Tensor:
        context.save_for_backward(order)
        return rows.index_select(0, order)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (order,) = context.saved_tensors
        return gradient.index_select(0, order), None


def _permute(rows: Tensor, order: Tensor) -> Tensor:
    permuted: Tensor = _Permute.apply(rows, order)  # type: ignore[no-untyped-call]
    return permuted
