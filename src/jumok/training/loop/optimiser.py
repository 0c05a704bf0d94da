"""Adam, its state as named tensors, and the norm of a gradient.

Adam with β₁ = .9, ε = 1e-9 (Vaswani et al. 2017, section 5.3) and the recipe's β₂. Decoupled weight decay
(Loshchilov & Hutter 2019) does not apply to vectors: biases and the gains of layer norms have no reason to be
small. With decay 0 this is plain Adam. The fused kernel updates all parameters in one pass over memory, also
on the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.errors import RunFolderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor, nn

    from jumok.config.recipe import TrainingSettings

_STATE_KEYS = ("exp_avg", "exp_avg_sq", "step")


def trainable_parameters(model: nn.Module) -> list[Tensor]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def make_optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return Adam over the model's parameters. The schedule sets the learning rate before each step."""
    parameters = trainable_parameters(model)
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    betas = (0.9, settings.beta2)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=1e-9, fused=True)


def squared_norm(gradients: Sequence[Tensor]) -> float:
    """Return the square of the global L2 norm. The result is not finite if any gradient is not finite."""
    if not gradients:
        return 0.0
    foreach = gradients[0].device.type != "mps"  # MPS has no kernels for lists of tensors
    return float(torch.nn.utils.get_total_norm(gradients, foreach=foreach)) ** 2


def squared_norms(gradients: Sequence[Tensor | None]) -> list[float]:
    """Return the square of the norm of each gradient; 0 for None."""
    present = [gradient for gradient in gradients if gradient is not None]
    norms = iter(torch.stack([gradient.norm() for gradient in present]).tolist() if present else ())
    return [0.0 if gradient is None else next(norms) ** 2 for gradient in gradients]


def clip_gradients(gradients: list[Tensor], norm: float, max_norm: float) -> None:
    """Scale gradients of global norm `norm` down to `max_norm` (Pascanu et al. 2013).

    If `max_norm` is 0, nothing is scaled.
    """
    if gradients and max_norm and norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / norm)


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return Adam's state by parameter name: `exp_avg/encoder.0.weight` and so on."""
    tensors = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"{key}/{name}"] = value
    return tensors


def restore_optimiser(
    optimiser: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Load Adam's state, as `optimiser_tensors` returned it. If there is none (step 0), do nothing."""
    trainable = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    expected = {f"{key}/{name}" for name in trainable for key in _STATE_KEYS}
    if tensors and set(tensors) != expected:
        raise RunFolderError(
            "The optimiser's state does not belong to this model. Missing or unexpected: "
            f"{', '.join(sorted(set(tensors) ^ expected)[:3])}, … Start a new run in another folder."
        )
    for name, parameter in trainable.items():
        if tensors:
            state = optimiser.state[parameter]
            for key in _STATE_KEYS:
                stored_tensor = tensors[f"{key}/{name}"]
                # An existing tensor is overwritten in place, since other ranks may share its memory.
                state[key] = state[key].copy_(stored_tensor) if key in state else stored_tensor.clone()


def reset_optimiser(optimiser: torch.optim.Optimizer) -> None:
    """Set Adam's state to zero, in place, as it was before the first step."""
    for key in _STATE_KEYS:
        tensors = [state[key] for state in optimiser.state.values() if key in state]
        if tensors:
            torch._foreach_zero_(tensors)
