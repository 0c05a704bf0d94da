import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.attention import causal_mask, combine_masks, masked_softmax, padding_mask
from jumok.attention.masks import mask_and_renormalise, window_mask
from jumok.errors import UnsupportedError


def test_the_padding_mask_allows_the_first_keys_of_each_row():
    assert padding_mask(torch.tensor([0, 2, 3]), 3).tolist() == [[False] * 3, [True, True, False], [True] * 3]


def test_the_causal_mask_is_aligned_by_the_query_offset():
    assert causal_mask(2, 2, query_offset=0).tolist() == [[True, False], [True, True]]
    assert causal_mask(1, 4, query_offset=3).tolist() == [[True] * 4]
    assert causal_mask(2, 4, query_offset=2).tolist() == [[True, True, True, False], [True] * 4]


def test_masks_combine_by_and():
    one, other = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    assert combine_masks(None, None) is None
    assert combine_masks(one, None) is one
    assert torch.equal(combine_masks(one, None, other), one & other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_a_mask_of_numbers_is_refused(dtype):
    with pytest.raises(UnsupportedError, match=rf"Received: {dtype}\..*`bias`"):
        combine_masks(None, torch.ones(3, dtype=dtype))


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


def test_very_low_scores_do_not_unmask_keys():
    scores = torch.tensor([[-3e38, -3e38]])
    assert masked_softmax(scores, torch.tensor([[True, False]])).tolist() == [[1.0, 0.0]]


def test_the_padding_mask_hides_the_end_of_shorter_sentences():
    rows = [
        "".join(".x"[int(allowed)] for allowed in row) for row in padding_mask(torch.tensor([5, 8, 3]), 8)
    ]
    assert rows == ["xxxxx...", "xxxxxxxx", "xxx....."]


def test_the_causal_mask_of_i_go_home_is_a_triangle():
    """나는 집에 간다 after `<s>`: each position attends to itself and those before it."""
    target = ["<s>", "나는", "집에", "간다"]
    allowed = causal_mask(len(target), len(target), query_offset=0)
    attended = [[word for word, visible in zip(target, row, strict=True) if visible] for row in allowed]
    assert attended == [target[:1], target[:2], target[:3], target]
    weights = masked_softmax(torch.zeros(4, 4), allowed)
    assert weights[1].tolist() == [0.5, 0.5, 0.0, 0.0]
    torch.testing.assert_close(mask_and_renormalise(torch.full((4, 4), 0.25), allowed), weights)


def test_the_window_is_a_band_around_each_position():
    rows = ["".join(".x"[int(allowed)] for allowed in row) for row in window_mask(4, 4, reach=1)]
    assert rows == ["xx..", "xxx.", ".xxx", "..xx"]
    assert window_mask(1, 6, reach=2, query_offset=4).tolist() == [[False, False, True, True, True, True]]
    assert torch.equal(window_mask(3, 3, reach=0), torch.eye(3, dtype=torch.bool))
    assert not window_mask(2, 3, reach=1, query_offset=9).any()
    both = window_mask(3, 5, reach=1, query_offset=2) & causal_mask(3, 5, query_offset=2)
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
    for weigh in (masked_softmax, lambda scores, allowed: mask_and_renormalise(scores.softmax(-1), allowed)):
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


def test_weights_rounded_away_cannot_be_renormalised_and_stay_finite():
    # The allowed weight is small, then subnormal, then 0.
    for gap, remaining in ((80.0, 1.0), (95.0, 0.0), (500.0, 0.0)):
        scores = torch.tensor([[0.0, gap]], requires_grad=True)
        allowed = torch.tensor([[True, False]])
        weights = mask_and_renormalise(scores.softmax(-1), allowed)
        assert weights.tolist() == [[remaining, 0.0]]
        weights.square().sum().backward()
        assert torch.isfinite(scores.grad).all()
        assert masked_softmax(scores, allowed).tolist() == [[1.0, 0.0]]
