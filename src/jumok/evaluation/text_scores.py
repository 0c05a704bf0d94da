"""A model of plain text against a test text: perplexity, and how many hidden pieces it guesses.

    perplexity = exp(-1/N Σ log p)                          Jelinek et al. 1977

N counts pieces, and the end of each sentence. Another vocabulary has other pieces, and a perplexity a piece
says nothing across the two; so the same sum is also divided by the words and by the characters, which do not
depend on it (ends counted as well). What guesses hidden pieces has no probability of a whole text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from jumok.errors import DataError
from jumok.text import normalise, split_words
from jumok.values import PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.decoding import TextModel
    from jumok.models import Model
    from jumok.values import Batch

__all__ = ["PieceScores", "TextScores", "evaluate_text", "perplexity", "score_batch"]

SCORED_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class PieceScores:
    """Sums over the pieces that a model was asked for."""

    nll: float = 0.0
    tokens: int = 0
    correct: int = 0

    def __add__(self, other: PieceScores) -> PieceScores:
        return PieceScores(self.nll + other.nll, self.tokens + other.tokens, self.correct + other.correct)

    @property
    def loss(self) -> float:
        """Negative log-likelihood a piece, in nats."""
        return self.nll / max(self.tokens, 1)

    @property
    def accuracy(self) -> float:
        return self.correct / max(self.tokens, 1)


@dataclass(frozen=True, slots=True)
class TextScores:
    """What a model makes of a text. Words and characters count an end a sentence, as the pieces do."""

    task: str
    sentences: int
    left_out: int  # sentences of more pieces than the model was trained on
    words: int
    characters: int
    pieces: PieceScores

    def as_dict(self) -> dict[str, float | str | int]:
        """Ready for JSON."""
        found: dict[str, float | str | int] = {
            "task": self.task,
            "sentences": self.sentences,
            "left_out": self.left_out,
            "tokens": self.pieces.tokens,
            "loss": self.pieces.loss,
            "perplexity": perplexity(self.pieces.loss),
            "accuracy": self.pieces.accuracy,
        }
        if self.task == "language-model":
            found["words"], found["characters"] = self.words, self.characters
            found["word_perplexity"] = perplexity(self.pieces.nll / self.words)
            found["character_perplexity"] = perplexity(self.pieces.nll / self.characters)
        return found


def evaluate_text(model: TextModel, texts: Sequence[str]) -> TextScores:
    """Score a text, a sentence a line; lines without a word, or too long for the model, are left out."""
    spoken = [text for text in texts if text.strip()]
    encoded = model.pieces.encode_batch(spoken)
    short = [number for number, ids in enumerate(encoded) if len(ids) <= model.longest]
    if not short:
        raise DataError(
            f"There is no sentence to score. Received: {len(texts):,} lines, {len(spoken):,} of them with "
            f"more than the {model.longest:,} pieces that the model was trained on. Give a sentence a line."
        )
    sentences = [spoken[number] for number in short]
    scored = (score_batch(model.model, batch) for batch in model.batches([encoded[i] for i in short]))
    return TextScores(
        task=model.task,
        sentences=len(sentences),
        left_out=len(spoken) - len(sentences),
        words=sum(len(split_words(text)) + 1 for text in sentences),
        characters=sum(len(normalise(text)) + 1 for text in sentences),
        pieces=sum(scored, PieceScores()),
    )


@torch.no_grad()
def score_batch(model: Model, batch: Batch) -> PieceScores:
    """The pieces that a batch asks for, teacher forced. The model is in evaluation mode already."""
    if batch.target is None:
        raise ValueError("a batch is scored by its target side, which it does not have")
    labels = batch.target[:, 1:]
    real = labels != PAD
    states, wanted = model(batch)[real], labels[real]  # (token, width), (token,)
    nll, correct = 0.0, 0
    for first in range(0, len(wanted), SCORED_AT_ONCE):
        their = wanted[first : first + SCORED_AT_ONCE]
        log_probs = model.output.log_probs(states[first : first + SCORED_AT_ONCE])  # (token, piece)
        nll -= float(log_probs.gather(1, their[:, None]).sum())
        correct += int((log_probs.argmax(dim=1) == their).sum())
    return PieceScores(nll, len(wanted), correct)


def perplexity(loss: float) -> float:
    """Of a loss in nats; a loss beyond all measure stays a number."""
    return math.exp(min(loss, 700))
