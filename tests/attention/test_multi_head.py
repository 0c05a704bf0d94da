import math

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from jumok.attention import MultiHead, ScaledDot
from jumok.attention.scored import KeyValues
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


def test_scaled_by_the_root_of_the_width():
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


def test_heads_that_do_not_divide_the_width():
    with pytest.raises(UnsupportedError, match=r"7 heads .* 16 evenly.*1, 2, 4, 8, 16"):
        MultiHead(width=16, heads=7, mechanism=ScaledDot())


def test_parameters_stay_readable():
    names = set(dict(MultiHead(width=8, heads=2, mechanism=ScaledDot()).named_parameters()))
    assert names == {"query.weight", "key.weight", "value.weight", "out.weight"}


def test_a_cache_grows_by_doubling():
    """n steps allocate O(log n) times and leave what was read from an earlier length as it was."""
    memory = KeyValues(torch.zeros(1, 1, 0, 2), torch.zeros(1, 1, 0, 2), length=0)
    places, earlier = set(), None
    for step in range(100):
        memory = memory.extend(torch.full((1, 1, 1, 2), float(step)), torch.zeros(1, 1, 1, 2))
        places.add(memory.stored_keys.data_ptr())
        earlier = memory if step == 40 else earlier
    assert len(places) <= 6
    assert memory.keys[0, 0, :, 0].tolist() == list(range(100))
    assert earlier.keys[0, 0, :, 0].tolist() == list(range(41))


def test_extending_where_gradients_flow():
    memory = KeyValues(torch.zeros(1, 1, 0, 2), torch.zeros(1, 1, 0, 2), length=0)
    added = torch.ones(1, 1, 3, 2, requires_grad=True)
    memory.extend(added, added).extend(added, added).keys.sum().backward()
    assert torch.equal(added.grad, torch.full_like(added, 2.0))


def test_padding_of_a_memory_survives_extending():
    memory = KeyValues(torch.zeros(2, 1, 2, 2), torch.zeros(2, 1, 2, 2), 2, torch.tensor([[True, False]] * 2))
    extended = memory.extend(torch.ones(2, 1, 1, 2), torch.ones(2, 1, 1, 2))
    assert extended.allowed.tolist() == [[True, False, True]] * 2
