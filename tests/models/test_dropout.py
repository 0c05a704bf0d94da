"""Dropout: masks that follow from a seed, their probability and scale, and gradients."""

import pytest
import torch

from jumok.errors import RecipeError
from jumok.models.kernels import dropout as kernel
from jumok.models.kernels.dropout import Dropout, draw_mask, plain_mask, seed_dropout
from jumok.training.loop.update import seed_step

STATES = torch.ones(200, 50, 11)


def drop_twice(seed: int, step: int) -> list[torch.Tensor]:
    dropout = Dropout(0.3)
    with seed_dropout(seed, step):
        return [dropout(STATES), dropout(STATES)]


def test_masks_of_one_shape_depend_only_on_seed_step_and_order():
    first, second = drop_twice(1, 7)
    first_again, second_again = drop_twice(1, 7)
    assert torch.equal(first, first_again)
    assert torch.equal(second, second_again)
    assert not torch.equal(first, second)
    for seed, step in ((1, 8), (2, 7), (7, 1)):  # another step, another seed, both exchanged
        assert not torch.equal(first, drop_twice(seed, step)[0])


def test_seeding_does_not_touch_other_generators():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    drop_twice(1, 1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("probability", [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("draw", [draw_mask, plain_mask])
def test_masks_drop_with_the_probability_and_the_scale_preserves_the_mean(probability, draw):
    torch.manual_seed(0)
    with seed_dropout(3, 4):
        mask, scale = draw(STATES, probability)
    share_of_ones = mask.double().mean().item()
    assert set(mask.unique().tolist()) == {0, 1}
    assert share_of_ones == pytest.approx(1 - probability, abs=0.009)  # rounding to n/256, and chance
    # The mean is preserved even though the probability was rounded.
    assert share_of_ones * scale == pytest.approx(
        1, abs=4 * (probability / (1 - probability) / STATES.numel()) ** 0.5 + 0.01
    )


def test_on_another_device_masks_come_from_its_torch_generator(monkeypatch):
    """The probability is not rounded to n/256, and the masks follow from the seed of torch's generator."""
    dropped_on_cpu = drop_twice(1, 7)[0]
    monkeypatch.setattr(kernel, "on_cpu", lambda tensor: False)
    seed_step(1, 7)
    first, second = drop_twice(1, 7)
    seed_step(1, 7)
    assert torch.equal(first, drop_twice(1, 7)[0])
    seed_step(1, 8)
    assert not torch.equal(first, drop_twice(1, 7)[0])
    assert not torch.equal(first, second)
    assert not torch.equal(first, dropped_on_cpu)
    assert first.max().item() == pytest.approx(1 / 0.7)  # the scale for exactly 0.3


def test_without_seed_dropout_masks_follow_the_seed_of_torch():
    dropout = Dropout(0.5)
    torch.manual_seed(5)
    first = dropout(STATES)
    torch.manual_seed(5)
    assert torch.equal(first, dropout(STATES))


@pytest.mark.parametrize("inactive", [Dropout(0.0), Dropout(0.5).eval()], ids=["probability 0", "eval"])
def test_in_eval_mode_or_with_probability_0_nothing_is_dropped(inactive):
    assert inactive(STATES) is STATES
    assert torch.equal(inactive.add(STATES, STATES), STATES * 2)


def test_add_equals_the_sum_with_the_dropped_output():
    dropout, states, output = Dropout(0.2), torch.randn(4, 5, 6), torch.randn(4, 5, 6)
    with seed_dropout(1, 1):
        actual = dropout.add(states, output)
    with seed_dropout(1, 1):
        expected = states + dropout(output)
    torch.testing.assert_close(actual, expected)


def test_gradients_equal_finite_differences():
    dropout = Dropout(0.4)
    states = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    output = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def drop_and_add(states, output):
        with seed_dropout(1, 2):
            return dropout(states), dropout.add(states, output)

    assert torch.autograd.gradcheck(drop_and_add, (states, output))


def test_the_probability_must_be_below_one():
    with pytest.raises(RecipeError, match=r"Received: 1\.0"):
        Dropout(1.0)
