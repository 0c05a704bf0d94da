"""One head without W_Q, W_K, W_V and W_O, as in Bahdanau's and Luong's papers: only scores have parameters.

context = Σᵢ αᵢ hᵢ                                           Bahdanau et al. 2015, eq. 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.attention.contract import Attended, Attention, Call, Memory

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.attention.contract import Mechanism


class SingleHead(Attention):
    """One head, which passes queries, keys and values to the mechanism without projections."""

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

    def forward_call(self, query: Tensor, memory: Memory, call: Call) -> Attended:
        attended = self.mechanism.forward_call(query[:, None], memory, call)
        return Attended(attended.context[:, 0], attended.weights)
