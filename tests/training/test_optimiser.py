"""Adam, storing and restoring its state, and the norm of gradients."""

from __future__ import annotations

import math

import pytest
import torch

from jumok.config.recipe import TrainingSettings
from jumok.errors import RunFolderError
from jumok.training.loop.optimiser import (
    clip_gradients,
    make_optimiser,
    optimiser_tensors,
    reset_optimiser,
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


def test_weight_decay_applies_to_matrices_only() -> None:
    optimiser = make_optimiser(small_model(), TrainingSettings(weight_decay=0.1))
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            assert group["weight_decay"] == (0.1 if parameter.ndim >= 2 else 0.0)
    assert optimiser.param_groups[0]["betas"] == (0.9, 0.98)


def test_beta2_comes_from_the_settings() -> None:
    """`config.derive` derives beta2 from the tokens per update; the optimiser does not."""
    optimiser = make_optimiser(small_model(), TrainingSettings(batch_tokens=512, beta2=0.97))
    assert optimiser.param_groups[0]["betas"] == (0.9, 0.97)


def test_without_weight_decay_the_optimiser_is_plain_adam() -> None:
    model, reference = small_model(), small_model()
    optimiser = make_optimiser(model, TrainingSettings(learning_rate=0.01))
    adam = torch.optim.Adam(reference.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)
    for step in range(5):
        one_step(model, optimiser, step)
        one_step(reference, adam, step)
    for parameter, expected in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected)


def test_a_restored_optimiser_continues_bit_for_bit() -> None:
    model = small_model()
    optimiser = make_optimiser(model, TrainingSettings(weight_decay=0.01))
    for step in range(3):
        one_step(model, optimiser, step)
    stored = {name: tensor.clone() for name, tensor in optimiser_tensors(optimiser, model).items()}
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    one_step(model, optimiser, 3)

    restored = small_model()
    restored.load_state_dict(weights)
    restored_optimiser = make_optimiser(restored, TrainingSettings(weight_decay=0.01))
    restore_optimiser(restored_optimiser, restored, stored)
    one_step(restored, restored_optimiser, 3)
    for parameter, expected in zip(restored.parameters(), model.parameters(), strict=True):
        assert torch.equal(parameter, expected)


def test_state_of_another_model_is_refused() -> None:
    model = small_model()
    with pytest.raises(RunFolderError, match="does not belong to this model"):
        restore_optimiser(make_optimiser(model, TrainingSettings()), model, {"exp_avg/x": torch.zeros(1)})


def test_norm_and_clipping_by_hand() -> None:
    gradients = [torch.tensor([3.0]), torch.tensor([4.0])]
    norm = math.sqrt(squared_norm(gradients))
    assert norm == pytest.approx(5.0)
    clip_gradients(gradients, norm, max_norm=10.0)
    assert gradients[0].item() == 3.0
    clip_gradients(gradients, norm, max_norm=0)  # 0 turns clipping off
    assert gradients[0].item() == 3.0
    clip_gradients(gradients, norm, max_norm=1.0)
    assert squared_norm(gradients) == pytest.approx(1.0)
    assert squared_norm([]) == 0.0
    clip_gradients([], norm, max_norm=1.0)


def test_reset_zeroes_the_state_in_place() -> None:
    model = small_model()
    optimiser = make_optimiser(model, TrainingSettings())
    reset_optimiser(optimiser)  # before the first step there is nothing to reset
    one_step(model, optimiser, 0)
    before = optimiser_tensors(optimiser, model)
    assert any(bool(tensor.any()) for tensor in before.values())
    reset_optimiser(optimiser)
    after = optimiser_tensors(optimiser, model)
    assert all(after[name] is tensor and not bool(tensor.any()) for name, tensor in before.items())


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_the_norm_is_not_finite_if_a_gradient_is_not(poison: float) -> None:
    assert not math.isfinite(squared_norm([torch.ones(2), torch.tensor([1.0, poison, 1.0])]))
