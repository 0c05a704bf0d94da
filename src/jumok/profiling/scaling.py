"""Why scores are divided by √d: the experiment behind a footnote.

Vaswani et al. 2017, section 3.2.1, footnote 4: if the components of q and k have mean 0 and variance 1, q·k
has mean 0 and variance d. The softmax of large scores puts nearly all weight on one key, and its gradient is
then nearly 0. Scores that are divided by √d have variance 1 for every d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

WIDTHS = (2, 8, 32, 100, 512)
QUERIES, KEYS = 1024, 16

EXAMPLES = ((1.1, -0.8, -1.7), (9.0, -11.0, 7.0))
"""Scores with a sample variance of about 2, and of about 120."""


@dataclass(frozen=True, slots=True)
class WeightSpread:
    """How evenly the weights of a query are distributed; both numbers are means over many queries."""

    entropy: float  # in nats: ln 16 if 16 weights are equal, 0 if one key has all the weight
    largest: float  # the largest weight


@dataclass(frozen=True, slots=True)
class Scaling:
    """Products and weights of unit normal queries and keys of one width."""

    width: int
    variance: float  # of q·k
    plain: WeightSpread  # softmax(q·k)
    scaled: WeightSpread  # softmax(q·k / √d)


def compare_widths(widths: tuple[int, ...] = WIDTHS, *, seed: int = 0) -> list[Scaling]:
    """Run the experiment for each width: `QUERIES` queries with `KEYS` keys each."""
    generator = torch.Generator().manual_seed(seed)
    scalings = []
    for width in widths:
        queries = torch.randn(QUERIES, width, 1, generator=generator)
        keys = torch.randn(QUERIES, KEYS, width, generator=generator)
        products = (keys @ queries).squeeze(-1)  # (query, key)
        plain, scaled = _weight_spread(products), _weight_spread(products / math.sqrt(width))
        scalings.append(Scaling(width, float(products.var()), plain, scaled))
    return scalings


def _weight_spread(scores: Tensor) -> WeightSpread:
    weights = torch.softmax(scores, dim=-1)
    entropy = torch.special.entr(weights).sum(dim=-1)  # 0 · ln 0 is 0
    return WeightSpread(float(entropy.mean()), float(weights.amax(dim=-1).mean()))


def softmax_examples() -> list[dict[str, list[float]]]:
    """Return three small scores with their softmax, and three large scores with their softmax."""
    return [
        {"scores": list(scores), "weights": torch.softmax(torch.tensor(scores), dim=-1).tolist()}
        for scores in EXAMPLES
    ]
