"""From a model to translations: search, the Translator, and word alignments read from attention.

Names are imported when they are first used: a Translator with a converted engine needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.decoding.beam_search import beam
    from jumok.decoding.engine import Engine
    from jumok.decoding.forced import force
    from jumok.decoding.loading import load, load_text_model, make_translator
    from jumok.decoding.plan import Listener, Sampling, SearchChoices, SearchPlan, SearchStep
    from jumok.decoding.readout import AttendedPair, choose_read_out, read_alignment
    from jumok.decoding.shortlist import Shortlist
    from jumok.decoding.shortlist_learning import learn_shortlist
    from jumok.decoding.stepper import AttendingStepper, Stepper
    from jumok.decoding.texts import TextModel, text_batches
    from jumok.decoding.torch_engine import TorchEngine
    from jumok.decoding.translation import Translation
    from jumok.decoding.translator import Translator
    from jumok.decoding.walk import greedy, sample

__all__ = [
    "AttendedPair",
    "AttendingStepper",
    "Engine",
    "Listener",
    "Sampling",
    "SearchChoices",
    "SearchPlan",
    "SearchStep",
    "Shortlist",
    "Stepper",
    "TextModel",
    "TorchEngine",
    "Translation",
    "Translator",
    "beam",
    "choose_read_out",
    "force",
    "greedy",
    "learn_shortlist",
    "load",
    "load_text_model",
    "make_translator",
    "read_alignment",
    "sample",
    "text_batches",
]

_MODULE = {
    "AttendedPair": "readout",
    "AttendingStepper": "stepper",
    "Engine": "engine",
    "Listener": "plan",
    "Sampling": "plan",
    "SearchChoices": "plan",
    "SearchPlan": "plan",
    "SearchStep": "plan",
    "Shortlist": "shortlist",
    "Stepper": "stepper",
    "TextModel": "texts",
    "TorchEngine": "torch_engine",
    "Translation": "translation",
    "Translator": "translator",
    "beam": "beam_search",
    "choose_read_out": "readout",
    "force": "forced",
    "greedy": "walk",
    "learn_shortlist": "shortlist_learning",
    "load": "loading",
    "load_text_model": "loading",
    "make_translator": "loading",
    "read_alignment": "readout",
    "sample": "walk",
    "text_batches": "texts",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'jumok.decoding' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jumok.decoding.{_MODULE[name]}"), name)
