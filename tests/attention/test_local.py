import math

import pytest
import torch

from jumok.attention import HeadShape, group_rows, padding_mask
from jumok.attention.local import LuongLocalM, LuongLocalP
from jumok.errors import RecipeError, UnsupportedError
from support.contract_checks import CASES, CHECKS, Subject

KINDS = [LuongLocalM, LuongLocalP]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_contract_holds_in_narrow_windows(kind, window, check):
    for case in CASES:
        check(Subject.of(kind, window=window), case)


def make_numbers(*, batch=3, heads=2, queries=4, keys=7):
    torch.manual_seed(14)
    query = torch.randn(batch, heads, queries, 3, dtype=torch.float64)
    key = torch.randn(batch, heads, keys, 4, dtype=torch.float64)
    values = torch.randn(batch, heads, keys, 2, dtype=torch.float64)
    return query, key, values


def loop_weights(mechanism, head, query, keys, length, centre):
    """The weights of one query over its keys, number by number; keys after `length` are padding."""
    weight = mechanism.weight[head].tolist()
    exponentials = [0.0] * len(keys)
    for position in range(length):
        if abs(position - centre) <= mechanism.window:
            score = 0.0
            for row in range(len(query)):
                for column in range(len(keys[position])):
                    score += query[row] * weight[row][column] * keys[position][column]
            exponentials[position] = math.exp(score)
    total = sum(exponentials)
    return [exponential / total if total else 0.0 for exponential in exponentials]


def loop_centre(mechanism, head, query, length):
    """p = S · sigmoid(v_pᵀ tanh(W_p h)), number by number."""
    matrix, vector = mechanism.place[head].tolist(), mechanism.place_energy[head].tolist()
    logit = 0.0
    for unit in range(len(vector)):
        logit += vector[unit] * math.tanh(sum(query[row] * matrix[row][unit] for row in range(len(query))))
    return length / (1 + math.exp(-logit))


LENGTHS = [7, 4, 0]
"""The number of keys of each sentence that are not padding."""


@pytest.mark.parametrize("query_offset", [0, 3, 9])
@pytest.mark.parametrize("window", [1, 2])
def test_local_m_equals_a_plain_loop(window, query_offset):
    query, keys, values = make_numbers()
    mechanism = LuongLocalM(HeadShape(2, query=3, key=4), window=window).double()
    memory = mechanism.prepare(keys, values, padding_mask(torch.tensor(LENGTHS), 7))
    attended = mechanism(query, memory, query_offset=query_offset, need_weights=True)
    for batch, length in enumerate(LENGTHS):
        for head in range(2):
            for position in range(4):
                own_query = query[batch, head, position].tolist()
                centre = min(query_offset + position, length - 1)
                own_keys = keys[batch, head].tolist()
                expected = loop_weights(mechanism, head, own_query, own_keys, length, centre)
                assert attended.weights[batch, head, position].tolist() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(attended.context, attended.weights @ values)


@pytest.mark.parametrize("window", [1, 2, 10])
def test_local_p_equals_a_plain_loop(window):
    query, keys, values = make_numbers()
    mechanism = LuongLocalP(HeadShape(2, query=3, key=4), window=window).double()
    torch.nn.init.normal_(mechanism.place_energy, std=2.0)  # so that the predicted positions differ
    memory = mechanism.prepare(keys, values, padding_mask(torch.tensor(LENGTHS), 7))
    attended = mechanism(query, memory, need_weights=True)
    centres = []
    for batch, length in enumerate(LENGTHS):
        for head in range(2):
            for position in range(4):
                own_query = query[batch, head, position].tolist()
                centre = loop_centre(mechanism, head, own_query, length)
                centres.append(centre)
                own_keys = keys[batch, head].tolist()
                window_weights = loop_weights(mechanism, head, own_query, own_keys, length, centre)
                expected = [
                    weight * math.exp(-((key - centre) ** 2) / (2 * (window / 2) ** 2))
                    for key, weight in enumerate(window_weights)
                ]
                assert attended.weights[batch, head, position].tolist() == pytest.approx(expected, abs=1e-12)
    assert max(centres) - min(centres) > 3  # the predicted positions do differ
    torch.testing.assert_close(attended.context, attended.weights @ values)


def with_equal_scores(kind, window):
    """A mechanism with equal scores for all keys; local-p then predicts p in the middle."""
    mechanism = kind(HeadShape(1, query=1, key=1), window=window)
    for parameter in mechanism.parameters():
        torch.nn.init.zeros_(parameter)
    return mechanism


def weights_of(mechanism, *, queries, keys, allowed=None, query_offset=0):
    states = torch.ones(1, 1, keys, 1)
    memory = mechanism.prepare(states, states, allowed)
    return mechanism(
        torch.ones(1, 1, queries, 1), memory, query_offset=query_offset, need_weights=True
    ).weights[0, 0]


