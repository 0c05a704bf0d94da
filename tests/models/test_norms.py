"""Norms: their formulas, and batch norm that never sees padding."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from jumok.models import NORMS
from jumok.models.norms import BatchNorm, LayerNorm, NoNorm, RootMeanSquareNorm
from jumok.recipe import TransformerSettings

WIDTH = 6
LENGTHS = torch.tensor([4, 1, 5, 2])
REAL = torch.arange(5) < LENGTHS[:, None]  # (batch, length)


def states(seed: int = 0) -> torch.Tensor:
    return 3 + 2 * torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(seed))


def trained(norm: torch.nn.Module) -> torch.nn.Module:
    """The norm with gains and shifts of its own."""
    torch.manual_seed(1)
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    return norm


def test_every_norm_of_the_recipe_is_there():
    assert tuple(NORMS) == get_args(TransformerSettings.model_fields["norm_kind"].annotation)


def test_layer_norm_is_the_formula():
    given, norm = states(), trained(LayerNorm(WIDTH))
    mean, variance = given.mean(-1, keepdim=True), given.var(-1, correction=0, keepdim=True)
    expected = (given - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
    torch.testing.assert_close(norm(given), expected)


def test_rms_norm_is_the_formula_and_that_of_torch():
    given, norm = states(), trained(RootMeanSquareNorm(WIDTH))
    expected = given / (given.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight
    torch.testing.assert_close(norm(given), expected)
    theirs = torch.nn.RMSNorm(WIDTH, eps=1e-5)
    theirs.load_state_dict(norm.state_dict())
    torch.testing.assert_close(norm(given), theirs(given))


@pytest.mark.parametrize("make", [LayerNorm, RootMeanSquareNorm, NoNorm])
def test_norms_of_one_position_need_not_know_of_padding(make):
    norm = make(WIDTH) if make is not NoNorm else make()
    assert torch.equal(norm(states(), REAL), norm(states()))


def test_batch_norm_is_that_of_torch_on_the_real_positions():
    """Outputs, gradients and running statistics, over several batches; then by the running statistics."""
    ours, theirs = trained(BatchNorm(WIDTH)), torch.nn.BatchNorm1d(WIDTH)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)
    for seed in range(3):
        one, other = states(seed).requires_grad_(), states(seed).requires_grad_()
        normed, expected = ours(one, REAL), theirs(other[REAL])
        torch.testing.assert_close(normed[REAL], expected)
        assert torch.all(normed[~REAL] == 0)
        normed.pow(3).sum().backward()
        expected.pow(3).sum().backward()
        torch.testing.assert_close(one.grad, other.grad)
        assert torch.all(one.grad[~REAL] == 0)
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    torch.testing.assert_close(ours.variance, theirs.running_var)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(states(9)).flatten(0, 1), theirs(states(9).flatten(0, 1)))


def test_batch_norm_by_hand():
    """The worked example of docs/explain/block.md: feature 1 of three examples is 3, 5 and -2."""
    norm = BatchNorm(1)
    column = torch.tensor([[[3.0], [5.0], [99.0]], [[-2.0], [99.0], [99.0]]])
    real = torch.tensor([[True, True, False], [True, False, False]])
    assert norm(column, real)[real][:, 0].tolist() == pytest.approx([0.3397, 1.0190, -1.3587], abs=1e-4)
    assert norm.mean.item() == pytest.approx(0.1 * 2)
    assert norm.variance.item() == pytest.approx(0.9 * 1 + 0.1 * 13)  # the unbiased variance is 26 / 2


def test_what_stands_in_padding_changes_nothing():
    norm, other = BatchNorm(WIDTH), BatchNorm(WIDTH)
    poisoned = states().masked_fill(~REAL[..., None], float("nan"))
    assert torch.equal(norm(states(), REAL), other(poisoned, REAL))
    assert torch.equal(norm.mean, other.mean)


def test_evaluated_a_position_alone_is_as_in_a_batch():
    norm = trained(BatchNorm(WIDTH))
    norm(states(), REAL)
    norm.eval()
    together = norm(states(1), REAL)
    torch.testing.assert_close(norm(states(1)[2:3, 3:4])[0, 0], together[2, 3])
    torch.testing.assert_close(norm(states(1)[:, 0]), together[:, 0])


def test_one_position_alone_is_its_own_mean():
    norm = trained(BatchNorm(WIDTH))
    assert torch.equal(norm(states()[:1, :1])[0, 0], norm.bias)
    assert torch.all(norm.mean == 0)


def test_running_statistics_are_stored():
    norm = BatchNorm(WIDTH)
    norm(states(), REAL)
    assert set(norm.state_dict()) == {"weight", "bias", "mean", "variance"}
