"""From a model to translations: `load`, Translator, search, engines, word alignments read from attention.

Names are imported on first use: translating with a converted model needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.inference.alignment.readout import AttendedPair, choose_read_out, read_alignment
    from jumok.inference.alignment.symmetrisation import symmetrise
    from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine, require_ctranslate2
    from jumok.inference.engines.protocol import Engine
    from jumok.inference.engines.torch_engine import TorchEngine
    from jumok.inference.loading import (
        ENGINES,
        INT8_COSTS,
        PHASES,
        load,
        load_picture_classifier,
        load_text_model,
        max_positions_for,
    )
    from jumok.inference.picture_classifier import Classification, PictureClassifier, classify_batches
    from jumok.inference.search.beam import beam_search
    from jumok.inference.search.forced import forced_log_probs
    from jumok.inference.search.greedy_sampling import greedy_search, sample
    from jumok.inference.search.plan import OnStep, Sampling, SearchOverrides, SearchPlan, SearchStep
    from jumok.inference.search.stepper import AttendingStepper, Stepper
    from jumok.inference.shortlist import Shortlist
    from jumok.inference.shortlist_learning import learn_shortlist
    from jumok.inference.teacher_forcing import site_weights
    from jumok.inference.text_model import TextModel, text_batches
    from jumok.inference.text_options import LINE_BY_LINE, TextHandling, TextOptions
    from jumok.inference.translation import Translation
    from jumok.inference.translator import ModelFacts, Translator

__all__ = [
    "ENGINES",
    "INT8_COSTS",
    "LINE_BY_LINE",
    "PHASES",
    "AttendedPair",
    "AttendingStepper",
    "CTranslate2Engine",
    "Classification",
    "Engine",
    "ModelFacts",
    "OnStep",
    "PictureClassifier",
    "Sampling",
    "SearchOverrides",
    "SearchPlan",
    "SearchStep",
    "Shortlist",
    "Stepper",
    "TextHandling",
    "TextModel",
    "TextOptions",
    "TorchEngine",
    "Translation",
    "Translator",
    "beam_search",
    "choose_read_out",
    "classify_batches",
    "forced_log_probs",
    "greedy_search",
    "learn_shortlist",
    "load",
    "load_picture_classifier",
    "load_text_model",
    "max_positions_for",
    "read_alignment",
    "require_ctranslate2",
    "sample",
    "site_weights",
    "symmetrise",
    "text_batches",
]

_MODULE = {
    "ENGINES": "loading",
    "INT8_COSTS": "loading",
    "LINE_BY_LINE": "text_options",
    "PHASES": "loading",
    "AttendedPair": "alignment.readout",
    "AttendingStepper": "search.stepper",
    "CTranslate2Engine": "engines.ctranslate2_engine",
    "Classification": "picture_classifier",
    "Engine": "engines.protocol",
    "ModelFacts": "translator",
    "OnStep": "search.plan",
    "PictureClassifier": "picture_classifier",
    "Sampling": "search.plan",
    "SearchOverrides": "search.plan",
    "SearchPlan": "search.plan",
    "SearchStep": "search.plan",
    "Shortlist": "shortlist",
    "Stepper": "search.stepper",
    "TextHandling": "text_options",
    "TextModel": "text_model",
    "TextOptions": "text_options",
    "TorchEngine": "engines.torch_engine",
    "Translation": "translation",
    "Translator": "translator",
    "beam_search": "search.beam",
    "choose_read_out": "alignment.readout",
    "classify_batches": "picture_classifier",
    "forced_log_probs": "search.forced",
    "greedy_search": "search.greedy_sampling",
    "learn_shortlist": "shortlist_learning",
    "load": "loading",
    "load_picture_classifier": "loading",
    "load_text_model": "loading",
    "max_positions_for": "loading",
    "read_alignment": "alignment.readout",
    "require_ctranslate2": "engines.ctranslate2_engine",
    "sample": "search.greedy_sampling",
    "site_weights": "teacher_forcing",
    "symmetrise": "alignment.symmetrisation",
    "text_batches": "text_model",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'jumok.inference' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jumok.inference.{_MODULE[name]}"), name)
