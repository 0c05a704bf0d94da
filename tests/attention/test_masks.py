import torch

from jumok.attention import all_allowed, look_ahead, masked_softmax, padding


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
