"""Positions: attention treats its inputs as a set, so a model adds their order, in one of three ways.

Added to the embeddings, (length, width); each is called as `positions(length, offset=…)`:

    sinusoidal   PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(…)   (Vaswani et al. 2017, section 3.5)
    marian       the same with 10000^(i/(d/2 - 1)): the table of the Marian toolkit
    learned      PE(p) = a learned vector                                  (Gehring et al. 2017, section 3.1)
    none         PE(p) = 0

For the patches of a picture, sinusoids have two dimensions: half of the columns encode the row of a patch and
half its column, PE(r, c) = [PE(r); PE(c)]             (Parmar et al. 2018, Image Transformer, section 3.1)

Rotating the queries and keys of each head, so that qᵀk depends on their distance only:

    rotary       (q₁ + i q₂) · exp(i p θ)                                  (Su et al. 2021, section 3.2)

Added to the scores, (head, query, key) or (batch, head, query, key):

    alibi          -mₕ · |distance|; keys after the query have another mₕ    (Press et al. 2022, section 3)
    relative-bias  a learned number per bucket of distances         (T5: Raffel et al. 2020, section 2.1)
    relative-keys  scale · q · a learned vector per clipped distance  (Shaw et al. 2018, eq. 4 and 5)

A distance is the position of the key minus the position of the query; `query_offset` is the absolute position
of query 0. The scores of the kinds that act in the heads depend on distances alone: padding on the left,
which shifts a sentence, does not change these scores.
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

SHAW_MAX_DISTANCE = 16  # clipping distance of the paper's base model, Shaw et al. 2018, section 4.1

# --- Added to the embeddings --------------------------------------------------------------------------------


def sinusoids(length: int, width: int, *, offset: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """The paper's table for positions `offset` … `offset + length - 1`, (length, width)."""
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width  # (⌈width / 2⌉,)
    return _sinusoids(exponent, length, width, offset).to(dtype)


