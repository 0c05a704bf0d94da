"""One step of each recurrent cell, and its hand-written gradient.

s' is the state before the step, s the state after the step, and δ = ∂loss/∂s. Likewise, ∂y is ∂loss/∂y for
any other y. x are the inputs, multiplied by the input weights, and u = s' R + b, with R the recurrent weight
and b its bias. x_g and u_g are the columns of x and u for gate g, and a_g = x_g + u_g is the pre-activation
of gate g.

    rnn    s = tanh(x + u)                                       ∂x = ∂u = δ (1 - s²)
    gru    r = σ(a_r)   z = σ(a_z)   n = tanh(x_n + r u_n)       Cho et al. 2014, as in torch
           s = (1 - z) n + z s'
           ∂x_n = δ (1 - z)(1 - n²)       ∂u_n = ∂x_n r           ∂s' = δ z + ∂u Rᵀ
           ∂a_r = ∂x_n u_n r (1 - r)      ∂a_z = δ (s' - n) z (1 - z)
    lstm   i = σ(a_i)   f = σ(a_f)   o = σ(a_o)   g = tanh(a_g)  Hochreiter & Schmidhuber 1997; the forget
           c = f c' + i g   s = o tanh(c)                        gate f: Gers, Schmidhuber & Cummins 2000
           γ = ∂c = γ₊ + δ o (1 - tanh² c)                       γ₊ is γ f of the step after
           ∂a_i = γ g i (1 - i)   ∂a_f = γ c' f (1 - f)   ∂a_g = γ i (1 - g²)   ∂a_o = δ tanh(c) o (1 - o)

The gradient of each gate (∂a, ∂x, ∂u) is δ or γ times a factor that is known before the backward pass begins.
Therefore the factors of all steps are computed at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

LayerState = tuple[Tensor, ...]
"""The recurrent state of a layer, tensors (…, row, width): the hidden state and, for an LSTM, the cell."""


class CellActivations(ABC):
    """The activations of one layer at every step, saved for the backward pass.

    Rows may have leading axes, for instance a direction. `state_products` are the products of s' at every
    step: first `extra_columns` for another product (the attention query), and then u. The caller writes the
    products of a step before it calls `step`.

    Gradients are in blocks of the width of a state: ∂u is the first `num_gates` blocks and ∂x the last
    `num_gates`. These are the same blocks, except in a GRU, where ∂u_n differs from ∂x_n.
    """

    num_gates: ClassVar[int]
    num_blocks: ClassVar[int]

    def __init__(self, initial: LayerState, steps: int, extra_columns: int) -> None:
        *rows, width = initial[0].shape
        self.width, self.extra_columns = width, extra_columns
        self.states = initial[0].new_empty(steps + 1, *rows, width)  # the initial state, then one per step
        self.states[0] = initial[0]
        self.state_at = self.states.unbind(0)
        self.state_products = initial[0].new_empty(steps, *rows, extra_columns + self.num_gates * width)
        self.state_products_at = self.state_products.unbind(0)

    def u_of_gates(self, start: int, end: int) -> tuple[Tensor, ...]:
        """Return views of u of the gates `start` … `end - 1`, one tensor per step."""
        offset = self.extra_columns
        return self.state_products[..., offset + start * self.width : offset + end * self.width].unbind(0)

    @abstractmethod
    def step(self, time: int, x: Tensor) -> Tensor:
        """Compute the step with inputs x (…, row, num_gates · width), and return the state after the step.

        `state_products_at[time]` must have been written.
        """

    @abstractmethod
    def final_state(self) -> LayerState:
        """Return the state after the last step."""

    @abstractmethod
    def write_factors(self, blocks: Tensor) -> None:
        """Fill `blocks` (step, …, row, block, width) with the factors that are to be multiplied by δ or γ."""

    @abstractmethod
    def backward_step(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        """Multiply the factors of a step by δ (or γ) in place, which gives the gradients of the step.

        `gradient` is δ, and `blocks` are the factors of this step. Call this for the last step first. Return
        the direct gradient of s', which is ∂s' without ∂u Rᵀ, or None if this is 0.
        """

    def begin_backward(self, grad_last: LayerState) -> Tensor:
        """Return the gradient of the last hidden state. An LSTM stores the gradient of its last cell."""
        return grad_last[0]

    def grad_initial_cell(self) -> LayerState:
        """Return the gradient of the initial cell of an LSTM; () for other layers.

        Call this after the last call of `backward_step`.
        """
        return ()


class RnnActivations(CellActivations):
    num_gates, num_blocks = 1, 1

    def __init__(self, initial: LayerState, steps: int, extra_columns: int) -> None:
        super().__init__(initial, steps, extra_columns)
        self._u_at = self.u_of_gates(0, 1)

    def step(self, time: int, x: Tensor) -> Tensor:
        return torch.add(x, self._u_at[time], out=self.state_at[time + 1]).tanh_()

    def final_state(self) -> LayerState:
        return (self.state_at[-1].clone(),)

    def write_factors(self, blocks: Tensor) -> None:
        torch.mul(self.states[1:], self.states[1:], out=blocks[..., 0, :]).neg_().add_(1)

    def backward_step(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        blocks.mul_(gradient.unsqueeze(-2))
        return None


class GruActivations(CellActivations):
    """Blocks of gradients: ∂u_n, ∂a_r, ∂a_z, ∂x_n. u is in the order u_n, u_r, u_z."""

    num_gates, num_blocks = 3, 4

    def __init__(self, initial: LayerState, steps: int, extra_columns: int) -> None:
        super().__init__(initial, steps, extra_columns)
        rows = self.states.shape[1:-1]
        self._u_candidate_at, self._u_reset_update_at = self.u_of_gates(0, 1), self.u_of_gates(1, 3)
        self._gates = self.states.new_empty(steps, *rows, 2 * self.width)  # r, z
        self._gates_at = self._gates.unbind(0)
        self._reset_at, self._update_at = (half.unbind(0) for half in self._gates.chunk(2, dim=-1))
        self._candidates = self.states.new_empty(steps, *rows, self.width)  # n
        self._candidate_at = self._candidates.unbind(0)

    def step(self, time: int, x: Tensor) -> Tensor:
        x_reset_update, x_candidate = x.tensor_split((2 * self.width,), dim=-1)
        torch.add(x_reset_update, self._u_reset_update_at[time], out=self._gates_at[time]).sigmoid_()
        candidate = torch.addcmul(
            x_candidate, self._reset_at[time], self._u_candidate_at[time], out=self._candidate_at[time]
        ).tanh_()
        return torch.lerp(candidate, self.state_at[time], self._update_at[time], out=self.state_at[time + 1])

    def final_state(self) -> LayerState:
        return (self.state_at[-1].clone(),)

    def write_factors(self, blocks: Tensor) -> None:
        reset, update = self._gates.chunk(2, dim=-1)
        u_candidate = self.state_products[..., self.extra_columns : self.extra_columns + self.width]
        grad_u_candidate, grad_reset, grad_update, grad_x_candidate = blocks.unbind(-2)
        torch.mul(1 - update, 1 - self._candidates * self._candidates, out=grad_x_candidate)
        torch.mul(grad_x_candidate, reset, out=grad_u_candidate)
        torch.mul(grad_u_candidate, u_candidate, out=grad_reset).mul_(1 - reset)
        torch.sub(self.states[:-1], self._candidates, out=grad_update).mul_(update).mul_(1 - update)

    def backward_step(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        blocks.mul_(gradient.unsqueeze(-2))
        return gradient * self._update_at[time]


class LstmActivations(CellActivations):
    """Blocks of gradients: ∂a_i, ∂a_f, ∂a_g, ∂a_o."""

    num_gates, num_blocks = 4, 4

    def __init__(self, initial: LayerState, steps: int, extra_columns: int) -> None:
        super().__init__(initial, steps, extra_columns)
        rows = self.states.shape[1:-1]
        self._u_at = self.u_of_gates(0, 4)
        self._gates = self.states.new_empty(steps, *rows, 4 * self.width)  # i, f, g, o
        self._gates_at = self._gates.unbind(0)
        self._input_at, self._forget_at, self._candidate_at, self._output_at = (
            part.unbind(0) for part in self._gates.chunk(4, dim=-1)
        )
        self._cells = torch.empty_like(self.states)
        self._cells[0] = initial[1]
        self._cell_at = self._cells.unbind(0)
        self._tanh_cells = torch.empty_like(self._cells[1:])
        self._tanh_cell_at = self._tanh_cells.unbind(0)

    def step(self, time: int, x: Tensor) -> Tensor:
        # The pre-activations become the gates in place.
        pre_activations = torch.add(x, self._u_at[time], out=self._gates_at[time])
        pre_activations[..., : 2 * self.width].sigmoid_()
        self._output_at[time].sigmoid_()
        candidate = self._candidate_at[time].tanh_()
        cell = torch.mul(self._forget_at[time], self._cell_at[time], out=self._cell_at[time + 1])
        torch.tanh(cell.addcmul_(self._input_at[time], candidate), out=self._tanh_cell_at[time])
        return torch.mul(self._output_at[time], self._tanh_cell_at[time], out=self.state_at[time + 1])

    def final_state(self) -> LayerState:
        return self.state_at[-1].clone(), self._cell_at[-1].clone()

    def write_factors(self, blocks: Tensor) -> None:
        input_gate, forget_gate, candidate, output_gate = self._gates.chunk(4, dim=-1)
        grad_input, grad_forget, grad_candidate, grad_output = blocks.unbind(-2)
        torch.mul(candidate, input_gate, out=grad_input).mul_(1 - input_gate)
        torch.mul(self._cells[:-1], forget_gate, out=grad_forget).mul_(1 - forget_gate)
        torch.mul(input_gate, 1 - candidate * candidate, out=grad_candidate)
        torch.mul(self._tanh_cells, output_gate, out=grad_output).mul_(1 - output_gate)
        # ∂c = γ₊ + δ times this factor.
        self._cell_factor_at = (output_gate * (1 - self._tanh_cells * self._tanh_cells)).unbind(0)

    def begin_backward(self, grad_last: LayerState) -> Tensor:
        self._grad_cell = grad_last[1]
        return grad_last[0]

    def backward_step(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        grad_cell = torch.addcmul(self._grad_cell, gradient, self._cell_factor_at[time])  # γ
        blocks[..., :3, :].mul_(grad_cell.unsqueeze(-2))
        blocks[..., 3, :].mul_(gradient)
        self._grad_cell = grad_cell.mul_(self._forget_at[time])
        return None

    def grad_initial_cell(self) -> LayerState:
        return (self._grad_cell,)


ACTIVATIONS_OF_LAYER: dict[type[nn.RNNBase], type[CellActivations]] = {
    nn.RNN: RnnActivations,
    nn.GRU: GruActivations,
    nn.LSTM: LstmActivations,
}


class GateGradients:
    """The gradients of a layer at every step, and views of them.

    `all` is (step, …, row, extra_columns + num_blocks · width). At first, its blocks have the factors of the
    gradients: `backward_step` turns the factors into gradients, and the caller writes the extra columns.
    """

    def __init__(self, activations: CellActivations) -> None:
        width, extra_columns = activations.width, activations.extra_columns
        num_gates, num_blocks = activations.num_gates, activations.num_blocks
        steps_and_rows = activations.state_products.shape[:-1]
        self.all = activations.states.new_empty(*steps_and_rows, extra_columns + num_blocks * width)
        self.grad_products = self.all[..., : extra_columns + num_gates * width]  # of `state_products`
        self.grad_inputs = self.all[..., extra_columns + (num_blocks - num_gates) * width :]  # ∂x
        blocks = self.all[..., extra_columns:].view(*steps_and_rows, num_blocks, width)
        activations.write_factors(blocks)
        self.blocks_at = blocks.unbind(0)
        self.grad_products_at = self.grad_products.unbind(0)
        self.grad_inputs_at = self.grad_inputs.unbind(0)
