"""Attention as a look-up: a query is put to a database, and every entry answers as far as its key is near.

    D = {(k₁, v₁) … (kₙ, vₙ)},   context = Σᵢ α(q, kᵢ) vᵢ        Zhang et al., Dive into Deep Learning, 11.1

The weights α come from a similarity, of which there are two kinds:

    a score a(q, k)    α = softmax of the scores              `dot`, `scaled_dot`, `AdditiveScore`
    a kernel κ(q, k)   α = κ(q, kᵢ) / Σⱼ κ(q, kⱼ)             `gaussian`, `boxcar`, `triangular`, …

A query that is one of the keys gets mostly that key's value; one that is missing gets its neighbours' values.
Unlike a dictionary, all of it has a gradient. Kernels are called attention pooling, or Nadaraya–Watson
regression (1964), from long before networks; there nothing is learned, and the data are the parameters.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from jumok.attention.additive import Additive
from jumok.attention.contract import HeadShape
from jumok.attention.masks import renormalised
from jumok.errors import RecipeError, UnsupportedError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

__all__ = [
    "NAMES",
    "AdditiveScore",
    "Answer",
    "Database",
    "Gaussian",
    "Kernel",
    "Score",
    "Similarity",
    "attend",
    "boxcar",
    "constant",
    "dot",
    "epanechnikov",
    "gaussian",
    "look_up",
    "nadaraya_watson",
    "name_database",
    "name_vector",
    "scaled_dot",
    "triangular",
]


@dataclass(frozen=True, slots=True)
class Database:
    """Keys and the value of each: numbers, vectors, or tensors of any one shape."""

    keys: Tensor  # (entry, width)
    values: Tensor  # (entry, …)

    def __post_init__(self) -> None:
        if self.keys.dim() != 2 or self.values.dim() < 1 or len(self.keys) != len(self.values):
            raise UnsupportedError(
                "A database needs keys (entry, width) and as many values (entry, …). Received keys "
                f"{tuple(self.keys.shape)} and values {tuple(self.values.shape)}."
            )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a database answers: the pooled values, and the weight that each entry had in them."""

    context: Tensor  # (…) the shape of a value; of several queries (query, …)
    weights: Tensor  # (entry,); of several queries (query, entry)


class Similarity(Protocol):
    """How near queries are to keys, and the weights that follow from it."""

    def __call__(self, query: Tensor, keys: Tensor, /) -> Tensor:
        """The similarities themselves, (query, key)."""
        ...

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        """Weights (query, key) that sum to 1 in each row, or to 0 where no key is near."""
        ...


# --- Scores -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Score:
    """Any real number for each query and key, which the softmax turns into weights."""

    compare: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, query: Tensor, keys: Tensor, /) -> Tensor:
        _require_one_width(query, keys)
        return self.compare(query, keys)

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return torch.softmax(self(query, keys), dim=-1)


dot = Score(lambda query, keys: query @ keys.T)
"""qᵀk: large for long vectors too, not only for near ones."""

scaled_dot = Score(lambda query, keys: query @ keys.T / math.sqrt(query.shape[-1]))
"""qᵀk / √d, so that the softmax does not saturate as d grows. Vaswani et al. 2017, eq. 1."""


class AdditiveScore(nn.Module):
    """vᵀ tanh(W_q q + W_k k): a learned score, also for queries and keys of different widths.

    Bahdanau, Cho & Bengio 2015, appendix A.1.2. `units` is the width of the hidden layer.
    """

    def __init__(self, *, query_width: int, key_width: int, units: int) -> None:
        super().__init__()
        self.additive = Additive(HeadShape(1, query=query_width, key=key_width), units=units)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        prepared = self.additive.prepare_keys(keys[None, None])  # (1, 1, key, units)
        return self.additive.scores(query[None, None], prepared)[0, 0]  # (query, key)

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return torch.softmax(self(query, keys), dim=-1)


