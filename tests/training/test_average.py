"""Means of weights, by hand."""

from __future__ import annotations

import pytest
import torch

from jumok.training.average import average_weights, update_moving_average


def test_average_of_checkpoints() -> None:
    sets = [{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}, {"w": torch.tensor([5.0, 1.0])}]
    mean = average_weights(sets)
    assert mean["w"].tolist() == [3.0, 3.0]
    assert mean["w"].dtype == torch.float32


def test_the_average_of_one_is_the_one() -> None:
    weights = {"w": torch.randn(100)}
    assert torch.equal(average_weights([weights])["w"], weights["w"])


def test_moving_average_by_hand() -> None:
    average = {"w": torch.tensor([0.0])}
    update_moving_average(average, {"w": torch.tensor([1.0])}, 0.5, 100)
    assert average["w"].item() == pytest.approx(0.5)
    update_moving_average(average, {"w": torch.tensor([1.0])}, 0.5, 101)
    assert average["w"].item() == pytest.approx(0.75)


def test_the_first_steps_forget_the_random_start() -> None:
    average = {"w": torch.tensor([100.0])}
    for step in range(1, 31):
        update_moving_average(average, {"w": torch.tensor([0.0])}, 0.999, step)
    assert average["w"].item() < 0.01
