"""MarianMT with random weights, in the sizes of `settings.py`."""

from __future__ import annotations

from typing import Any

from benchmarks.settings import SIZES
from jumok.types import BEGIN, END, PAD

__all__ = ["make_marianmt"]


def make_marianmt(size: str, *, vocab_size: int, dropout: float = 0.0) -> Any:
    from transformers import MarianConfig, MarianMTModel

    shape = SIZES[size]
    return MarianMTModel(
        MarianConfig(
            vocab_size=vocab_size,
            d_model=shape["width"],
            encoder_layers=shape["encoder_layers"],
            decoder_layers=shape["decoder_layers"],
            encoder_ffn_dim=shape["feed_forward"],
            decoder_ffn_dim=shape["feed_forward"],
            encoder_attention_heads=shape["heads"],
            decoder_attention_heads=shape["heads"],
            activation_function="relu",
            dropout=dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            max_position_embeddings=512,
            pad_token_id=PAD,
            bos_token_id=BEGIN,
            eos_token_id=END,
            forced_eos_token_id=None,
            decoder_start_token_id=BEGIN,
        )
    )
