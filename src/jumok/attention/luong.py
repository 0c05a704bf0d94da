"""Luong's scores: how a decoder state h goes with an encoder state h̄.

    dot        hᵀ h̄
    general    hᵀ W h̄
    concat     vᵀ tanh(W [h; h̄])
    location   weights = softmax(W h), whatever the keys say       Luong, Pham & Manning 2015, section 3.1

Dot and general take O(L · S · d) time, as scaled dot product does, but are not divided by √d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from jumok.attention.additive import Additive, head_matrices
from jumok.attention.contract import Supports
from jumok.attention.scored import Scored
from jumok.errors import UnsupportedError
from jumok.recipe import Settings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from jumok.attention.contract import HeadShape

__all__ = ["ConcatSettings", "LocationSettings", "LuongConcat", "LuongDot", "LuongGeneral", "LuongLocation"]


class ConcatSettings(Settings):
    units: int | None = Field(None, ge=1)
    """Width of a head's hidden layer; that of the keys unless set."""


class LocationSettings(Settings):
    longest: int = Field(256, ge=1)
    """The most keys that there may be."""


class _Products(Scored):
    """Scores that are the products of queries with prepared keys."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(-2, -1)  # (batch, head, query, key)


class LuongDot(_Products):
    """The plain dot product, for queries and keys of one width."""

    supports = Supports(products=True)

    def __init__(self, shape: HeadShape, *, causal: bool = False, dropout: nn.Module | None = None) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        if shape.query != shape.key:
            raise UnsupportedError(
                "A dot product needs queries and keys of one width, and was given queries of width "
                f'{shape.query} and keys of width {shape.key}. The mechanism "luong-general" takes both.'
            )


class LuongGeneral(_Products):
    """A dot product after W, which may turn and stretch the keys. W h̄ is computed once, with the memory."""

    def __init__(self, shape: HeadShape, *, causal: bool = False, dropout: nn.Module | None = None) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        self.weight = head_matrices(shape.heads, shape.query, shape.key)

    def prepare_keys(self, keys: Tensor) -> Tensor:
        return keys @ self.weight.transpose(-2, -1)  # (batch, head, key, width of a query)


class LuongConcat(Additive):
    """Query and key side by side through one layer, which is the additive score under another name:

        W [h; h̄] = [W_q W_k] [h; h̄] = W_q h + W_k h̄

    so the columns of W that meet h are `query`, those that meet h̄ are `key`, and the keys' half is computed
    once. It costs what the additive score costs.
    """

    def __init__(
        self,
        shape: HeadShape,
        *,
        units: int | None = None,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, units=units, causal=causal, dropout=dropout)


class LuongLocation(Scored):
    """The query alone says where to look: softmax(W h), eq. 8, over the positions that the memory has.

    W has a row for each position, so that no memory may have more than `longest` keys. In a shorter one, and
    where keys are masked, the softmax is taken over the positions that remain.
    """

    supports = Supports(left_padding=False)

    def __init__(
        self,
        shape: HeadShape,
        *,
        longest: int = 256,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        self.longest = longest
        self.weight = head_matrices(shape.heads, shape.query, longest)

    def prepare_keys(self, keys: Tensor) -> Tensor:
        return keys[..., :0]  # their number is all that is needed

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        length = keys.shape[2]
        if length > self.longest:
            raise UnsupportedError(
                f"The location score knows {self.longest} positions and was given a memory of {length} keys. "
                f'Set its option "longest" to {length} or more and train again, or leave out longer '
                'sentences. The mechanism "luong-general" has no such limit.'
            )
        return query @ self.weight[:, :, :length]  # (batch, head, query, key)
