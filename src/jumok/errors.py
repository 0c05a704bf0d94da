"""Every error that jumok raises on purpose.

    JumokError
    ├── DataError           sentences: a missing file, unequal lines, bytes that are not UTF-8, nothing left
    ├── RecipeError         settings: an unknown name, a value out of range, a pair that does not go together
    │   └── UnsupportedError    what was asked for cannot be combined; the message names an alternative
    ├── ModelFolderError    a model folder that is damaged, foreign or from a newer version
    ├── RunFolderError      a run folder that belongs to another run or cannot be continued as asked
    ├── StorageError        the disk: full, read-only, an I/O error
    └── TrainingError       training cannot go on: the loss stayed NaN, the workers died

A message says what happened, what was received and what to do, in that order. The command line prints it as
one paragraph and ends with exit code 2.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DataError",
    "JumokError",
    "ModelFolderError",
    "RecipeError",
    "RunFolderError",
    "StorageError",
    "TrainingError",
    "UnsupportedError",
    "nearest",
]


class JumokError(Exception):
    """The root: `except JumokError` catches all that jumok raises on purpose."""


class DataError(JumokError):
    """Something is wrong with the sentences that were given."""


class RecipeError(JumokError):
    """Something is wrong with the settings."""


class UnsupportedError(RecipeError):
    """Each part exists, but they cannot be combined."""


class ModelFolderError(JumokError):
    """A model folder cannot be loaded."""


class RunFolderError(JumokError):
    """A run folder cannot be used as asked."""


class StorageError(JumokError):
    """The disk would not take or give the bytes."""


class TrainingError(JumokError):
    """Training cannot go on."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence's end that suggests the closest known name: ' Did you mean "german"?', or ''.

    Near is what a slip of the fingers makes of a name: a letter in three, capitals aside. What is farther
    away was probably meant as it stands, and a suggestion would only puzzle.
    """
    by_folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.65)
    return f' Did you mean "{by_folded[close[0]]}"?' if close else ""
