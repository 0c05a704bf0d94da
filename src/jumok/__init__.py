"""jumok (주목, "attention"): train a translator on your own sentence pairs and see what it pays attention to.

    import jumok

    model_folder = jumok.train("pairs.tsv", out="runs/mine", minutes=5)
    translator = jumok.load(model_folder)
    print(translator.translate(["I go home."])[0].text)
    jumok.save_explanation(jumok.explain(translator, "I go home."), "attention.html")

`jumok.training_events` takes the same arguments as `train` and yields events while it trains.

The module of a public name is imported when the name is first used, so `import jumok` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.analysis.changes import Paint, Pin, Silence
    from jumok.analysis.class_explanation import explain_class
    from jumok.analysis.explainer import ExplanationOptions, explain
    from jumok.analysis.explanation import Explanation
    from jumok.analysis.explanation_files import open_explanation, save_explanation, show_explanation
    from jumok.analysis.picture_view import PictureView, view_picture
    from jumok.config.recipe import Recipe
    from jumok.config.resolve import Overrides
    from jumok.data.corpora import open_corpora
    from jumok.data.corpus_report import check_corpora
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
    from jumok.evaluation.scores import score
    from jumok.inference.loading import load, load_picture_classifier, load_text_model
    from jumok.inference.picture_classifier import PictureClassifier
    from jumok.inference.text_model import TextModel
    from jumok.inference.translation import Translation
    from jumok.inference.translator import Translator
    from jumok.interop.conversion import ImportChoices
    from jumok.interop.exporting import export_model as export
    from jumok.interop.importing import import_model
    from jumok.plots.axes import plot_attention
    from jumok.text.glossary import Glossary
    from jumok.text.sentences import split_sentences
    from jumok.training.run.training_run import train, training_events
    from jumok.types import Alignment, AttentionMap, Pair

__version__ = "0.1.0"

# Public name → module. If the name in the module differs, it follows after a colon.
_MODULES = {
    "Alignment": "types",
    "AttentionMap": "types",
    "DataError": "errors",
    "Explanation": "analysis.explanation",
    "ExplanationOptions": "analysis.explainer",
    "Glossary": "text.glossary",
    "ImportChoices": "interop.conversion",
    "JumokError": "errors",
    "ModelFolderError": "errors",
    "Overrides": "config.resolve",
    "Paint": "analysis.changes",
    "Pair": "types",
    "PictureClassifier": "inference.picture_classifier",
    "PictureView": "analysis.picture_view",
    "Pin": "analysis.changes",
    "Recipe": "config.recipe",
    "RecipeError": "errors",
    "RunFolderError": "errors",
    "Silence": "analysis.changes",
    "StorageError": "errors",
    "TextModel": "inference.text_model",
    "TrainingError": "errors",
    "Translation": "inference.translation",
    "Translator": "inference.translator",
    "UnsupportedError": "errors",
    "check_corpora": "data.corpus_report",
    "explain": "analysis.explainer",
    "explain_class": "analysis.class_explanation",
    "export": "interop.exporting:export_model",
    "import_model": "interop.importing",
    "load": "inference.loading",
    "load_picture_classifier": "inference.loading",
    "load_text_model": "inference.loading",
    "open_corpora": "data.corpora",
    "open_explanation": "analysis.explanation_files",
    "plot_attention": "plots.axes",
    "read_glossary": "data.glossary_files",
    "save_explanation": "analysis.explanation_files",
    "score": "evaluation.scores",
    "show_explanation": "analysis.explanation_files",
    "split_sentences": "text.sentences",
    "train": "training.run.training_run",
    "training_events": "training.run.training_run",
    "view_picture": "analysis.picture_view",
}

__all__ = [
    "Alignment",
    "AttentionMap",
    "DataError",
    "Explanation",
    "ExplanationOptions",
    "Glossary",
    "ImportChoices",
    "JumokError",
    "ModelFolderError",
    "Overrides",
    "Paint",
    "Pair",
    "PictureClassifier",
    "PictureView",
    "Pin",
    "Recipe",
    "RecipeError",
    "RunFolderError",
    "Silence",
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
    if name not in _MODULES:
        raise AttributeError(f"module 'jumok' has no attribute {name!r}")
    module, _, other_name = _MODULES[name].partition(":")
    return getattr(importlib.import_module(f"jumok.{module}"), other_name or name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
