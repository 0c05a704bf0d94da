"""What recurrent cells do at a step, and their gradients by hand.

With x the inputs already multiplied by their weights, u = s' R + b, s' the state before the step and
δ = ∂loss/∂s:

    rnn    s = tanh(x + u)                                       ∂x = ∂u = δ (1 - s²)
    gru    r, z = σ(x + u),  n = tanh(x + r u),                  Cho et al. 2014, as torch has it
           s = (1 - z) n + z s'
           ∂xₙ = δ (1 - z)(1 - n²)        ∂uₙ = ∂xₙ r             ∂s' = δ z + ∂u Rᵀ
           ∂r = ∂xₙ uₙ r (1 - r)          ∂z = δ (s' - n) z (1 - z)
    lstm   i, f, o = σ(x + u),  g = tanh(x + u),                 Hochreiter & Schmidhuber 1997
           c = f c' + i g,  s = o tanh(c)
           γ = ∂c = γ' + δ o (1 - tanh² c)                        handed to the step before: γ f
           ∂i = γ g i (1 - i)   ∂f = γ c' f (1 - f)   ∂g = γ i (1 - g²)   ∂o = δ tanh(c) o (1 - o)

All but δ and γ is known before the way back begins: these factors are formed for all steps at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

__all__ = ["TRACES", "Gradients", "States", "Trace"]

States = tuple[Tensor, ...]
"""What a layer hands on, (…, row, width) each: its state and, of an LSTM, its cell."""


class Trace(ABC):
    """What a layer did, step after step. Rows may have axes before them: a direction, for instance.

    `recurring` is u, with room for what else is made of the state in its first `extra` columns. Gradients are
    kept in blocks of the width of a state: ∂u are the first of them and ∂x the last, which overlap in all but
    what a GRU's n is given by x and u.
    """

    gates: ClassVar[int]
    blocks: ClassVar[int]

    def __init__(self, first: States, steps: int, extra: int) -> None:
        *rows, width = first[0].shape
        self.width, self.extra = width, extra
        self.states = first[0].new_empty(steps + 1, *rows, width)
        self.states[0] = first[0]
        self.state = self.states.unbind(0)
        self.recurring = first[0].new_empty(steps, *rows, extra + self.gates * width)
        self.made = self.recurring.unbind(0)  # a tensor for each step: u and what else is made of the state

    def gate(self, start: int, end: int) -> tuple[Tensor, ...]:
        """u of the gates from `start` to `end`, a tensor for each step."""
        first = self.extra
        return self.recurring[..., first + start * self.width : first + end * self.width].unbind(0)

    @abstractmethod
    def step(self, time: int, entering: Tensor) -> Tensor:
        """The state after the step into which x (…, row, gates · width) enters."""

    @abstractmethod
    def last(self) -> States:
        """What the last step hands on."""

    @abstractmethod
    def write_factors(self, blocks: Tensor) -> None:
        """What δ (or γ) is multiplied by for each block of gradients, (step, …, row, block, width)."""

    @abstractmethod
    def back(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        """Turn a step's factors into gradients in place; the part of ∂s' that goes through no weights."""

    def begin_back(self, last: States) -> Tensor:
        """Take the gradients of what was handed on; that of the state is the caller's to carry."""
        return last[0]

    def gradients_of_first(self) -> States:
        """The gradients of what the first step was handed, that of the state excepted."""
        return ()


