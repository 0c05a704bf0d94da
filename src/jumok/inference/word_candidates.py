"""The probability of each word of a translation, and the words that could follow a prefix of it.

A word's probability is the product of those of its tokens, given the source and the words before it: the
model's raw probability, which is not a measure of quality.
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
"""The limit for a sentence and a prefix, unless the model's limit is lower: each candidate takes a search."""
TOKENS_PER_CANDIDATE = 2
"""Next tokens that are tried per requested candidate: several tokens may lead to the same word."""


@dataclass(frozen=True, slots=True)
class WordCandidate:
    """A word that can follow a prefix, and the best translation that begins with both."""

    word: str
    probability: float
    text: str
    score: float
    probabilities: tuple[float, ...]
    """Of all words of the text."""


def word_probabilities(translator: Translator, pairs: Sequence[Pair]) -> list[list[float]]:
    """Return the probability of each word of each target, in the order of `split_words`."""
    tokenizers = translator.tokenizers
    targets = [tokenizers.target.encode(pair.target) for pair in pairs]
    sources = translator.source_ids([pair.source for pair in pairs])
    log_probs = token_log_probs(translator.model, sources, targets)
    found = []
    for pair, ids, pair_log_probs in zip(pairs, targets, log_probs, strict=True):
        word_log_probs = [0.0] * len(split_words(pair.target))
        words = tokenizers.target.word_of_token(pair.target, ids)
        for word, log_prob in zip(words, pair_log_probs, strict=False):  # `</s>` has no word
            if word >= 0:
                word_log_probs[word] += log_prob
        found.append([math.exp(log_prob) for log_prob in word_log_probs])
    return found


def word_candidates(
    translator: Translator, sentence: str, prefix: str = "", *, count: int = 6
) -> list[WordCandidate]:
    """Return the most probable words after `prefix`, each with the best translation that begins with both.

    Each of the most probable next tokens is forced, and the search completes the translation.
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
    index = len(prefix_words)  # of the word after the prefix
    best: dict[str, tuple[str, float]] = {}  # this word → the best translation with it, and its score
    for hypothesis in [ranked[0] for _, batch in results for ranked in batch if ranked]:
        text = " ".join(translator.tokenizers.target.decode(hypothesis.ids).splitlines())
        words = split_words(text)
        if len(words) <= index or words[:index] != prefix_words:
            continue  # the forced token has continued the last word of the prefix
        known = best.get(words[index])
        if known is None or known[1] < hypothesis.score:
            best[words[index]] = (text, hypothesis.score)
    probabilities = word_probabilities(translator, [Pair(sentence, text) for text, _ in best.values()])
    found = [
        WordCandidate(word, word_probs[index], text, score, tuple(word_probs))
        for (word, (text, score)), word_probs in zip(best.items(), probabilities, strict=True)
    ]
    return sorted(found, key=lambda candidate: -candidate.probability)[:count]


def _check_length(name: str, num_tokens: int, limit: int) -> None:
    """Refuse inputs that would take too long, before the model computes anything."""
    if num_tokens > limit:
        raise DataError(
            f"The {name} has {num_tokens:,} tokens; candidates are found for at most {limit:,}. Shorten it."
        )


def _next_tokens(translator: Translator, source: list[int], prefix: list[int], count: int) -> list[int]:
    """Return the most probable tokens after a prefix, without special tokens."""
    log_probs = next_log_probs(translator.model, source, prefix)[len(prefix)]
    ranked: list[int] = log_probs.argsort(descending=True).tolist()
    return [token for token in ranked if token > END][: TOKENS_PER_CANDIDATE * count]
