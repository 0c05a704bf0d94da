"""Positions: attention itself sees a bag of vectors, so their order must be told to it, in one of three ways.

Added to the embeddings, (places, width); each is called as `positions(places, first=…)`:

    sinusoidal   PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(…)   Vaswani et al. 2017, section 3.5
    learned      PE(p) = a learned vector                                  Gehring et al. 2017, section 3.1
    none         PE(p) = 0

Turned into queries and keys of each head, so that qᵀk depends on the distance only:

    rotary       (q₁ + i q₂) · exp(i p θ)                                  Su et al. 2021, section 3.2

Added to the scores, (head, query, key) or (batch, head, query, key):

    ALiBi        -mₕ · |distance|                                          Press et al. 2022, section 3
    T5           a learned number a bucket of distances                    Raffel et al. 2020, section 2.1
    Shaw         scale · q · a learned vector a clipped distance           Shaw et al. 2018, eq. 4 and 5

A distance is the place of the key less the place of the query; `first` is the absolute place of query 0. What
heads are told depends on distances alone: padding on the left, which moves a sentence, does not change it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from jumok.errors import RecipeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.attention.contract import HeadShape

__all__ = [
    "POSITIONS",
    "Alibi",
    "HeadPositions",
    "LearnedPositions",
    "NoPositions",
    "PositionKind",
    "RelativeBias",
    "RelativeKeys",
    "Rotary",
    "SinusoidalPositions",
    "alibi_bias",
    "alibi_slopes",
    "relative_buckets",
    "rotate",
    "sinusoids",
]

REACH = 16  # distances of the paper's base model, Shaw et al. 2018, section 4.1

# --- Added to the embeddings --------------------------------------------------------------------------------


def sinusoids(places: int, width: int, *, first: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """The paper's table for the places `first` … `first + places - 1`, (places, width)."""
    place = torch.arange(first, first + places, dtype=torch.float64)[:, None]  # (places, 1)
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width  # (⌈width / 2⌉,)
    angle = place / 10000.0**exponent  # (places, ⌈width / 2⌉)
    both = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (places, ⌈width / 2⌉, 2)
    return both.flatten(1)[:, :width].to(dtype)


class SinusoidalPositions(nn.Module):
    """A table of sinusoids that covers `longest` places; beyond it they are computed on demand.

    The table is a function of its formula, so it is not part of the stored weights. It was rounded to single
    precision: in double precision the formula is asked.
    """

    table: Tensor

    def __init__(self, width: int, *, longest: int = 512) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(longest, width), persistent=False)

    def forward(self, places: int, *, first: int = 0) -> Tensor:
        """The positions `first` … `first + places - 1`, (places, width)."""
        if first + places <= len(self.table) and self.table.dtype != torch.float64:
            return self.table[first : first + places]
        return sinusoids(places, self.width, first=first, dtype=self.table.dtype).to(self.table.device)


class LearnedPositions(nn.Module):
    """A learned vector for each of `longest` places; there is nothing to be said of places beyond."""

    def __init__(self, width: int, longest: int = 512) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(longest, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, places: int, *, first: int = 0) -> Tensor:
        """The positions `first` … `first + places - 1`, (places, width)."""
        longest = len(self.table)
        if first + places > longest:
            raise UnsupportedError(
                f"Learned positions end at {longest} pieces, and {first + places} were asked for. Give "
                "shorter sentences, train with a larger model.places, or use sinusoidal positions."
            )
        return self.table[first : first + places]


class NoPositions(nn.Module):
    """0 at every place: attention over a bag of words, or with the order told to its heads instead."""

    zero: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(1, width), persistent=False)

    def forward(self, places: int, *, first: int = 0) -> Tensor:
        """Zeros, (places, width)."""
        return self.zero.expand(places, -1)


# --- Told to the heads of a self-attention ------------------------------------------------------------------


class HeadPositions(nn.Module):
    """What each head of a self-attention is told of places: by itself, nothing."""

    def turn(self, states: Tensor, first: int) -> Tensor:
        """Queries or keys (batch, head, length, width), from the place `first` on, as they are compared."""
        return states

    def bias(self, query: Tensor, keys: int, first: int, scale: float = 1.0) -> Tensor | None:
        """What is added to the scores of queries (batch, head, query, width) against so many keys.

        `scale` is what the mechanism multiplies its products by, for positions that are products too.
        """
        return None


# --- Turned into queries and keys ---------------------------------------------------------------------------


def rotate(states: Tensor, first: int = 0, base: float = 10000.0) -> Tensor:
    """Queries or keys (batch, head, length, width) turned by the angles of their places, `first` on.

    Column i and column i + width/2 are one point of a plane, turned by p · base^(-2i/width): the half-split
    layout of GPT-NeoX and Llama. The paper pairs neighbours, 2i and 2i + 1 (interleaved); that is the same up
    to the order of columns, so weights trained with one layout are wrong with the other.
    """
    length, width = states.shape[-2:]
    return _turned(states, _turns(length, width, first=first, base=base).to(states))


