import math

import pytest
import torch

from jumok.attention import SinusoidalPositions, sinusoids


@pytest.mark.parametrize(("place", "column"), [(0, 0), (0, 1), (3, 0), (3, 5), (100, 6), (511, 7)])
def test_formula_of_the_paper(place, column):
    angle = place / 10000 ** (2 * (column // 2) / 8)
    expected = math.cos(angle) if column % 2 else math.sin(angle)
    assert sinusoids(512, 8)[place, column].item() == pytest.approx(expected, abs=1e-6)


def test_extends_on_demand_and_agrees_with_the_table():
    short, long = SinusoidalPositions(6, longest=4), SinusoidalPositions(6, longest=64)
    assert torch.equal(short(20), long(20))
    assert torch.equal(short(1, first=30), long(1, first=30))
    assert torch.equal(short(3, first=3), long(3, first=3))
    assert len(short.table) == 4
    assert short.to(torch.float64)(9).dtype == torch.float64


def test_odd_width():
    assert sinusoids(3, 5).shape == (3, 5)


def test_table_is_not_stored():
    assert SinusoidalPositions(6).state_dict() == {}
