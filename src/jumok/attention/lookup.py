"""Attention as a look-up: every entry of a database contributes according to how near its key is to a query.

    D = {(k₁, v₁) … (kₙ, vₙ)},   context = Σᵢ α(q, kᵢ) vᵢ        Zhang et al., Dive into Deep Learning, 11.1

The weights α come from a similarity of one of two kinds:

    a score a(q, k)    α = softmax of the scores              `dot`, `scaled_dot`, `AdditiveScore`
    a kernel κ(q, k)   α = κ(q, kᵢ) / Σⱼ κ(q, kⱼ)             `gaussian`, `boxcar`, `triangular`, …

A dictionary returns the value of the key that equals the query. A look-up returns a mixture of the values:
the nearer a key is to the query, the more its value weighs. The mixture is differentiable. A look-up with a
kernel is attention pooling, or Nadaraya–Watson regression (1964). It has no learned parameters: the weights
follow from the query and the keys alone.
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
from jumok.attention.masks import mask_and_renormalise
from jumok.errors import RecipeError, UnsupportedError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


@dataclass(frozen=True, slots=True)
class Database:
    """Keys, and one value per key. Values may be numbers, vectors or tensors, all of the same shape."""

    keys: Tensor  # (entry, width)
    values: Tensor  # (entry, …)

    def __post_init__(self) -> None:
        if self.keys.dim() != 2 or self.values.dim() < 1 or len(self.keys) != len(self.values):
            raise UnsupportedError(
                "A database needs keys (entry, width) and as many values (entry, …). Received: keys "
                f"{tuple(self.keys.shape)} and values {tuple(self.values.shape)}."
            )


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a look-up: the weighted sum of the values, and the weight of each entry."""

    context: Tensor  # (…) the shape of a value; for several queries (query, …)
    weights: Tensor  # (entry,); for several queries (query, entry)


class Similarity(Protocol):
    """How near queries are to keys, as a function, and the weights that follow."""

    def __call__(self, query: Tensor, keys: Tensor, /) -> Tensor:
        """The similarities themselves, (query, key)."""
        ...

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        """Weights (query, key) that sum to 1 in each row, or to 0 if no key is near."""
        ...


# --- Scores -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Score:
    """A real number per query and key, which the softmax turns into weights."""

    compare: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, query: Tensor, keys: Tensor, /) -> Tensor:
        _require_same_width(query, keys)
        return self.compare(query, keys)

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return torch.softmax(self(query, keys), dim=-1)