# --- Kernels ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A number ≥ 0 that falls with the distance ‖q − k‖, which is measured in units of `width`.

    A kernel that ends somewhere may reach no key at all. Such a query gets weights 0 and context 0.
    """

    of_distance: Callable[[Tensor], Tensor]
    width: float = 1.0

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise RecipeError(f"A kernel's width must be above 0. Received: {self.width}.")

    def __call__(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return self.of_distance(self.distances(query, keys))

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        kernel = self(query, keys)
        return renormalised(kernel, kernel > 0)

    def distances(self, query: Tensor, keys: Tensor) -> Tensor:
        """‖q − k‖ / width, (query, key). Where q = k its gradient is taken as 0."""
        _require_one_width(query, keys)
        # By differences: torch's faster way, by a matrix product, loses the digits of small distances.
        apart = torch.cdist(query, keys, compute_mode="donot_use_mm_for_euclid_dist")
        return apart / self.width


class Gaussian(Kernel):
    """exp(−d² / 2) never ends: its weights are a softmax, which far from every key does not become 0 / 0."""

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return torch.softmax(-self.distances(query, keys).square() / 2, dim=-1)


def _flat(distance: Tensor) -> Tensor:
    """0 at every distance: what it is added to has the gradient 0 there, rather than none."""
    return distance.clamp(max=0.0)


gaussian = Gaussian(lambda distance: torch.exp(-distance.square() / 2))
"""exp(−d² / 2), with the width as standard deviation."""

boxcar = Kernel(lambda distance: (distance <= 1) + _flat(distance))
"""1 up to a distance of 1, then 0: the mean of the values within reach."""

triangular = Kernel(lambda distance: (1 - distance).clamp(min=0))
"""max(0, 1 − d). Dive into Deep Learning, 11.2, calls this one "Epanechikov"."""

epanechnikov = Kernel(lambda distance: 0.75 * (1 - distance.square()).clamp(min=0))
"""¾ max(0, 1 − d²). Epanechnikov 1969; the one with the smallest mean squared error of a density."""

constant = Kernel(lambda distance: 1 + _flat(distance))
"""1: every query gets the mean of all values."""


# --- The look-up --------------------------------------------------------------------------------------------


def attend(query: Tensor, database: Database, similarity: Similarity = scaled_dot) -> Answer:
    """Σᵢ α(q, kᵢ) vᵢ for one query (width,) or several (query, width)."""
    if not query.is_floating_point() or query.dtype != database.keys.dtype:
        raise UnsupportedError(
            "Queries and keys are compared as floating-point numbers of one precision. Received queries of "
            f"{query.dtype} and keys of {database.keys.dtype}. Convert them first, as with `.float()`."
        )
    several = query.reshape(-1, query.shape[-1])  # (query, width)
    weights = similarity.weights(several, database.keys)  # (query, entry)
    context = torch.tensordot(weights, database.values.to(weights.dtype), dims=1)  # (query, …)
    before = query.shape[:-1]
    return Answer(context.reshape(before + context.shape[1:]), weights.reshape(before + weights.shape[1:]))


def nadaraya_watson(
    x_train: Tensor, y_train: Tensor, x: Tensor, kernel: Kernel = gaussian, width: float = 1.0
) -> Tensor:
    """f(x) = Σᵢ yᵢ κ(x, xᵢ) / Σᵢ κ(x, xᵢ), for numbers (point,) or vectors (point, width).

    Nadaraya 1964, Watson 1964. A small `width` follows the noise, a large one flattens the curve.
    """
    keys, query = (points[:, None] if points.dim() == 1 else points for points in (x_train, x))
    return attend(query, Database(keys, y_train), replace(kernel, width=width)).context


def _require_one_width(query: Tensor, keys: Tensor) -> None:
    if query.shape[-1] != keys.shape[-1]:
        raise UnsupportedError(
            f"Queries of width {query.shape[-1]} cannot be compared with keys of width {keys.shape[-1]} by "
            "this similarity. AdditiveScore(query_width=…, key_width=…, units=…) projects both to one width."
        )


# --- The worked example: first names by family name ---------------------------------------------------------

NAMES: tuple[tuple[str, str], ...] = (
    ("Zhang", "Aston"),
    ("Lipton", "Zachary"),
    ("Li", "Mu"),
    ("Smola", "Alex"),
    ("Hu", "Rachel"),
    ("Werness", "Brent"),
)
"""Dive into Deep Learning, 11.1: family names are the keys, first names the values."""

GRAM_BUCKETS = 1024


def name_vector(name: str) -> Tensor:
    """A name as the direction of its counts of 2- and 3-grams, (1024,): names that share letters are near.

    "Li" is read as "<li>", so that beginnings and ends count as letters do. An n-gram's place is a hash, as
    in fastText (Bojanowski et al. 2017, section 3.2), so that no table of n-grams is needed.
    """
    marked = f"<{name.casefold()}>"
    vector = torch.zeros(GRAM_BUCKETS)
    for size in (2, 3):
        for start in range(len(marked) - size + 1):
            gram = marked[start : start + size]
            vector[zlib.crc32(gram.encode()) % GRAM_BUCKETS] += 1
    return nn.functional.normalize(vector, dim=0)


def name_database(names: Iterable[tuple[str, str]] = NAMES) -> Database:
    """The names' vectors as keys. Value i is the i-th unit vector, so a context says each name's share."""
    vectors = [name_vector(key) for key, _ in names]
    if not vectors:
        raise RecipeError("A database of names needs one name or more. Received none.")
    return Database(torch.stack(vectors), torch.eye(len(vectors)))


def look_up(name: str, without: Collection[str] = ()) -> str:
    """The first name with the largest weight for a family name; `without` leaves family names out.

    `look_up("Li")` is "Mu". `look_up("Li", without=["Li"])` is "Zachary": the nearest key left is "Lipton".
    A name that shares nothing with any key is equally far from all, and the first of them answers.
    """
    known = [key for key, _ in NAMES]
    for key in without:
        if key not in known:
            raise RecipeError(
                f'There is no name "{key}" to leave out.{nearest(key, known)} There are: {", ".join(known)}.'
            )
    left = [entry for entry in NAMES if entry[0] not in without]
    if not left:
        raise RecipeError(f'Nothing is left to look "{name}" up in: `without` names every key.')
    answer = attend(name_vector(name), name_database(left), dot)
    return left[int(answer.context.argmax())][1]
