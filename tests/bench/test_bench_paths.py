"""Paths by hand for sixteen places, and layers really stacked."""

from __future__ import annotations

import itertools

import pytest
import torch

from jumok.bench import CONTENDERS, Shape, dilated_stack, influence, longest_path

PLACES = 16
SHAPE = Shape(heads=2, width=4, neighbours=4)


def influence_of(name):
    contender = CONTENDERS[name]
    states = SHAPE.states(PLACES, one_head=contender.one_head)
    return influence(contender.build(SHAPE, hop=True), states)


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("self-attention", 1),
        ("scaled-dot", 1),
        ("efficient", 1),
        ("linear", 1),
        ("linear causal", 1),
        ("restricted", 4),  # 4 places a layer: 15 / 4, rounded up
        ("convolutional", 15),  # one place a layer
        ("recurrent", 15),  # one place a step
    ],
)
def test_the_path_from_the_first_place_to_the_last(name, layers):
    assert longest_path(itertools.repeat(influence_of(name))) == layers


def test_influence_is_the_band_that_each_layer_has_by_definition():
    back = torch.arange(PLACES)[:, None] - torch.arange(PLACES)  # the output's place less the input's
    expected = {
        "self-attention": back == back,
        "linear causal": back >= 0,
        "restricted": back.abs() <= 4,
        "convolutional": back.abs() <= 1,
        "recurrent": (back == 0) | (back == 1),
    }
    for name, band in expected.items():
        assert torch.equal(influence_of(name), band), name


def test_a_recurrent_layer_as_a_whole_carries_every_input_on():
    states = SHAPE.states(PLACES, one_head=True)
    whole = influence(CONTENDERS["recurrent"].build(SHAPE), states)
    assert torch.equal(whole, torch.ones(PLACES, PLACES).tril().bool())


def test_growing_dilation_multiplies_the_reach():
    """1 + 3 + 9 = 13 places; 27 would look past the end, so 1 and 3 come again."""
    states = SHAPE.states(PLACES, one_head=True)
    assert longest_path(influence(layer, states) for layer in dilated_stack(SHAPE, PLACES)) == 5


def test_layers_really_stacked_agree():
    layer = CONTENDERS["restricted"].build(SHAPE)
    states = SHAPE.states(PLACES).requires_grad_()
    stacked, reached = states, []
    for _ in range(4):
        stacked = layer(stacked)
        [gradient] = torch.autograd.grad(stacked[:, :, -1].square().sum(), states, retain_graph=True)
        reached.append(bool(gradient[:, :, 0].ne(0).any()))
    assert reached == [False, False, False, True]


def test_there_is_no_path_where_none_arrives():
    assert longest_path(itertools.repeat(torch.eye(5, dtype=torch.bool))) is None
    assert longest_path([]) is None
