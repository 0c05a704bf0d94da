"""A mechanism alone: one head over the states themselves, as Bahdanau and Luong have it.

context = Σᵢ αᵢ hᵢ                                           Bahdanau et al. 2015, eq. 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.attention.contract import Attended, Attention, Memory, WeightEdit

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.attention.contract import Mechanism

__all__ = ["Direct"]


class Direct(Attention):
    """No projections: what the mechanism itself does with queries, keys and values is all there is."""

    def __init__(self, mechanism: Mechanism[Any]) -> None:
        super().__init__()
        self.heads = 1
        self.supports = mechanism.supports
        self.mechanism = mechanism

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None = None) -> Memory:
        memory: Memory = self.mechanism.prepare(keys[:, None], values[:, None], allowed_keys)
        return memory

    def extend(self, memory: Memory, keys: Tensor, values: Tensor) -> Memory:
        extended: Memory = self.mechanism.extend(memory, keys[:, None], values[:, None])
        return extended

    def forward(
        self,
        query: Tensor,
        memory: Memory,
        *,
        allowed: Tensor | None = None,
        bias: Tensor | None = None,
        first: int = 0,
        edit: WeightEdit | None = None,
        need_weights: bool = False,
    ) -> Attended:
        attended: Attended = self.mechanism(
            query[:, None],
            memory,
            allowed=allowed,
            bias=bias,
            first=first,
            edit=edit,
            need_weights=need_weights,
        )
        return Attended(attended.context[:, 0], attended.weights)
