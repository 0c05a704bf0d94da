"""Model FLOPs of training: the operations of the equations, not those that a program executes.

A multiplication and an addition count as two. Forward and backward together, a matrix of m × n numbers costs
6·m·n per token that it is multiplied with. The formula is

    6 × (parameters that multiply) × (tokens they multiply)  +  attention

    encoder, per source token   layers · (4·d² + 2·d·f)
    decoder, per target token   layers · (6·d² + 2·d·f)  +  d · V           V: the vocabulary size
    decoder, per source token   layers · 2·d²                               keys and values of cross-attention
    attention, per pair         12·d · layers · (S² + T·(T+1)/2 + T·S)      scores and weighted sums

Embedding look-ups, masked scores, norms, softmax, biases, dropout and the optimiser are not counted. Padding
is not a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import integer
    from numpy.typing import NDArray

__all__ = ["TransformerShape", "flops_of_pairs", "flops_per_target_token"]


@dataclass(frozen=True, slots=True)
class TransformerShape:
    layers: int  # in the encoder, and as many in the decoder
    width: int
    feed_forward: int
    vocab_size: int


def flops_of_pairs(
    shape: TransformerShape, source: NDArray[integer], target: NDArray[integer]
) -> NDArray[integer]:
    """Return the FLOPs of one training step on each pair. Lengths include `</s>` but not `<s>`."""
    layers, d, f = shape.layers, shape.width, shape.feed_forward
    of_source = layers * (4 * d * d + 2 * d * f) + layers * 2 * d * d
    of_target = layers * (6 * d * d + 2 * d * f) + d * shape.vocab_size
    num_scores = source * source + target * (target + 1) // 2 + target * source
    flops: NDArray[integer] = 6 * (of_source * source + of_target * target) + 12 * d * layers * num_scores
    return flops


def flops_per_target_token(
    shape: TransformerShape, source: NDArray[integer], target: NDArray[integer]
) -> float:
    """Return the FLOPs of all pairs divided by their target tokens.

    This factor converts target tokens per second to FLOPs per second.
    """
    return float(flops_of_pairs(shape, source, target).sum() / target.sum())
