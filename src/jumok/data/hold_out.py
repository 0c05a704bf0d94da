"""Hold-out: a validation set taken from the corpus where none was given.

Which pairs are held out depends on a hash of the source (of the text, where it is plain), written without
capitals, punctuation and extra spaces: all translations of a sentence, and all its duplicates, fall on the
same side. Nothing leaks, whatever the order of the files, and a corpus that grows keeps most of its
validation set.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from jumok.values import Pair

__all__ = ["HoldOut", "choose_hold_out", "hold_out_of", "sentence_key", "source_hashes"]

_LARGEST_SHARE = 10  # at most one pair in ten
# Spaces and punctuation of Latin, general, East Asian and full-width blocks.
_MARKS = re.compile(r"[\s!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e\u3001-\u303f\uff01-\uff0f\uff1a-\uff20]+")


def sentence_key(text: str) -> str:
    """A sentence without what two copies of it may differ in: case, punctuation, spaces, composition."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return _MARKS.sub(" ", text.casefold()).strip()


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Which pairs are held out: those whose hash is below the threshold."""

    threshold: int

    def __contains__(self, pair: Pair) -> bool:
        return self.threshold > 0 and _stable_hash(pair) < self.threshold

    def among(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of the pairs with these hashes are held out."""
        return hashes < self.threshold

    def count(self, hashes: NDArray[np.uint64]) -> int:
        """How many of them are."""
        return int(self.among(hashes).sum())


def choose_hold_out(pairs: Iterable[Pair], *, count: int) -> HoldOut:
    """Choose about `count` pairs, never more, and at most a tenth. Takes one pass and eight bytes a pair.

    A corpus of fewer than ten pairs, or one that repeats a single source, holds out nothing.
    """
    return hold_out_of(source_hashes(pairs), count=count)


def source_hashes(pairs: Iterable[Pair]) -> NDArray[np.uint64]:
    """What decides whether a pair is held out: the same in every process."""
    return np.fromiter((_stable_hash(pair) for pair in pairs), np.uint64)


def hold_out_of(hashes: NDArray[np.uint64], *, count: int) -> HoldOut:
    """`choose_hold_out` where the hashes of the pairs are at hand."""
    wanted = min(count, len(hashes) // _LARGEST_SHARE)
    if wanted <= 0:
        return HoldOut(0)
    # Pairs below the hash of rank `wanted` are at most that many, and equal sources stay together.
    return HoldOut(int(np.partition(hashes, wanted)[wanted]))


def _stable_hash(pair: Pair) -> int:
    """The same in every process, unlike `hash`: a resumed run must hold out the same pairs."""
    key = sentence_key(pair.source or pair.target)
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
