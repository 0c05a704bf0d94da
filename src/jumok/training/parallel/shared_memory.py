"""The memory that the processes of a team share: weights, Adam's state, and each one's gradients.

Every parameter of the model is laid into one block that all members map. A parameter has one owner, who alone
adds up its gradients, steps Adam for it and writes its new value where all others read it; so nothing is ever
sent, and no sum depends on who came first.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import numpy
import torch

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Board", "can_share_memory"]

ALIGNED = 16  # floats: a parameter begins on a cache line
NOTES = 3  # what a member tells of its part of an update: loss, loss without smoothing, squared norm


def can_share_memory() -> bool:
    """Whether this system has memory without a name, which no crash can leave behind (Linux)."""
    return hasattr(os, "memfd_create")


class Board:
    """One block of memory, cut up for a model and a number of members."""

    def __init__(self, model: nn.Module, members: int, handle: int | None = None) -> None:
        """Map the block behind `handle`, or make one: then the model's weights are its first content."""
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        sizes = [-(-parameter.numel() // ALIGNED) * ALIGNED for parameter in self.parameters]
        self._starts = [sum(sizes[:number]) for number in range(len(sizes))]
        self.owners = _share_out(sizes, members)
        block, counters = sum(sizes), -(-len(sizes) // ALIGNED) * ALIGNED
        floats = (3 + members) * block + counters
        is_new = handle is None
        length = 4 * floats + 8 * NOTES * members
        self.handle = _new_block(length, shared=members > 1) if handle is None else handle
        memory = numpy.frombuffer(mmap.mmap(self.handle, length), dtype=numpy.uint8)
        flat = torch.from_numpy(memory[: 4 * floats].view(numpy.float32))
        weights, first, second, *gradients = (flat[i * block : (i + 1) * block] for i in range(3 + members))
        self._adam = {"exp_avg": self._views(first), "exp_avg_sq": self._views(second)}
        self._steps = list(flat[-counters:][: len(sizes)].unbind())
        self.gradients = [self._views(part) for part in gradients]  # of a member, of a parameter
        self.notes = memory[4 * floats :].view(numpy.float64).reshape(members, NOTES)
        for parameter, place in zip(self.parameters, self._views(weights), strict=True):
            if is_new:
                place.copy_(parameter.detach())
            parameter.data = place

    def release(self) -> None:
        """Let go of the handle, once all have mapped or inherited it: the memory then goes with its users."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def hold_state(self, optimiser: torch.optim.Optimizer) -> None:
        """Lay Adam's state out here, where each owner finds that of its parameters."""
        for number, parameter in enumerate(self.parameters):
            state = {name: places[number] for name, places in self._adam.items()}
            optimiser.state[parameter] = {"step": self._steps[number], **state}

    def forget_state(self) -> None:
        """Adam before its first step."""
        for places in (*self._adam.values(), self._steps):
            torch._foreach_zero_(places)

    def _views(self, part: Tensor) -> list[Tensor]:
        """A block in the shapes of the parameters."""
        return [
            part[start : start + parameter.numel()].view(parameter.shape)
            for start, parameter in zip(self._starts, self.parameters, strict=True)
        ]


def _new_block(length: int, *, shared: bool) -> int:
    """Zeros; the handle of memory that others can map, or -1, which stands for this process' own."""
    if not shared:
        return -1
    if not can_share_memory():
        raise UnsupportedError(
            "Several processes share their weights in memory that this system does not offer (Linux does). "
            "Set training.processes = 1."
        )
    handle = os.memfd_create("jumok")
    os.ftruncate(handle, length)
    return handle


def _share_out(sizes: list[int], members: int) -> list[int]:
    """An owner for each parameter, so that all have about as much to do; the largest are given out first."""
    loads, owners = [0] * members, [0] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        owners[number] = loads.index(min(loads))
        loads[owners[number]] += sizes[number]
    return owners
