"""Path lengths over sixteen positions, compared with lengths computed by hand and with stacked layers."""

from __future__ import annotations

import itertools

import pytest
import torch

from jumok.profiling.layers import PROFILED_LAYERS, Shape, dilated_stack
from jumok.profiling.paths import influence, path_length

LENGTH = 16
SHAPE = Shape(heads=2, width=4, neighbours=4)


def influence_of(name):
    layer = PROFILED_LAYERS[name]
    states = SHAPE.states(LENGTH, one_head=layer.one_head)
    return influence(layer.build(SHAPE, one_step=True), states)


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("self-attention", 1),
        ("scaled-dot", 1),
        ("efficient", 1),
        ("efficient causal", 1),
        ("linear", 1),
        ("linear causal", 1),
        ("restricted", 4),  # 4 positions per layer: 15 / 4, rounded up
        ("convolutional", 15),  # one position per layer
        ("recurrent", 15),  # one position per step
    ],
)
def test_the_path_from_the_first_position_to_the_last_has_this_length(name, layers):
    assert path_length(itertools.repeat(influence_of(name))) == layers


def test_each_layer_has_the_expected_band_of_influence():
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)  # output position minus input position
    expected = {
        "self-attention": distance == distance,
        "efficient causal": distance >= 0,
        "linear causal": distance >= 0,
        "restricted": distance.abs() <= 4,
        "convolutional": distance.abs() <= 1,
        "recurrent": (distance == 0) | (distance == 1),
    }
    for name, band in expected.items():
        assert torch.equal(influence_of(name), band), name


def test_a_whole_recurrent_layer_carries_every_input_forward():
    states = SHAPE.states(LENGTH, one_head=True)
    whole = influence(PROFILED_LAYERS["recurrent"].build(SHAPE), states)
    assert torch.equal(whole, torch.ones(LENGTH, LENGTH).tril().bool())


def test_growing_dilation_shortens_the_path():
    """The signal must travel 15 positions. Layers of dilation 1, 3 and 9 carry it 13 positions.

    A dilation of 27 would exceed the length, so layers of dilation 1 and 3 follow again.
    """
    states = SHAPE.states(LENGTH, one_head=True)
    assert path_length(influence(layer, states) for layer in dilated_stack(SHAPE, LENGTH)) == 5


def test_the_path_through_stacked_layers_has_the_computed_length():
    layer = PROFILED_LAYERS["restricted"].build(SHAPE)
    states = SHAPE.states(LENGTH).requires_grad_()
    stacked, reached = states, []
    for _ in range(4):
        stacked = layer(stacked)
        [gradient] = torch.autograd.grad(stacked[:, :, -1].square().sum(), states, retain_graph=True)
        reached.append(bool(gradient[:, :, 0].ne(0).any()))
    assert reached == [False, False, False, True]


def test_there_is_no_path_if_the_signal_does_not_arrive():
    assert path_length(itertools.repeat(torch.eye(5, dtype=torch.bool))) is None
    assert path_length([]) is None
