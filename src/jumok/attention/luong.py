"""Luong's scores of a decoder state h with an encoder state h̄.

    dot        hᵀ h̄
    general    hᵀ W h̄
    concat     vᵀ tanh(W [h; h̄])
    location   weights = softmax(W h), independent of the keys     Luong, Pham & Manning 2015, section 3.1

`dot` and `general` take O(L · S · d) time for L queries and S keys, like the scaled dot product. Their scores
are not divided by √d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from jumok.attention.additive import Additive, head_matrices
from jumok.attention.contract import Supports
from jumok.attention.scored import SoftmaxMechanism
from jumok.config.recipe import Settings
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from jumok.attention.contract import HeadShape


class ConcatSettings(Settings):
    units: int | None = Field(None, ge=1)
    """Width of a head's hidden layer; default: the width of the keys."""


class LocationSettings(Settings):
    max_keys: int = Field(256, ge=1)
    """The largest number of keys that a memory may have."""


class _ProductScore(SoftmaxMechanism):
    """Scores that are products of queries with prepared keys."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(-2, -1)  # (batch, head, query, key)


class LuongDot(_ProductScore):
    """The plain dot product, for queries and keys of the same width."""

    supports = Supports(products=True)


class LuongGeneral(_ProductScore):
    """A dot product with keys multiplied by W. `prepare` computes W h̄ once per memory."""

    supports = Supports(widths=True)

    def __init__(self, shape: HeadShape, *, causal: bool = False, dropout: nn.Module | None = None) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        self.weight = head_matrices(shape.heads, shape.query, shape.key)  # W

    def prepare_keys(self, keys: Tensor) -> Tensor:
        return keys @ self.weight.transpose(-2, -1)  # (batch, head, key, width of a query)


class LuongConcat(Additive):
    """One layer over the concatenated query and key, which is the additive score under another name:

        W [h; h̄] = [W_q W_k] [h; h̄] = W_q h + W_k h̄

    so the columns of W that multiply h are the parameter `query`, and the columns that multiply h̄ are the
    parameter `key`, both transposed. W_k h̄ is computed once per memory. The score costs as much as the
    additive score.
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


class LuongLocation(SoftmaxMechanism):
    """The query alone determines the weights: softmax(W h), eq. 8, over the positions of the memory.

    W has one row per position, so a memory may have at most `max_keys` keys. The parameter `weight` is the
    transpose of W. In a shorter memory, and with masked keys, the softmax runs over the remaining positions.
    """

    supports = Supports(left_padding=False, widths=True)

    def __init__(
        self,
        shape: HeadShape,
        *,
        max_keys: int = 256,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        self.max_keys = max_keys
        self.weight = head_matrices(shape.heads, shape.query, max_keys)

    def prepare_keys(self, keys: Tensor) -> Tensor:
        return keys[..., :0]  # the scores need only the number of keys

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        length = keys.shape[2]
        if length > self.max_keys:
            raise UnsupportedError(
                f"The location score has {self.max_keys} positions. Received: a memory of {length} keys. "
                f'Set its option "max_keys" to {length} or more and train again, or leave out longer '
                'sentences. The mechanism "luong-general" has no such limit.'
            )
        return query @ self.weight[:, :, :length]  # (batch, head, query, key)