dot = Score(lambda query, keys: query @ keys.T)
"""qᵀk: large for near vectors, and also for long vectors."""

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
    """A number ≥ 0 that does not rise with the distance ‖q − k‖, which is measured in units of `width`.

    If the kernel is 0 beyond some distance, a query far from every key gets weights 0 and context 0.
    """

    of_distance: Callable[[Tensor], Tensor]
    width: float = 1.0

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise RecipeError(f"The width of a kernel must be greater than 0. Received: {self.width}.")

    def __call__(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return self.of_distance(self.distances(query, keys))

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        kernel = self(query, keys)
        return mask_and_renormalise(kernel, kernel > 0)

    def distances(self, query: Tensor, keys: Tensor) -> Tensor:
        """‖q − k‖ / width, (query, key). The gradient at q = k is taken as 0."""
        _require_same_width(query, keys)
        # Computed from differences: torch's faster method, a matrix product, loses digits of small distances.
        distances = torch.cdist(query, keys, compute_mode="donot_use_mm_for_euclid_dist")
        return distances / self.width


class Gaussian(Kernel):
    """exp(−d² / 2). The weights are computed as a softmax, which never becomes 0 / 0 far from every key."""

    def weights(self, query: Tensor, keys: Tensor, /) -> Tensor:
        return torch.softmax(-self.distances(query, keys).square() / 2, dim=-1)


def _zero(distance: Tensor) -> Tensor:
    """0 at every distance, but differentiable, so that a constant kernel has a gradient: 0."""
    return distance.clamp(max=0.0)


gaussian = Gaussian(lambda distance: torch.exp(-distance.square() / 2))
"""exp(−d² / 2), with the width as standard deviation."""

boxcar = Kernel(lambda distance: (distance <= 1) + _zero(distance))
"""1 up to a distance of 1, then 0: the mean of the values within that distance."""

triangular = Kernel(lambda distance: (1 - distance).clamp(min=0))
"""max(0, 1 − d). Dive into Deep Learning, 11.2, calls this kernel "Epanechikov"."""

epanechnikov = Kernel(lambda distance: 0.75 * (1 - distance.square()).clamp(min=0))
"""¾ max(0, 1 − d²). Epanechnikov 1969; minimises the mean squared error of a density estimate."""

constant = Kernel(lambda distance: 1 + _zero(distance))
"""1 at every distance: every query gets the mean of all values."""


# --- The look-up --------------------------------------------------------------------------------------------


def attend(query: Tensor, database: Database, similarity: Similarity = scaled_dot) -> Answer:
    """Σᵢ α(q, kᵢ) vᵢ for one query (width,) or several (query, width)."""
    if not query.is_floating_point() or query.dtype != database.keys.dtype:
        raise UnsupportedError(
            "Queries and keys must be floating-point numbers of the same precision. Received: queries of "
            f"{query.dtype} and keys of {database.keys.dtype}. Convert them first, e.g. with `.float()`."
        )
    queries = query.reshape(-1, query.shape[-1])  # (query, width)
    weights = similarity.weights(queries, database.keys)  # (query, entry)
    context = torch.tensordot(weights, database.values.to(weights.dtype), dims=1)  # (query, …)
    shape = query.shape[:-1]
    return Answer(context.reshape(shape + context.shape[1:]), weights.reshape(shape + weights.shape[1:]))


def nadaraya_watson(
    x_train: Tensor, y_train: Tensor, x: Tensor, kernel: Kernel = gaussian, width: float = 1.0
) -> Tensor:
    """f(x) = Σᵢ yᵢ κ(x, xᵢ) / Σᵢ κ(x, xᵢ), for numbers (point,) or vectors (point, width).

    Nadaraya 1964, Watson 1964. `width` replaces the width of the kernel. A small width follows the noise, a
    large one flattens the curve.
    """
    keys, query = (points[:, None] if points.dim() == 1 else points for points in (x_train, x))
    return attend(query, Database(keys, y_train), replace(kernel, width=width)).context


def _require_same_width(query: Tensor, keys: Tensor) -> None:
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
    """A name as its normalised counts of 2- and 3-grams, (1024,): names that share n-grams are near.

    "Li" is read as "<li>", so that n-grams include the start and the end. The index of an n-gram is a hash,
    as in fastText (Bojanowski et al. 2017, section 3.2), so no table of n-grams is needed.
    """
    marked = f"<{name.casefold()}>"
    vector = torch.zeros(GRAM_BUCKETS)
    for size in (2, 3):
        for start in range(len(marked) - size + 1):
            gram = marked[start : start + size]
            vector[zlib.crc32(gram.encode()) % GRAM_BUCKETS] += 1
    return nn.functional.normalize(vector, dim=0)


def name_database(names: Iterable[tuple[str, str]] = NAMES) -> Database:
    """Return the database of names (family name, first name). Its keys are the vectors of the family names.

    Value i is the i-th unit vector, so that a context is the vector of weights.
    """
    vectors = [name_vector(key) for key, _ in names]
    if not vectors:
        raise RecipeError("A database of names needs at least one name. Received: none.")
    return Database(torch.stack(vectors), torch.eye(len(vectors)))


def look_up(name: str, without: Collection[str] = ()) -> str:
    """Return the first name that belongs to the known family name with the largest weight for `name`.

    Family names in `without` are left out.

    `look_up("Li")` is "Mu". `look_up("Li", without=["Li"])` is "Zachary": the nearest remaining key is
    "Lipton". If the name shares no n-gram with any key, all keys are equally far, and the result is the first
    name of the first remaining entry.
    """
    known = [key for key, _ in NAMES]
    for key in without:
        if key not in known:
            raise RecipeError(
                f'There is no name "{key}" to leave out.{suggest(key, known)} There are: {", ".join(known)}.'
            )
    remaining = [entry for entry in NAMES if entry[0] not in without]
    if not remaining:
        raise RecipeError(f'There is no name left to look up "{name}" in: `without` contains every key.')
    answer = attend(name_vector(name), name_database(remaining), dot)
    return remaining[int(answer.context.argmax())][1]
