"""Validation without a search: the loss and the share of correct tokens, over stored batches."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from jumok.evaluation.text_scores import TokenScores, score_batch
from jumok.training.validation.protocol import ValidationResult, evenly_spaced, never_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.models.model import Model
    from jumok.storage.model_folder import ScoreRecord
    from jumok.types import Batch, Pair

TIMED_BATCHES = 4  # how many `estimate_seconds` times


class TokenValidation(ABC):
    """A validation set whose tokens are scored batch by batch, without a search."""

    pairs: Sequence[Pair]
    _batches: Sequence[Batch]  # at least one

    def __len__(self) -> int:
        return len(self.pairs)

    def validate(
        self, model: Model, beam: int, *, should_stop: Callable[[], bool] = never_stop
    ) -> ValidationResult | None:
        """Return the loss and the scores. There is no search, so `beam` has no effect."""
        del beam
        model.eval()
        total = TokenScores()
        for batch in self._batches:
            if should_stop():
                return None
            total += score_batch(model, batch)
        return ValidationResult(total.loss, self._scores(total), hypotheses=(), references=(), samples=())

    @abstractmethod
    def _scores(self, total: TokenScores) -> dict[str, ScoreRecord]: ...

    def flatness(self, model: Model) -> float:
        """Return NaN: only cross-attention has a flatness, and this model has none."""
        del model
        return math.nan

    def estimate_seconds(self, model: Model) -> float:
        batches = evenly_spaced(self._batches, TIMED_BATCHES)
        model.eval()
        started = time.perf_counter()
        for batch in batches:
            score_batch(model, batch)
        return (time.perf_counter() - started) * len(self._batches) / len(batches)
