"""What may not come next gets nothing, and the rest its share, as if masked before the softmax."""

from __future__ import annotations

import pytest
import torch

from jumok.decoding import SearchPlan
from jumok.decoding.guards import guard
from jumok.values import BEGIN, END, PAD, LogProbs


@pytest.mark.parametrize("sure", [-20.0, 0.0, 3.0, 30.0], ids=lambda sure: f"logit of the end {sure:g}")
def test_what_is_left_is_what_a_softmax_without_the_forbidden_says(sure: float) -> None:
    torch.manual_seed(1)
    logits = torch.randn(5, 40)
    logits[:, END] += sure
    history = torch.tensor([[7, 8, 7], [9, 9, 9], [4, 5, 6], [8, 7, 8], [6, 6, 5]])
    repeated = {0: [8], 1: [9], 3: [7]}  # the second halves of bigrams that were said before
    plan = SearchPlan(no_repeat=2, shortest=4)
    found = guard(LogProbs(logits.log_softmax(dim=-1)), history, plan)
    for row in range(5):
        masked = logits[row].clone()
        masked[[PAD, BEGIN, END, *repeated.get(row, [])]] = float("-inf")
        torch.testing.assert_close(found[row], masked.log_softmax(dim=-1), atol=2e-5, rtol=0)


def test_rows_in_which_nothing_is_forbidden_stay_as_they_are() -> None:
    torch.manual_seed(2)
    values = torch.randn(3, 40).log_softmax(dim=-1)
    history = torch.tensor([[7, 8, 7], [4, 5, 6], [5, 6, 4]])
    found = guard(LogProbs(values.clone()), history, SearchPlan(no_repeat=2, shortest=0))
    shown = [piece for piece in range(40) if piece not in (PAD, BEGIN)]
    assert torch.equal(found[1:, shown], values[1:, shown])
    assert found[0, 8] == float("-inf")
    assert (found[:, [PAD, BEGIN]] == float("-inf")).all()
