"""What the validation set says, for each task that a model can have.

    translate         pairs; the loss, and translations with their scores       `validation.py`
    language-model    plain text; the loss of the next piece                    Radford et al. 2018
    masked            plain text with hidden pieces; the loss of those          Devlin et al. 2019

A batch of plain text is a batch of pairs without a source, so the loop and the loss are the same for all
(`prepared.py` makes them).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from jumok.decoding import TextModel, text_batches
from jumok.evaluation import PieceScores, perplexity, score_batch
from jumok.explain import Side
from jumok.storage import ScoreRecord
from jumok.training.detectors import odd_piece_share, unigram_entropy
from jumok.training.exhibits import fixed_sentence, mean_word_map
from jumok.training.validation import (
    MOST_PAIRS,
    ValidationResult,
    ValidationSet,
    never,
    short_enough,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.models import Model
    from jumok.recipe import Recipe
    from jumok.text import Vocabularies
    from jumok.values import AttentionMap, Pair

__all__ = ["TextValidation", "Validation", "make_validation"]


class Validation(Protocol):
    """What the loop asks of a validation set."""

    left_out: int
    unigram_entropy: float
    odd_pieces: float

    @property
    def pairs(self) -> Sequence[Pair]: ...
    def __len__(self) -> int: ...
    def validate(
        self, model: Model, beam: int, *, stop: Callable[[], bool] = never
    ) -> ValidationResult | None: ...
    def flatness(self, model: Model) -> float: ...
    def look(self, model: Model) -> AttentionMap | None: ...
    def estimate_seconds(self, model: Model) -> float: ...
    def cost_in_pieces(self) -> float: ...


def make_validation(pairs: Sequence[Pair], vocabularies: Vocabularies, recipe: Recipe) -> Validation:
    """The validation set of the model of a recipe."""
    kind = ValidationSet if recipe.model.task == "translate" else TextValidation
    return kind(pairs, vocabularies, recipe)


class TextValidation:
    """Plain sentences, encoded and batched once; the pieces to be guessed are always the same ones."""

    def __init__(self, pairs: Sequence[Pair], vocabularies: Vocabularies, recipe: Recipe) -> None:
        self._task = recipe.model.task
        pieces, some = vocabularies.target, spread(pairs, MOST_PAIRS)
        sentences = pieces.encode_batch([pair.target for pair in some])
        short = short_enough([len(ids) for ids in sentences], recipe.training.longest)
        self.left_out = len(some) - len(short)
        self.pairs, sentences = [some[i] for i in short], [sentences[i] for i in short]
        self._pieces, self._count = pieces, sum(map(len, sentences))
        self._fixed = fixed_sentence([len(ids) for ids in sentences])
        self._batches = text_batches(
            sentences, self._task, pieces=pieces.size, batch_tokens=recipe.training.batch_tokens
        )
        self.unigram_entropy = unigram_entropy(Counter(piece for ids in sentences for piece in ids))
        self.odd_pieces = odd_piece_share([piece for ids in sentences for piece in pieces.pieces(ids)])

    def __len__(self) -> int:
        return len(self.pairs)

    def validate(
        self, model: Model, beam: int, *, stop: Callable[[], bool] = never
    ) -> ValidationResult | None:
        """The loss and what it means; None if `stop` said so. There is nothing to search with a beam."""
        del beam
        model.eval()
        total = PieceScores()
        for batch in self._batches:
            if stop():
                return None
            total += score_batch(model, batch)
        return ValidationResult(total.loss, self._scores(total), hypotheses=(), references=(), samples=())

    def _scores(self, total: PieceScores) -> dict[str, ScoreRecord]:
        of = f"{total.tokens:,} pieces of {len(self):,} sentences"
        if self._task == "masked":
            return {"accuracy": ScoreRecord(total.accuracy, f"share guessed of {of}, hidden as always")}
        return {"perplexity": ScoreRecord(perplexity(total.loss), f"a piece, of {of}, </s> counted")}

    def flatness(self, model: Model) -> float:
        """There is no source to look at."""
        del model
        return math.nan

    def look(self, model: Model) -> AttentionMap | None:
        """Where the model looks while it reads one sentence, which is always the same."""
        if self._fixed is None:
            return None
        text = self.pairs[self._fixed].target
        side = Side.of(text, self._pieces.encode(text), self._pieces)
        [attention] = TextModel(model, self._pieces, task=self._task).attention(text).values()
        return mean_word_map(attention, side, side)

    def estimate_seconds(self, model: Model) -> float:
        """About what a validation will take."""
        some = spread(self._batches, 4)
        model.eval()
        started = time.perf_counter()
        for batch in some:
            score_batch(model, batch)
        return (time.perf_counter() - started) * len(self._batches) / len(some)

    def cost_in_pieces(self) -> float:
        """A forward pass costs a third of training on as many pieces."""
        return self._count / 3
