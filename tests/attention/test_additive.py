import math

import pytest
import torch

from jumok.attention import HeadShape
from jumok.attention import additive as additive_module
from jumok.attention.additive import Additive
from support.contract_checks import CASES, CHECKS, Subject


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("options", [{"units": 3}, {"normed": True}], ids=["units", "normed"])
def test_the_contract_holds_with_units_and_with_normed(options, check):
    for case in CASES:
        check(Subject.of(Additive, **options), case)


def make_numbers(*, shape, batch=2, queries=3, keys=4):
    torch.manual_seed(11)
    query = torch.randn(batch, shape.heads, queries, shape.query, dtype=torch.float64)
    key = torch.randn(batch, shape.heads, keys, shape.key, dtype=torch.float64)
    values = torch.randn(batch, shape.heads, keys, 2, dtype=torch.float64)
    return query, key, values


def loop_score(mechanism, head, query, key):
    """The formula, number by number; `query` and `key` are lists."""
    query_matrix, key_matrix = mechanism.query[head].tolist(), mechanism.key[head].tolist()
    vector = mechanism.energy[head].tolist()  # v
    bias = [0.0] * len(vector)
    if mechanism.gain is not None:
        length = math.sqrt(sum(number * number for number in vector))
        vector = [mechanism.gain[head].item() * number / length for number in vector]
        bias = mechanism.bias[head].tolist()
    score = 0.0
    for unit in range(len(vector)):
        hidden = bias[unit]
        hidden += sum(query[column] * query_matrix[column][unit] for column in range(len(query)))
        hidden += sum(key[column] * key_matrix[column][unit] for column in range(len(key)))
        score += vector[unit] * math.tanh(hidden)
    return score


@pytest.mark.parametrize("normed", [False, True])
def test_weights_and_context_equal_a_plain_loop(normed):
    shape = HeadShape(2, query=3, key=4)
    query, keys, values = make_numbers(shape=shape)
    mechanism = Additive(shape, units=5, normed=normed).double()
    if normed:
        torch.nn.init.normal_(mechanism.bias)
        torch.nn.init.normal_(mechanism.gain)
    allowed = torch.tensor([[True] * 4, [True, True, False, False]])
    attended = mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=True)
    for batch in range(2):
        for head in range(2):
            for position in range(3):
                visible = [key for key in range(4) if allowed[batch, key]]
                own_query = query[batch, head, position].tolist()
                exponentials = {
                    key: math.exp(loop_score(mechanism, head, own_query, keys[batch, head, key].tolist()))
                    for key in visible
                }
                total = sum(exponentials.values())
                expected = [exponentials.get(key, 0.0) / total for key in range(4)]
                assert attended.weights[batch, head, position].tolist() == pytest.approx(expected, abs=1e-12)
                context = [
                    sum(expected[key] * float(values[batch, head, key, column]) for key in range(4))
                    for column in range(2)
                ]
                assert attended.context[batch, head, position].tolist() == pytest.approx(context, abs=1e-12)


def test_weights_of_two_keys_equal_numbers_computed_by_hand():
    """tanh(½ ln 3) = ½, so v = 2 ln 3 gives the scores 0 and ln 3 and the weights ¼ and ¾."""
    mechanism = Additive(HeadShape(1, query=1, key=1))
    with torch.no_grad():
        mechanism.query.fill_(1.0)
        mechanism.key.fill_(1.0)
        mechanism.energy.fill_(2 * math.log(3))
    query = torch.tensor([[[[0.0], [-math.log(3) / 2]]]])
    keys = torch.tensor([[[[0.0], [math.log(3) / 2]]]])
    weights = mechanism(query, mechanism.prepare(keys, keys, None), need_weights=True).weights
    # The second query subtracts ½ ln 3 from both keys. The scores become −ln 3 and 0: the same weights.
    torch.testing.assert_close(weights[0, 0], torch.tensor([[0.25, 0.75], [0.25, 0.75]]))


def test_normed_starts_with_a_v_of_length_one_over_the_root_of_units():
    mechanism = Additive(HeadShape(3, query=4, key=4), units=16, normed=True)
    assert mechanism.gain.tolist() == [0.25] * 3
    assert torch.all(mechanism.bias == 0)
    assert mechanism.bias.shape == (3, 16)
    torch.testing.assert_close(mechanism.score_vectors().norm(dim=-1), torch.full((3,), 0.25))
    before = mechanism.score_vectors()
    with torch.no_grad():
        mechanism.energy.mul_(7.0)  # only the direction of this parameter matters
    torch.testing.assert_close(mechanism.score_vectors(), before)


def test_units_default_to_the_width_of_the_keys():
    assert Additive(HeadShape(2, query=3, key=4)).energy.shape == (2, 4)
    mechanism = Additive(HeadShape(2, query=3, key=4), units=6)
    shapes = {name: tuple(parameter.shape) for name, parameter in mechanism.named_parameters()}
    assert shapes == {"query": (2, 3, 6), "key": (2, 4, 6), "energy": (2, 6)}
    assert mechanism.prepare_keys(torch.zeros(1, 2, 5, 4)).shape == (1, 2, 5, 6)


def test_parameters_start_within_their_bounds_and_heads_differ():
    mechanism = Additive(HeadShape(2, query=30, key=20), units=40)
    for parameter, bound in (
        (mechanism.query, math.sqrt(6 / 70)),
        (mechanism.key, math.sqrt(6 / 60)),
        (mechanism.energy, math.sqrt(1 / 40)),
    ):
        assert 0.8 * bound < parameter.abs().max() <= bound
        assert not torch.equal(parameter[0], parameter[1])


@pytest.mark.parametrize("max_elements", [1, 100, 250])
def test_queries_compared_in_parts_give_the_same_result_as_all_at_once(monkeypatch, max_elements):
    """The hidden layer of one query has 2 · 2 · 4 · 5 = 80 numbers.

    So a part has one query under the limits 1 and 100, and three queries under the limit 250.
    """
    shape = HeadShape(2, query=3, key=4)
    query, keys, values = make_numbers(shape=shape, queries=7)
    mechanism = Additive(shape, units=5).double()
    memory = mechanism.prepare(keys, values, None)
    at_once = mechanism(query, memory, need_weights=True)
    sizes = []
    compare = Additive._compare

    def record_and_compare(self, part, keys):
        sizes.append(part.shape[2])
        return compare(self, part, keys)

    monkeypatch.setattr(Additive, "_compare", record_and_compare)
    monkeypatch.setattr(additive_module, "MAX_HIDDEN_ELEMENTS", max_elements)
    with torch.no_grad():
        in_parts = mechanism(query, memory, need_weights=True)
    assert sizes == ([3, 3, 1] if max_elements == 250 else [1] * 7)
    torch.testing.assert_close(in_parts.weights, at_once.weights, atol=1e-14, rtol=0)
    torch.testing.assert_close(in_parts.context, at_once.context, atol=1e-14, rtol=0)
    sizes.clear()
    mechanism(query, memory)
    assert sizes == [7]  # all at once: autograd saves the whole hidden layer anyway
