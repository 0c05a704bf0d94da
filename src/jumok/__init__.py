"""jumok (주목, "attention"): train a translator on your own sentence pairs and see what it pays attention to.

    import jumok

    for event in jumok.training_events("pairs.tsv", out="runs/mine", minutes=5): ...
    model_folder = jumok.train("pairs.tsv", out="runs/mine", minutes=5)
    translator = jumok.load("runs/mine/model")
    translator.translate(["I go home."])[0].text

Names are imported when they are first used, so `import jumok` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.corpus import check_up, open_corpora
    from jumok.decoding import TextModel, Translation, Translator, load_text_model
    from jumok.engines import load
    from jumok.errors import (
        DataError,
        JumokError,
        ModelFolderError,
        RecipeError,
        RunFolderError,
        StorageError,
        TrainingError,
        UnsupportedError,
    )
    from jumok.evaluation import score
    from jumok.explain import Explanation
    from jumok.recipe import Recipe
    from jumok.training import train, training_events
    from jumok.values import Alignment, AttentionMap, Pair

__version__ = "0.1.0"

_ROOM = {
    "Alignment": "values",
    "AttentionMap": "values",
    "DataError": "errors",
    "Explanation": "explain",
    "JumokError": "errors",
    "ModelFolderError": "errors",
    "Pair": "values",
    "Recipe": "recipe",
    "RecipeError": "errors",
    "RunFolderError": "errors",
    "StorageError": "errors",
    "TextModel": "decoding",
    "TrainingError": "errors",
    "Translation": "decoding",
    "Translator": "decoding",
    "UnsupportedError": "errors",
    "check_up": "corpus",
    "load": "engines",
    "load_text_model": "decoding",
    "open_corpora": "corpus",
    "score": "evaluation",
    "train": "training",
    "training_events": "training",
}

__all__ = [
    "Alignment",
    "AttentionMap",
    "DataError",
    "Explanation",
    "JumokError",
    "ModelFolderError",
    "Pair",
    "Recipe",
    "RecipeError",
    "RunFolderError",
    "StorageError",
    "TextModel",
    "TrainingError",
    "Translation",
    "Translator",
    "UnsupportedError",
    "check_up",
    "load",
    "load_text_model",
    "open_corpora",
    "score",
    "train",
    "training_events",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOM:
        raise AttributeError(f"module 'jumok' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jumok.{_ROOM[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
