import itertools
import json
import math
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from jumok.attention import (
    INITIALISERS,
    MultiHead,
    ScaledDot,
    Widths,
    attend_over_axes,
    find_initialiser,
    make_attention,
)
from jumok.attention.scored import KeyValues
from jumok.config.recipe import AttentionSettings, InitialiserName
from jumok.errors import RecipeError, UnsupportedError


def test_two_queries_and_two_keys_equal_numbers_computed_by_hand():
    """d = 1, queries 1 and 2, keys 0 and ln 3: the weights are 1/4, 3/4 and then 1/10, 9/10."""
    query = torch.tensor([[[[1.0], [2.0]]]])
    keys = torch.tensor([[[[0.0], [math.log(3)]]]])
    values = torch.tensor([[[[4.0, 0.0], [0.0, 10.0]]]])
    mechanism = ScaledDot()
    attended = mechanism(query, mechanism.prepare(keys, values, None), need_weights=True)
    torch.testing.assert_close(attended.weights[0, 0], torch.tensor([[0.25, 0.75], [0.1, 0.9]]))
    torch.testing.assert_close(attended.context[0, 0], torch.tensor([[1.0, 7.5], [0.4, 9.0]]))


def test_scores_are_divided_by_the_root_of_the_width():
    query = torch.full((1, 1, 1, 4), 1.0)
    keys = torch.tensor([[0.0] * 4, [math.log(3) / 2] * 4])[None, None]
    mechanism = ScaledDot()
    weights = mechanism(query, mechanism.prepare(keys, keys, None), need_weights=True).weights
    torch.testing.assert_close(weights.flatten(), torch.tensor([0.25, 0.75]))


@pytest.mark.parametrize("causal", [False, True])
def test_context_and_weights_equal_torch(causal):
    """nn.MultiheadAttention and SDPA on the same weights."""
    torch.manual_seed(3)
    ours = MultiHead(width=16, heads=4, mechanism=ScaledDot(causal=causal)).eval()
    theirs = nn.MultiheadAttention(16, 4, bias=False, batch_first=True).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.out_proj.weight.copy_(ours.out.weight)
    states = torch.randn(3, 6, 16)
    forbidden = torch.ones(6, 6, dtype=torch.bool).triu(1) if causal else None
    context, weights = theirs(states, states, states, attn_mask=forbidden, average_attn_weights=False)
    attended = ours.attend_self(states, need_weights=True)
    torch.testing.assert_close(attended.context, context, atol=1e-6, rtol=0)
    torch.testing.assert_close(attended.weights, weights, atol=1e-6, rtol=0)
    split = [part(states).view(3, 6, 4, 4).transpose(1, 2) for part in (ours.query, ours.key, ours.value)]
    merged = scaled_dot_product_attention(*split, is_causal=causal).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attended.context, ours.out(merged), atol=1e-6, rtol=0)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(UnsupportedError, match=r"7 heads .* 16 evenly.*1, 2, 4, 8, 16"):
        MultiHead(width=16, heads=7, mechanism=ScaledDot())


def test_parameters_have_readable_names():
    names = set(dict(MultiHead(width=8, heads=2, mechanism=ScaledDot()).named_parameters()))
    assert names == {"query.weight", "key.weight", "value.weight", "out.weight"}


def test_a_memory_grows_by_doubling():
    """n steps allocate O(log n) times and do not change an earlier memory."""
    memory = KeyValues(torch.zeros(1, 1, 0, 2), torch.zeros(1, 1, 0, 2), length=0)
    addresses, earlier = set(), None
    for step in range(100):
        memory = memory.extend(torch.full((1, 1, 1, 2), float(step)), torch.zeros(1, 1, 1, 2))
        addresses.add(memory.stored_keys.data_ptr())
        earlier = memory if step == 40 else earlier
    assert len(addresses) <= 6  # capacities 8, 18, 38, 78 and 158
    assert memory.keys[0, 0, :, 0].tolist() == list(range(100))
    assert earlier.keys[0, 0, :, 0].tolist() == list(range(41))


def test_extending_a_memory_passes_gradients_on():
    memory = KeyValues(torch.zeros(1, 1, 0, 2), torch.zeros(1, 1, 0, 2), length=0)
    added = torch.ones(1, 1, 3, 2, requires_grad=True)
    memory.extend(added, added).extend(added, added).keys.sum().backward()
    assert torch.equal(added.grad, torch.full_like(added, 2.0))


def test_padding_of_a_memory_survives_extending():
    memory = KeyValues(torch.zeros(2, 1, 2, 2), torch.zeros(2, 1, 2, 2), 2, torch.tensor([[True, False]] * 2))
    extended = memory.extend(torch.ones(2, 1, 1, 2), torch.ones(2, 1, 1, 2))
    assert extended.allowed.tolist() == [[True, False, True]] * 2


