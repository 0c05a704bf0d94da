import pytest
import torch

from jumok.errors import RecipeError
from jumok.models.dropout import Dropout, draw_mask, plain_mask, seed_dropout

STATES = torch.ones(200, 50, 11)


def drawn(seed: int, step: int) -> list[torch.Tensor]:
    dropout = Dropout(0.3)
    with seed_dropout(seed, step):
        return [dropout(STATES), dropout(STATES)]


def test_masks_follow_from_seed_step_and_order():
    first, second = drawn(1, 7)
    again, second_again = drawn(1, 7)
    assert torch.equal(first, again)
    assert torch.equal(second, second_again)
    assert not torch.equal(first, second)
    for seed, step in ((1, 8), (2, 7), (7, 1)):
        assert not torch.equal(first, drawn(seed, step)[0])


def test_seeding_leaves_the_generators_of_others_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    drawn(1, 1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("seeded", [True, False], ids=["bytes", "plain"])
def test_share_and_scale(share, seeded):
    torch.manual_seed(0)
    with seed_dropout(3, 4):
        mask, scale = (draw_mask if seeded else plain_mask)(STATES, share)
    kept = mask.double().mean().item()
    assert set(mask.unique().tolist()) == {0, 1}
    assert kept == pytest.approx(1 - share, abs=0.009)  # to 1/256, and chance
    # The mean stays what it was, whatever was rounded.
    assert kept * scale == pytest.approx(1, abs=4 * (share / (1 - share) / STATES.numel()) ** 0.5 + 0.01)


def test_unseeded_follows_torch():
    dropout = Dropout(0.5)
    torch.manual_seed(5)
    first = dropout(STATES)
    torch.manual_seed(5)
    assert torch.equal(first, dropout(STATES))


@pytest.mark.parametrize("quiet", [Dropout(0.0), Dropout(0.5).eval()], ids=["share 0", "eval"])
def test_does_nothing(quiet):
    assert quiet(STATES) is STATES
    assert torch.equal(quiet.add(STATES, STATES), STATES * 2)


def test_add_is_the_sum():
    dropout, states, change = Dropout(0.2), torch.randn(4, 5, 6), torch.randn(4, 5, 6)
    with seed_dropout(1, 1):
        one = dropout.add(states, change)
    with seed_dropout(1, 1):
        other = states + dropout(change)
    torch.testing.assert_close(one, other)


def test_gradients():
    dropout = Dropout(0.4)
    states = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    change = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def both(states, change):
        with seed_dropout(1, 2):
            return dropout(states), dropout.add(states, change)

    assert torch.autograd.gradcheck(both, (states, change))


def test_share_must_be_one():
    with pytest.raises(RecipeError, match=r"Received: 1\.0"):
        Dropout(1.0)
