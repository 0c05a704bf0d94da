"""Validation of a classifier of pictures: its loss, and the share of pictures whose class it names."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from jumok.data.hold_out import fingerprint_pairs
from jumok.inference.picture_classifier import make_class_batches
from jumok.storage.model_folder import ScoreRecord
from jumok.training.loop.detectors import unigram_entropy
from jumok.training.validation.protocol import MAX_PAIRS, evenly_spaced
from jumok.training.validation.token_scores import TokenValidation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.config.recipe import Recipe
    from jumok.evaluation.text_scores import TokenScores
    from jumok.models.model import Model
    from jumok.text.tokenizer import TokenizerPair
    from jumok.types import AttentionMap, Pair


class ClassValidation(TokenValidation):
    """Pictures with their classes, read and batched once."""

    num_too_long = 0
    byte_token_share = 0.0

    def __init__(self, pairs: Sequence[Pair], tokenizers: TokenizerPair, recipe: Recipe) -> None:
        self.fingerprint = fingerprint_pairs(pairs)
        self.uniform_loss = math.log(tokenizers.target.vocab_size)
        self.pairs = evenly_spaced(pairs, MAX_PAIRS)
        classes = tokenizers.target.encode_batch([pair.target for pair in self.pairs])
        pictures = tokenizers.source.encode_batch([pair.source for pair in self.pairs])
        self._num_patches = recipe.source.num_patches
        self._batches = make_class_batches(pictures, classes, batch_tokens=recipe.training.batch_tokens)
        self.unigram_entropy = unigram_entropy(Counter(token for ids in classes for token in ids))

    def _scores(self, total: TokenScores) -> dict[str, ScoreRecord]:
        signature = f"pictures whose class is right, of {len(self):,}"
        return {"accuracy": ScoreRecord(total.accuracy, signature)}

    def attention_snapshot(self, model: Model) -> AttentionMap | None:
        """Return None: the page draws maps between words only."""
        del model
        return None

    def cost_in_tokens(self) -> float:
        """Return the number of training tokens that cost as much as a validation.

        A batch has at most 2 · `training.batch_tokens` patches, so a patch counts as half a token. A forward
        pass costs a third of a training step.
        """
        return len(self) * self._num_patches / 2 / 3
