"""Masking: a text with some of its pieces hidden, for a model that guesses them from both sides.

Of each sentence 15 % of the pieces are chosen, one at least. Of those, 80 % become `<unk>`, the piece that is
not known (with byte fallback no text contains it), 10 % become another piece and 10 % stay, so that a model
must have an opinion of every piece it sees (Devlin et al. 2019, section 3.1). Only chosen pieces are guessed.

Which pieces are hidden while training is a function of the seed and the position of the batch: it differs
from epoch to epoch (Liu et al. 2019, section 4.1), and a resumed run hides the same.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from jumok.corpus.batches import Batches
from jumok.corpus.plan import HIDING, random_words
from jumok.values import BEGIN, END, PAD, UNKNOWN, Batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.corpus.store import PairStore, VocabularyPair

__all__ = ["MaskedBatches", "fixed_words", "hide_pieces"]

CHOSEN, HIDDEN, REPLACED = 0.15, 0.8, 0.1
_FIRST_PIECE = END + 1


class MaskedBatches(Batches):
    """The batches of a store of plain text, with pieces hidden."""

    def __init__(
        self,
        store: PairStore,
        *,
        batch_tokens: int,
        seed: int,
        vocabularies: VocabularyPair,
        sampling: float = 0.0,
    ) -> None:
        super().__init__(
            store, batch_tokens=batch_tokens, seed=seed, vocabularies=vocabularies, sampling=sampling
        )
        self._pieces = vocabularies.target.size

    def batch(self, position: int) -> Batch:
        batch = super().batch(position)
        rows, columns = _text(batch).shape
        words = random_words(self.seed, position, HIDING, rows * columns).reshape(rows, columns)
        return hide_pieces(batch, words, pieces=self._pieces)


def fixed_words(batch: Batch) -> NDArray[np.uint64]:
    """Random words (row, piece) that depend on the sentence alone: a score must not change by chance."""
    text = _text(batch)
    seeds = [zlib.crc32(row[row != PAD].tobytes()) for row in text]
    return np.stack([random_words(seed, 0, HIDING, text.shape[1]) for seed in seeds])


def hide_pieces(batch: Batch, words: NDArray[np.uint64], *, pieces: int) -> Batch:
    """The targets of a batch as texts to guess hidden pieces in, by random words (row, piece).

    The source of the result is the text with its hidden pieces; its target has, behind `<s>`, the piece that
    was there where it is to be guessed, and `PAD` elsewhere. There are `pieces` pieces to take another from.
    """
    import torch  # late: `jumok check` opens this room and needs none of it

    text = _text(batch)  # (row, piece)
    counts = (text != PAD).sum(axis=1) - 1  # without </s>
    inside = np.arange(text.shape[1]) < counts[:, None]
    # One word decides all: its value when a piece is chosen, its lowest bits what then becomes of it.
    order = np.where(inside, words, np.iinfo(np.uint64).max).argsort(axis=1, kind="stable")
    ranks = order.argsort(axis=1, kind="stable")
    chosen = inside & (ranks < np.maximum(1, np.rint(CHOSEN * counts))[:, None])
    fate = (words & np.uint64(0xFFFF)) / 2.0**16
    others = _FIRST_PIECE + ((words >> np.uint64(16)) & np.uint64(0xFFFFFF)).astype(np.int64) % max(
        pieces - _FIRST_PIECE, 1
    )
    shown = np.where(chosen & (fate < HIDDEN), UNKNOWN, text)
    shown = np.where(chosen & (fate >= 1 - REPLACED), others, shown)
    wanted = np.full((len(text), text.shape[1] + 1), PAD, dtype=np.int64)
    wanted[:, 0] = BEGIN
    wanted[:, 1:][chosen] = text[chosen]
    return Batch(
        source=torch.from_numpy(shown),
        source_lengths=torch.from_numpy(counts + 1),
        target=torch.from_numpy(wanted),
        target_lengths=torch.from_numpy(counts + 2),
    )


def _text(batch: Batch) -> NDArray[np.int64]:
    """The targets without `<s>`: y₁ … yₘ </s>, padded."""
    if batch.target is None:
        raise ValueError("a text to hide pieces in stands on the target side of a batch")
    return batch.target[:, 1:].numpy()
