"""Scores of a text model on a test text: perplexity and accuracy per token.

    perplexity = exp(-1/N Σ log p)                          Jelinek et al. 1977

N is the number of predicted tokens: of a language model all tokens, including the end of each sentence; of a
masked language model the chosen tokens (`jumok.data.masking`). Perplexities per token cannot be compared
between tokenizers, so the same sum is also divided by the number of words and by the number of characters,
which do not depend on the vocabulary. Each end of a sentence counts as one word and as one character. A
masked language model has no perplexity per word or character: it assigns no probability to a whole text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from jumok.errors import DataError
from jumok.text.normalisation import normalise
from jumok.text.words import split_words
from jumok.types import PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.text_model import TextModel
    from jumok.models.model import Model
    from jumok.types import Batch

# Number of tokens for which log-probabilities over the vocabulary are computed at once.
_CHUNK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The summed negative log-likelihood (nll) of tokens, their number, and the number of correct tokens."""

    nll: float = 0.0
    tokens: int = 0
    correct: int = 0  # tokens that the model found most probable

    def __add__(self, other: TokenScores) -> TokenScores:
        return TokenScores(self.nll + other.nll, self.tokens + other.tokens, self.correct + other.correct)

    @property
    def loss(self) -> float:
        """Negative log-likelihood per token, in nats."""
        return self.nll / max(self.tokens, 1)

    @property
    def accuracy(self) -> float:
        return self.correct / max(self.tokens, 1)


@dataclass(frozen=True, slots=True)
class TextScores:
    """Scores of a model on a text. Words and characters include one end per sentence."""

    task: str
    sentences: int
    left_out: int  # sentences with more tokens than the sentences of training had
    words: int
    characters: int
    token_scores: TokenScores

    def as_dict(self) -> dict[str, float | str | int]:
        """Return the scores for JSON."""
        entries: dict[str, float | str | int] = {
            "task": self.task,
            "sentences": self.sentences,
            "left_out": self.left_out,
            "tokens": self.token_scores.tokens,
            "loss": self.token_scores.loss,
            "perplexity": perplexity(self.token_scores.loss),
            "accuracy": self.token_scores.accuracy,
        }
        if self.task == "language-model":
            entries["words"], entries["characters"] = self.words, self.characters
            entries["word_perplexity"] = perplexity(self.token_scores.nll / self.words)
            entries["character_perplexity"] = perplexity(self.token_scores.nll / self.characters)
        return entries


def evaluate_text(model: TextModel, texts: Sequence[str]) -> TextScores:
    """Score a text with one sentence per line. Blank lines and lines longer than in training are left out."""
    non_blank = [text for text in texts if text.strip()]
    encoded = model.tokenizer.encode_batch(non_blank)
    short = [index for index, ids in enumerate(encoded) if len(ids) <= model.max_tokens]
    if not short:
        raise DataError(
            f"There is no sentence to score. Received: {len(texts):,} lines, {len(non_blank):,} of them with "
            f"more than the {model.max_tokens:,} tokens that the model was trained on. "
            "Write one sentence per line."
        )
    sentences = [non_blank[index] for index in short]
    batch_scores = (score_batch(model.model, batch) for batch in model.batches([encoded[i] for i in short]))
    return TextScores(
        task=model.task,
        sentences=len(sentences),
        left_out=len(non_blank) - len(sentences),
        words=sum(len(split_words(text)) + 1 for text in sentences),
        characters=sum(len(normalise(text)) + 1 for text in sentences),
        token_scores=sum(batch_scores, TokenScores()),
    )


@torch.no_grad()
def score_batch(model: Model, batch: Batch) -> TokenScores:
    """Score the target tokens of a batch with teacher forcing. The model must be in evaluation mode."""
    if batch.target is None:
        raise ValueError("a batch without a target side cannot be scored")
    batch = batch.to(model.device)
    labels = batch.target[:, 1:]  # type: ignore[index]
    is_token = labels != PAD
    states, targets = model(batch)[is_token], labels[is_token]  # (token, width), (token,)
    nll, correct = 0.0, 0
    for start in range(0, len(targets), _CHUNK_TOKENS):
        chunk = targets[start : start + _CHUNK_TOKENS]
        log_probs = model.output.log_probs(states[start : start + _CHUNK_TOKENS])  # (token, vocabulary)
        nll -= float(log_probs.gather(1, chunk[:, None]).sum())
        correct += int((log_probs.argmax(dim=1) == chunk).sum())
    return TokenScores(nll, len(targets), correct)


def perplexity(loss: float) -> float:
    """Return the perplexity of a loss in nats, at most e^700, so that a huge loss does not overflow."""
    return math.exp(min(loss, 700))  # exp(710) is larger than any float
