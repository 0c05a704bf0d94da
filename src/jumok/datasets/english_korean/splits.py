"""The split of a sentence.

Two rules separate the splits. First, a small share of the combinations of a predicate with its complement is
held out. A sentence with a held-out combination is never in the training set. Validation and test therefore
contain combinations that no model has seen, although each of their words is frequent in training. Second, all
other sentences are assigned by a hash of the English text without the tag, so that a sentence and its polite
form are in the same split.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

SPLITS = ("train", "valid", "test")

# Of 1,000 combinations that may be held out, 60 are held out for valid, and 60 for test. Of 1,000 other
# sentences, 30 are in valid, and 30 in test. Four in ten sentences of valid and test then contain a held-out
# combination.
_COMBINATIONS_PER_1000 = 60
_SENTENCES_PER_1000 = 30


def _split_by_hash(text: str, per_1000: int) -> str:
    """Return "test" for `per_1000` of 1,000 hashes, "valid" for another `per_1000`, and otherwise "train"."""
    bucket = crc32(text.encode()) % 1000
    if bucket < per_1000:
        return "test"
    return "valid" if bucket < 2 * per_1000 else "train"


@cache
def combination_split(predicate: str, complement: str) -> str:
    """Return the split that the hash of a combination gives; `lexicon.reserved_split` exempts rare words."""
    return _split_by_hash(f"{predicate} + {complement}", _COMBINATIONS_PER_1000)


def sentence_split(english: str, reserved_splits: set[str]) -> str:
    """Return the split of a sentence.

    `reserved_splits` are the splits for which combinations of words in the sentence are reserved.
    """
    if "test" in reserved_splits:
        return "test"
    if "valid" in reserved_splits:
        return "valid"
    return _split_by_hash(english, _SENTENCES_PER_1000)
