"""The hold-out: a validation set taken from the corpus if none is given.

A hash of the source decides which pairs are held out. A corpus of plain text has no sources; there, the
sentence is hashed. The hash ignores case, punctuation and extra spaces, so all translations and duplicates of
a sentence are held out together. No source is both in training and in validation, whatever the order of the
files. If the corpus grows, most of the validation set stays the same.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jumok.text.normalisation import to_nfc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from jumok.types import Pair

MIN_PAIRS_PER_HELD_OUT = 10  # at most one pair in ten is held out
# Spaces and punctuation of Latin, general, East Asian and full-width blocks.
_PUNCTUATION = re.compile(
    r"[\s!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e\u3001-\u303f\uff01-\uff0f\uff1a-\uff20]+"
)


# With this table, `bytes.translate` maps ASCII characters as the last line of `sentence_key` does, four times
# as fast.
_ASCII_TABLE = bytes(
    ord(" " if _PUNCTUATION.fullmatch(chr(code)) else chr(code).lower()) for code in range(128)
) + bytes(128)


def sentence_key(text: str) -> str:
    """Return the sentence in NFC, with differences in case, punctuation and spaces removed.

    Copies of a sentence have the same key.
    """
    if text.isascii():
        return b" ".join(text.encode("ascii").translate(_ASCII_TABLE).split()).decode("ascii")
    return _PUNCTUATION.sub(" ", to_nfc(text).casefold()).strip()


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Decides which pairs are held out: the pairs whose hash is below the threshold."""

    threshold: int

    def __contains__(self, pair: Pair) -> bool:
        return self.threshold > 0 and _stable_hash(pair) < self.threshold

    def mask(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which of the pairs with these hashes are held out."""
        return hashes < self.threshold

    def count(self, hashes: NDArray[np.uint64]) -> int:
        """Return how many of the pairs with these hashes are held out."""
        return int(self.mask(hashes).sum())


def choose_hold_out(pairs: Iterable[Pair], *, count: int) -> HoldOut:
    """Choose the pairs to hold out: at most `count`, and at most a tenth of the pairs.

    There are fewer if pairs with the same source would exceed these limits.

    This takes one pass and eight bytes per pair.

    Nothing is held out of a corpus of fewer than ten pairs, or if the source with the lowest hash has more
    pairs than may be held out.
    """
    return hold_out_from_hashes(source_hashes(pairs), count=count)


def source_hashes(pairs: Iterable[Pair]) -> NDArray[np.uint64]:
    """Return the hashes that decide which pairs are held out; they are the same in every process."""
    return np.fromiter((_stable_hash(pair) for pair in pairs), np.uint64)


def fingerprint_pairs(pairs: Iterable[Pair]) -> str:
    """Return a fingerprint of the sources of these pairs. It does not depend on the order of the pairs.

    The card of a model (`jumok.json`) has the fingerprint of the validation set, so that `jumok shortlist`
    can check whether it holds out the same pairs as training did.
    """
    return hashlib.sha256(np.sort(source_hashes(pairs)).astype("<u8").tobytes()).hexdigest()


def hold_out_from_hashes(hashes: NDArray[np.uint64], *, count: int) -> HoldOut:
    """Choose the pairs to hold out like `choose_hold_out`, given the hashes of all pairs."""
    max_pairs = min(count, len(hashes) // MIN_PAIRS_PER_HELD_OUT)
    if max_pairs <= 0:
        return HoldOut(0)
    # At most `max_pairs` pairs have a lower hash than the hash at this rank, and equal sources stay together.
    return HoldOut(int(np.partition(hashes, max_pairs)[max_pairs]))


def _stable_hash(pair: Pair) -> int:
    """Return a hash that is the same in every process, so that a resumed run holds out the same pairs."""
    return key_hash(sentence_key(pair.source_identity or pair.target))


def key_hash(key: str) -> int:
    """Return the hash of a sentence's key."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
