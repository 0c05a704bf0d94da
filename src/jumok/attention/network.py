"""A score by any small network, which maps a concatenated query and key to one number.

    score(q, k) = network([q; k])                                Bahdanau et al. 2015, section 3.1: "a(s, h)"

The paper only requires "a" to be a feed-forward network that is trained with the rest. A recipe sets the
number and the width of its hidden layers. In Python, the network can be any module that maps (…, query width
+ key width) to (…, 1). With one hidden layer, tanh and no bias, the score is the additive score; the hidden
layers of a recipe's network have biases. The network receives one query and one key, never their neighbours.
Therefore a masked key stays hidden, and cached steps give the same scores as a pass over the whole sentence.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.attention.additive import compare_in_parts
from jumok.attention.contract import Supports
from jumok.attention.scored import SoftmaxMechanism
from jumok.config.recipe import Settings

if TYPE_CHECKING:
    from jumok.attention.contract import HeadShape

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}


class NetworkSettings(Settings):
    layers: int = Field(2, ge=1, le=16)
    """Hidden layers of the network."""
    units: int | None = Field(None, ge=1)
    """Width of each hidden layer; default: the width of the keys."""
    activation: Literal["tanh", "relu", "gelu"] = "tanh"
    """The function after each hidden layer."""


class NetworkScore(SoftmaxMechanism):
    """A network compares every query with every key. All heads use the same network.

    `network` replaces the network that `layers`, `units` and `activation` describe. It must score every pair
    of query and key independently.
    """

    supports = Supports(widths=True)

    def __init__(
        self,
        shape: HeadShape,
        *,
        layers: int = 2,
        units: int | None = None,
        activation: str = "tanh",
        network: nn.Module | None = None,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        units = shape.key if units is None else units
        # Width of the widest layer, input included. Layers of the caller's `network` may be wider.
        self.largest_width = max(units, shape.query + shape.key)
        widths = [shape.query + shape.key, *[units] * layers]
        self.network = make_network(widths, activation) if network is None else network

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        elements = keys.shape[0] * keys.shape[1] * keys.shape[2] * self.largest_width
        return compare_in_parts(self._compare, query, keys, elements_per_query=elements)

    def _compare(self, query: Tensor, keys: Tensor) -> Tensor:
        shape = (*query.shape[:3], keys.shape[2])  # (batch, head, query, key)
        sides = (query[:, :, :, None].expand(*shape, -1), keys[:, :, None].expand(*shape, -1))
        scores: Tensor = self.network(torch.cat(sides, dim=-1))
        return scores.squeeze(-1)


def make_network(widths: list[int], activation: str) -> nn.Sequential:
    """A network whose input and hidden layers have these widths; its output has width 1."""
    hidden: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        hidden += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    network = nn.Sequential(*hidden, nn.Linear(widths[-1], 1, bias=False))
    for layer in network:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network
