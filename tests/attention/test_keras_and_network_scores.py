"""Mechanisms with Keras' scores equal Keras. A score by a network equals the additive score and a loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from jumok.attention import (
    Additive,
    HeadShape,
    KerasAdditive,
    KerasConcat,
    KerasDot,
    LuongDot,
    NetworkScore,
    SingleHead,
    check_options,
)
from jumok.attention import additive as additive_module
from jumok.config.recipe import AttentionSettings
from jumok.errors import RecipeError, UnsupportedError

# Keras calls the weights of attention "scores".
KERAS = json.loads(Path(__file__).with_name("keras_numbers.json").read_text(encoding="utf-8"))["cases"]
ONE_HEAD = HeadShape(1, query=4, key=4)


@pytest.mark.parametrize(
    ("name", "kind", "use_scale"),
    [
        ("dot", KerasDot, False),
        ("dot, scale", KerasDot, True),
        ("concat", KerasConcat, False),
        ("concat, scale", KerasConcat, True),
        ("additive", KerasAdditive, False),
        ("additive, scale", KerasAdditive, True),
    ],
)
def test_weights_and_context_equal_those_of_keras(name, kind, use_scale):
    case = KERAS[name]
    mechanism = kind(ONE_HEAD, use_scale=use_scale).double()
    parameters = {"scale": "factor", "concat_score_weight": "weight"}  # Keras' names and ours
    with torch.no_grad():
        for path, value in case["weights"].items():
            parameter = getattr(mechanism, parameters[path.split("/")[1]])
            parameter.copy_(torch.tensor(value).view_as(parameter))
    assert len(case["weights"]) == len(list(mechanism.parameters()))
    query, source = (torch.tensor(case[key], dtype=torch.float64) for key in ("query", "value"))
    attention = SingleHead(mechanism)
    attended = attention(query, attention.prepare(source, source), need_weights=True)
    for ours, theirs in [(attended.weights[:, 0], case["scores"]), (attended.context, case["output"])]:
        # Keras computes `Attention` and `AdditiveAttention` in single precision.
        torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64), atol=1e-6, rtol=0)


def test_a_learned_scale_begins_as_luongs_dot_and_gets_a_gradient():
    states = torch.randn(2, 5, 4)
    scaled, plain = SingleHead(KerasDot(ONE_HEAD, use_scale=True)), SingleHead(LuongDot(ONE_HEAD))
    context = scaled.attend_self(states).context
    torch.testing.assert_close(context, plain.attend_self(states).context)
    context.square().sum().backward()
    assert scaled.mechanism.factor.grad.abs() > 0


@pytest.mark.parametrize("kind", [KerasDot, KerasConcat, KerasAdditive])
def test_different_widths_are_refused(kind):
    with pytest.raises(UnsupportedError, match="queries of width 4 and keys of width 6"):
        kind(HeadShape(1, query=4, key=6))


def inputs(shape: HeadShape, queries: int = 3, keys: int = 5):
    random = torch.Generator().manual_seed(1)
    sizes = [(2, shape.heads, queries, shape.query), (2, shape.heads, keys, shape.key)]
    return [torch.randn(size, generator=random, dtype=torch.float64) for size in sizes]


def test_one_hidden_layer_without_bias_is_the_additive_score():
    shape = HeadShape(1, query=3, key=4)
    network, additive = NetworkScore(shape, layers=1, units=6).double(), Additive(shape, units=6).double()
    first, _, last = network.network
    with torch.no_grad():
        first.weight.copy_(torch.cat([additive.query[0], additive.key[0]]).T)
        last.weight.copy_(additive.energy)
    query, keys = inputs(shape)
    expected = additive.scores(query, additive.prepare_keys(keys))
    torch.testing.assert_close(network.scores(query, keys), expected)


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu"])
def test_a_score_is_the_network_of_a_query_and_a_key(activation):
    shape = HeadShape(2, query=3, key=4)
    mechanism = NetworkScore(shape, layers=3, units=5, activation=activation).double()
    query, keys = inputs(shape)
    scores = mechanism.scores(query, keys)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        expected = mechanism.network(torch.cat([query[b, h, i], keys[b, h, j]]))
        torch.testing.assert_close(scores[b, h, i, j], expected[0])


def test_any_module_can_be_the_network():
    """For example a convolution over the features of a query and a key."""
    shape = HeadShape(2, query=4, key=4)

    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            convolution = nn.Conv1d(1, 3, kernel_size=3, padding=1)
            # 3 channels × 8 features of a query and a key
            self.layers = nn.Sequential(convolution, nn.Tanh(), nn.Flatten(), nn.Linear(24, 1))

        def forward(self, pairs):
            return self.layers(pairs.reshape(-1, 1, 8)).view(*pairs.shape[:-1], 1)

    mechanism = NetworkScore(shape, network=Convolution().double())
    query, keys = inputs(shape)
    scores = mechanism.scores(query, keys)
    single = mechanism.scores(query[:1, :1, 1:2], keys[:1, :1, 4:5])
    torch.testing.assert_close(scores[0, 0, 1, 4], single[0, 0, 0, 0])
    assert len(list(mechanism.parameters())) == 4


@pytest.mark.parametrize("kind", [KerasConcat, KerasAdditive, NetworkScore])
def test_without_gradients_the_hidden_layer_is_formed_in_parts(monkeypatch, kind):
    mechanism = kind(HeadShape(2, query=4, key=4)).double()
    query, keys = inputs(HeadShape(2, query=4, key=4), queries=7)
    whole = mechanism.scores(query, keys)
    monkeypatch.setattr(additive_module, "MAX_HIDDEN_ELEMENTS", 2 * keys.numel())
    with torch.no_grad():
        torch.testing.assert_close(mechanism.scores(query, keys), whole)


def test_options_are_checked():
    assert check_options(AttentionSettings(kind="network", layers=1, activation="relu")).units is None
    with pytest.raises(RecipeError, match="activation: Input should be 'tanh', 'relu' or 'gelu'"):
        check_options(AttentionSettings(kind="network", activation="sigmoid"))
    with pytest.raises(RecipeError, match='Did you mean "use_scale"'):
        check_options(AttentionSettings(kind="keras-dot", use_scales=True))
