"""Dual conditional cross-entropy: compared with values computed by hand, and on pairs with added noise."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest

import jumok
from jumok.data.corpora import corpus_of_pairs
from jumok.errors import UnsupportedError
from jumok.evaluation.pair_scores import PairScore, check_directions, score_pairs
from jumok.inference.teacher_forcing import cross_entropies, next_log_probs
from jumok.types import END, Pair
from support.digit_lines import digit_lines

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.inference.translator import Translator

SETTINGS: dict[str, Any] = {
    "model.width": 32,
    "model.feed_forward": 64,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "text.vocab_size": 320,
    "training.batch_tokens": 256,
    "training.learning_rate": 0.01,
    "training.steps": 300,
}


def test_scores_equal_values_computed_by_hand() -> None:
    assert PairScore(0.0, 0.0).score == 1.0
    assert PairScore(1.0, 3.0).score == pytest.approx(math.exp(-(2.0 + 2.0)))  # difference + mean
    assert PairScore(math.nan, 1.0).score == 0.0


@pytest.fixture(scope="module")
def translators(tmp_path_factory: pytest.TempPathFactory) -> tuple[Translator, Translator]:
    folder = tmp_path_factory.mktemp("digits")
    lines = [(source, target) for source, target, _ in digit_lines(400)]
    directions = {"en-de": lines, "de-en": [(target, source) for source, target in lines]}
    models = []
    for name, pairs in directions.items():
        source, target = name.split("-")
        corpus = corpus_of_pairs(pairs, source=source, target=target)
        jumok.train(corpus, out=folder / name, **SETTINGS)
        models.append(jumok.load(folder / name, engine="torch"))
    return models[0], models[1]


def area_under_curve(good: list[float], bad: list[float]) -> float:
    """The probability that a good pair has a higher score than a bad pair."""
    wins = sum((g > b) + (g == b) / 2 for g in good for b in bad)
    return wins / (len(good) * len(bad))


@pytest.mark.medium
class TestScoring:
    def test_cross_entropies_of_a_batch_equal_cross_entropies_of_single_sentences(
        self, translators: tuple[Translator, Translator]
    ) -> None:
        translator, _ = translators
        sources = translator.tokenizers.source.encode_batch(["one two three", "four", "nine nine"])
        targets = translator.tokenizers.target.encode_batch(["eins zwei drei", "vier", "neun"])
        entropies = cross_entropies(translator.model, sources, targets, batch_tokens=12)
        for source, target, entropy in zip(sources, targets, entropies, strict=True):
            log_probs = next_log_probs(translator.model, source, target)
            labels = [*target, END]
            expected = -sum(float(log_probs[i, label]) for i, label in enumerate(labels)) / len(labels)
            assert entropy == pytest.approx(expected, abs=1e-4)

    def test_noise_has_lower_scores(self, translators: tuple[Translator, Translator]) -> None:
        good = [Pair(source, target) for source, target, _ in digit_lines(100, seed=5)]
        targets = [pair.target for pair in good]
        random.Random(1).shuffle(targets)
        shuffled = [Pair(pair.source, target) for pair, target in zip(good, targets, strict=True)]
        bad = [pair for pair in shuffled if pair not in good]
        copied = [Pair(pair.source, pair.source) for pair in good]
        scores = [[one.score for one in score_pairs(*translators, pairs)] for pairs in (good, bad, copied)]
        assert area_under_curve(scores[0], scores[1]) > 0.9
        assert area_under_curve(scores[0], scores[2]) > 0.9

    def test_a_pair_that_is_too_long_has_the_score_0(
        self, translators: tuple[Translator, Translator]
    ) -> None:
        long, short = score_pairs(*translators, [Pair("one " * 500, "eins"), Pair("one", "eins")])
        assert long.score == 0.0
        assert short.score > 0.0

    def test_the_second_model_must_translate_in_the_opposite_direction(
        self, translators: tuple[Translator, Translator]
    ) -> None:
        check_directions(*translators)  # raises no error
        with pytest.raises(UnsupportedError, match="Received: en → de and en → de"):
            check_directions(translators[0], translators[0])


@pytest.mark.slow
def test_noise_in_the_built_in_corpus_has_lower_scores(tmp_path: Path) -> None:
    """docs/quality.md has the figures of this measurement."""
    from jumok.datasets.english_korean import generate

    train = [(pair.source, pair.target) for pair in generate("train", 20_000)]
    for name, pairs in {"en-ko": train, "ko-en": [(target, source) for source, target in train]}.items():
        source, target = name.split("-")
        corpus = corpus_of_pairs(pairs, source=source, target=target)
        jumok.train(corpus, out=tmp_path / name, steps=1200)
    models = [jumok.load(tmp_path / name, engine="torch") for name in ("en-ko", "ko-en")]
    good = [Pair(pair.source, pair.target) for pair in generate("test", 1000)]
    targets = [pair.target for pair in good]
    noise = {
        # the target of the seventh pair after this pair
        "another target": [Pair(pair.source, text) for pair, text in zip(good, targets[7:], strict=False)],
        "half a target": [
            Pair(p.source, " ".join(p.target.split()[: len(p.target.split()) // 2])) for p in good
        ],
    }
    scores = [one.score for one in score_pairs(*models, good)]
    for name, pairs in noise.items():
        bad = [one.score for one in score_pairs(*models, [pair for pair in pairs if pair.target])]
        area = area_under_curve(scores, bad)
        assert area > 0.95, name
