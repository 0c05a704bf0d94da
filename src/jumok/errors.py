"""Every error that jumok raises on purpose.

    JumokError
    ├── DataError           the input: a missing file, two files of unequal length, a damaged document
    ├── RecipeError         the settings: an unknown name, a value out of range, a contradiction
    │   └── UnsupportedError    a valid request that this model, machine or file format does not support
    ├── ModelFolderError    a model folder that is damaged, not jumok's, or from another version
    ├── RunFolderError      a run folder that belongs to another run, or cannot be continued as requested
    ├── StorageError        files: a full or read-only disk, a folder in the way, damaged encoded pairs
    └── TrainingError       training cannot continue: the loss stayed NaN, or a worker died

A message says what happened and, if it helps, what was received and what to do. The command line prints the
message of a `JumokError` and exits with code 2. It prints the message of a `RenamedSettingWarning` and
continues.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "DataError",
    "JumokError",
    "ModelFolderError",
    "RecipeError",
    "RenamedSettingWarning",
    "RunFolderError",
    "StorageError",
    "TrainingError",
    "UnsupportedError",
    "suggest",
]


class JumokError(Exception):
    """The base class: `except JumokError` catches every error that jumok raises on purpose."""


class DataError(JumokError):
    """The input is wrong: a corpus, a document, a picture, a sentence or a request."""


class RecipeError(JumokError):
    """Something is wrong with the settings. `faults` maps names of settings to what is wrong with them.

    `faults` is empty if no single setting can be named.
    """

    def __init__(self, message: str, faults: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.faults = dict(faults or {})


class UnsupportedError(RecipeError):
    """A valid request that this model, machine or file format does not support.

    For example, each of two settings is valid, but they exclude each other.
    """


class ModelFolderError(JumokError):
    """A model folder cannot be loaded."""


class RunFolderError(JumokError):
    """A run folder cannot be used as requested."""


class StorageError(JumokError):
    """Files cannot be written, or stored files cannot be used."""


class TrainingError(JumokError):
    """Training cannot continue."""


class RenamedSettingWarning(FutureWarning):
    """A setting was given under its old name, which works until 1.0."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ' Did you mean "german"?' with the closest known name, or '' if none is close.

    A name is close if it may be a typing error: at most about one letter in three differs, ignoring case. A
    name that differs more would only confuse.
    """
    names_by_lower_case = {known_name.casefold(): known_name for known_name in known}
    matches = difflib.get_close_matches(name.casefold(), names_by_lower_case, n=1, cutoff=0.65)
    return f' Did you mean "{names_by_lower_case[matches[0]]}"?' if matches else ""
