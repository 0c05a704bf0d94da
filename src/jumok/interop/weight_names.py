"""The weights of a Transformer in jumok and in Hugging Face's encoder-decoder classes: names and channels.

jumok and Hugging Face compute the same function. Their weights differ in three ways:

- The names of the weights.
- The order of the channels. Hugging Face's sinusoids are [sin … sin | cos … cos], and jumok's sinusoids are
  [sin, cos, sin, cos, …]. A permutation of the channels in every matrix that reads or writes states converts
  the weights without rounding.
- The first token of the decoder. In MarianMT, decoding begins with `<pad>`, whose embedding is a zero vector.
  In jumok, decoding begins with `<s>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jumok.types import BEGIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.config.recipe import TransformerSettings

SECOND_BEGIN, RENAMED_SECOND_BEGIN = "<s>", "<unused:s>"
"""Some Marian models have an ordinary token `<s>`. Exports rename this token, because in an export `<s>` is a
special token."""

_ATTENTION = (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("out", "out_proj"))


@dataclass(frozen=True, slots=True)
class NamePair:
    """The names of a linear map or a norm in jumok and in Hugging Face."""

    ours: str
    theirs: str
    rows: bool = False
    """Whether the rows of the weight are channels of the states."""
    columns: bool = False
    """Whether the columns of the weight are channels of the states."""


def halves_to_interleaved(width: int) -> Tensor:
    """Return the permutation `order` with interleaved[i] = halves[order[i]]."""
    half = width // 2
    return torch.stack([torch.arange(half), torch.arange(half) + half], dim=1).flatten()


def interleaved_to_halves(width: int) -> Tensor:
    """Return the permutation `order` with halves[i] = interleaved[order[i]]."""
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])


def permute(tensor: Tensor, pair: NamePair, order: Tensor) -> Tensor:
    """Return a weight or a bias with its channels in another order."""
    if pair.rows:
        tensor = tensor[order]
    if pair.columns and tensor.dim() == 2:
        tensor = tensor[:, order]
    return tensor.contiguous()


def layer_names(encoder_layers: int, decoder_layers: int, *, pre_norm: bool) -> Iterator[NamePair]:
    """Yield the names of all parts of the encoder and the decoder.

    Each part has a `.weight` and may have a `.bias`.
    """
    for stack, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        for layer in range(layers):
            ours, theirs = f"{stack}.{layer}", f"model.{stack}.layers.{layer}"
            yield from _attention(f"{ours}.attention", f"{theirs}.self_attn")
            yield _norm(f"{ours}.around_attention", f"{theirs}.self_attn_layer_norm")
            if stack == "decoder":
                yield from _attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn")
                yield _norm(f"{ours}.around_cross", f"{theirs}.encoder_attn_layer_norm")
            yield NamePair(f"{ours}.feed_forward.widen", f"{theirs}.fc1", columns=True)
            yield NamePair(f"{ours}.feed_forward.narrow", f"{theirs}.fc2", rows=True)
            yield _norm(f"{ours}.around_feed_forward", f"{theirs}.final_layer_norm")
        if pre_norm:
            yield NamePair(f"after_{stack}", f"model.{stack}.layer_norm", rows=True)


def _attention(ours: str, theirs: str) -> Iterator[NamePair]:
    for our_name, their_name in _ATTENTION:
        yield NamePair(
            f"{ours}.{our_name}",
            f"{theirs}.{their_name}",
            rows=our_name == "out",
            columns=our_name != "out",
        )


def _norm(ours: str, theirs: str) -> NamePair:
    return NamePair(f"{ours}.norm", theirs, rows=True)


def channel_order(settings: TransformerSettings) -> Tensor | None:
    """Return the permutation `order` with theirs[i] = ours[order[i]], or None if the order is the same.

    The order of channels differs only for sinusoidal positions. Exports store all other positions as a table.
    """
    return interleaved_to_halves(settings.width) if settings.positions == "sinusoidal" else None


def distinct_names(tokens: Sequence[str]) -> list[str]:
    """Return distinct names of the tokens, in the order of their ids.

    A second `<s>`, which is an ordinary token, is renamed.
    """
    return [
        RENAMED_SECOND_BEGIN if token == SECOND_BEGIN and id_ != BEGIN else token
        for id_, token in enumerate(tokens)
    ]