def test_local_m_weights_equal_numbers_computed_by_hand():
    """D = 1 over four keys; the fifth and sixth query are beyond the end and attend around the last key."""
    half, third = 1 / 2, 1 / 3
    expected = torch.tensor(
        [
            [half, half, 0, 0],
            [third, third, third, 0],
            [0, third, third, third],
            [0, 0, half, half],
            [0, 0, half, half],
            [0, 0, half, half],
        ]
    )
    mechanism = with_equal_scores(LuongLocalM, 1)
    torch.testing.assert_close(weights_of(mechanism, queries=6, keys=4), expected)
    torch.testing.assert_close(weights_of(mechanism, queries=1, keys=4, query_offset=2), expected[2:3])
    padded = weights_of(mechanism, queries=4, keys=4, allowed=torch.tensor([[True, True, True, False]]))
    torch.testing.assert_close(padded[3], torch.tensor([0, half, half, 0]))


def test_local_m_gives_zero_if_all_keys_of_a_window_are_masked():
    only_first = torch.tensor([[True, False, False, False, False]])
    mechanism = with_equal_scores(LuongLocalM, 1)
    states = torch.ones(1, 1, 5, 1)
    memory = mechanism.prepare(states, states, None)
    attended = mechanism(states, memory, allowed=only_first[:, None, None], need_weights=True)
    assert attended.weights[0, 0, :, 0].tolist() == [1, 1, 0, 0, 0]
    assert torch.all(attended.context[0, 0, 2:] == 0)


def test_local_m_keeps_the_positions_of_rows_that_share_a_memory():
    """Three hypotheses of one sentence have the same position, not consecutive positions."""
    mechanism = with_equal_scores(LuongLocalM, 1)
    states = torch.ones(1, 1, 6, 1)
    memory = mechanism.prepare(states, states, None).with_beams(
        group_rows(torch.zeros(3, dtype=torch.long), 1)
    )
    weights = mechanism(torch.ones(3, 1, 1, 1), memory, query_offset=2, need_weights=True).weights
    assert weights.shape == (3, 1, 1, 6)
    torch.testing.assert_close(weights[:, 0, 0], torch.tensor([[0, 1 / 3, 1 / 3, 1 / 3, 0, 0]] * 3))


def test_local_p_weights_equal_numbers_computed_by_hand():
    """S = 4, so p = 2; D = 2, so σ = 1 and the window covers every key."""
    near, far = math.exp(-0.5), math.exp(-2)
    weights = weights_of(with_equal_scores(LuongLocalP, 2), queries=1, keys=4)
    torch.testing.assert_close(weights, torch.tensor([[far / 4, near / 4, 1 / 4, near / 4]]))


def test_local_p_uses_the_length_without_padding():
    """With two keys and four positions of padding, p is 1, as without padding."""
    allowed = torch.tensor([[True, True, False, False, False, False]])
    mechanism = with_equal_scores(LuongLocalP, 2)
    weights = weights_of(mechanism, queries=1, keys=6, allowed=allowed)
    torch.testing.assert_close(weights, torch.tensor([[math.exp(-0.5) / 2, 1 / 2, 0, 0, 0, 0]]))
    torch.testing.assert_close(weights[:, :2], weights_of(mechanism, queries=1, keys=2))


def test_rows_of_local_p_sum_to_less_than_one():
    query, keys, values = make_numbers(keys=12)
    mechanism = LuongLocalP(HeadShape(2, query=3, key=4), window=3).double()
    sums = mechanism(query, mechanism.prepare(keys, values, None), need_weights=True).weights.sum(dim=-1)
    assert torch.all(sums > 0)
    assert torch.all(sums < 1)


def test_local_p_learns_its_position_through_the_gaussian():
    query, keys, values = make_numbers()
    mechanism = LuongLocalP(HeadShape(2, query=3, key=4), window=10).double()
    memory = mechanism.prepare(keys, values, None)

    def context(place, place_energy):
        replaced = {"place": place, "place_energy": place_energy}
        return torch.func.functional_call(mechanism, replaced, (query, memory)).context

    leaves = tuple(
        leaf.detach().clone().requires_grad_() for leaf in (mechanism.place, mechanism.place_energy)
    )
    gradients = torch.autograd.grad(context(*leaves).square().sum(), leaves)
    assert all(torch.all(gradient != 0) for gradient in gradients)
    assert torch.autograd.gradcheck(context, leaves)


def test_local_p_is_neither_causal_nor_incremental():
    shape = HeadShape(1, query=1, key=1)
    with pytest.raises(UnsupportedError, match="LuongLocalP does not support causal"):
        LuongLocalP(shape, causal=True)
    mechanism = LuongLocalP(shape)
    states = torch.ones(1, 1, 2, 1)
    with pytest.raises(UnsupportedError, match="does not support incremental"):
        mechanism.extend(mechanism.prepare(states, states, None), states, states)


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_of_zero_is_refused(kind):
    with pytest.raises(RecipeError, match=r"at least 1 key .* window = 0"):
        kind(HeadShape(1, query=1, key=1), window=0)
