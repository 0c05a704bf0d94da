"""Validation of a classifier of pictures: its loss, and the share of pictures whose class it names."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from jumok.data.hold_out import fingerprint_pairs
from jumok.evaluation.text_scores import TokenScores, score_batch
from jumok.inference.picture_classifier import classify_batches
from jumok.storage.model_folder import ScoreRecord
from jumok.training.loop.detectors import unigram_entropy
from jumok.training.validation.protocol import MAX_PAIRS, ValidationResult, evenly_spaced, never_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.config.recipe import Recipe
    from jumok.models.model import Model
    from jumok.text.tokenizer import TokenizerPair
    from jumok.types import AttentionMap, Pair

__all__ = ["ClassValidation"]

TIMED_BATCHES = 4


class ClassValidation:
    """Pictures with their classes, read and batched once."""

    num_too_long = 0
    byte_token_share = 0.0

    def __init__(self, pairs: Sequence[Pair], tokenizers: TokenizerPair, recipe: Recipe) -> None:
        self.fingerprint = fingerprint_pairs(pairs)
        self.uniform_loss = math.log(tokenizers.target.vocab_size)
        self.pairs = evenly_spaced(pairs, MAX_PAIRS)
        classes = tokenizers.target.encode_batch([pair.target for pair in self.pairs])
        patches = tokenizers.source.encode_batch([pair.source for pair in self.pairs])
        self._num_patches = recipe.source.num_patches
        self._batches = classify_batches(patches, classes, batch_tokens=recipe.training.batch_tokens)
        self.unigram_entropy = unigram_entropy(Counter(token for ids in classes for token in ids))

    def __len__(self) -> int:
        return len(self.pairs)

    def validate(
        self, model: Model, beam: int, *, should_stop: Callable[[], bool] = never_stop
    ) -> ValidationResult | None:
        """Return the loss and the accuracy. There is no search, so `beam` has no effect."""
        del beam
        model.eval()
        total = TokenScores()
        for batch in self._batches:
            if should_stop():
                return None
            total += score_batch(model, batch)
        signature = f"pictures whose class is right, of {len(self):,}"
        scores = {"accuracy": ScoreRecord(total.accuracy, signature)}
        return ValidationResult(total.loss, scores, hypotheses=(), references=(), samples=())

    def flatness(self, model: Model) -> float:
        """Return NaN: there is no cross-attention."""
        del model
        return math.nan

    def attention_snapshot(self, model: Model) -> AttentionMap | None:
        """Return None: the page draws attention to words only."""
        del model
        return None

    def estimate_seconds(self, model: Model) -> float:
        batches = evenly_spaced(self._batches, TIMED_BATCHES)
        model.eval()
        started = time.perf_counter()
        for batch in batches:
            score_batch(model, batch)
        return (time.perf_counter() - started) * len(self._batches) / len(batches)

    def cost_in_tokens(self) -> float:
        """Return the number of training tokens that cost as much.

        A batch of n training tokens has 2 n patches, and a forward pass costs a third of a training step.
        """
        return len(self) * self._num_patches / 2 / 3
