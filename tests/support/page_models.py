"""Small models that translate into Korean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jumok
from jumok.datasets.english_korean import generate

if TYPE_CHECKING:
    from pathlib import Path

SENTENCE, TRANSLATION = "I go home.", "나는 집에 간다."
# With these settings a model memorises a few short pairs in seconds.
SETTINGS: dict[str, Any] = {
    "text.vocab_size": 400,
    "training.batch_tokens": 256,
    "training.learning_rate": 0.01,
    "training.steps": 250,
    "model.dropout": 0.0,
    "model.width": 32,
    "search.beam": 2,
    "search.max_length_ratio": 1.0,
}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "model.feed_forward": 64,
        "model.heads": 2,
        "model.encoder_layers": 1,
        "model.decoder_layers": 2,
    },
    "recurrent": {"model.family": "recurrent", "model.embedding": 32},
}


def train_runs(folder: Path) -> dict[str, Path]:
    """Train both models on short pairs of the built-in corpus. Return the run folder of each model."""
    folder.mkdir(parents=True, exist_ok=True)
    others = {(pair.source, pair.target) for pair in generate("train", 4000)} - {(SENTENCE, TRANSLATION)}
    pairs = folder / "pairs.en-ko.tsv"
    lines = [(SENTENCE, TRANSLATION), *sorted(others, key=lambda pair: (len(pair[0]), pair))[:80]]
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in lines), encoding="utf-8")
    for name, settings in MODELS.items():
        jumok.train(pairs, out=folder / name, **SETTINGS, **settings)
    return {name: folder / name for name in MODELS}
