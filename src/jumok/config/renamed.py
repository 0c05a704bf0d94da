"""Renamed settings: the old names work until jumok 1.0.

A user who uses an old name gets a `RenamedSettingWarning` with the new name. Recipes that an older jumok
stored in a run folder or a model folder are read without a warning.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from jumok.errors import RecipeError, RenamedSettingWarning

if TYPE_CHECKING:
    from collections.abc import Mapping

RENAMED_SETTINGS = {
    "text.pieces": "text.vocab_size",
    "model.places": "model.max_positions",
    "training.average": "training.average_checkpoints",
    "training.clip": "training.clip_norm",
    "training.ema": "training.ema_decay",
    "training.held_out": "training.held_out_pairs",
    "training.longest": "training.max_sentence_tokens",
    "training.warmup": "training.warmup_steps",
    "search.longest": "search.max_length_ratio",
    "search.no_repeat": "search.no_repeat_ngram_size",
    "luong-location.longest": "luong-location.max_keys",  # an option of this attention mechanism
}
"""Old name → new name, each prefixed with its section of the recipe or the kind of its mechanism."""


def current_name(setting: str) -> str:
    """Return the current name of the setting `section.name`."""
    return RENAMED_SETTINGS.get(setting, setting)


def with_current_names(settings: Mapping[str, Any], *, stored: bool = False) -> dict[str, Any]:
    """Return the settings `section.name` → value under their current names.

    Warn about every old name, unless the settings were `stored` by jumok. Refuse a setting that has different
    values under its old and its new name.
    """
    renamed: dict[str, Any] = {}
    for name, value in settings.items():
        new = current_name(name)
        if new != name:
            if new in settings and settings[new] != value:
                raise RecipeError(
                    f"{name} is the old name of {new}, and the two have different values. "
                    f"Received: {name} = {value!r}, {new} = {settings[new]!r}. Leave {name} out."
                )
            if not stored:
                message = f"{name} is now {new}; the old name works until 1.0."
                warnings.warn(message, RenamedSettingWarning, stacklevel=_caller_stacklevel())
        renamed[new] = value
    return renamed


def _caller_stacklevel() -> int:
    """Return the `stacklevel` with which the function that calls this one warns its caller outside jumok.

    Frames of pydantic count as frames of jumok.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("jumok.", "pydantic")):
        frame, level = frame.f_back, level + 1
    return level
