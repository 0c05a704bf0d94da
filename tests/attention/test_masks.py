import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.attention import all_allowed, look_ahead, masked_softmax, padding
from jumok.attention.masks import renormalised, window
from jumok.errors import UnsupportedError


def test_padding_counts_from_the_start():
    assert padding(torch.tensor([0, 2, 3]), 3).tolist() == [[False] * 3, [True, True, False], [True] * 3]


def test_look_ahead_is_aligned_to_the_end_of_the_keys():
    assert look_ahead(2, 2, first=0).tolist() == [[True, False], [True, True]]
    assert look_ahead(1, 4, first=3).tolist() == [[True] * 4]
    assert look_ahead(2, 4, first=2).tolist() == [[True, True, True, False], [True] * 4]


def test_all_allowed_is_and():
    one, other = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    assert all_allowed(None, None) is None
    assert all_allowed(one, None) is one
    assert torch.equal(all_allowed(one, None, other), one & other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_a_mask_of_numbers_is_refused(dtype):
    with pytest.raises(UnsupportedError, match=rf"Received: {dtype}\..*`bias`"):
        all_allowed(None, torch.ones(3, dtype=dtype))


def test_masked_softmax_is_exactly_zero_where_not_allowed():
    scores = torch.tensor([[1.0, 50.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    weights = masked_softmax(scores, allowed)
    assert weights[0, 1] == 0
    assert torch.equal(weights[1], torch.zeros(3))
    torch.testing.assert_close(weights[0, [0, 2]], torch.softmax(torch.tensor([1.0, 2.0]), 0))
    weights.square().sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert torch.equal(scores.grad[1], torch.zeros(3))


def test_low_scores_do_not_wake_what_is_masked():
    scores = torch.tensor([[-3e38, -3e38]])
    assert masked_softmax(scores, torch.tensor([[True, False]])).tolist() == [[1.0, 0.0]]


def test_sentences_of_five_eight_and_three_words_in_one_batch():
    rows = ["".join(".x"[int(kept)] for kept in row) for row in padding(torch.tensor([5, 8, 3]), 8)]
    assert rows == ["xxxxx...", "xxxxxxxx", "xxx....."]


def test_the_look_ahead_triangle_of_i_go_home():
    """나는 집에 간다 behind its begin mark: each place sees itself and what stands before it."""
    target = ["<begin>", "나는", "집에", "간다"]
    allowed = look_ahead(len(target), len(target), first=0)
    seen = [[word for word, kept in zip(target, row, strict=True) if kept] for row in allowed]
    assert seen == [target[:1], target[:2], target[:3], target]
    weights = masked_softmax(torch.zeros(4, 4), allowed)
    assert weights[1].tolist() == [0.5, 0.5, 0.0, 0.0]
    torch.testing.assert_close(renormalised(torch.full((4, 4), 0.25), allowed), weights)


def test_window_is_a_band_round_each_place():
    rows = ["".join(".x"[int(kept)] for kept in row) for row in window(4, 4, reach=1)]
    assert rows == ["xx..", "xxx.", ".xxx", "..xx"]
    assert window(1, 6, reach=2, first=4).tolist() == [[False, False, True, True, True, True]]
    assert torch.equal(window(3, 3, reach=0), torch.eye(3, dtype=torch.bool))
    assert not window(2, 3, reach=1, first=9).any()
    both = window(3, 5, reach=1, first=2) & look_ahead(3, 5, first=2)
    assert both.sum(dim=1).tolist() == [2, 2, 2]


@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 3),
    queries=st.integers(1, 5),
    keys=st.integers(1, 7),
    mask_axes=st.sampled_from(["all", "one head", "padding"]),
    density=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
    seed=st.integers(0, 10_000),
)
def test_masking_after_the_softmax_equals_masking_before_it(
    batch, heads, queries, keys, mask_axes, density, scale, seed
):
    random = torch.Generator().manual_seed(seed)
    shape = (batch, heads, queries, keys)
    mask_shape = {"all": shape, "one head": (batch, 1, queries, keys), "padding": (batch, 1, 1, keys)}
    allowed = torch.rand(mask_shape[mask_axes], generator=random) < density
    results = []
    for weigh in (masked_softmax, lambda scores, allowed: renormalised(scores.softmax(-1), allowed)):
        scores = scale * torch.randn(shape, generator=random.manual_seed(seed), dtype=torch.float64)
        scores.requires_grad_()
        weights = weigh(scores, allowed)
        weights.square().sum().backward()
        results.append((weights.detach(), scores.grad))
    for before, after in zip(*results, strict=True):
        torch.testing.assert_close(before, after, atol=1e-9, rtol=1e-9)
    empty = ~allowed.expand(shape).any(dim=-1)
    assert torch.all(results[1][0][empty] == 0)
    assert torch.all(results[1][1][empty] == 0)


def test_what_the_softmax_rounded_away_cannot_be_renormalised_and_stays_finite():
    # The allowed weight is a small number, then one below the normal numbers, then 0.
    for gap, kept in ((80.0, 1.0), (95.0, 0.0), (500.0, 0.0)):
        scores = torch.tensor([[0.0, gap]], requires_grad=True)
        allowed = torch.tensor([[True, False]])
        weights = renormalised(scores.softmax(-1), allowed)
        assert weights.tolist() == [[kept, 0.0]]
        weights.square().sum().backward()
        assert torch.isfinite(scores.grad).all()
        assert masked_softmax(scores, allowed).tolist() == [[1.0, 0.0]]
