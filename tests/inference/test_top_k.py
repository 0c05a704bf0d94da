"""`top_k` finds the same values as `torch.topk`, for any number of columns."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.inference.search.top_k import top_k


@settings(max_examples=60)
@given(rows=st.integers(0, 4), columns=st.integers(1, 2000), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_largest_values_are_found(rows: int, columns: int, k: int, seed: int) -> None:
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    values[values < -1] = -torch.inf
    best, best_columns = top_k(values, k)
    assert torch.equal(best, values.topk(min(k, columns)).values)
    assert torch.equal(values.gather(1, best_columns), best)
    assert all(len(set(row)) == len(row) for row in best_columns.tolist())


def test_rows_of_negative_infinity_also_give_k_columns() -> None:
    best, best_columns = top_k(torch.full((2, 1000), -torch.inf), 5)
    assert (best == -torch.inf).all()
    assert best_columns.shape == (2, 5)
