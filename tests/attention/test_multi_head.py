import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from jumok.attention import MultiHead, ScaledDot, Widths, attend_over_axes, make_attention
from jumok.attention.scored import KeyValues
from jumok.config.recipe import AttentionSettings
from jumok.errors import UnsupportedError


def test_two_by_two_by_hand():
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
def test_parity_with_torch(causal):
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


def test_a_cache_grows_by_doubling():
    """n steps allocate O(log n) times and do not change what an earlier length read."""
    memory = KeyValues(torch.zeros(1, 1, 0, 2), torch.zeros(1, 1, 0, 2), length=0)
    addresses, earlier = set(), None
    for step in range(100):
        memory = memory.extend(torch.full((1, 1, 1, 2), float(step)), torch.zeros(1, 1, 1, 2))
        addresses.add(memory.stored_keys.data_ptr())
        earlier = memory if step == 40 else earlier
    assert len(addresses) <= 6
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


KERAS = json.loads(Path(__file__).with_name("keras_numbers.json").read_text(encoding="utf-8"))["cases"]


def from_keras(case):
    """A MultiHead with the weights of a Keras layer, whose kernels are (states, head, width)."""
    options = case["options"]
    arrays = {
        path.split("/", 1)[1]: torch.tensor(w, dtype=torch.float64) for path, w in case["weights"].items()
    }
    query, _, key = arrays["query/kernel"].shape
    source, heads, value = arrays["value/kernel"].shape
    widths = Widths(query, source, key=key, value=value, output=arrays["attention_output/kernel"].shape[-1])
    bias = options.get("use_bias", True)
    ours = MultiHead(width=widths, heads=heads, mechanism=ScaledDot(), bias=bias).double().eval()
    parts = {"query": ours.query, "key": ours.key, "value": ours.value, "attention_output": ours.out}
    with torch.no_grad():
        for name, projection in parts.items():
            kernel = arrays[f"{name}/kernel"]
            kernel = kernel.flatten(0, 1) if name == "attention_output" else kernel.flatten(1)
            projection.weight.copy_(kernel.T)
            if bias:
                projection.bias.copy_(arrays[f"{name}/bias"].flatten())
    return ours


@pytest.mark.parametrize("name", ["documented", "widths", "no bias"])
def test_equal_to_keras_on_the_same_weights(name):
    case = KERAS[name]
    ours = from_keras(case)
    query = torch.tensor(case["query"], dtype=torch.float64)
    source = query if case["value"] is None else torch.tensor(case["value"], dtype=torch.float64)
    attended = ours(query, ours.prepare(source, source), need_weights=True)
    torch.testing.assert_close(attended.context, torch.tensor(case["output"], dtype=torch.float64))
    torch.testing.assert_close(attended.weights, torch.tensor(case["scores"], dtype=torch.float64))


def test_several_axes_as_in_keras():
    case = KERAS["axes"]
    states = torch.tensor(case["query"], dtype=torch.float64)
    attended = attend_over_axes(from_keras(case), states, (2, 3), need_weights=True)
    torch.testing.assert_close(attended.context, torch.tensor(case["output"], dtype=torch.float64))
    torch.testing.assert_close(attended.weights, torch.tensor(case["scores"], dtype=torch.float64))


def test_shapes_documented_by_keras():
    attention = MultiHead(width=Widths(16, 16, key=2, value=2, output=16), heads=2, mechanism=ScaledDot())
    target, source = torch.randn(3, 8, 16), torch.randn(3, 4, 16)
    attended = attention(target, attention.prepare(source, source), need_weights=True)
    assert attended.context.shape == (3, 8, 16)
    assert attended.weights.shape == (3, 2, 8, 4)
    states = torch.randn(3, 5, 3, 4, 16)
    assert attend_over_axes(attention, states, (2, 3)).context.shape == states.shape


@pytest.mark.parametrize("axes", [(), (0, 2), (2, 2), (4,)])
def test_invalid_axes_are_refused(axes):
    attention = make_attention(AttentionSettings(), width=16, heads=2)
    with pytest.raises(UnsupportedError, match="between the batch"):
        attend_over_axes(attention, torch.randn(2, 3, 4, 5, 16), axes)


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
def test_zero_heads_are_refused(heads):
    for make in (
        lambda: MultiHead(width=8, heads=heads, mechanism=ScaledDot()),
        lambda: make_attention(AttentionSettings(), width=8, heads=heads),
    ):
        with pytest.raises(UnsupportedError, match=f"Received: heads = {heads}"):
            make()
