"""Attention as a graph: tokens are nodes, and weights are edges from a query to the keys it attends to.

    Ã_l = residual · I + (1 − residual) · A_l,  rows sum to 1
    roll-out = Ã_L ⋯ Ã_2 Ã_1                             Abnar & Zuidema 2020, section 3, attention rollout

A layer's weights are over the positions of the layer below, each of which is already a mixture. The roll-out
follows all paths through the layers down to the input tokens. Both functions compute with numpy, and accept
torch tensors too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError, RecipeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from networkx import DiGraph  # type: ignore[import-untyped]
    from numpy.typing import NDArray
    from torch import Tensor


def attention_graph(
    weights: NDArray[Any] | Tensor, queries: Sequence[str], keys: Sequence[str], min_weight: float = 0.05
) -> DiGraph:
    """Return the graph of one map of weights (query, key), with an edge per weight ≥ `min_weight` and > 0.

    Nodes are ("query", 0), ("query", 1) … and ("key", 0) …, because a word may occur twice in a sentence, and
    in self-attention on both sides. Nodes have the attributes `label`, `side` and `position`; edges have
    `weight`.
    """
    try:
        import networkx  # optional
    except ImportError as error:
        raise UnsupportedError(
            'A graph of attention needs networkx, which is not installed. Run: pip install "jumok[graph]"'
        ) from error
    array = _as_array(weights)  # (query, key)
    if array.shape != (len(queries), len(keys)):
        raise DataError(
            f"A graph of {len(queries)} queries and {len(keys)} keys needs weights (query, key). "
            f"Received: shape {array.shape}. Choose a layer and a head, or average over them, first."
        )
    graph = networkx.DiGraph()
    for side, labels in (("query", queries), ("key", keys)):
        for position, label in enumerate(labels):
            graph.add_node((side, position), label=label, side=side, position=position)
    for query, key in np.argwhere((array >= min_weight) & (array > 0)).tolist():
        graph.add_edge(("query", query), ("key", key), weight=float(array[query, key]))
    return graph


def roll_out(layers: Sequence[NDArray[Any] | Tensor], residual: float = 0.5) -> NDArray[np.float64]:
    """Return the share of each input token in each position of the last layer, (position, input token).

    Rows sum to 1. With `residual` 0 they sum to less if paths end at a position whose weights are all 0.
    `layers` are the weights of self-attention from the first layer to the last, (head, n, n) or (n, n);
    heads are averaged. `residual` is the share of a position that the residual connection carries past the
    attention: 0.5 in the paper, 0 for the product of the weights alone.
    """
    if not 0 <= residual <= 1:
        raise RecipeError(f"The share of the residual must be between 0 and 1. Received: {residual}.")
    averaged = [_average_heads(_as_array(layer)) for layer in layers]
    shapes = {layer.shape for layer in averaged}
    if len(shapes) != 1:
        raise DataError(
            "A roll-out needs at least one layer, all over the same tokens. Received: "
            f"{'layers of the shapes ' + ', '.join(map(str, sorted(shapes))) if shapes else 'no layer'}."
        )
    identity = np.eye(len(averaged[0]))
    flow = identity
    for layer in averaged:
        mixed = residual * identity + (1 - residual) * layer
        total = mixed.sum(axis=1, keepdims=True)
        # A row is all 0 only if all weights of its token are 0 and `residual` is 0.
        flow = (mixed / np.where(total > 0, total, 1.0)) @ flow  # (position in this layer, input token)
    return flow


def _as_array(weights: NDArray[Any] | Tensor) -> NDArray[np.float64]:
    """Convert weights to a float64 array. A tensor may be on any device and may have a gradient."""
    if not isinstance(weights, np.ndarray) and hasattr(weights, "detach"):
        weights = weights.detach().double().cpu().numpy()
    return np.asarray(weights, dtype=np.float64)


def _average_heads(layer: NDArray[np.float64]) -> NDArray[np.float64]:
    averaged: NDArray[np.float64] = layer.mean(axis=0) if layer.ndim == 3 else layer
    if averaged.ndim != 2 or averaged.shape[0] != averaged.shape[1]:
        raise DataError(
            "A roll-out needs the weights of self-attention, (head, n, n) or (n, n). Received: shape "
            f"{layer.shape}. Pass one sentence, not a batch; cross-attention alone has no roll-out."
        )
    return averaged