# Keras calls the weights of attention "scores".
KERAS = json.loads(Path(__file__).with_name("keras_numbers.json").read_text(encoding="utf-8"))["cases"]


def from_keras(case):
    """A MultiHead with the weights of a Keras layer.

    The kernels of Keras for queries, keys and values are (width of the states, head, width of the head).
    """
    options = case["options"]
    arrays = {
        path.split("/", 1)[1]: torch.tensor(w, dtype=torch.float64) for path, w in case["weights"].items()
    }
    query_states_width, _, key_width = arrays["query/kernel"].shape
    source_states_width, heads, value_width = arrays["value/kernel"].shape
    output = tuple(arrays["attention_output/kernel"].shape[2:])
    widths = Widths(query_states_width, source_states_width, key=key_width, value=value_width, output=output)
    bias = options.get("use_bias", True)
    ours = MultiHead(width=widths, heads=heads, mechanism=ScaledDot(), bias=bias).double().eval()
    parts = {"query": ours.query, "key": ours.key, "value": ours.value, "attention_output": ours.out}
    with torch.no_grad():
        for name, projection in parts.items():
            kernel = arrays[f"{name}/kernel"]
            kernel = kernel.flatten(0, 1).flatten(1) if name == "attention_output" else kernel.flatten(1)
            projection.weight.copy_(kernel.T)
            if bias:
                projection.bias.copy_(arrays[f"{name}/bias"].flatten())
    return ours


@pytest.mark.parametrize("name", ["documented", "widths", "no bias", "output shape"])
def test_multi_head_equals_keras_on_the_same_weights(name):
    case = KERAS[name]
    ours = from_keras(case)
    query = torch.tensor(case["query"], dtype=torch.float64)
    source = query if case["value"] is None else torch.tensor(case["value"], dtype=torch.float64)
    attended = ours(query, ours.prepare(source, source), need_weights=True)
    torch.testing.assert_close(attended.context, torch.tensor(case["output"], dtype=torch.float64))
    torch.testing.assert_close(attended.weights, torch.tensor(case["scores"], dtype=torch.float64))


def test_attention_over_several_axes_equals_keras():
    case = KERAS["axes"]
    states = torch.tensor(case["query"], dtype=torch.float64)
    attended = attend_over_axes(from_keras(case), states, (2, 3), need_weights=True)
    torch.testing.assert_close(attended.context, torch.tensor(case["output"], dtype=torch.float64))
    torch.testing.assert_close(attended.weights, torch.tensor(case["scores"], dtype=torch.float64))


def test_outputs_have_the_shapes_that_keras_documents():
    attention = MultiHead(width=Widths(16, 16, key=2, value=2, output=16), heads=2, mechanism=ScaledDot())
    target, source = torch.randn(3, 8, 16), torch.randn(3, 4, 16)
    attended = attention(target, attention.prepare(source, source), need_weights=True)
    assert attended.context.shape == (3, 8, 16)
    assert attended.weights.shape == (3, 2, 8, 4)
    states = torch.randn(3, 5, 3, 4, 16)
    assert attend_over_axes(attention, states, (2, 3)).context.shape == states.shape


def test_attention_over_axes_of_two_tensors_with_a_mask_equals_keras():
    """A query whose keys are all masked has context 0 in jumok (and the mean of all values in Keras)."""
    case = KERAS["axes of two tensors"]
    states, source = (torch.tensor(case[name], dtype=torch.float64) for name in ("query", "value"))
    allowed = torch.tensor(case["mask"])  # (batch, other axis, query, query, key, key)
    ours = from_keras(case)
    attended = attend_over_axes(
        ours,
        states,
        (2, 3),
        source=source,
        allowed=allowed[:, :, None],  # with an axis of heads
        need_weights=True,
    )
    sees_a_key = allowed.flatten(4).any(dim=-1)  # (batch, other axis, query, query)
    assert not sees_a_key.all()
    for result, expected in [(attended.context, case["output"]), (attended.weights, case["scores"])]:
        expected = torch.tensor(expected, dtype=torch.float64)
        assert result.shape == expected.shape
        if result is attended.weights:  # the axis of heads, after the batch axes, goes last
            result, expected = result.movedim(2, -1), expected.movedim(2, -1)
        torch.testing.assert_close(result[sees_a_key], expected[sees_a_key])
    assert torch.all(attended.context[~sees_a_key] == ours.out.bias)


