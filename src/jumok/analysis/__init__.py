"""What a model does with one sentence: its attention, its search, its numbers, and the effect of changes.

    explanation = explain(translator, "I go home.")      a LiveExplanation: data and the model behind it
    explain(translator, "I go home.", edit=Silence("cross", 0, 3))
    save_explanation(explanation, "x.html");  show_explanation(explanation)      a file; a notebook cell

Names are imported when they are first used, so that changes of attention can be checked without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.analysis.bound_model import BoundModel
    from jumok.analysis.change_edits import check_changes, edit_from_changes
    from jumok.analysis.changes import Change, Paint, Pin, Silence, change_from_json, change_to_json
    from jumok.analysis.class_explanation import explain_class
    from jumok.analysis.explainer import ExplanationOptions, explain
    from jumok.analysis.explanation import (
        BeforeChange,
        Explanation,
        GroupEffect,
        NextToken,
        PatchedPicture,
        WordAlignment,
    )
    from jumok.analysis.explanation_files import (
        explanation_page,
        open_explanation,
        save_explanation,
        show_explanation,
    )
    from jumok.analysis.facts import model_facts
    from jumok.analysis.heads import HeadStatistics, head_statistics
    from jumok.analysis.json_format import explanation_from_json, explanation_to_json
    from jumok.analysis.live_explanation import LiveExplanation, complete_explanation
    from jumok.analysis.live_file import QUANTIZATIONS, model_page, round_weights
    from jumok.analysis.picture_view import PictureView, view_picture
    from jumok.analysis.search_tree import Candidate, SearchTree
    from jumok.analysis.steps import Cell, CellSteps, Step
    from jumok.analysis.tokenized_sentence import TokenizedSentence, word_map

__all__ = [
    "QUANTIZATIONS",
    "BeforeChange",
    "BoundModel",
    "Candidate",
    "Cell",
    "CellSteps",
    "Change",
    "Explanation",
    "ExplanationOptions",
    "GroupEffect",
    "HeadStatistics",
    "LiveExplanation",
    "NextToken",
    "Paint",
    "PatchedPicture",
    "PictureView",
    "Pin",
    "SearchTree",
    "Silence",
    "Step",
    "TokenizedSentence",
    "WordAlignment",
    "change_from_json",
    "change_to_json",
    "check_changes",
    "complete_explanation",
    "edit_from_changes",
    "explain",
    "explain_class",
    "explanation_from_json",
    "explanation_page",
    "explanation_to_json",
    "head_statistics",
    "model_facts",
    "model_page",
    "open_explanation",
    "round_weights",
    "save_explanation",
    "show_explanation",
    "view_picture",
    "word_map",
]

_MODULE = {
    "QUANTIZATIONS": "live_file",
    "BeforeChange": "explanation",
    "BoundModel": "bound_model",
    "Candidate": "search_tree",
    "Cell": "steps",
    "CellSteps": "steps",
    "Change": "changes",
    "Explanation": "explanation",
    "ExplanationOptions": "explainer",
    "GroupEffect": "explanation",
    "HeadStatistics": "heads",
    "LiveExplanation": "live_explanation",
    "NextToken": "explanation",
    "Paint": "changes",
    "PatchedPicture": "explanation",
    "PictureView": "picture_view",
    "Pin": "changes",
    "SearchTree": "search_tree",
    "Silence": "changes",
    "Step": "steps",
    "TokenizedSentence": "tokenized_sentence",
    "WordAlignment": "explanation",
    "change_from_json": "changes",
    "change_to_json": "changes",
    "check_changes": "change_edits",
    "complete_explanation": "live_explanation",
    "edit_from_changes": "change_edits",
    "explain": "explainer",
    "explain_class": "class_explanation",
    "explanation_from_json": "json_format",
    "explanation_page": "explanation_files",
    "explanation_to_json": "json_format",
    "head_statistics": "heads",
    "model_facts": "facts",
    "model_page": "live_file",
    "open_explanation": "explanation_files",
    "round_weights": "live_file",
    "save_explanation": "explanation_files",
    "show_explanation": "explanation_files",
    "view_picture": "picture_view",
    "word_map": "tokenized_sentence",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'jumok.analysis' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jumok.analysis.{_MODULE[name]}"), name)
