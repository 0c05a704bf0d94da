"""Luong's four scores against plain loops, and their special cases and refusals."""

import math

import pytest
import torch

from jumok.attention import HeadShape
from jumok.attention.additive import Additive
from jumok.attention.luong import LuongConcat, LuongDot, LuongGeneral, LuongLocation
from jumok.errors import UnsupportedError


def loop_dot(mechanism, head, query, key, key_position):
    return sum(q * k for q, k in zip(query, key, strict=True))


def loop_general(mechanism, head, query, key, key_position):
    weight = mechanism.weight[head].tolist()
    return sum(
        query[row] * weight[row][column] * key[column]
        for row in range(len(query))
        for column in range(len(key))
    )


def loop_concat(mechanism, head, query, key, key_position):
    """One matrix W over the concatenated query and key, (units, query + key)."""
    joined = torch.cat([mechanism.query[head], mechanism.key[head]]).T.tolist()
    concatenated = query + key
    score = 0.0
    vector = mechanism.energy[head].tolist()  # v
    for component, row in zip(vector, joined, strict=True):
        score += component * math.tanh(sum(w * x for w, x in zip(row, concatenated, strict=True)))
    return score


def loop_location(mechanism, head, query, key, key_position):
    column = mechanism.weight[head, :, key_position].tolist()
    return sum(q * w for q, w in zip(query, column, strict=True))


@pytest.mark.parametrize(
    ("kind", "loop_score", "key_width"),
    [
        (LuongDot, loop_dot, 3),
        (LuongGeneral, loop_general, 4),
        (LuongConcat, loop_concat, 4),
        (LuongLocation, loop_location, 4),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_weights_and_context_equal_a_plain_loop(kind, loop_score, key_width):
    torch.manual_seed(12)
    query = torch.randn(2, 2, 3, 3, dtype=torch.float64)
    keys = torch.randn(2, 2, 5, key_width, dtype=torch.float64)
    values = torch.randn(2, 2, 5, 2, dtype=torch.float64)
    mechanism = kind(HeadShape(2, query=3, key=key_width)).double()
    allowed = torch.tensor([[True] * 5, [True, True, True, False, False]])
    attended = mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=True)
    for batch in range(2):
        for head in range(2):
            for i in range(3):  # position of the query
                query_vector = query[batch, head, i].tolist()
                exponentials = [0.0] * 5
                for j in range(5):  # position of the key
                    if allowed[batch, j]:
                        score = loop_score(mechanism, head, query_vector, keys[batch, head, j].tolist(), j)
                        exponentials[j] = math.exp(score)
                expected = [exponential / sum(exponentials) for exponential in exponentials]
                assert attended.weights[batch, head, i].tolist() == pytest.approx(expected, abs=1e-12)
                context = [
                    sum(expected[j] * float(values[batch, head, j, column]) for j in range(5))
                    for column in range(2)
                ]
                assert attended.context[batch, head, i].tolist() == pytest.approx(context, abs=1e-12)


def weights_of(mechanism, query, keys, allowed=None):
    """The weights of the first head of the first sentence, (query, key)."""
    attended = mechanism(query, mechanism.prepare(keys, keys, allowed), need_weights=True)
    return attended.weights[0, 0]


def test_dot_by_hand_is_not_scaled():
    """Width 4, query of ones: the scores are 0 and ln 3; scaled scores would be half as large."""
    query = torch.ones(1, 1, 1, 4)
    keys = torch.tensor([[0.0] * 4, [math.log(3) / 4] * 4])[None, None]
    weights = weights_of(LuongDot(HeadShape(1, query=4, key=4)), query, keys)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]]))


def test_dot_of_unequal_widths_is_refused():
    with pytest.raises(UnsupportedError, match=r'width 3 and keys of width 5.*"luong-general"'):
        LuongDot(HeadShape(1, query=3, key=5))


