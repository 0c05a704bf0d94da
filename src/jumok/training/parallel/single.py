"""One process: the parameters stay in the model's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.training.loop.optimiser import trainable_parameters
from jumok.training.parallel.protocol import gradient_or_zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn


class SingleProcess:
    """The backend of a process that trains alone: it owns every parameter and has nothing to sum."""

    rank = 0
    world_size = 1

    def __init__(self, model: nn.Module) -> None:
        self._parameters = trainable_parameters(model)

    def bind_optimiser(self, optimiser: torch.optim.Optimizer) -> None:
        for parameter in self._parameters:
            optimiser.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

    def reduce_gradients(self) -> list[Tensor]:
        gradients = []
        for parameter in self._parameters:
            parameter.grad = gradient_or_zeros(parameter)
            gradients.append(parameter.grad)
        return gradients

    def exchange_gradients(self, *, first_of_update: bool = True) -> tuple[list[Tensor], list[list[Tensor]]]:
        return self._parameters, [self.reduce_gradients()]

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def share_parameters(self) -> None:
        pass

    def distribute(self) -> None:
        pass

    def collect_optimiser(self) -> None:
        pass
