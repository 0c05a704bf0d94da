"""Attention mechanisms behind one contract (`contract.py`), useful without the rest of jumok."""

from jumok.attention.beams import Beams, group_rows
from jumok.attention.catalogue import CATALOGUE, Entry, find_entry, make_attention
from jumok.attention.contract import (
    Attended,
    Attention,
    Edit,
    Mechanism,
    Memory,
    Place,
    Supports,
    WeightEdit,
    edit_at,
)
from jumok.attention.masks import all_allowed, look_ahead, masked_softmax, padding
from jumok.attention.multi_head import MultiHead
from jumok.attention.positions import SinusoidalPositions, sinusoids
from jumok.attention.scaled_dot import ScaledDot
from jumok.attention.scored import KeyValues, Scored

__all__ = [
    "CATALOGUE",
    "Attended",
    "Attention",
    "Beams",
    "Edit",
    "Entry",
    "KeyValues",
    "Mechanism",
    "Memory",
    "MultiHead",
    "Place",
    "ScaledDot",
    "Scored",
    "SinusoidalPositions",
    "Supports",
    "WeightEdit",
    "all_allowed",
    "edit_at",
    "find_entry",
    "group_rows",
    "look_ahead",
    "make_attention",
    "masked_softmax",
    "padding",
    "sinusoids",
]
