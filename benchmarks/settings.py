"""The settings of the compared models, under jumok's names. The other systems build the same models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BATCH_TOKENS",
    "DROPOUT",
    "FAMILIES",
    "MINUTES",
    "SIZES",
    "SMOOTHING",
    "VOCAB_SIZE",
    "multi30k",
    "training_settings",
]

VOCAB_SIZE, BATCH_TOKENS, DROPOUT, SMOOTHING = 10_000, 4096, 0.3, 0.1
MINUTES = 45.0  # time budget of a training; the topic `training` ends earlier, when it has measured the speed

# tiny: Transformer-Tiny of Wu et al. 2021. base: the base model of Vaswani et al. 2017
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "width": 128, "feed_forward": 256, "heads": 4},
    "base": {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "feed_forward": 2048, "heads": 8},
}
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": {"family": "transformer", **SIZES["tiny"]},
    "recurrent": {
        "family": "recurrent",
        "cell": "gru",
        "encoder_layers": 1,
        "decoder_layers": 1,
        "width": 256,
        "embedding": 256,
        "attention": "bahdanau",
    },
}


def training_settings(family: str, *, quick: bool) -> dict[str, Any]:
    """Return settings for `jumok train`. It derives the number of processes and all other settings.

    A quick run has a limit of steps, not of minutes. With a limit of minutes, training would first measure
    its speed, which takes time.
    """
    model = {f"model.{name}": value for name, value in FAMILIES[family].items()}
    return {
        **model,
        "model.dropout": DROPOUT,
        "text.vocab_size": VOCAB_SIZE,
        "training.batch_tokens": BATCH_TOKENS,
        "training.label_smoothing": SMOOTHING,
        **({"training.steps": 100_000} if quick else {"training.minutes": MINUTES}),
    }


def multi30k(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the two files of the training pairs, and the two of the validation pairs."""
    train, valid = (
        [folder / f"{split}.{language}" for language in ("en", "de")] for split in ("train", "val")
    )
    return train, valid
