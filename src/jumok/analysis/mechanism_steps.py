"""The steps from a query and the keys to scores, for each mechanism that has its own steps.

For all other mechanisms, only the scores are shown, if there are any. `trace.py` adds the weights and all
further steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jumok.analysis.steps import Step
from jumok.attention import (
    Additive,
    Efficient,
    LinearAttention,
    LuongGeneral,
    LuongLocalM,
    LuongLocalP,
    LuongLocation,
    Mechanism,
    Restricted,
    ScaledDot,
    SoftmaxMechanism,
)
from jumok.attention.contract import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class HeadInputs:
    """The inputs of an attention layer's heads, and the traced cell: one head, query and key."""

    mechanism: Mechanism[Any]
    queries: Tensor  # (1, head, query, width)
    keys: Tensor  # (1, head, key, width), before the mechanism prepares them
    memory: Any  # what the mechanism prepared from the keys and values
    head: int
    query: int
    key: int
    query_offset: int  # absolute position of the first query
    bias: Tensor | None = None  # (…, head, query, key) added to the scores for positions

    @property
    def query_vector(self) -> Tensor:
        return self.queries[0, self.head, self.query]  # (width,)

    @property
    def key_vector(self) -> Tensor:
        return self.keys[0, self.head, self.key]  # (width,)


def vector(name: str, formula: str, values: Tensor) -> Step:
    return Step(name, formula, values.float().cpu().numpy(), "width")


def over_keys(name: str, formula: str, values: Tensor) -> Step:
    return Step(name, formula, values.float().cpu().numpy(), "keys")


def over_cells(name: str, formula: str, values: Tensor) -> Step:
    return Step(name, formula, values.float().cpu().numpy(), "cells")


def number(name: str, formula: str, value: Tensor | float) -> Step:
    return Step(name, formula, torch.as_tensor(value).float().cpu().numpy(), "number")


def score_steps(inputs: HeadInputs, weights: Tensor) -> Iterator[Step]:
    """Yield the steps from query and key to scores and mask. `weights` is the head's map (query, key)."""
    for kind, mechanism_steps in _STEPS_OF_MECHANISM.items():
        if isinstance(inputs.mechanism, kind):
            yield from mechanism_steps(inputs)
            break
    mechanism = inputs.mechanism
    if isinstance(mechanism, SoftmaxMechanism):
        scores = mechanism.scores(inputs.queries, inputs.memory.keys)[0, inputs.head, inputs.query]
        if inputs.bias is not None:
            bias = inputs.bias.view(-1, *inputs.bias.shape[-2:])[inputs.head, inputs.query]  # (key,)
            yield over_keys("position bias", "what the distance adds", bias)
            scores = scores + bias
        yield over_keys("scores", "e", scores)
        yield number("score", "eᵢ", scores[inputs.key])
        allowed = _allowed(inputs, weights)
        yield over_keys("allowed", "1 if the query may attend to the key, else 0", allowed[inputs.query])
        # To keep pages small, the whole mask is left out if there is one query or if it allows all keys.
        if len(allowed) > 1 and not allowed.all():
            yield over_cells("mask", "allowed, for every query", allowed)


def _allowed(inputs: HeadInputs, weights: Tensor) -> Tensor:
    """Return which keys each query may attend to, (query, key)."""
    if isinstance(inputs.mechanism, Restricted | LuongLocalM | LuongLocalP):
        return weights > 0  # the windows of these mechanisms are not masks, so they are read from the weights
    mechanism: SoftmaxMechanism = inputs.mechanism  # type: ignore[assignment]
    mask = mechanism.allowed(inputs.queries, inputs.memory, Call(query_offset=inputs.query_offset))
    all_allowed = torch.ones(
        *inputs.queries.shape[:2], *weights.shape, dtype=torch.bool, device=weights.device
    )
    return (all_allowed if mask is None else mask & all_allowed)[0, inputs.head]


def _scaled_dot(inputs: HeadInputs) -> Iterator[Step]:
    products = inputs.keys[0, inputs.head] @ inputs.query_vector  # (key,)
    yield over_keys("products", "q · k", products)
    yield number("product", "q · kᵢ", products[inputs.key])
    yield number("scale", "√d", math.sqrt(len(inputs.query_vector)))


def _additive(inputs: HeadInputs) -> Iterator[Step]:
    mechanism: Additive = inputs.mechanism  # type: ignore[assignment]
    query = inputs.query_vector @ mechanism.query[inputs.head]
    key = inputs.memory.keys[0, inputs.head, inputs.key]
    yield vector("query part", "W_q s", query)
    yield vector("key part", "W_k hᵢ", key)
    yield vector("hidden", "tanh(W_q s + W_k hᵢ)", torch.tanh(query + key))
    yield vector("energy", "v", mechanism.score_vectors()[inputs.head])  # stored files have this name for v


def _general(inputs: HeadInputs) -> Iterator[Step]:
    yield vector("projected key", "W hᵢ", inputs.memory.keys[0, inputs.head, inputs.key])


def _location(inputs: HeadInputs) -> Iterator[Step]:
    mechanism: LuongLocation = inputs.mechanism  # type: ignore[assignment]
    yield vector(
        "position weights", "the row of W for this position", mechanism.weight[inputs.head, :, inputs.key]
    )


def _linear(inputs: HeadInputs) -> Iterator[Step]:
    query, keys = (
        torch.nn.functional.elu(vectors) + 1 for vectors in (inputs.query_vector, inputs.keys[0, inputs.head])
    )
    yield vector("query features", "φ(q) = elu(q) + 1", query)
    yield vector("key features", "φ(kᵢ) = elu(kᵢ) + 1", keys[inputs.key])
    yield over_keys("products", "φ(q) · φ(k)", keys @ query)


def _efficient(inputs: HeadInputs) -> Iterator[Step]:
    yield vector("query features", "ρ(q): softmax over the features", inputs.query_vector.softmax(dim=-1))
    visible, formula = inputs.memory.length, "ρ(kᵢ): softmax over the keys"
    if inputs.mechanism.causal:
        visible, formula = inputs.query_offset + inputs.query + 1, f"{formula} up to the query"
    yield vector("key features", formula, inputs.memory.maps(visible)[0, inputs.head, :, inputs.key])


# Subclasses come before their base classes.
_STEPS_OF_MECHANISM: dict[type[Mechanism[Any]], Callable[[HeadInputs], Iterator[Step]]] = {
    ScaledDot: _scaled_dot,
    Additive: _additive,
    LuongLocation: _location,
    LuongGeneral: _general,
    LinearAttention: _linear,
    Efficient: _efficient,
}
