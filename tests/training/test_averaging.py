"""Averages of weights, computed by hand."""

from __future__ import annotations

import pytest
import torch

from jumok.models.norms import BatchNorm
from jumok.storage.tensors import module_weights
from jumok.training.loop.averaging import average_weights, update_moving_average


def test_the_average_is_the_mean_of_each_weight() -> None:
    checkpoints = [
        {"w": torch.tensor([1.0, 2.0])},
        {"w": torch.tensor([3.0, 6.0])},
        {"w": torch.tensor([5.0, 1.0])},
    ]
    mean = average_weights(checkpoints)
    assert mean["w"].tolist() == [3.0, 3.0]
    assert mean["w"].dtype == torch.float32


def test_the_average_of_one_checkpoint_is_that_checkpoint() -> None:
    weights = {"w": torch.randn(100)}
    assert torch.equal(average_weights([weights])["w"], weights["w"])


def test_running_statistics_are_averaged_like_weights() -> None:
    norms = [BatchNorm(2), BatchNorm(2)]
    norms[0](torch.tensor([[0.0, 1.0], [2.0, 5.0]]))
    norms[1](torch.tensor([[4.0, 1.0], [4.0, 3.0]]))
    mean = average_weights([module_weights(norm) for norm in norms])
    # Running statistics after one batch: 0.9 · initial value + 0.1 · (unbiased) statistic of the batch.
    assert mean["mean"].tolist() == pytest.approx([(0.1 + 0.4) / 2, (0.3 + 0.2) / 2])
    assert mean["variance"].tolist() == pytest.approx([0.9 + 0.1 * 2 / 2, 0.9 + 0.1 * (8 + 2) / 2])
    moving = {name: tensor.clone() for name, tensor in module_weights(norms[0]).items()}
    update_moving_average(moving, module_weights(norms[1]), decay=0.5, step=100)
    for name, tensor in moving.items():
        torch.testing.assert_close(tensor, mean[name])


def test_moving_average_by_hand() -> None:
    # The decay is min(0.5, (1 + step) / (10 + step)): 0.5 from step 8 on.
    average = {"w": torch.tensor([0.0])}
    update_moving_average(average, {"w": torch.tensor([1.0])}, decay=0.5, step=100)
    assert average["w"].item() == pytest.approx(0.5)
    update_moving_average(average, {"w": torch.tensor([1.0])}, decay=0.5, step=101)
    assert average["w"].item() == pytest.approx(0.75)


def test_the_moving_average_soon_forgets_the_random_initial_weights() -> None:
    average = {"w": torch.tensor([100.0])}
    for step in range(1, 31):
        update_moving_average(average, {"w": torch.tensor([0.0])}, decay=0.999, step=step)
    assert average["w"].item() < 0.01
