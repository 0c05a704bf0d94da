"""What a model does with one sentence: its attention, its search, its numbers, and what changes do."""

from jumok.explain.changes import (
    Change,
    Paint,
    Pin,
    Silence,
    change_from_json,
    change_to_json,
    check_changes,
    edit_of,
)
from jumok.explain.explanation import Before, Explanation, GroupEffect, NextPiece, WordAlignment
from jumok.explain.facts import model_facts
from jumok.explain.files import open_explanation
from jumok.explain.heads import HeadStatistics, head_statistics
from jumok.explain.live import LiveModel
from jumok.explain.passes import site_weights
from jumok.explain.search_tree import Candidate, SearchTree
from jumok.explain.sides import Side, label_maps
from jumok.explain.steps import Cell, CellSteps, Step

__all__ = [
    "Before",
    "Candidate",
    "Cell",
    "CellSteps",
    "Change",
    "Explanation",
    "GroupEffect",
    "HeadStatistics",
    "LiveModel",
    "NextPiece",
    "Paint",
    "Pin",
    "SearchTree",
    "Side",
    "Silence",
    "Step",
    "WordAlignment",
    "change_from_json",
    "change_to_json",
    "check_changes",
    "edit_of",
    "head_statistics",
    "label_maps",
    "model_facts",
    "open_explanation",
    "site_weights",
]
