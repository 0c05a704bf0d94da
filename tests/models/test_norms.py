"""Norms: their formulas, and batch norm without padding."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from jumok.config.recipe import TransformerSettings
from jumok.models.norms import NORMS, BatchNorm, LayerNorm, NoNorm, RootMeanSquareNorm

WIDTH = 6
LENGTHS = torch.tensor([4, 1, 5, 2])
NOT_PADDING = torch.arange(5) < LENGTHS[:, None]  # (batch, length)


def states(seed: int = 0) -> torch.Tensor:
    return 3 + 2 * torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(seed))


def with_random_parameters(norm: torch.nn.Module) -> torch.nn.Module:
    """Return the norm with random gains and biases."""
    torch.manual_seed(1)
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    return norm


def test_every_norm_of_the_recipe_exists():
    assert tuple(NORMS) == get_args(TransformerSettings.model_fields["norm_kind"].annotation)


def test_layer_norm_follows_the_formula():
    inputs, norm = states(), with_random_parameters(LayerNorm(WIDTH))
    mean, variance = inputs.mean(-1, keepdim=True), inputs.var(-1, correction=0, keepdim=True)
    expected = (inputs - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
    torch.testing.assert_close(norm(inputs), expected)


def test_rms_norm_follows_the_formula_and_torch():
    inputs, norm = states(), with_random_parameters(RootMeanSquareNorm(WIDTH))
    expected = inputs / (inputs.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight
    torch.testing.assert_close(norm(inputs), expected)
    torch_norm = torch.nn.RMSNorm(WIDTH, eps=1e-5)
    torch_norm.load_state_dict(norm.state_dict())
    torch.testing.assert_close(norm(inputs), torch_norm(inputs))


@pytest.mark.parametrize("make", [LayerNorm, RootMeanSquareNorm, NoNorm])
def test_norms_of_single_positions_do_not_depend_on_the_padding_mask(make):
    norm = make(WIDTH) if make is not NoNorm else make()
    assert torch.equal(norm(states(), NOT_PADDING), norm(states()))


def test_batch_norm_equals_batch_norm_of_torch_without_padding():
    """Compare outputs, gradients and running statistics over several batches, then outputs in evaluation."""
    norm, torch_norm = with_random_parameters(BatchNorm(WIDTH)), torch.nn.BatchNorm1d(WIDTH)
    with torch.no_grad():
        torch_norm.weight.copy_(norm.weight)
        torch_norm.bias.copy_(norm.bias)
    for seed in range(3):
        inputs, torch_inputs = states(seed).requires_grad_(), states(seed).requires_grad_()
        actual, expected = norm(inputs, NOT_PADDING), torch_norm(torch_inputs[NOT_PADDING])
        torch.testing.assert_close(actual[NOT_PADDING], expected)
        assert torch.all(actual[~NOT_PADDING] == 0)
        actual.pow(3).sum().backward()
        expected.pow(3).sum().backward()
        torch.testing.assert_close(inputs.grad, torch_inputs.grad)
        assert torch.all(inputs.grad[~NOT_PADDING] == 0)
    torch.testing.assert_close(norm.weight.grad, torch_norm.weight.grad)
    torch.testing.assert_close(norm.bias.grad, torch_norm.bias.grad)
    torch.testing.assert_close(norm.mean, torch_norm.running_mean)
    torch.testing.assert_close(norm.variance, torch_norm.running_var)
    norm.eval()
    torch_norm.eval()
    torch.testing.assert_close(norm(states(9)).flatten(0, 1), torch_norm(states(9).flatten(0, 1)))


def test_batch_norm_equals_a_calculation_by_hand():
    """The worked example of docs/explain/block.md: feature 1 of three positions is 3, 5 and -2."""
    norm = BatchNorm(1)
    column = torch.tensor([[[3.0], [5.0], [99.0]], [[-2.0], [99.0], [99.0]]])  # 99 is padding
    not_padding = torch.tensor([[True, True, False], [True, False, False]])
    assert norm(column, not_padding)[not_padding][:, 0].tolist() == pytest.approx(
        [0.3397, 1.0190, -1.3587], abs=1e-4
    )
    assert norm.mean.item() == pytest.approx(0.1 * 2)  # (3 + 5 - 2) / 3 = 2, with the momentum 0.1
    assert norm.variance.item() == pytest.approx(0.9 * 1 + 0.1 * 13)  # the unbiased variance is 26 / 2


def test_the_contents_of_padding_change_nothing():
    norm, norm_with_nan = BatchNorm(WIDTH), BatchNorm(WIDTH)
    states_with_nan = states().masked_fill(~NOT_PADDING[..., None], float("nan"))
    assert torch.equal(norm(states(), NOT_PADDING), norm_with_nan(states_with_nan, NOT_PADDING))
    assert torch.equal(norm.mean, norm_with_nan.mean)


def test_in_evaluation_a_position_does_not_depend_on_its_batch():
    norm = with_random_parameters(BatchNorm(WIDTH))
    norm(states(), NOT_PADDING)  # updates the running statistics
    norm.eval()
    together = norm(states(1), NOT_PADDING)
    torch.testing.assert_close(norm(states(1)[2:3, 3:4])[0, 0], together[2, 3])
    torch.testing.assert_close(norm(states(1)[:, 0]), together[:, 0])


def test_a_single_position_is_its_own_mean_and_does_not_change_the_running_mean():
    norm = with_random_parameters(BatchNorm(WIDTH))
    assert torch.equal(norm(states()[:1, :1])[0, 0], norm.bias)
    assert torch.all(norm.mean == 0)


def test_running_statistics_are_stored():
    norm = BatchNorm(WIDTH)
    norm(states(), NOT_PADDING)  # updates the running statistics
    assert set(norm.state_dict()) == {"weight", "bias", "mean", "variance"}
