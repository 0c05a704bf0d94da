import sys

import numpy as np
import pytest
import torch

from jumok.attention.graph import attention_graph, roll_out
from jumok.errors import DataError, RecipeError, UnsupportedError


def test_the_graph_of_a_two_by_three_map_equals_one_made_by_hand():
    weights = np.array([[0.7, 0.26, 0.04], [0.0, 0.05, 0.95]])
    graph = attention_graph(weights, ["나는", "간다"], ["I", "go", "go"])
    assert dict(graph.nodes(data="label")) == {
        ("query", 0): "나는",
        ("query", 1): "간다",
        ("key", 0): "I",
        ("key", 1): "go",
        ("key", 2): "go",
    }
    assert set(graph.edges(data="weight")) == {
        (("query", 0), ("key", 0), 0.7),
        (("query", 0), ("key", 1), 0.26),
        (("query", 1), ("key", 1), 0.05),
        (("query", 1), ("key", 2), 0.95),
    }
    assert graph.is_directed()
    assert [data["side"] for _, data in graph.nodes(data=True)] == ["query"] * 2 + ["key"] * 3
    assert graph.nodes["key", 2]["position"] == 2


def test_min_weight_decides_which_edges_exist_and_a_weight_of_zero_has_no_edge():
    weights = torch.tensor([[0.0, 0.01, 0.99]], requires_grad=True)
    count = {
        min_weight: attention_graph(weights, ["a"], ["a", "a", "a"], min_weight).number_of_edges()
        for min_weight in (0.0, 0.05, 1.0)
    }
    assert count == {0.0: 2, 0.05: 1, 1.0: 0}


def test_a_graph_of_several_heads_is_refused():
    with pytest.raises(DataError, match=r"\(4, 1, 2\).*average"):
        attention_graph(np.zeros((4, 1, 2)), ["a"], ["b", "c"])


def test_without_networkx_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(UnsupportedError, match=r'pip install "jumok\[graph\]"'):
        attention_graph(np.ones((1, 1)), ["a"], ["b"])


def test_the_roll_out_of_two_layers_equals_numbers_computed_by_hand():
    """Ã is the mean of a layer's weights and the identity.

    Ã₁ = [[1, 0], [¼, ¾]], Ã₂ = [[½, ½], [0, 1]], so Ã₂ Ã₁ = [[⅝, ⅜], [¼, ¾]].
    """
    first = np.array([[1.0, 0.0], [0.5, 0.5]])
    second = np.array([[0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(roll_out([first, second]), [[0.625, 0.375], [0.25, 0.75]])
    np.testing.assert_allclose(roll_out([first, second], residual=0), second @ first)
    np.testing.assert_allclose(roll_out([first, second], residual=1), np.eye(2))


def test_heads_are_averaged_and_tensors_are_accepted():
    torch.manual_seed(0)
    layers = [torch.randn(3, 4, 4, requires_grad=True).softmax(-1) for _ in range(5)]
    flow = roll_out(layers)
    np.testing.assert_allclose(
        flow, roll_out([layer.mean(0).detach().numpy() for layer in layers]), atol=1e-6
    )
    np.testing.assert_allclose(flow.sum(axis=1), np.ones(4))
    assert flow.min() >= 0


def test_the_roll_out_of_causal_layers_is_causal():
    random = np.random.default_rng(0)
    layers = [np.tril(random.random((6, 6))) for _ in range(3)]
    flow = roll_out([layer / layer.sum(axis=1, keepdims=True) for layer in layers])
    assert np.all(np.triu(flow, 1) == 0)
    np.testing.assert_allclose(flow.sum(axis=1), np.ones(6))


def test_rows_are_renormalised_and_a_row_of_zeros_has_only_its_residual():
    weights = np.array([[0.0, 0.0], [0.0, 0.5]])
    np.testing.assert_allclose(roll_out([weights]), np.eye(2))
    np.testing.assert_allclose(roll_out([weights], residual=0), [[0, 0], [0, 1]])


def test_roll_out_refuses_wrong_shapes_an_empty_list_and_a_residual_above_one():
    with pytest.raises(DataError, match=r"\(2, 3\).*cross-attention"):
        roll_out([np.ones((2, 3))])
    with pytest.raises(DataError, match=r"\(2, 2\), \(3, 3\)"):
        roll_out([np.eye(3), np.eye(2)])
    with pytest.raises(DataError, match="no layer"):
        roll_out([])
    with pytest.raises(RecipeError, match=r"1\.5"):
        roll_out([np.eye(2)], residual=1.5)
