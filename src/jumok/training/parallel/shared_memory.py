"""Several processes on one machine: weights, Adam's state and gradients in one block that all of them map.

The owner of a parameter sums its gradients, steps Adam for it and writes its new value where all others read
it. So no tensor is sent, and no sum depends on which rank is done first.

    block    weights | exp_avg | exp_avg_sq | gradients of rank 0, 1, … | Adam's step per parameter    float32
             values that `sum_over_ranks` adds up: (rank, value)                                       float64
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import numpy
import torch

from jumok.errors import UnsupportedError
from jumok.training.loop.optimiser import trainable_parameters
from jumok.training.parallel.ownership import aligned, assign_owners
from jumok.training.parallel.protocol import gradient_or_zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor, nn


def can_share_memory() -> bool:
    """Whether this system has anonymous shared memory, which a crash cannot leave behind (Linux)."""
    return hasattr(os, "memfd_create")


class SharedMemory:
    """The backend of one rank among several on the same machine."""

    def __init__(
        self,
        model: nn.Module,
        *,
        rank: int,
        world_size: int,
        barrier: Callable[[], None],
        block_fd: int | None = None,
        num_summed_values: int = 3,
    ) -> None:
        """Map the block behind `block_fd`. Without one, create it and copy the model's weights into it.

        `barrier` returns when all ranks have called it. `num_summed_values` is the maximum
        number of values that a rank passes to `sum_over_ranks`.
        """
        self.rank, self.world_size, self._barrier = rank, world_size, barrier
        self.parameters = trainable_parameters(model)
        sizes = [aligned(parameter.numel()) for parameter in self.parameters]
        self._offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        self.owners = assign_owners(sizes, world_size)
        self._owned = [index for index, owner in enumerate(self.owners) if owner == rank]
        is_new = block_fd is None
        num_floats = (3 + world_size) * sum(sizes) + aligned(len(sizes))
        num_bytes = 4 * num_floats + 8 * num_summed_values * world_size
        self.block_fd = _create_block(num_bytes) if block_fd is None else block_fd
        memory = numpy.frombuffer(mmap.mmap(self.block_fd, num_bytes), dtype=numpy.uint8)
        self._summed = memory[4 * num_floats :].view(numpy.float64).reshape(world_size, num_summed_values)
        floats = torch.from_numpy(memory[: 4 * num_floats].view(numpy.float32))
        self._map_tensors(floats, sum(sizes), copy_weights=is_new)

    def _map_tensors(self, floats: Tensor, size: int, *, copy_weights: bool) -> None:
        """Make parameters, Adam's state and gradients views of the block. `size`: floats per section."""
        weights, mean, square, *gradients = (
            floats[i * size : (i + 1) * size] for i in range(3 + self.world_size)
        )
        self._adam = {"exp_avg": self._views(mean), "exp_avg_sq": self._views(square)}
        self._adam_steps = list(floats[(3 + self.world_size) * size :][: len(self.parameters)].unbind())
        self._gradients = [self._views(section) for section in gradients]  # [rank][parameter]
        for parameter, view in zip(self.parameters, self._views(weights), strict=True):
            if copy_weights:
                view.copy_(parameter.detach())
            parameter.data = view

    def _views(self, section: Tensor) -> list[Tensor]:
        """Return views of a section of the block, one per parameter, in its shape."""
        return [
            section[offset : offset + parameter.numel()].view(parameter.shape)
            for offset, parameter in zip(self._offsets, self.parameters, strict=True)
        ]

    def close_block_fd(self) -> None:
        """Close the descriptor once all ranks have mapped or inherited it; the mappings keep the memory."""
        if self.block_fd >= 0:
            os.close(self.block_fd)
            self.block_fd = -1

    def bind_optimiser(self, optimiser: torch.optim.Optimizer) -> None:
        """Put Adam's state, zero at first, into the block, so that rank 0 can store every owner's state."""
        for index, parameter in enumerate(self.parameters):
            averages = {name: views[index] for name, views in self._adam.items()}
            optimiser.state[parameter] = {"step": self._adam_steps[index], **averages}

    def reduce_gradients(self) -> list[Tensor]:
        self._publish_gradients()
        self._barrier()
        return self._sum_owned_gradients()

    def exchange_gradients(self, *, first_of_update: bool = True) -> tuple[list[Tensor], list[list[Tensor]]]:
        if not first_of_update:
            self._barrier()  # others may still read what the last call has published
        own = [gradient_or_zeros(self.parameters[index]) for index in self._owned]
        self._publish_gradients()
        self._barrier()
        by_rank = [[gradients[index] for index in self._owned] for gradients in self._gradients]
        by_rank[self.rank] = own
        return [self.parameters[index] for index in self._owned], by_rank

    def _publish_gradients(self) -> None:
        """Copy this rank's gradients of parameters that other ranks own into the block, for the owners."""
        views, gradients = [], []
        for index, owner in enumerate(self.owners):
            if owner != self.rank:
                parameter = self.parameters[index]
                views.append(self._gradients[self.rank][index])
                gradients.append(gradient_or_zeros(parameter))
                parameter.grad = None  # so that Adam skips it
        if views:
            torch._foreach_copy_(views, gradients)

    def _sum_owned_gradients(self) -> list[Tensor]:
        """Add the other ranks' gradients, in order of rank, to this rank's own."""
        sums = []
        for index in self._owned:
            parameter = self.parameters[index]
            parameter.grad = gradient_or_zeros(parameter)
            sums.append(parameter.grad)
        for rank in range(self.world_size):
            if rank != self.rank and self._owned:
                torch._foreach_add_(sums, [self._gradients[rank][index] for index in self._owned])
        return sums

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        self._summed[self.rank, : len(values)] = values
        self._barrier()
        sums: list[float] = self._summed[:, : len(values)].sum(axis=0).tolist()
        return sums

    def share_parameters(self) -> None:
        self._barrier()

    def distribute(self) -> None:
        """Nothing to do: every rank sees what rank 0 has written."""

    def collect_optimiser(self) -> None:
        """Nothing to do: rank 0 sees Adam's state of all owners."""


def _create_block(num_bytes: int) -> int:
    """Return the descriptor of zeroed memory that other processes can map."""
    if not can_share_memory():
        raise UnsupportedError(
            "Several processes need shared memory that this system does not offer (Linux does). "
            "Set training.processes = 1."
        )
    descriptor = os.memfd_create("jumok")
    os.ftruncate(descriptor, num_bytes)
    return descriptor
