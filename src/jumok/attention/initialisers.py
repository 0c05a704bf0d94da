"""Initial values of the projections of attention, by name.

    xavier   variance 2 / (inputs + outputs)                     Glorot & Bengio 2010, eq. 16
    he       variance 2 / inputs                                 He et al. 2015, eq. 10
    lecun    variance 1 / inputs                                 LeCun et al. 1998, section 4.6

The distributions are those of Keras, which has other names: glorot_uniform for "xavier-uniform",
random_normal for "normal", random_uniform for "uniform". The normal distributions of the three above are
truncated at ±2 standard deviations of the untruncated distribution. After truncation they have the variances
above. "normal", "truncated-normal" and "uniform" do not depend on the size of the matrix. "normal" has the
standard deviation 0.05. "truncated-normal" is the same distribution, truncated at ±0.1. "uniform" is
within ±0.05.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from torch import Tensor, nn

from jumok.errors import RecipeError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable

Initialiser: TypeAlias = "Callable[[Tensor], object]"
"""Overwrites a matrix (output, input), or a vector of biases, in place."""

FIXED_SCALE = 0.05
# The standard deviation of a normal distribution of variance 1 that is truncated at ±2.
TRUNCATED_DEVIATION = 0.87962566103423978


def _truncated_normal(parameter: Tensor, deviation: float) -> None:
    nn.init.trunc_normal_(parameter, std=deviation, a=-2 * deviation, b=2 * deviation)


def _fans(parameter: Tensor) -> tuple[int, int]:
    """The inputs and outputs of a matrix (output, input). For a vector, both are its length, as in Keras."""
    return parameter.shape[-1], parameter.shape[0]


def _scaled(fan: Callable[[int, int], float], *, scale: float = 1.0, normal: bool = False) -> Initialiser:
    """A distribution of variance scale / fan(inputs, outputs)."""

    def fill(parameter: Tensor) -> None:
        deviation = math.sqrt(scale / max(1.0, fan(*_fans(parameter))))
        if normal:
            _truncated_normal(parameter, deviation / TRUNCATED_DEVIATION)
        else:
            limit = math.sqrt(3) * deviation
            nn.init.uniform_(parameter, -limit, limit)

    return fill


def _orthogonal(parameter: Tensor) -> None:
    if parameter.dim() < 2:
        raise RecipeError('"orthogonal" initialises matrices. Received: a vector of biases. Use "zeros".')
    nn.init.orthogonal_(parameter)


def _mean_fan(inputs: int, outputs: int) -> float:
    return (inputs + outputs) / 2


INITIALISERS: dict[str, Initialiser] = {
    "xavier-uniform": _scaled(_mean_fan),
    "xavier-normal": _scaled(_mean_fan, normal=True),
    "he-uniform": _scaled(lambda inputs, _: inputs, scale=2.0),
    "he-normal": _scaled(lambda inputs, _: inputs, scale=2.0, normal=True),
    "lecun-uniform": _scaled(lambda inputs, _: inputs),
    "lecun-normal": _scaled(lambda inputs, _: inputs, normal=True),
    "orthogonal": _orthogonal,
    "normal": lambda parameter: nn.init.normal_(parameter, std=FIXED_SCALE),
    "truncated-normal": lambda parameter: _truncated_normal(parameter, FIXED_SCALE),
    "uniform": lambda parameter: nn.init.uniform_(parameter, -FIXED_SCALE, FIXED_SCALE),
    "zeros": nn.init.zeros_,
    "ones": nn.init.ones_,
}


def find_initialiser(name: str) -> Initialiser:
    """Return the initialiser of this name, or raise a `RecipeError` that suggests the nearest name."""
    if name not in INITIALISERS:
        nearest = suggest(name.replace("_", "-").replace("glorot", "xavier"), INITIALISERS)
        raise RecipeError(
            f'There is no initialiser called "{name}".{nearest} There are: {", ".join(INITIALISERS)}.'
        )
    return INITIALISERS[name]
