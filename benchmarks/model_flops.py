"""Model FLOPs of training: what the equations ask for, whatever a program really computes.

A multiplication and an addition count as two. Forward and backward together, a matrix of m × n numbers costs
6·m·n for each token that it is multiplied with; so the formula is

    6 × (parameters that multiply) × (tokens they multiply)  +  attention

    encoder, a source token     layers · (4·d² + 2·d·f)
    decoder, a target token     layers · (6·d² + 2·d·f)  +  d · pieces      the output projection counts
    decoder, a source token     layers · 2·d²                               keys and values of cross-attention
    attention, a pair           12·d · layers · (S² + T·(T+1)/2 + T·S)      scores and sums; masked are free

Looking up embeddings multiplies nothing and is not counted, nor are norms, softmax, biases, dropout and the
optimiser. Padding is no token.
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
    layers: int  # of the encoder, and as many of the decoder
    width: int
    feed_forward: int
    pieces: int


def flops_of_pairs(
    shape: TransformerShape, source: NDArray[integer], target: NDArray[integer]
) -> NDArray[integer]:
    """FLOPs to train once on each pair. Lengths count `</s>`, and no `<s>`: it predicts the first piece."""
    layers, d, f = shape.layers, shape.width, shape.feed_forward
    of_source = layers * (4 * d * d + 2 * d * f) + layers * 2 * d * d
    of_target = layers * (6 * d * d + 2 * d * f) + d * shape.pieces
    scored = source * source + target * (target + 1) // 2 + target * source
    flops: NDArray[integer] = 6 * (of_source * source + of_target * target) + 12 * d * layers * scored
    return flops


def flops_per_target_token(
    shape: TransformerShape, source: NDArray[integer], target: NDArray[integer]
) -> float:
    """The mean over a corpus, by which target tokens a second become FLOPs a second."""
    return float(flops_of_pairs(shape, source, target).sum() / target.sum())
