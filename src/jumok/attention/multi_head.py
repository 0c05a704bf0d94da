"""Multi-head attention: several small attentions side by side, each in its own projection of the states.

    MultiHead(Q, K, V) = Concat(head₁ … headₕ) W_O
    headᵢ = Attention(Q W_Qᵢ, K W_Kᵢ, V W_Vᵢ)                    Vaswani et al. 2017, section 3.2.2

How a head attends is a `Mechanism` that is handed in; scaled dot product is the paper's. The projections are
three matrix products also where queries, keys and values are the same states: on a processor one product of
three times the width takes the same time, and its gradients would have to be put together again.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from jumok.attention.contract import Attended, Attention, Mechanism, Memory, WeightEdit
from jumok.errors import UnsupportedError

__all__ = ["MultiHead"]


class MultiHead(Attention):
    """The projections W_Q, W_K, W_V and W_O round a mechanism."""

    def __init__(self, *, width: int, heads: int, mechanism: Mechanism[Any]) -> None:
        super().__init__()
        if width % heads:
            fitting = ", ".join(str(number) for number in range(1, 65) if width % number == 0)
            raise UnsupportedError(
                f"{heads} heads cannot share a width of {width} evenly. Heads that can: {fitting}."
            )
        self.heads = heads
        self.supports = mechanism.supports
        self.mechanism = mechanism
        # No biases, as in the paper: a query that may see nothing gets a context of exactly 0.
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        for projection in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(projection.weight)

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None = None) -> Memory:
        memory: Memory = self.mechanism.prepare(
            self._split(self.key(keys)), self._split(self.value(values)), allowed_keys
        )
        return memory

    def extend(self, memory: Memory, keys: Tensor, values: Tensor) -> Memory:
        extended: Memory = self.mechanism.extend(
            memory, self._split(self.key(keys)), self._split(self.value(values))
        )
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
            self._split(self.query(query)),
            memory,
            allowed=allowed,
            bias=bias,
            first=first,
            edit=edit,
            need_weights=need_weights,
        )
        return self._merge(attended)

    def _split(self, states: Tensor) -> Tensor:
        """(batch, length, width) -> (batch, head, length, width of a head)."""
        batch, length, width = states.shape
        return states.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def _merge(self, attended: Attended) -> Attended:
        """The heads side by side again, (batch, query, width), through W_O."""
        merged = attended.context.transpose(1, 2).flatten(2)  # (batch, query, head × width of a head)
        return Attended(self.out(merged), attended.weights)
