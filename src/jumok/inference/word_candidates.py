"""The probability of each word of a translation, and the words that could follow a prefix.

The probability of a word is the product of the probabilities of its tokens, given the source and the words
before the word. It is the raw probability of the model, which does not measure quality.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.inference.search.plan import SearchPlan
from jumok.inference.teacher_forcing import next_log_probs, token_log_probs
from jumok.text.words import split_words
from jumok.types import END, Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.translator import Translator

MAX_TOKENS = 512
"""The maximum number of tokens of a sentence and of a prefix, because each candidate needs a search.

The limit of the model, `Translator.max_source_tokens`, may be lower.
"""
TOKENS_PER_CANDIDATE = 2
"""How many next tokens are tried per requested candidate. Several tokens may lead to the same word."""


@dataclass(frozen=True, slots=True)
class WordCandidate:
    """A word that can follow a prefix, and the best translation that begins with the prefix and the word."""

    word: str
    probability: float
    text: str
    score: float
    probabilities: tuple[float, ...]
    """The probabilities of all words of `text`."""


def word_probabilities(translator: Translator, pairs: Sequence[Pair]) -> list[list[float]]:
    """Return the probability of each word of each target, in the order of `split_words`."""
    tokenizers = translator.tokenizers
    targets = [tokenizers.target.encode(pair.target) for pair in pairs]
    sources = translator.source_ids([pair.source for pair in pairs])
    log_probs = token_log_probs(translator.model, sources, targets)
    probabilities = []
    for pair, ids, pair_log_probs in zip(pairs, targets, log_probs, strict=True):
        word_log_probs = [0.0] * len(split_words(pair.target))
        words = tokenizers.target.word_of_token(pair.target, ids)
        for word, log_prob in zip(words, pair_log_probs, strict=False):  # `</s>` has no word
            if word >= 0:
                word_log_probs[word] += log_prob
        probabilities.append([math.exp(log_prob) for log_prob in word_log_probs])
    return probabilities


def word_candidates(
    translator: Translator, sentence: str, prefix: str = "", *, count: int = 6
) -> list[WordCandidate]:
    """Return at most `count` words that are probable after `prefix`, each with its best translation.

    The most probable word is first.
    For each of the most probable next tokens, a search finds the best translation that begins with the prefix
    and the token. Words whose first token is less probable are not found.
    """
    if not sentence.strip():
        return []
    [source], [prefix_ids] = translator.source_ids([sentence]), translator.prefix_ids([prefix])
    limit = min(MAX_TOKENS, translator.max_source_tokens)
    _check_length("sentence", len(source), limit)
    _check_length("prefix", len(prefix_ids), limit)
    prefixes = [[*prefix_ids, token] for token in _next_tokens(translator, source, prefix_ids, count)]
    engine, plan = translator.engine_for(prefix=prefix), SearchPlan.from_settings(translator.search)
    results = engine.search([source] * len(prefixes), plan, prefixes=prefixes)
    prefix_words = split_words(prefix)
    index = len(prefix_words)  # the index of the word after the prefix
    best: dict[str, tuple[str, float]] = {}  # the word after the prefix → its best translation and the score
    for hypothesis in [ranked[0] for _, batch in results for ranked in batch if ranked]:
        text = " ".join(translator.tokenizers.target.decode(hypothesis.ids).splitlines())
        words = split_words(text)
        if len(words) <= index or words[:index] != prefix_words:
            continue  # the forced token has continued the last word of the prefix
        previous = best.get(words[index])
        if previous is None or previous[1] < hypothesis.score:
            best[words[index]] = (text, hypothesis.score)
    probabilities = word_probabilities(translator, [Pair(sentence, text) for text, _ in best.values()])
    candidates = [
        WordCandidate(word, word_probs[index], text, score, tuple(word_probs))
        for (word, (text, score)), word_probs in zip(best.items(), probabilities, strict=True)
    ]
    return sorted(candidates, key=lambda candidate: -candidate.probability)[:count]


def _check_length(name: str, num_tokens: int, limit: int) -> None:
    """Raise a DataError if an input would take too long. Call this before the model computes anything."""
    if num_tokens > limit:
        raise DataError(
            f"The {name} has {num_tokens:,} tokens; candidates are found for at most {limit:,}. Shorten it."
        )


def _next_tokens(translator: Translator, source: list[int], prefix: list[int], count: int) -> list[int]:
    """Return the most probable tokens after a prefix, without special tokens."""
    log_probs = next_log_probs(translator.model, source, prefix)[len(prefix)]
    ranked: list[int] = log_probs.argsort(descending=True).tolist()
    return [token for token in ranked if token > END][: TOKENS_PER_CANDIDATE * count]