def test_an_edit_over_several_axes_gets_weights_with_these_axes():
    attention = make_attention(AttentionSettings(), width=8, heads=2)
    states, source = torch.randn(2, 5, 3, 4, 8), torch.randn(2, 5, 2, 6, 8)
    shapes = []

    def only_one_key(weights, query_offset):
        shapes.append((tuple(weights.shape), query_offset))
        edited = torch.zeros_like(weights)
        edited[..., 1, 4] = 1.0
        return edited

    attended = attend_over_axes(
        attention, states, (2, 3), source=source, edit=only_one_key, need_weights=True
    )
    assert shapes == [((2, 5, 2, 3, 4, 2, 6), 0)]
    assert torch.all(attended.weights.sum(dim=(-2, -1)) == 1)
    expected = attention.out(attention.value(source[:, :, 1, 4]))  # (batch, other axis, width)
    torch.testing.assert_close(attended.context, expected[:, :, None, None].expand_as(states))


@pytest.mark.parametrize("kind", ["scaled-dot", "efficient", "linear"])
@pytest.mark.parametrize("axes", [(1,), (3, 1), (1, 2, 3)])
def test_attended_axes_in_any_order_equal_a_loop_over_the_batch_axes(kind, axes):
    """The keys contain padding, which every mechanism supports."""
    attention = make_attention(AttentionSettings(kind=kind), width=8, heads=2).eval()
    states, source = torch.randn(2, 3, 4, 5, 8), torch.randn(2, 3, 4, 5, 8)
    allowed_keys = torch.rand(2, 3, 4, 5) < 0.7
    others = [axis for axis in range(4) if axis not in axes]
    permuted_mask = allowed_keys.permute(*others, *axes)
    attended = attend_over_axes(attention, states, axes, source=source, allowed_keys=permuted_mask)
    moved, source = (part.permute(*others, *axes, 4) for part in (states, source))
    batch_sizes = [states.shape[axis] for axis in others]
    expected = torch.empty_like(moved)
    for index in itertools.product(*map(range, batch_sizes)):
        keys = source[index].flatten(0, -2)[None]
        memory = attention.prepare(keys, keys, permuted_mask[index].flatten()[None])
        expected[index] = attention(moved[index].flatten(0, -2)[None], memory).context.view_as(moved[index])
    torch.testing.assert_close(attended.context.permute(*others, *axes, 4), expected, atol=1e-6, rtol=0)


def test_a_batch_of_0_with_a_mask_and_an_edit_is_valid_over_axes():
    attention = make_attention(AttentionSettings(), width=8, heads=2)
    allowed = torch.ones(1, dtype=torch.bool)
    attended = attend_over_axes(
        attention, torch.randn(0, 3, 4, 8), (1, 2), allowed=allowed, edit=lambda weights, _: weights
    )
    assert attended.context.shape == (0, 3, 4, 8)


def test_a_source_or_a_mask_that_does_not_fit_is_refused():
    attention = make_attention(AttentionSettings(), width=8, heads=2)
    states = torch.randn(2, 3, 4, 5, 8)
    for source in (torch.randn(2, 2, 4, 5, 8), torch.randn(2, 3, 4, 8)):
        with pytest.raises(UnsupportedError, match="same number of axes, and the same sizes"):
            attend_over_axes(attention, states, (2, 3), source=source)
    with pytest.raises(UnsupportedError, match=r"must broadcast to \(2, 3, 2, 4, 5, 4, 5\)"):
        attend_over_axes(attention, states, (2, 3), allowed=torch.ones(3, 3, dtype=torch.bool))
    with pytest.raises(UnsupportedError, match="A mask must be bool"):
        attend_over_axes(attention, states, (2, 3), allowed=torch.ones(1))


@pytest.mark.parametrize("axes", [(), (0, 2), (2, 2), (4,)])
def test_invalid_axes_are_refused(axes):
    attention = make_attention(AttentionSettings(), width=16, heads=2)
    with pytest.raises(UnsupportedError, match="between the batch"):
        attend_over_axes(attention, torch.randn(2, 3, 4, 5, 16), axes)


# Keras' variance of a matrix with 300 inputs and 100 outputs, and the largest absolute value. The standard
# deviation of a standard normal distribution that is cut off at ±2 is 0.8796.
VARIANCES = {
    "xavier-uniform": (2 / 400, math.sqrt(6 / 400)),
    "xavier-normal": (2 / 400, 2 / 0.8796 * math.sqrt(2 / 400)),
    "he-uniform": (2 / 300, math.sqrt(6 / 300)),
    "he-normal": (2 / 300, 2 / 0.8796 * math.sqrt(2 / 300)),
    "lecun-uniform": (1 / 300, math.sqrt(3 / 300)),
    "lecun-normal": (1 / 300, 2 / 0.8796 * math.sqrt(1 / 300)),
    "orthogonal": (1 / 300, 1.0),
    "normal": (0.05**2, math.inf),
    "truncated-normal": ((0.8796 * 0.05) ** 2, 0.1),
    "uniform": (0.05**2 / 3, 0.05),
    "zeros": (0.0, 0.0),
    "ones": (0.0, 1.0),
}


