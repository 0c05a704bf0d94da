"""Disallowed tokens get -inf, and the log-probabilities of their row equal a softmax over its allowed tokens.

In a row without a token that the plan disallows, `<pad>` and `<s>` get -inf and nothing else changes.
"""

from __future__ import annotations

import pytest
import torch

from jumok.inference.search.constraints import mask_disallowed
from jumok.inference.search.plan import SearchPlan
from jumok.types import BEGIN, END, PAD, LogProbs


@pytest.mark.parametrize("logit", [-20.0, 0.0, 3.0, 30.0], ids=lambda logit: f"logit of </s> {logit:g}")
def test_allowed_tokens_are_renormalised(logit: float) -> None:
    torch.manual_seed(1)
    logits = torch.randn(5, 40)
    logits[:, END] += logit
    history = torch.tensor([[7, 8, 7], [9, 9, 9], [4, 5, 6], [8, 7, 8], [6, 6, 5]])
    repeated = {0: [8], 1: [9], 3: [7]}  # row → tokens that would repeat a bigram
    plan = SearchPlan(no_repeat_ngram_size=2, min_length=4)  # `</s>` is disallowed after three tokens
    model_log_probs, constrained = mask_disallowed(LogProbs(logits.log_softmax(dim=-1)), history, plan)
    assert (model_log_probs[:, [PAD, BEGIN]] == float("-inf")).all()
    assert torch.equal(model_log_probs[:, END:], logits.log_softmax(dim=-1)[:, END:])
    for row in range(5):
        masked = logits[row].clone()
        masked[[PAD, BEGIN, END, *repeated.get(row, [])]] = float("-inf")
        torch.testing.assert_close(constrained[row], masked.log_softmax(dim=-1), atol=2e-5, rtol=0)


def test_rows_without_disallowed_tokens_are_not_renormalised() -> None:
    torch.manual_seed(2)
    values = torch.randn(3, 40).log_softmax(dim=-1)
    history = torch.tensor([[7, 8, 7], [4, 5, 6], [5, 6, 4]])  # only row 0 could repeat a bigram: 7 8
    plan = SearchPlan(no_repeat_ngram_size=2, min_length=0)
    _, constrained = mask_disallowed(LogProbs(values.clone()), history, plan)
    allowed = [token for token in range(40) if token not in (PAD, BEGIN)]
    assert torch.equal(constrained[1:, allowed], values[1:, allowed])
    assert constrained[0, 8] == float("-inf")
    assert (constrained[:, [PAD, BEGIN]] == float("-inf")).all()