def marian_sinusoids(
    length: int, width: int, *, offset: int = 0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Marian's table, (length, width): from width 3 on, its lowest frequency is 1/10000 exactly.

    The columns are in the paper's order, sine and cosine of one frequency side by side; Marian has all sines
    first.
    """
    pairs = (width + 1) // 2
    exponent = torch.arange(pairs, dtype=torch.float64) / max(1, pairs - 1)  # (⌈width / 2⌉,)
    return _sinusoids(exponent, length, width, offset).to(dtype)


def _sinusoids(exponent: Tensor, length: int, width: int, offset: int) -> Tensor:
    position = torch.arange(offset, offset + length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position / 10000.0**exponent  # (length, ⌈width / 2⌉)
    both = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (length, ⌈width / 2⌉, 2)
    return both.flatten(1)[:, :width]


class SinusoidalPositions(nn.Module):
    """A table of sinusoids for `table_size` positions; positions beyond it are computed on demand.

    The table follows from its formula, so it is not part of the stored weights. The table is rounded to
    single precision: in double precision the formula is evaluated instead.
    """

    table: Tensor
    formula = staticmethod(sinusoids)

    def __init__(self, width: int, *, table_size: int = 512) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", self.formula(table_size, width), persistent=False)

    def forward(self, length: int, *, offset: int = 0) -> Tensor:
        """Positions `offset` … `offset + length - 1`, (length, width)."""
        if offset + length <= len(self.table) and self.table.dtype != torch.float64:
            return self.table[offset : offset + length]
        return self.formula(length, self.width, offset=offset, dtype=self.table.dtype).to(self.table.device)


class MarianPositions(SinusoidalPositions):
    """Marian's sinusoids, for models that Marian trained.

    Ports of these models to other toolkits use the sinusoids of the paper.
    """

    formula = staticmethod(marian_sinusoids)


class LearnedPositions(nn.Module):
    """A learned vector for each of `max_positions` positions, and none beyond."""

    def __init__(self, width: int, max_positions: int = 512) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_positions, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, length: int, *, offset: int = 0) -> Tensor:
        """Positions `offset` … `offset + length - 1`, (length, width)."""
        max_positions = len(self.table)
        if offset + length > max_positions:
            raise UnsupportedError(
                f"Learned positions end at {max_positions} tokens. Received: {offset + length} tokens. Give "
                "shorter sentences, train with a larger model.max_positions, or use sinusoidal positions."
            )
        return self.table[offset : offset + length]


class NoPositions(nn.Module):
    """0 at every position: the order shows only in a causal mask, or in positions inside the heads."""

    zero: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("zero", torch.tensor([[0.0]]), persistent=False)

    def forward(self, length: int, *, offset: int = 0) -> Tensor:
        """Zeros, (length, width)."""
        return self.zero.expand(length, self.width)


def grid_sinusoids(rows: int, columns: int, width: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Sinusoids of the positions in a grid, row by row, (rows × columns, width): [PE(row); PE(column)].

    Each half is the paper's table of half the width; the row has the smaller half if the width is odd.
    """
    down = sinusoids(rows, width // 2, dtype=dtype)[:, None].expand(-1, columns, -1)
    across = sinusoids(columns, width - width // 2, dtype=dtype)[None].expand(rows, -1, -1)
    return torch.cat([down, across], dim=-1).flatten(0, 1)


class GridPositions(nn.Module):
    """Sinusoids in two dimensions for a grid of patches, after `leading` positions of 0 (the class token).

    Like `SinusoidalPositions`, the table follows from its formula and is not part of the stored weights.
    There are no positions beyond the table: the caller must not ask for more than `leading` + rows × columns.
    """

    table: Tensor

    def __init__(self, rows: int, columns: int, width: int, *, leading: int = 0) -> None:
        super().__init__()
        patches = grid_sinusoids(rows, columns, width)
        table = torch.cat([patches.new_zeros(leading, width), patches])
        self.register_buffer("table", table, persistent=False)

    def forward(self, length: int, *, offset: int = 0) -> Tensor:
        """Positions `offset` … `offset + length - 1`, (length, width)."""
        return self.table[offset : offset + length]


# --- In the heads of a self-attention -----------------------------------------------------------------------


class HeadPositions(nn.Module):
    """Positions inside the heads of a self-attention. This base class adds none.

    Subclasses override `rotate` or `bias`.
    """

    def rotate(self, states: Tensor, offset: int) -> Tensor:
        """Rotate queries or keys (batch, head, length, width) whose first position is `offset`."""
        return states

    def bias(self, query: Tensor, keys: int, query_offset: int, scale: float = 1.0) -> Tensor | None:
        """The bias for scores of queries (batch, head, query, width) with `keys` keys, or None.

        `scale` is the mechanism's factor for products of queries and keys, for biases that are products too.
        """
        return None


# --- Rotating queries and keys ------------------------------------------------------------------------------


def rotate(states: Tensor, offset: int = 0, base: float = 10000.0) -> Tensor:
    """Rotate queries or keys (batch, head, length, width) by the angles of their positions, from `offset` on.

    Columns i and i + width/2 are one point of a plane, rotated by p · base^(-2i/width): the half-split layout
    of GPT-NeoX and Llama. The paper pairs neighbours, 2i and 2i + 1 (interleaved); that is the same up to the
    order of columns, so weights trained with one layout are wrong with the other.
    """
    length, width = states.shape[-2:]
    return _apply_rotation(states, _rotation_table(length, width, offset=offset, base=base).to(states))


def _rotation_table(length: int, width: int, *, offset: int = 0, base: float = 10000.0) -> Tensor:
    """Cosines and sines of the angles at positions from `offset` on, (2, length, width / 2)."""
    if width % 2:
        raise UnsupportedError(
            f"Rotary positions rotate pairs of columns and need heads of even width. Received: width "
            f"{width}. Choose a number of heads that leaves an even width, or another kind of positions."
        )
    position = torch.arange(offset, offset + length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (length, width / 2)
    return torch.stack([angle.cos(), angle.sin()])


def _apply_rotation(states: Tensor, table: Tensor) -> Tensor:
    cosine, sine = table
    left, right = states.chunk(2, dim=-1)  # (batch, head, length, width / 2) each
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class Rotary(HeadPositions):
    """Rotates queries and keys with a table of `table_size` positions, or computes angles beyond it.

    The table is rounded to single precision: in double precision the formula is evaluated instead.
    """

    table: Tensor

    def __init__(self, width: int, *, table_size: int = 512) -> None:
        super().__init__()
        self.register_buffer("table", _rotation_table(table_size, width).to(torch.float32), persistent=False)

    def rotate(self, states: Tensor, offset: int) -> Tensor:
        length = states.shape[-2]
        if offset + length <= self.table.shape[1] and states.dtype != torch.float64:
            return _apply_rotation(states, self.table[:, offset : offset + length])
        return rotate(states, offset)


# --- Added to the scores ------------------------------------------------------------------------------------


def _distances(queries: int, keys: int, query_offset: int, device: torch.device | None) -> Tensor:
    """The position of key j minus that of query i, (query, key)."""
    positions = torch.arange(query_offset, query_offset + queries, device=device)
    return torch.arange(keys, device=device) - positions[:, None]


def alibi_slopes(heads: int) -> list[float]:
    """mₕ = 2^(-8h/heads) for h = 1 … heads, if `heads` is a power of two.

    Otherwise the list begins with the slopes of the next lower power of two, and continues with every second
    slope of the next higher power of two. This is the rule of the paper's code. The paper itself, section 3,
    covers powers of two only.
    """
    if heads < 1:
        raise RecipeError(f"ALiBi needs at least one head. Received: heads = {heads}.")
    below = 2 ** (heads.bit_length() - 1)
    slopes = [2 ** (-8 * head / below) for head in range(1, below + 1)]
    between = [2 ** (-8 * head / (2 * below)) for head in range(1, 2 * below + 1, 2)]
    return slopes + between[: heads - below]


def alibi_bias(
    heads: int, queries: int, keys: int, query_offset: int = 0, *, device: torch.device | None = None
) -> Tensor:
    """-mₕ · |distance|, (head, query, key): the farther a key, the lower its score, at a rate per head.

    The paper is causal; here keys after the query are penalised like those before it. Nothing is learned, so
    sentences may be longer than those of training.
    """
    slopes = torch.tensor(alibi_slopes(heads), device=device)[:, None, None]  # (head, 1, 1)
    return -slopes * _distances(queries, keys, query_offset, device).abs()


class Alibi(HeadPositions):
    """`alibi_bias`, with the slopes in reverse order for keys after the query.

    The paper is about decoders, in which no key follows the query. By distance alone an encoder could not
    tell a sentence from its mirror image. With the slopes reversed, a head with a steep slope before the
    query has a flat slope after the query, if the number of heads is a power of two. A single head, and the
    middle one of an odd number of heads, has one slope and cannot tell the sides apart.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def bias(self, query: Tensor, keys: int, query_offset: int, scale: float = 1.0) -> Tensor:
        """The bias (head, query, key)."""
        queries = query.shape[2]
        bias = alibi_bias(self.heads, queries, keys, query_offset, device=query.device)
        key_is_after = _distances(queries, keys, query_offset, query.device) > 0
        return torch.where(key_is_after, bias.flip(0), bias).to(query.dtype)


def relative_buckets(distances: Tensor, buckets: int, max_distance: int, *, bidirectional: bool) -> Tensor:
    """T5's bucket of each distance. Each small distance has its own bucket.

    Larger distances share buckets that become wider with the distance. The last bucket has all distances from
    `max_distance` on.

    If `bidirectional`, half of the buckets are for keys after the query. If not, all keys after the query are
    in bucket 0, together with the distance 0.
    """
    first_bucket = torch.zeros_like(distances)
    if bidirectional:
        buckets //= 2
        first_bucket = (distances > 0) * buckets
        gap = distances.abs()
    else:
        gap = (-distances).clamp(min=0)
    exact = buckets // 2
    growth = torch.log(gap.clamp(min=exact).double() / exact) / math.log(max_distance / exact)
    wide = exact + (growth * (buckets - exact)).long().clamp(max=buckets - exact - 1)
    return first_bucket + torch.where(gap < exact, gap, wide)


class RelativeBias(HeadPositions):
    """A learned number per head and bucket of distances, as in T5. It is initialised to 0.

    T5 does not divide its scores by √d: with T5's weights, W_Q of the scaled dot product would have to be
    multiplied by √d. T5 shares one table among its layers; in jumok each layer has its own.
    """

    def __init__(
        self, heads: int, buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
    ) -> None:
        super().__init__()
        exact = buckets // 4 if bidirectional else buckets // 2
        if exact < 1 or max_distance <= exact or (bidirectional and buckets % 2):
            raise RecipeError(
                "Relative positions need an even number of at least 4 buckets if bidirectional, at least 2 "
                "otherwise, and a `max_distance` above the number of distances that have their own bucket "
                f"({exact}). Received: buckets = {buckets}, max_distance = {max_distance}, "
                f"bidirectional = {bidirectional}."
            )
        self.buckets = buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.table = nn.Parameter(torch.zeros(heads, buckets))

    def forward(self, queries: int, keys: int, query_offset: int = 0) -> Tensor:
        """The bias (head, query, key)."""
        distances = _distances(queries, keys, query_offset, self.table.device)
        return self.table[
            :, relative_buckets(distances, self.buckets, self.max_distance, bidirectional=self.bidirectional)
        ]

    def bias(self, query: Tensor, keys: int, query_offset: int, scale: float = 1.0) -> Tensor:
        bias: Tensor = self(query.shape[2], keys, query_offset)
        return bias


class RelativeKeys(HeadPositions):
    """A learned vector a_r per head and distance r, clipped to ±max_distance, which is added to the keys.

    scale · q (k + a_r)ᵀ = scale · q kᵀ + scale · q a_rᵀ: `bias` returns the second term. The scale is the
    mechanism's `scale`; in the paper it is 1 / √d. The paper shares the vectors between heads (section 3.3);
    here each head has its own.
    """

    def __init__(self, heads: int, width: int, max_distance: int) -> None:
        super().__init__()
        if max_distance < 0:
            raise RecipeError(
                f"`max_distance` of relative keys must be at least 0. Received: {max_distance}."
            )
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(heads, 2 * max_distance + 1, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def bias(self, query: Tensor, keys: int, query_offset: int, scale: float = 1.0) -> Tensor:
        """scale · q a_rᵀ, (batch, head, query, key).

        Each query is multiplied with the 2·max_distance + 1 vectors once, and the products are then gathered
        by distance: (batch, head, query, key, width) is never formed.
        """
        products = query @ self.table.transpose(-2, -1) * scale  # (batch, head, query, vector)
        distances = _distances(query.shape[2], keys, query_offset, query.device)
        index = distances.clamp(-self.max_distance, self.max_distance) + self.max_distance  # (query, key)
        return products.gather(-1, index.expand(*products.shape[:2], -1, -1))  # (batch, head, query, key)


# --- By name ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PositionKind:
    """A kind of positions, with one function for each of the two places where positions are added."""

    reference: str
    make_for_embeddings: Callable[[int, int], nn.Module] = lambda width, max_positions: NoPositions(width)
    make_for_heads: Callable[[HeadShape, bool], HeadPositions] = lambda shape, causal: HeadPositions()
    needs: tuple[str, ...] = ()
    """What the mechanism of a self-attention must support for `make_for_heads`."""


POSITIONS: dict[str, PositionKind] = {
    "sinusoidal": PositionKind(
        "Vaswani et al. 2017, Attention is all you need, section 3.5",
        make_for_embeddings=lambda width, max_positions: SinusoidalPositions(width),
    ),
    "marian": PositionKind(
        "Junczys-Dowmunt et al. 2018, Marian: fast neural machine translation in C++",
        make_for_embeddings=lambda width, max_positions: MarianPositions(width),
    ),
    "learned": PositionKind(
        "Gehring et al. 2017, Convolutional sequence to sequence learning, section 3.1",
        make_for_embeddings=LearnedPositions,
    ),
    "none": PositionKind("a bag of words; only the causal mask of a decoder reveals the order"),
    "rotary": PositionKind(
        "Su et al. 2021, RoFormer: enhanced Transformer with rotary position embedding, section 3.2",
        make_for_heads=lambda shape, causal: Rotary(shape.key),
        needs=("products",),
    ),
    "alibi": PositionKind(
        "Press et al. 2022, Train short, test long: attention with linear biases, section 3",
        make_for_heads=lambda shape, causal: Alibi(shape.heads),
        needs=("bias",),
    ),
    "relative-keys": PositionKind(
        "Shaw et al. 2018, Self-attention with relative position representations, eq. 4",
        make_for_heads=lambda shape, causal: RelativeKeys(shape.heads, shape.key, SHAW_MAX_DISTANCE),
        needs=("products", "bias"),
    ),
    "relative-bias": PositionKind(
        "Raffel et al. 2020, Exploring the limits of transfer learning (T5), section 2.1",
        make_for_heads=lambda shape, causal: RelativeBias(shape.heads, bidirectional=not causal),
        needs=("bias",),
    ),
}
