"""Masked language modelling: hide some tokens of a text, for a model that predicts them from both sides.

In each sentence, 15 % of the tokens are chosen, at least one. Only the chosen tokens are predicted. Of the
chosen tokens, 80 % become `<unk>`, 10 % become a random token, and 10 % stay unchanged (Devlin et al. 2019,
section 3.1). `<unk>` serves as the mask token: with byte fallback (`text.byte_fallback`), no text contains
this token.

The seed and the position of the batch, counted over all epochs, determine which tokens are chosen in
training. The choice therefore differs from epoch to epoch (Liu et al. 2019, section 4.1), and a resumed run
chooses the same tokens.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from jumok.data.batch_plan import MASKING_STREAM, random_uint64
from jumok.data.batching import Batches
from jumok.types import BEGIN, END, PAD, UNKNOWN, Batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.data.store import PairStore, TokenizerPairLike

CHOSEN_SHARE, MASKED_SHARE, RANDOM_SHARE = 0.15, 0.8, 0.1
_FIRST_TOKEN = END + 1  # END is the last special token


class MaskedBatches(Batches):
    """The batches of a store of plain text, with masked tokens."""

    def __init__(
        self,
        store: PairStore,
        *,
        batch_tokens: int,
        seed: int,
        tokenizers: TokenizerPairLike,
        sampling: float = 0.0,
    ) -> None:
        super().__init__(
            store, batch_tokens=batch_tokens, seed=seed, tokenizers=tokenizers, sampling=sampling
        )
        self._vocab_size = tokenizers.target.vocab_size

    def batch(self, position: int) -> Batch:
        batch = super().batch(position)
        rows, columns = _text(batch).shape
        bits = random_uint64(self.seed, position, MASKING_STREAM, rows * columns).reshape(rows, columns)
        return mask_tokens(batch, bits, vocab_size=self._vocab_size)


def random_uint64_by_sentence(batch: Batch) -> NDArray[np.uint64]:
    """Return random bits (row, token) that depend only on the sentence, so that scores are reproducible."""
    text = _text(batch)
    seeds = [zlib.crc32(row[row != PAD].tobytes()) for row in text]
    return np.stack([random_uint64(seed, 0, MASKING_STREAM, text.shape[1]) for seed in seeds])


def mask_tokens(batch: Batch, bits: NDArray[np.uint64], *, vocab_size: int) -> Batch:
    """Return a batch of masked texts; random `bits` (row, token) decide what is masked.

    The texts are the targets of `batch`. Its sources are not used.

    The source of the result is the masked text. The target of the result begins with `<s>`. After `<s>`, the
    target has the original token at each chosen position, and `PAD` elsewhere.
    """
    import torch  # start-up

    text = _text(batch)  # (row, token)
    counts = (text != PAD).sum(axis=1) - 1  # without </s>
    inside = np.arange(text.shape[1]) < counts[:, None]
    # The order of the random numbers decides which tokens are chosen. The lowest bits of a random number
    # decide how its token is replaced.
    order = np.where(inside, bits, np.iinfo(np.uint64).max).argsort(axis=1, kind="stable")
    ranks = order.argsort(axis=1, kind="stable")
    chosen = inside & (ranks < np.maximum(1, np.rint(CHOSEN_SHARE * counts))[:, None])
    uniform = (bits & np.uint64(0xFFFF)) / 2.0**16
    random_tokens = _FIRST_TOKEN + ((bits >> np.uint64(16)) & np.uint64(0xFFFFFF)).astype(np.int64) % max(
        vocab_size - _FIRST_TOKEN, 1
    )
    masked = np.where(chosen & (uniform < MASKED_SHARE), UNKNOWN, text)
    masked = np.where(chosen & (uniform >= 1 - RANDOM_SHARE), random_tokens, masked)
    labels = np.full((len(text), text.shape[1] + 1), PAD, dtype=np.int64)
    labels[:, 0] = BEGIN
    labels[:, 1:][chosen] = text[chosen]
    return Batch(
        source=torch.from_numpy(masked),
        source_lengths=torch.from_numpy(counts + 1),
        target=torch.from_numpy(labels),
        target_lengths=torch.from_numpy(counts + 2),
    )


def _text(batch: Batch) -> NDArray[np.int64]:
    """Return the targets without `<s>`: y₁ … yₘ </s>, padded."""
    if batch.target is None:
        raise ValueError("mask_tokens needs the text in the target of the batch")
    return batch.target[:, 1:].numpy()
