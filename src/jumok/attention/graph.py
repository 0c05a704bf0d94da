"""Attention as a graph: tokens are nodes, and a weight is an arrow from who attends to what is attended to.

    Ã_l = residual · I + (1 − residual) · A_l,  rows sum to 1
    roll-out = Ã_L ⋯ Ã_2 Ã_1                             Abnar & Zuidema 2020, section 3, attention rollout

A layer's weights speak of the layer below, where every place has already mixed in the others. The roll-out
follows all paths through the layers down to the input tokens. All is numpy; torch tensors are taken too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import RecipeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from networkx import DiGraph  # type: ignore[import-untyped]
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["attention_graph", "roll_out"]


def attention_graph(
    weights: NDArray[Any] | Tensor, queries: Sequence[str], keys: Sequence[str], least: float = 0.05
) -> DiGraph:
    """The graph of one map of weights (query, key); weights below `least`, and those of 0, have no arrow.

    Nodes are ("query", 0), ("query", 1) … and ("key", 0) …, because a word may stand twice in a sentence,
    and in self-attention on both sides. They carry `label`, `side` and `place`, arrows their `weight`.
    """
    try:
        import networkx
    except ImportError as error:
        raise UnsupportedError(
            'A graph of attention needs networkx, which is not installed. Do: pip install "jumok[graph]"'
        ) from error
    array = _as_array(weights)  # (query, key)
    if array.shape != (len(queries), len(keys)):
        raise UnsupportedError(
            f"A graph of {len(queries)} queries and {len(keys)} keys shows one map of weights (query, key). "
            f"Received the shape {array.shape}. Choose a layer and a head, or average over them, first."
        )
    graph = networkx.DiGraph()
    for side, labels in (("query", queries), ("key", keys)):
        for place, label in enumerate(labels):
            graph.add_node((side, place), label=label, side=side, place=place)
    for query, key in np.argwhere((array >= least) & (array > 0)).tolist():
        graph.add_edge(("query", query), ("key", key), weight=float(array[query, key]))
    return graph


def roll_out(layers: Sequence[NDArray[Any] | Tensor], residual: float = 0.5) -> NDArray[np.float64]:
    """How much of each input token arrives at each place of the last layer, (n, n); rows sum to 1.

    `layers` are the weights of self-attention from the first layer to the last, (head, n, n) or (n, n);
    heads are averaged. `residual` is the share of a place that the residual connection carries past the
    attention: 0.5 in the paper, 0 for the product of the weights alone.
    """
    if not 0 <= residual <= 1:
        raise RecipeError(f"The residual's share must be between 0 and 1. Received: {residual}.")
    averaged = [_one_head(_as_array(layer)) for layer in layers]
    shapes = {layer.shape for layer in averaged}
    if len(shapes) != 1:
        raise UnsupportedError(
            "A roll-out needs one layer or more, all over the same tokens. Received the shapes: "
            f"{', '.join(map(str, sorted(shapes))) or 'no layer'}."
        )
    identity = np.eye(len(averaged[0]))
    flow = identity
    for layer in averaged:
        mixed = residual * identity + (1 - residual) * layer
        total = mixed.sum(axis=1, keepdims=True)
        # A row is all 0 only where a token attends to nothing and no residual passes it by.
        flow = (mixed / np.where(total > 0, total, 1.0)) @ flow  # (place in this layer, input token)
    return flow


def _as_array(weights: NDArray[Any] | Tensor) -> NDArray[np.float64]:
    """Numpy's view of an array or a tensor, wherever it is and whether or not it has a gradient."""
    if not isinstance(weights, np.ndarray) and hasattr(weights, "detach"):
        weights = weights.detach().double().cpu().numpy()
    return np.asarray(weights, dtype=np.float64)


def _one_head(layer: NDArray[np.float64]) -> NDArray[np.float64]:
    averaged: NDArray[np.float64] = layer.mean(axis=0) if layer.ndim == 3 else layer
    if averaged.ndim != 2 or averaged.shape[0] != averaged.shape[1]:
        raise UnsupportedError(
            "A roll-out follows self-attention, whose weights are (head, n, n) or (n, n). Received the shape "
            f"{layer.shape}. Of a batch, take one sentence; cross-attention has no roll-out."
        )
    return averaged