def test_general_by_hand_takes_keys_of_another_width():
    """W = (0 2): a score is twice the product of the query and the key's second component.

    The scores of the queries 1 and 2 with the two keys are 0, ln 3 and 0, ln 9.
    """
    mechanism = LuongGeneral(HeadShape(1, query=1, key=2))
    with torch.no_grad():
        mechanism.weight.copy_(torch.tensor([[[0.0, 2.0]]]))
    query = torch.tensor([[[[1.0], [2.0]]]])
    keys = torch.tensor([[[[5.0, 0.0], [-5.0, math.log(3) / 2]]]])
    weights = weights_of(mechanism, query, keys)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75], [0.1, 0.9]]))
    assert mechanism.prepare_keys(keys).shape == (1, 1, 2, 1)  # as wide as the query


def test_general_with_the_identity_is_dot():
    query, keys = torch.randn(2, 3, 2, 4), torch.randn(2, 3, 5, 4)
    shape = HeadShape(3, query=4, key=4)
    general = LuongGeneral(shape)
    with torch.no_grad():
        general.weight.copy_(torch.eye(4).expand(3, 4, 4))
    torch.testing.assert_close(weights_of(general, query, keys), weights_of(LuongDot(shape), query, keys))


def test_concat_equals_the_additive_score_with_the_matrix_split_in_two():
    torch.manual_seed(13)
    shape = HeadShape(2, query=3, key=4)
    joined = torch.randn(2, 6, 3 + 4, dtype=torch.float64)  # W of each head, (units, query + key)
    concat, additive = LuongConcat(shape, units=6).double(), Additive(shape, units=6).double()
    with torch.no_grad():
        for mechanism in (concat, additive):
            mechanism.query.copy_(joined[:, :, :3].transpose(1, 2))
            mechanism.key.copy_(joined[:, :, 3:].transpose(1, 2))
            mechanism.energy.copy_(additive.energy)
    query = torch.randn(2, 2, 3, 3, dtype=torch.float64)
    keys = torch.randn(2, 2, 5, 4, dtype=torch.float64)
    side_by_side = torch.cat(
        [query[:, :, :, None].expand(-1, -1, -1, 5, -1), keys[:, :, None].expand(-1, -1, 3, -1, -1)], dim=-1
    )  # (batch, head, query, key, query + key)
    hidden = torch.einsum("bhqkw,huw->bhqku", side_by_side, joined).tanh()
    expected = torch.einsum("bhqku,hu->bhqk", hidden, additive.energy).softmax(dim=-1)
    for mechanism in (concat, additive):
        weights = mechanism(query, mechanism.prepare(keys, keys, None), need_weights=True).weights
        torch.testing.assert_close(weights, expected, atol=1e-12, rtol=0)


def test_location_by_hand_is_normalised_over_the_existing_positions():
    """The exponentials of the scores of the three positions are 1, 3 and 6."""
    mechanism = LuongLocation(HeadShape(1, query=1, key=7), max_keys=3)
    with torch.no_grad():
        mechanism.weight.copy_(torch.tensor([[[0.0, math.log(3), math.log(6)]]]))
    query, keys = torch.ones(1, 1, 1, 1), torch.randn(1, 1, 3, 7)
    torch.testing.assert_close(weights_of(mechanism, query, keys), torch.tensor([[0.1, 0.3, 0.6]]))
    torch.testing.assert_close(weights_of(mechanism, query, keys[:, :, :2]), torch.tensor([[0.25, 0.75]]))
    masked = weights_of(mechanism, query, keys, torch.tensor([[True, False, True]]))
    torch.testing.assert_close(masked, torch.tensor([[1 / 7, 0.0, 6 / 7]]))
    assert torch.equal(weights_of(mechanism, query, keys), weights_of(mechanism, query, -5 * keys))


def test_location_refuses_more_than_max_keys():
    mechanism = LuongLocation(HeadShape(1, query=2, key=2), max_keys=3)
    keys = torch.randn(1, 1, 3, 2)
    memory = mechanism.prepare(keys, keys, None)
    assert mechanism(keys, memory).context.shape == (1, 1, 3, 2)
    memory = mechanism.extend(memory, keys[:, :, :1], keys[:, :, :1])
    with pytest.raises(UnsupportedError, match=r'3 positions.* 4 keys\. Set its option "max_keys" to 4'):
        mechanism(keys, memory)
