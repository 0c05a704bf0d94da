"""The probability of each word, and other words at one position of a translation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jumok.errors import DataError
from jumok.inference.loading import load
from jumok.inference.teacher_forcing import cross_entropies, next_log_probs, token_log_probs
from jumok.inference.word_candidates import word_candidates, word_probabilities
from jumok.text.words import split_words
from jumok.types import END, Pair

if TYPE_CHECKING:
    from jumok.inference.translator import Translator

MODELS = Path(__file__).parents[1] / "stored" / "models"
SENTENCE = "The student reads a book."


@pytest.fixture(scope="module", params=["transformer", "recurrent-gru-bahdanau"])
def translator(request: pytest.FixtureRequest) -> Translator:
    loaded = load(MODELS / request.param, engine="torch")
    loaded.max_source_tokens = 64  # the stored models have a limit of 12
    return loaded


def test_the_probability_of_a_translation_is_the_product_of_its_words_and_the_end(
    translator: Translator,
) -> None:
    text = translator.translate([SENTENCE])[0].text
    [probabilities] = word_probabilities(translator, [Pair(SENTENCE, text)])
    assert len(probabilities) == len(split_words(text))
    source, target = translator.tokenizers.source.encode(SENTENCE), translator.tokenizers.target.encode(text)
    steps = next_log_probs(translator.model, source, target)
    total = sum(float(steps[step, token]) for step, token in enumerate([*target, END]))
    end = float(steps[len(target), END])
    assert sum(map(math.log, probabilities)) + end == pytest.approx(total, abs=1e-4)


def test_log_probabilities_do_not_depend_on_the_batch(translator: Translator) -> None:
    sources = [translator.tokenizers.source.encode(text) for text in (SENTENCE, "I go.", "You go home.")]
    targets = [translator.tokenizers.target.encode(text) for text in ("학생은 책을 읽는다.", "간다.", "")]
    together = token_log_probs(translator.model, sources, targets)
    for source, target, in_batch in zip(sources, targets, together, strict=True):
        [alone] = token_log_probs(translator.model, [source], [target])
        assert len(alone) == len(target) + 1
        assert in_batch == pytest.approx(alone, abs=1e-4)
        [entropy] = cross_entropies(translator.model, [source], [target])
        assert entropy == pytest.approx(-sum(alone) / len(alone))


def test_candidates_begin_with_the_prefix_and_are_distinct_and_sorted(translator: Translator) -> None:
    best_words = split_words(translator.translate([SENTENCE])[0].text)
    for position in (0, 1):
        prefix = " ".join(best_words[:position])
        candidates = word_candidates(translator, SENTENCE, prefix, count=4)
        assert 1 < len(candidates) <= 4
        assert len({candidate.word for candidate in candidates}) == len(candidates)
        for candidate in candidates:
            words = split_words(candidate.text)
            assert words[: position + 1] == [*best_words[:position], candidate.word]
            assert candidate.probability == candidate.probabilities[position]
            assert len(candidate.probabilities) == len(words)
        probabilities = [candidate.probability for candidate in candidates]
        assert probabilities == sorted(probabilities, reverse=True)


def test_a_sentence_or_prefix_that_is_too_long_is_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match=r"The sentence has .* tokens"):
        word_candidates(translator, "book " * 1_000)
    with pytest.raises(DataError, match=r"The prefix has .* tokens"):
        word_candidates(translator, SENTENCE, "책 " * 1_000)


def test_the_sentence_and_the_prefix_have_the_length_limit_of_the_model(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_tokens = len(translator.tokenizers.source.encode(SENTENCE))
    monkeypatch.setattr(translator, "max_source_tokens", num_tokens)
    assert word_candidates(translator, SENTENCE, count=1)
    monkeypatch.setattr(translator, "max_source_tokens", num_tokens - 1)
    with pytest.raises(DataError, match=rf"The sentence has {num_tokens} tokens.*at most {num_tokens - 1}\."):
        word_candidates(translator, SENTENCE, count=1)
    with pytest.raises(DataError, match=r"The prefix has"):
        word_candidates(translator, "I", "책 " * num_tokens)


def test_a_blank_sentence_has_no_candidates(translator: Translator) -> None:
    assert word_candidates(translator, " ") == []