class RnnTrace(Trace):
    gates, blocks = 1, 1

    def __init__(self, first: States, steps: int, extra: int) -> None:
        super().__init__(first, steps, extra)
        self._u = self.gate(0, 1)

    def step(self, time: int, entering: Tensor) -> Tensor:
        return torch.add(entering, self._u[time], out=self.state[time + 1]).tanh_()

    def last(self) -> States:
        return (self.state[-1].clone(),)

    def write_factors(self, blocks: Tensor) -> None:
        torch.mul(self.states[1:], self.states[1:], out=blocks[..., 0, :]).neg_().add_(1)

    def back(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        blocks.mul_(gradient.unsqueeze(-2))
        return None


class GruTrace(Trace):
    """Blocks of gradients: ∂uₙ, ∂r, ∂z, ∂xₙ."""

    gates, blocks = 3, 4

    def __init__(self, first: States, steps: int, extra: int) -> None:
        super().__init__(first, steps, extra)
        rows = self.states.shape[1:-1]
        self._u_new, self._u_open = self.gate(0, 1), self.gate(1, 3)
        self._open = self.states.new_empty(steps, *rows, 2 * self.width)
        self._new = self.states.new_empty(steps, *rows, self.width)
        self._reset_update, self._candidate = self._open.unbind(0), self._new.unbind(0)
        self._reset, self._update = (half.unbind(0) for half in self._open.chunk(2, dim=-1))

    def step(self, time: int, entering: Tensor) -> Tensor:
        x_open, x_new = entering.tensor_split((2 * self.width,), dim=-1)
        torch.add(x_open, self._u_open[time], out=self._reset_update[time]).sigmoid_()
        new = torch.addcmul(x_new, self._reset[time], self._u_new[time], out=self._candidate[time]).tanh_()
        return torch.lerp(new, self.state[time], self._update[time], out=self.state[time + 1])

    def last(self) -> States:
        return (self.state[-1].clone(),)

    def write_factors(self, blocks: Tensor) -> None:
        reset, update = self._open.chunk(2, dim=-1)
        u_new = self.recurring[..., self.extra : self.extra + self.width]
        of_u_new, of_reset, of_update, of_x_new = blocks.unbind(-2)
        torch.mul(1 - update, 1 - self._new * self._new, out=of_x_new)
        torch.mul(of_x_new, reset, out=of_u_new)
        torch.mul(of_u_new, u_new, out=of_reset).mul_(1 - reset)
        torch.sub(self.states[:-1], self._new, out=of_update).mul_(update).mul_(1 - update)

    def back(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        blocks.mul_(gradient.unsqueeze(-2))
        return gradient * self._update[time]


class LstmTrace(Trace):
    """Blocks of gradients: ∂i, ∂f, ∂g, ∂o."""

    gates, blocks = 4, 4

    def __init__(self, first: States, steps: int, extra: int) -> None:
        super().__init__(first, steps, extra)
        rows = self.states.shape[1:-1]
        self._u = self.gate(0, 4)
        self._gates = self.states.new_empty(steps, *rows, 4 * self.width)
        self._gate = self._gates.unbind(0)
        self._in, self._forget, self._new, self._out = (
            part.unbind(0) for part in self._gates.chunk(4, dim=-1)
        )
        self._cells = torch.empty_like(self.states)
        self._cells[0] = first[1]
        self._cell = self._cells.unbind(0)
        self._bent = torch.empty_like(self._cells[1:])  # tanh c
        self._bent_cell = self._bent.unbind(0)

    def step(self, time: int, entering: Tensor) -> Tensor:
        gates = torch.add(entering, self._u[time], out=self._gate[time])
        gates[..., : 2 * self.width].sigmoid_()
        self._out[time].sigmoid_()
        new = self._new[time].tanh_()
        cell = torch.mul(self._forget[time], self._cell[time], out=self._cell[time + 1])
        torch.tanh(cell.addcmul_(self._in[time], new), out=self._bent_cell[time])
        return torch.mul(self._out[time], self._bent_cell[time], out=self.state[time + 1])

    def last(self) -> States:
        return self.state[-1].clone(), self._cell[-1].clone()

    def write_factors(self, blocks: Tensor) -> None:
        into, forget, new, out = self._gates.chunk(4, dim=-1)
        of_in, of_forget, of_new, of_out = blocks.unbind(-2)
        torch.mul(new, into, out=of_in).mul_(1 - into)
        torch.mul(self._cells[:-1], forget, out=of_forget).mul_(1 - forget)
        torch.mul(into, 1 - new * new, out=of_new)
        torch.mul(self._bent, out, out=of_out).mul_(1 - out)
        self._of_cell = (out * (1 - self._bent * self._bent)).unbind(0)

    def begin_back(self, last: States) -> Tensor:
        self._carried = last[1]
        return last[0]

    def back(self, time: int, gradient: Tensor, blocks: Tensor) -> Tensor | None:
        of_cell = torch.addcmul(self._carried, gradient, self._of_cell[time])  # γ
        blocks[..., :3, :].mul_(of_cell.unsqueeze(-2))
        blocks[..., 3, :].mul_(gradient)
        self._carried = of_cell.mul_(self._forget[time])
        return None

    def gradients_of_first(self) -> States:
        return (self._carried,)


TRACES: dict[type[nn.RNNBase], type[Trace]] = {nn.RNN: RnnTrace, nn.GRU: GruTrace, nn.LSTM: LstmTrace}


class Gradients:
    """The gradients of a layer at every step, (step, …, row, extra + blocks · width), and parts of them."""

    def __init__(self, trace: Trace) -> None:
        width, extra = trace.width, trace.extra
        self.whole = trace.states.new_empty(*trace.recurring.shape[:-1], extra + trace.blocks * width)
        self.recurring = self.whole[..., : extra + trace.gates * width]  # ∂ of all that is made of the state
        self.entering = self.whole[..., extra + (trace.blocks - trace.gates) * width :]  # ∂x
        blocks = self.whole[..., extra:].view(*trace.states[1:].shape[:-1], trace.blocks, width)
        trace.write_factors(blocks)
        self.step = blocks.unbind(0)
        self.recurring_step, self.entering_step = self.recurring.unbind(0), self.entering.unbind(0)