@pytest.mark.parametrize("name", INITIALISERS)
def test_initialisers_have_the_variance_and_limits_of_keras(name):
    torch.manual_seed(0)
    matrix = torch.empty(100, 300)
    find_initialiser(name)(matrix)
    variance, limit = VARIANCES[name]
    assert matrix.var().item() == pytest.approx(variance, rel=0.03)
    assert matrix.abs().max() <= limit * 1.0001
    assert matrix.mean().item() == pytest.approx(1.0 if name == "ones" else 0.0, abs=0.003)
    assert set(VARIANCES) == set(INITIALISERS) == set(get_args(InitialiserName))


@pytest.mark.parametrize(
    ("name", "limit"), [("he-uniform", math.sqrt(6)), ("he-normal", 2 / 0.8796 * math.sqrt(2))]
)
def test_he_has_the_variance_of_keras_for_a_single_input(name, limit):
    """The variance is 2 / inputs, also for one input."""
    torch.manual_seed(0)
    matrix = torch.empty(30_000, 1)
    find_initialiser(name)(matrix)
    assert matrix.var().item() == pytest.approx(2.0, rel=0.03)
    assert matrix.abs().max() <= limit * 1.0001


def test_projections_begin_as_their_initialisers_say():
    attention = MultiHead(
        width=8, heads=2, mechanism=ScaledDot(), bias=True, initialiser="orthogonal", bias_initialiser="ones"
    )
    for projection in (attention.query, attention.key, attention.value, attention.out):
        torch.testing.assert_close(projection.weight @ projection.weight.T, torch.eye(8), atol=1e-5, rtol=0)
        assert torch.all(projection.bias == 1)
    torch.manual_seed(4)
    plain = MultiHead(width=8, heads=2, mechanism=ScaledDot()).query.weight
    torch.manual_seed(4)
    first, *_ = [nn.Linear(8, 8, bias=False) for _ in range(4)]
    # As in earlier versions, all four projections are created before the first weights are initialised.
    # So a seed still gives the same initial weights.
    assert torch.equal(plain, nn.init.xavier_uniform_(first.weight))


def test_an_unknown_initialiser_suggests_the_nearest():
    with pytest.raises(RecipeError, match='Did you mean "xavier-normal"'):
        MultiHead(width=8, heads=2, mechanism=ScaledDot(), initialiser="glorot_normal")


@pytest.mark.parametrize("widths", [{"key": 0}, {"value": 0}, {"output": ()}, {"output": (2, 0)}])
def test_widths_below_one_are_refused(widths):
    sizes = {"query_states": 8, "source_states": 8, "key": 4, "value": 4, "output": 8} | widths
    with pytest.raises(UnsupportedError, match="at least 1"):
        MultiHead(width=Widths(**sizes), heads=2, mechanism=ScaledDot())


def test_heads_need_not_divide_the_width_if_key_and_value_widths_are_set():
    widths = Widths.of(16, 3, key=4, value=6)
    assert widths == Widths(16, 16, key=4, value=6, output=16)
    attention = MultiHead(width=widths, heads=3, mechanism=ScaledDot())
    assert attention.attend_self(torch.randn(2, 5, 16)).context.shape == (2, 5, 16)
    with pytest.raises(UnsupportedError, match="key width and a value width"):
        Widths.of(16, 3, key=4)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_heads_share_keys_in_groups_as_in_torch(groups):
    torch.manual_seed(1)
    ours = MultiHead(width=16, heads=4, mechanism=ScaledDot(), groups=groups).eval()
    states = torch.randn(2, 5, 16)
    query = ours.query(states).view(2, 5, 4, 4).transpose(1, 2)
    key, value = (part(states).view(2, 5, groups, 4).transpose(1, 2) for part in (ours.key, ours.value))
    theirs = scaled_dot_product_attention(query, key, value, enable_gqa=True)
    expected = ours.out(theirs.transpose(1, 2).flatten(2))
    torch.testing.assert_close(ours.attend_self(states).context, expected, atol=1e-6, rtol=0)
    assert ours.key.weight.shape == (groups * 4, 16)


def test_groups_that_do_not_divide_the_heads_are_refused():
    with pytest.raises(UnsupportedError, match=r"4 heads .* 3 groups"):
        MultiHead(width=16, heads=4, mechanism=ScaledDot(), groups=3)


@pytest.mark.parametrize("heads", [0, -2])
def test_fewer_than_one_head_is_refused(heads):
    for make in (
        lambda: MultiHead(width=8, heads=heads, mechanism=ScaledDot()),
        lambda: make_attention(AttentionSettings(), width=8, heads=heads),
    ):
        with pytest.raises(UnsupportedError, match=f"Received: heads = {heads}"):
            make()
