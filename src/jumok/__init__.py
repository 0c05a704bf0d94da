"""jumok (주목, "attention"): train a translator on your own sentence pairs and see what it pays attention to.

    import jumok

    model_folder = jumok.train("pairs.tsv", out="runs/mine", minutes=5)
    translator = jumok.load(model_folder)
    print(translator.translate(["I go home."])[0].text)
    jumok.save_explanation(jumok.explain(translator, "I go home."), "attention.html")

`jumok.training_events` takes the same arguments as `train` and yields events while it trains.

Names are imported when they are first used, so `import jumok` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.analysis import (
        Explanation,
        PictureView,
        explain,
        explain_class,
        open_explanation,
        save_explanation,
        show_explanation,
        view_picture,
    )
    from jumok.config.recipe import Recipe
    from jumok.config.resolve import Overrides
    from jumok.data import check_corpora, open_corpora
    from jumok.data.glossary_files import read_glossary
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
    from jumok.inference import (
        PictureClassifier,
        TextModel,
        Translation,
        Translator,
        load,
        load_picture_classifier,
        load_text_model,
    )
    from jumok.interop import export_model as export
    from jumok.interop import import_model
    from jumok.plots import plot_attention
    from jumok.text.glossary import Glossary
    from jumok.text.sentences import split_sentences
    from jumok.training import train, training_events
    from jumok.types import Alignment, AttentionMap, Pair

__version__ = "0.1.0"

# Name → the package it is in; after a colon, its name there if it is another.
_PACKAGES = {
    "Alignment": "types",
    "AttentionMap": "types",
    "DataError": "errors",
    "Explanation": "analysis",
    "Glossary": "text.glossary",
    "JumokError": "errors",
    "ModelFolderError": "errors",
    "Overrides": "config.resolve",
    "Pair": "types",
    "PictureClassifier": "inference",
    "PictureView": "analysis",
    "Recipe": "config.recipe",
    "RecipeError": "errors",
    "RunFolderError": "errors",
    "StorageError": "errors",
    "TextModel": "inference",
    "TrainingError": "errors",
    "Translation": "inference",
    "Translator": "inference",
    "UnsupportedError": "errors",
    "check_corpora": "data",
    "explain": "analysis",
    "explain_class": "analysis",
    "export": "interop:export_model",
    "import_model": "interop",
    "load": "inference",
    "load_picture_classifier": "inference",
    "load_text_model": "inference",
    "open_corpora": "data",
    "open_explanation": "analysis",
    "plot_attention": "plots",
    "read_glossary": "data.glossary_files",
    "save_explanation": "analysis",
    "score": "evaluation",
    "show_explanation": "analysis",
    "split_sentences": "text.sentences",
    "train": "training",
    "training_events": "training",
    "view_picture": "analysis",
}

__all__ = [
    "Alignment",
    "AttentionMap",
    "DataError",
    "Explanation",
    "Glossary",
    "JumokError",
    "ModelFolderError",
    "Overrides",
    "Pair",
    "PictureClassifier",
    "PictureView",
    "Recipe",
    "RecipeError",
    "RunFolderError",
    "StorageError",
    "TextModel",
    "TrainingError",
    "Translation",
    "Translator",
    "UnsupportedError",
    "check_corpora",
    "explain",
    "explain_class",
    "export",
    "import_model",
    "load",
    "load_picture_classifier",
    "load_text_model",
    "open_corpora",
    "open_explanation",
    "plot_attention",
    "read_glossary",
    "save_explanation",
    "score",
    "show_explanation",
    "split_sentences",
    "train",
    "training_events",
    "view_picture",
]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES:
        raise AttributeError(f"module 'jumok' has no attribute {name!r}")
    package, _, other_name = _PACKAGES[name].partition(":")
    return getattr(importlib.import_module(f"jumok.{package}"), other_name or name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