def _turns(places: int, width: int, *, first: int = 0, base: float = 10000.0) -> Tensor:
    """Cosines and sines of the angles at the places `first` on, (2, places, width / 2)."""
    if width % 2:
        raise UnsupportedError(
            f"Rotary positions turn pairs of columns, and a head of width {width} has an odd one. "
            "Choose a number of heads that leaves an even width, or another kind of positions."
        )
    place = torch.arange(first, first + places, dtype=torch.float64)[:, None]  # (places, 1)
    angle = place / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (places, width / 2)
    return torch.stack([angle.cos(), angle.sin()])


def _turned(states: Tensor, turns: Tensor) -> Tensor:
    cosine, sine = turns
    left, right = states.chunk(2, dim=-1)  # (batch, head, length, width / 2) each
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class Rotary(HeadPositions):
    """Queries and keys turned by `rotate`, from a table of `longest` places; beyond it on demand.

    The table was rounded to single precision: in double precision the formula is asked.
    """

    table: Tensor

    def __init__(self, width: int, *, longest: int = 512) -> None:
        super().__init__()
        self.register_buffer("table", _turns(longest, width).to(torch.float32), persistent=False)

    def turn(self, states: Tensor, first: int) -> Tensor:
        length = states.shape[-2]
        if first + length <= self.table.shape[1] and states.dtype != torch.float64:
            return _turned(states, self.table[:, first : first + length])
        return rotate(states, first)


# --- Added to the scores ------------------------------------------------------------------------------------


def _distances(queries: int, keys: int, first: int, device: torch.device | None) -> Tensor:
    """The place of key j less that of query i, (query, key)."""
    places = torch.arange(first, first + queries, device=device)
    return torch.arange(keys, device=device) - places[:, None]


def alibi_slopes(heads: int) -> list[float]:
    """mₕ = 2^(-8h/heads) for h = 1 … heads, where `heads` is a power of two.

    Otherwise the slopes of the power of two below, then every second one of the power of two above: the rule
    of the paper's code (the paper itself, section 3, speaks of powers of two).
    """
    if heads < 1:
        raise RecipeError(f"ALiBi needs one head or more. Received: {heads}.")
    below = 2 ** (heads.bit_length() - 1)
    slopes = [2 ** (-8 * head / below) for head in range(1, below + 1)]
    between = [2 ** (-8 * head / (2 * below)) for head in range(1, 2 * below + 1, 2)]
    return slopes + between[: heads - below]


def alibi_bias(
    heads: int, queries: int, keys: int, first: int = 0, *, device: torch.device | None = None
) -> Tensor:
    """-mₕ · |distance|, (head, query, key): the farther a key, the lower its score, in each head its own way.

    The paper is causal, and so are its distances; here keys after the query are as far as those before it.
    Nothing is learned, so sentences may be longer than those of training.
    """
    slopes = torch.tensor(alibi_slopes(heads), device=device)[:, None, None]  # (head, 1, 1)
    return -slopes * _distances(queries, keys, first, device).abs()


