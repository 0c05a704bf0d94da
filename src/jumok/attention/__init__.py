"""Attention mechanisms behind one contract (`contract.py`), useful without the rest of jumok."""

from jumok.attention.additive import Additive
from jumok.attention.beams import Beams, group_rows
from jumok.attention.catalogue import (
    CATALOGUE,
    Entry,
    check_options,
    find_entry,
    make_attention,
    make_direct,
)
from jumok.attention.contract import (
    Attended,
    Attention,
    Call,
    Edit,
    HeadShape,
    Mechanism,
    Memory,
    Place,
    Supports,
    WeightEdit,
    edit_at,
)
from jumok.attention.direct import Direct
from jumok.attention.efficient import Efficient
from jumok.attention.graph import attention_graph, roll_out
from jumok.attention.linear import LinearAttention
from jumok.attention.local import LuongLocalM, LuongLocalP
from jumok.attention.lookup import Database, look_up, nadaraya_watson, name_database
from jumok.attention.luong import LuongConcat, LuongDot, LuongGeneral, LuongLocation
from jumok.attention.masks import all_allowed, look_ahead, masked_softmax, padding, renormalised, window
from jumok.attention.multi_head import MultiHead, Widths, attend_over_axes
from jumok.attention.positions import (
    POSITIONS,
    Alibi,
    HeadPositions,
    LearnedPositions,
    NoPositions,
    PositionKind,
    RelativeBias,
    RelativeKeys,
    Rotary,
    SinusoidalPositions,
    alibi_bias,
    rotate,
    sinusoids,
)
from jumok.attention.restricted import Restricted
from jumok.attention.scaled_dot import ScaledDot
from jumok.attention.scored import KeyValues, Scored

__all__ = [
    "CATALOGUE",
    "POSITIONS",
    "Additive",
    "Alibi",
    "Attended",
    "Attention",
    "Beams",
    "Call",
    "Database",
    "Direct",
    "Edit",
    "Efficient",
    "Entry",
    "HeadPositions",
    "HeadShape",
    "KeyValues",
    "LearnedPositions",
    "LinearAttention",
    "LuongConcat",
    "LuongDot",
    "LuongGeneral",
    "LuongLocalM",
    "LuongLocalP",
    "LuongLocation",
    "Mechanism",
    "Memory",
    "MultiHead",
    "NoPositions",
    "Place",
    "PositionKind",
    "RelativeBias",
    "RelativeKeys",
    "Restricted",
    "Rotary",
    "ScaledDot",
    "Scored",
    "SinusoidalPositions",
    "Supports",
    "WeightEdit",
    "Widths",
    "alibi_bias",
    "all_allowed",
    "attend_over_axes",
    "attention_graph",
    "check_options",
    "edit_at",
    "find_entry",
    "group_rows",
    "look_ahead",
    "look_up",
    "make_attention",
    "make_direct",
    "masked_softmax",
    "nadaraya_watson",
    "name_database",
    "padding",
    "renormalised",
    "roll_out",
    "rotate",
    "sinusoids",
    "window",
]
