"""Several processes on one machine or many: gradients and weights travel by torch.distributed.

The arithmetic is that of `SharedMemory`: the owner of a parameter adds the gradients of all ranks to its own,
in the order of ranks, and steps Adam for it. So both backends compute the same bits. (Torch's
DistributedDataParallel does not: it rebuilds its buckets after the first backward pass, so a resumed run of
three or more processes adds in another order.)

    reduce_gradients    all_to_all_single: each gradient goes to its owner only
    sum_over_ranks      all_gather of the values as float64
    share_parameters    each owner broadcasts its parameters

In every block of memory the parameters are sorted by owner, so the parameters of one owner are one section.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
import torch.distributed

from jumok.errors import TrainingError
from jumok.training.loop.optimiser import trainable_parameters
from jumok.training.parallel.ownership import aligned, assign_owners
from jumok.training.parallel.protocol import gradient_or_zeros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor, nn


class Network:
    """The backend of one rank among several that are connected by torch's default process group."""

    def __init__(self, model: nn.Module) -> None:
        """Move the model's parameters into one block; every rank must call this with the same model."""
        self.rank, self.world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        parameters = trainable_parameters(model)
        sizes = [aligned(parameter.numel()) for parameter in parameters]
        owners = assign_owners(sizes, self.world_size)
        order = sorted(range(len(sizes)), key=lambda index: (owners[index], index))
        self.parameters = [parameters[index] for index in order]
        self._counts = [owners.count(rank) for rank in range(self.world_size)]  # parameters per owner
        self._lengths = [  # floats per owner
            sum(size for size, owner in zip(sizes, owners, strict=True) if owner == rank)
            for rank in range(self.world_size)
        ]
        device = parameters[0].device
        self._weights, self._gradients = torch.zeros(2, sum(self._lengths), device=device).unbind()
        self._received = torch.zeros(self.world_size, self._lengths[self.rank], device=device)
        self._gradient_views = _views(self._gradients, self.parameters)
        self._received_views = [_views(row, self._owned(self.parameters)) for row in self._received]
        for parameter, view in zip(self.parameters, _views(self._weights, self.parameters), strict=True):
            view.copy_(parameter.detach())
            parameter.data = view
        # exp_avg, exp_avg_sq and the steps of the parameters that this rank owns, in the order of
        # `self.parameters`; on rank 0, of all parameters.
        self._adam: list[Tensor] = []

    def _owned(self, parameters: list[Tensor]) -> list[Tensor]:
        """Return the section of `self.parameters`, or of a list in their order, that this rank owns."""
        first = sum(self._counts[: self.rank])
        return parameters[first : first + self._counts[self.rank]]

    def bind_optimiser(self, optimiser: torch.optim.Optimizer) -> None:
        """Create Adam's state of the parameters that this rank owns.

        Rank 0 creates the state of all parameters, since it writes the checkpoints.
        """
        length = sum(self._lengths) if self.rank == 0 else self._lengths[self.rank]
        parameters = self.parameters if self.rank == 0 else self._owned(self.parameters)
        mean, square = self._weights.new_zeros(2, length).unbind()
        steps = self._weights.new_zeros(len(parameters))
        self._adam = [mean, square, steps]
        views = zip(
            parameters, _views(mean, parameters), _views(square, parameters), steps.unbind(), strict=True
        )
        for parameter, exp_avg, exp_avg_sq, step in views:
            optimiser.state[parameter] = {"step": step, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}

    def exchange_gradients(self, *, first_of_update: bool = True) -> tuple[list[Tensor], list[list[Tensor]]]:
        torch._foreach_copy_(self._gradient_views, [gradient_or_zeros(p) for p in self.parameters])
        received = self._received.flatten()
        lengths = [self._lengths[self.rank]] * self.world_size
        with connection_errors():
            torch.distributed.all_to_all_single(received, self._gradients, lengths, self._lengths)
        return self._owned(self.parameters), self._received_views

    def reduce_gradients(self) -> list[Tensor]:
        owned, by_rank = self.exchange_gradients()
        sums = by_rank[self.rank]
        for rank, gradients in enumerate(by_rank):
            if rank != self.rank and sums:
                torch._foreach_add_(sums, gradients)
        for parameter in self.parameters:
            parameter.grad = None  # so that Adam skips the parameters of other ranks
        for parameter, gradient in zip(owned, sums, strict=True):
            parameter.grad = gradient
        return sums

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        own = torch.tensor(values, dtype=torch.float64)
        rows = [torch.empty_like(own) for _ in range(self.world_size)]
        with connection_errors():
            torch.distributed.all_gather(rows, own)
        sums: list[float] = torch.stack(rows).numpy().sum(axis=0).tolist()
        return sums

    def share_parameters(self) -> None:
        sections = torch.split_with_sizes(self._weights, self._lengths)
        with connection_errors():
            works = [
                torch.distributed.broadcast(section, owner, async_op=True)
                for owner, section in enumerate(sections)
                if len(section)
            ]
            for work in works:
                if work is not None:
                    work.wait()

    def distribute(self) -> None:
        with connection_errors():
            torch.distributed.broadcast(self._weights, 0)
            for owner in range(1, self.world_size):
                for section in self._adam_sections(owner):
                    if self.rank == 0:
                        torch.distributed.send(section, owner)
                    elif self.rank == owner:
                        torch.distributed.recv(section, 0)

    def collect_optimiser(self) -> None:
        with connection_errors():
            for owner in range(1, self.world_size):
                for section in self._adam_sections(owner):
                    if self.rank == 0:
                        torch.distributed.recv(section, owner)
                    elif self.rank == owner:
                        torch.distributed.send(section, 0)

    def _adam_sections(self, owner: int) -> list[Tensor]:
        """Return Adam's state of the parameters of `owner`.

        Only rank 0 and the owner have this state; on any other rank, the list is empty.
        """
        if self.rank == owner:
            sections = self._adam
        elif self.rank == 0:
            mean, square, steps = self._adam
            sections = [
                torch.split_with_sizes(mean, self._lengths)[owner],
                torch.split_with_sizes(square, self._lengths)[owner],
                torch.split_with_sizes(steps, self._counts)[owner],
            ]
        else:
            sections = []
        return [section for section in sections if len(section)]


@contextmanager
def connection_errors() -> Iterator[None]:
    """Replace the RuntimeError that torch.distributed raises for a lost connection by a TrainingError."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            f"The connection to another rank of this training is lost ({first_sentence(error)}). All "
            "checkpoints are intact: run the same command again, or let torchrun do it with --max-restarts."
        ) from error


def first_sentence(error: Exception) -> str:
    """Return the first sentence of an error of torch, without torch's source file and line number."""
    text = re.sub(r"^\[[^\]]*\.(cc|cpp|h):\d+\]\s*", "", str(error))
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


def _views(block: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return views of a block, one per parameter, in its shape."""
    views, offset = [], 0
    for parameter in parameters:
        views.append(block[offset : offset + parameter.numel()].view(parameter.shape))
        offset += aligned(parameter.numel())
    return views