class Alibi(HeadPositions):
    """`alibi_bias` for so many heads, in which keys after the query fall by the slopes in reverse order.

    The paper is about decoders, where there are no keys after the query. By distance alone an encoder could
    not tell a sentence from its mirror image: so a head that sees only near keys on one side sees far ones on
    the other. One head alone has one slope, and no side.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def bias(self, query: Tensor, keys: int, first: int, scale: float = 1.0) -> Tensor:
        """The bias (head, query, key)."""
        queries = query.shape[2]
        before = alibi_bias(self.heads, queries, keys, first, device=query.device)
        after = _distances(queries, keys, first, query.device) > 0
        return torch.where(after, before.flip(0), before).to(query.dtype)


def relative_buckets(distances: Tensor, buckets: int, farthest: int, *, both_ways: bool) -> Tensor:
    """T5's bucket of each distance: one each while they are small, then wider and wider up to `farthest`.

    With `both_ways` half of the buckets are for keys after the query; without, all of those share bucket 0.
    """
    after = torch.zeros_like(distances)
    if both_ways:
        buckets //= 2
        after = (distances > 0) * buckets
        apart = distances.abs()
    else:
        apart = (-distances).clamp(min=0)
    exact = buckets // 2
    growth = torch.log(apart.clamp(min=exact).double() / exact) / math.log(farthest / exact)
    wide = exact + (growth * (buckets - exact)).long().clamp(max=buckets - exact - 1)
    return after + torch.where(apart < exact, apart, wide)


class RelativeBias(HeadPositions):
    """A learned number for each head and bucket of distances, as in T5. It starts as no bias at all.

    T5 does not divide its scores by √d; its stored biases would need the same here. It shares one table among
    its layers; a layer of this project's models has its own.
    """

    def __init__(self, heads: int, buckets: int = 32, farthest: int = 128, both_ways: bool = True) -> None:
        super().__init__()
        exact = buckets // 4 if both_ways else buckets // 2
        if exact < 1 or farthest <= exact or (both_ways and buckets % 2):
            raise RecipeError(
                "Relative positions need 4 buckets or more (an even number) both ways, 2 or more one way, "
                f"and `farthest` beyond the distances that have a bucket each ({exact}). Received: buckets = "
                f"{buckets}, farthest = {farthest}, both_ways = {both_ways}."
            )
        self.buckets = buckets
        self.farthest = farthest
        self.both_ways = both_ways
        self.table = nn.Parameter(torch.zeros(heads, buckets))

    def forward(self, queries: int, keys: int, first: int = 0) -> Tensor:
        """The bias (head, query, key)."""
        distances = _distances(queries, keys, first, self.table.device)
        return self.table[
            :, relative_buckets(distances, self.buckets, self.farthest, both_ways=self.both_ways)
        ]

    def bias(self, query: Tensor, keys: int, first: int, scale: float = 1.0) -> Tensor:
        bias: Tensor = self(query.shape[2], keys, first)
        return bias


class RelativeKeys(HeadPositions):
    """A learned vector a_r for each head and distance r, clipped to ±reach, which is added to the keys.

    scale · q (k + a_r)ᵀ = scale · q kᵀ + scale · q a_rᵀ: the second part is what `bias` gives. The scale is
    that of the mechanism; the paper has 1 / √d. It also shares the vectors between heads (section 3.3), and
    here each has its own.
    """

    def __init__(self, heads: int, width: int, reach: int) -> None:
        super().__init__()
        if reach < 0:
            raise RecipeError(f"Relative keys reach 0 places or more. Received: {reach}.")
        self.reach = reach
        self.table = nn.Parameter(torch.empty(heads, 2 * reach + 1, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def bias(self, query: Tensor, keys: int, first: int, scale: float = 1.0) -> Tensor:
        """scale · q a_rᵀ, (batch, head, query, key).

        Each query meets the 2·reach + 1 vectors once, and the products are then laid out by distance:
        (batch, head, query, key, width) is never formed.
        """
        products = query @ self.table.transpose(-2, -1) * scale  # (batch, head, query, vector)
        distances = _distances(query.shape[2], keys, first, query.device)
        which = distances.clamp(-self.reach, self.reach) + self.reach  # (query, key)
        return products.gather(-1, which.expand(*products.shape[:2], -1, -1))  # (batch, head, query, key)


# --- By name ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PositionKind:
    """A row of `POSITIONS`: what is added to the embeddings, and what heads of self-attention are told."""

    paper: str
    added: Callable[[int, int], nn.Module] = lambda width, places: NoPositions(width)
    heads: Callable[[HeadShape, bool], HeadPositions] = lambda shape, causal: HeadPositions()
    needs: tuple[str, ...] = ()
    """What the mechanism of a self-attention must support to be told."""


POSITIONS: dict[str, PositionKind] = {
    "sinusoidal": PositionKind(
        "Vaswani et al. 2017, Attention is all you need, section 3.5",
        added=lambda width, places: SinusoidalPositions(width),
    ),
    "learned": PositionKind(
        "Gehring et al. 2017, Convolutional sequence to sequence learning, section 3.1",
        added=LearnedPositions,
    ),
    "none": PositionKind("a bag of words; only the look-ahead mask of a decoder tells of an order"),
    "rotary": PositionKind(
        "Su et al. 2021, RoFormer: enhanced Transformer with rotary position embedding, section 3.2",
        heads=lambda shape, causal: Rotary(shape.key),
        needs=("products",),
    ),
    "alibi": PositionKind(
        "Press et al. 2022, Train short, test long: attention with linear biases, section 3",
        heads=lambda shape, causal: Alibi(shape.heads),
        needs=("bias",),
    ),
    "relative-keys": PositionKind(
        "Shaw et al. 2018, Self-attention with relative position representations, eq. 4",
        heads=lambda shape, causal: RelativeKeys(shape.heads, shape.key, REACH),
        needs=("products", "bias"),
    ),
    "relative-bias": PositionKind(
        "Raffel et al. 2020, Exploring the limits of transfer learning (T5), section 2.1",
        heads=lambda shape, causal: RelativeBias(shape.heads, both_ways=not causal),
        needs=("bias",),
    ),
}
