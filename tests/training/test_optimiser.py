"""Adam, its state on the way to the disk and back, and the norm of gradients."""

from __future__ import annotations

import math

import pytest
import torch

from jumok.errors import RunFolderError
from jumok.recipe import TrainingSettings
from jumok.training.optimiser import (
    clip_gradients,
    make_optimiser,
    optimiser_tensors,
    restore_optimiser,
    squared_norm,
)


def small_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))


def one_step(model: torch.nn.Module, optimiser: torch.optim.Optimizer, seed: int) -> None:
    torch.manual_seed(seed)
    optimiser.zero_grad()
    model(torch.randn(5, 3)).square().sum().backward()
    optimiser.step()


def test_decay_touches_matrices_only() -> None:
    optimiser = make_optimiser(small_model(), TrainingSettings(weight_decay=0.1))
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            assert group["weight_decay"] == (0.1 if parameter.ndim >= 2 else 0.0)
    assert optimiser.param_groups[0]["betas"] == (0.9, 0.98)


def test_beta2_is_the_recorded_one_whatever_the_batch() -> None:
    optimiser = make_optimiser(small_model(), TrainingSettings(batch_tokens=512, beta2=0.97))
    assert optimiser.param_groups[0]["betas"] == (0.9, 0.97)


def test_decay_0_is_plain_adam() -> None:
    one, other = small_model(), small_model()
    ours = make_optimiser(one, TrainingSettings(learning_rate=0.01))
    plain = torch.optim.Adam(other.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)
    for step in range(5):
        one_step(one, ours, step)
        one_step(other, plain, step)
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_restored_it_goes_on_in_the_same_bits() -> None:
    model = small_model()
    optimiser = make_optimiser(model, TrainingSettings(weight_decay=0.01))
    for step in range(3):
        one_step(model, optimiser, step)
    stored = {name: tensor.clone() for name, tensor in optimiser_tensors(optimiser, model).items()}
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    one_step(model, optimiser, 3)

    again = small_model()
    again.load_state_dict(weights)
    fresh = make_optimiser(again, TrainingSettings(weight_decay=0.01))
    restore_optimiser(fresh, again, stored)
    one_step(again, fresh, 3)
    for mine, theirs in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_foreign_state_is_refused() -> None:
    model = small_model()
    with pytest.raises(RunFolderError, match="does not belong to this model"):
        restore_optimiser(make_optimiser(model, TrainingSettings()), model, {"exp_avg/x": torch.zeros(1)})


def test_norm_and_clipping_by_hand() -> None:
    parameters = [torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    gradients = [torch.tensor([3.0]), torch.tensor([4.0])]
    parameters[0].grad, parameters[1].grad = gradients
    norm = math.sqrt(squared_norm(gradients))
    assert norm == pytest.approx(5.0)
    clip_gradients(parameters, norm, 10.0)
    assert parameters[0].grad.item() == 3.0
    clip_gradients(parameters, norm, 0)
    assert parameters[0].grad.item() == 3.0
    clip_gradients(parameters, norm, 1.0)
    assert squared_norm(gradients) == pytest.approx(1.0)
    assert squared_norm([]) == 0.0


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_the_norm_shows_what_is_not_finite(poison: float) -> None:
    assert not math.isfinite(squared_norm([torch.ones(2), torch.tensor([1.0, poison, 1.0])]))
