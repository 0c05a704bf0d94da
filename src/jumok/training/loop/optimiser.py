"""Adam, its state as named tensors, and the norm of a gradient.

Adam with β₁ = .9, ε = 1e-9 (Vaswani et al. 2017, section 5.3) and the β₂ of the recipe. Decoupled weight
decay (Loshchilov & Hutter 2019) touches matrices only: biases and the gains of layer norms have no reason to
be small. With decay 0 this is plain Adam. The fused kernel updates all parameters in one pass over memory, on
the CPU too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.errors import RunFolderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torch import Tensor, nn

    from jumok.recipe import TrainingSettings

__all__ = ["clip_gradients", "make_optimiser", "optimiser_tensors", "restore_optimiser", "squared_norm"]

_STATE = ("exp_avg", "exp_avg_sq", "step")


def make_optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Adam over the model's parameters. The learning rate is set before each step, from the schedule."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    betas = (0.9, settings.beta2)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=1e-9, fused=True)


def squared_norm(gradients: Sequence[Tensor]) -> float:
    """The square of the global norm of gradients; not finite if any of them is not."""
    if not gradients:
        return 0.0
    return float(torch.nn.utils.get_total_norm(gradients, foreach=True)) ** 2


def clip_gradients(parameters: Iterable[Tensor], norm: float, largest: float) -> None:
    """Scale gradients to a global norm of at most `largest` (Pascanu et al. 2013); 0 leaves them alone."""
    if largest and norm > largest:
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        torch._foreach_mul_(gradients, largest / norm)


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Adam's state under the names of the parameters: `exp_avg/encoder.0.weight` and so on."""
    tensors = {}
    for name, parameter in model.named_parameters():
        for part, value in optimiser.state.get(parameter, {}).items():
            tensors[f"{part}/{name}"] = value
    return tensors


def restore_optimiser(
    optimiser: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """The inverse of `optimiser_tensors`."""
    expected = {f"{part}/{name}" for name, _ in model.named_parameters() for part in _STATE}
    if tensors and set(tensors) != expected:
        raise RunFolderError(
            "The optimiser's state does not belong to this model. Received: "
            f"{', '.join(sorted(set(tensors) ^ expected)[:3])}, … Start a new run in another folder."
        )
    for name, parameter in model.named_parameters():
        if tensors:
            state = optimiser.state[parameter]
            for part in _STATE:  # in place where there is a place: a team shares it
                given = tensors[f"{part}/{name}"]
                state[part] = state[part].copy_(given) if part in state else given.clone()
