"""The k largest values are those of `torch.topk`, whatever the width."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.decoding.top import top


@settings(max_examples=60)
@given(
    rows=st.integers(0, 4), columns=st.integers(1, 2000), count=st.integers(1, 12), seed=st.integers(0, 99)
)
def test_the_largest_values_are_found(rows: int, columns: int, count: int, seed: int) -> None:
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    values[values < -1] = -torch.inf
    best, where = top(values, count)
    assert torch.equal(best, values.topk(min(count, columns)).values)
    assert torch.equal(values.gather(1, where), best)
    assert all(len(set(row)) == len(row) for row in where.tolist())


def test_rows_of_nothing_but_the_impossible_are_no_trouble() -> None:
    best, where = top(torch.full((2, 1000), -torch.inf), 5)
    assert (best == -torch.inf).all()
    assert where.shape == (2, 5)
