"""Which split a sentence belongs to.

Two rules keep the splits apart. A small share of the combinations of a predicate with its complement is held
out: a sentence with such a combination is never trained on, so that validation and test ask for combinations
that no model has seen, though every word of them is frequent in training. Any other sentence is placed by a
hash of its English text without the tag, so that a sentence and its polite twin stay together.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

__all__ = ["SPLITS", "combination_split", "sentence_split"]

SPLITS = ("train", "valid", "test")

# Of 1000, for each of valid and test: four in ten of their sentences hold a combination never trained on.
_HELD_OUT_COMBINATIONS = 60
_HELD_OUT_SENTENCES = 30


def _place(text: str, share: int) -> str:
    """ "valid" and "test" get this share of 1000 hashes each, "train" the rest."""
    number = crc32(text.encode()) % 1000
    if number < share:
        return "test"
    return "valid" if number < 2 * share else "train"


@cache
def combination_split(predicate: str, complement: str) -> str:
    """The split that a combination of lexemes is kept for, or "train" when it may occur anywhere."""
    return _place(f"{predicate} + {complement}", _HELD_OUT_COMBINATIONS)


def sentence_split(english: str, combinations: set[str]) -> str:
    """The one split of a sentence; `combinations` are the held-out splits its combinations name."""
    if "test" in combinations:
        return "test"
    if "valid" in combinations:
        return "valid"
    return _place(english, _HELD_OUT_SENTENCES)
