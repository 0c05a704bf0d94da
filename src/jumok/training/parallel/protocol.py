"""The interface between an update and the processes that train one model together.

    backend             where the parameters are           for
    SingleProcess       in the model's own tensors         one process
    SharedMemory        in one block that all ranks map    several processes on one machine
    Network             in one block per rank              several processes, also on several machines

Every parameter has one owner: the rank that sums its gradients and steps Adam for it (ZeRO stage 1,
Rajbhandari et al. 2020). Each rank calls three collectives in this order, which correspond to reduce-scatter,
all-reduce and all-gather:

    gradients = backend.reduce_gradients()
    loss, nll, square = backend.sum_over_ranks([loss, nll, squared_norm(gradients)])
    optimiser.step()                    # steps the parameters that have a gradient: the rank's own
    backend.share_parameters()

Rank 0 writes the checkpoints, with Adam's state of all parameters. In shared memory, rank 0 sees the state of
all owners. Over a network, all ranks call `collect_optimiser` before rank 0 writes a checkpoint, and
`distribute` after it has loaded a checkpoint or new weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch import Tensor


class ParallelBackend(Protocol):
    """One rank's interface to the processes that train one model together."""

    @property
    def rank(self) -> int: ...

    @property
    def world_size(self) -> int: ...

    def bind_optimiser(self, optimiser: torch.optim.Optimizer) -> None:
        """Create Adam's state, all zeros, where this backend stores it."""

    def reduce_gradients(self) -> list[Tensor]:
        """Sum every parameter's gradient over the ranks; return the sums of this rank's own parameters.

        Afterwards `.grad` of an owned parameter is that sum, and `.grad` of every other parameter is None.
        """

    def exchange_gradients(self, *, first_of_update: bool = True) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return the parameters that this rank owns, and the gradients that each rank computed for them.

        Without `training.shares`, an update calls `reduce_gradients` instead. With shares, the gradients of
        an update are added up in a binary tree (`loop/shares.py`), and each call sends one partial sum per
        rank. There are several calls per update if some rank has several partial sums, that is, several nodes
        of the tree.

        The gradients are valid until the next call. If `first_of_update` is false, `SharedMemory` waits until
        all ranks have read the gradients of the call before.
        """

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Return the element-wise sum over all ranks, the same bits on each."""

    def share_parameters(self) -> None:
        """Wait until every rank sees the values that the owners have written."""

    def distribute(self) -> None:
        """Give every rank the parameters of rank 0, and every owner its part of rank 0's state of Adam."""

    def collect_optimiser(self) -> None:
        """Bring Adam's state of all parameters to rank 0."""


def gradient_or_zeros(parameter: Tensor) -> Tensor:
    """Return the gradient, or zeros if the backward pass did not reach the parameter."""
    return parameter.new_zeros(parameter.shape) if parameter.grad is None else parameter.grad
