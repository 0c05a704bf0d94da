"""The probability of each word of a translation, and other words that a translation could have at a place.

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
"""Of a sentence, and of a prefix, if the model does not have a lower limit: each candidate is a search."""
TOKENS_PER_CANDIDATE = 2
"""Next tokens that are tried per candidate: some lead to a word that another one has led to."""


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
    log_probs = token_log_probs(
        translator.model, [tokenizers.source.encode(pair.source) for pair in pairs], targets
    )
    found = []
    for pair, ids, of_tokens in zip(pairs, targets, log_probs, strict=True):
        logs = [0.0] * len(split_words(pair.target))
        words = tokenizers.target.word_of_token(pair.target, ids)
        for word, log_prob in zip(words, of_tokens, strict=False):  # `</s>` has no word
            if word >= 0:
                logs[word] += log_prob
        found.append([math.exp(log) for log in logs])
    return found


def word_candidates(
    translator: Translator, sentence: str, prefix: str = "", *, count: int = 6
) -> list[WordCandidate]:
    """Return the most probable words after `prefix`, each with the translation that the search finds then.

    Each of the most probable next tokens is forced, and the search completes the translation.
    """
    if not sentence.strip():
        return []
    source, begun = translator.tokenizers.source.encode(sentence), translator.tokenizers.target.encode(prefix)
    plan = SearchPlan.from_settings(translator.search)
    limit = min(MAX_TOKENS, translator.max_source_tokens)
    _check_length("sentence", len(source), limit)
    _check_length("prefix", len(begun), limit)
    prefixes = [[*begun, token] for token in _next_tokens(translator, source, begun, count)]
    engine = translator.engine_for(prefix=prefix)
    results = engine.search([source] * len(prefixes), plan, prefixes=prefixes)
    place = len(split_words(prefix))
    texts: dict[str, tuple[str, float]] = {}  # word → the best translation with it
    for _, of_group in results:
        for hypotheses in of_group:
            for best in hypotheses[:1]:
                text = " ".join(translator.tokenizers.target.decode(best.ids).splitlines())
                words = split_words(text)
                # A token that continues the last word of the prefix gives no other word at this place.
                if len(words) > place and words[:place] == split_words(prefix):
                    known = texts.get(words[place])
                    if known is None or known[1] < best.score:
                        texts[words[place]] = (text, best.score)
    probabilities = word_probabilities(translator, [Pair(sentence, text) for text, _ in texts.values()])
    found = [
        WordCandidate(word, of_words[place], text, score, tuple(of_words))
        for (word, (text, score)), of_words in zip(texts.items(), probabilities, strict=True)
    ]
    return sorted(found, key=lambda candidate: -candidate.probability)[:count]


def _check_length(name: str, num_tokens: int, limit: int) -> None:
    """Refuse what would take long, before the model computes anything."""
    if num_tokens > limit:
        raise DataError(
            f"The {name} has {num_tokens:,} tokens; candidates are found for at most {limit:,}. Shorten it."
        )


def _next_tokens(translator: Translator, source: list[int], begun: list[int], count: int) -> list[int]:
    """Return the most probable tokens after the first tokens of a translation, without special ones."""
    log_probs = next_log_probs(translator.model, source, begun)[len(begun)]
    ranked: list[int] = log_probs.argsort(descending=True).tolist()
    return [token for token in ranked if token > END][: TOKENS_PER_CANDIDATE * count]
