"""Generated pairs depend only on the arguments, and English word forms are correct."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from jumok.datasets import english_korean
from jumok.datasets.english_korean import SPLITS, capacity, content_words, generate, pattern_names
from jumok.datasets.english_korean.english import plural_of
from jumok.datasets.english_korean.lexicon import INTRANSITIVE, MOTION, TRANSITIVE
from jumok.datasets.english_korean.patterns.table import PATTERNS
from jumok.datasets.english_korean.scene import Scene
from jumok.errors import DataError

MIN_CAPACITY = 2_000_000  # sentences


def test_the_public_names_are_as_documented() -> None:
    assert sorted(english_korean.__all__) == [
        "SPLITS",
        "capacity",
        "content_words",
        "generate",
        "pattern_names",
    ]
    assert SPLITS == ("train", "valid", "test")


def test_the_grammar_is_large_enough() -> None:
    assert len(pattern_names()) >= 60
    assert len(set(content_words())) == len(content_words()) >= 300
    assert capacity() > MIN_CAPACITY


def test_one_pattern_alone_has_more_sentences_than_the_minimum() -> None:
    """Of n uniform draws from c sentences, about n²/2c collide. Draws that are not uniform collide more."""
    random, count = Random(1).random, 6_000
    build = PATTERNS["three people"].build
    distinct = {build(Scene(random, False)).english() for _ in range(count)}
    assert count - len(distinct) <= count**2 / (2 * MIN_CAPACITY)


def test_a_smaller_count_gives_the_first_pairs_of_a_larger_count() -> None:
    assert list(generate("train", 40, seed=3)) == list(islice(generate("train", 400, seed=3), 40))
    assert list(generate("train", 40, seed=3)) != list(generate("train", 40, seed=4))


def test_the_first_pair_does_not_change_by_accident() -> None:
    """If you change the grammar on purpose, change the expected pair as well."""
    first = next(generate("train", 1))
    assert (first.source, first.target) == FIRST


FIRST = ("We will meet the writer who rides bicycles.", "우리는 자전거를 타는 작가를 만날 것이다.")


def test_an_unknown_split_is_refused_with_a_suggestion() -> None:
    with pytest.raises(DataError, match='Did you mean "train"'):
        generate("trian", 1)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_pair_or_every_pair_is_polite_if_requested(share: float) -> None:
    tagged = [pair.source.startswith("<polite> ") for pair in generate("train", 300, polite=share)]
    assert sum(tagged) == share * 300


def test_every_pattern_builds_plain_and_polite_sentences() -> None:
    random = Random(2).random
    for pattern in PATTERNS.values():
        for polite in (False, True):
            sentence = pattern.build(Scene(random, polite))
            assert sentence.english()[-1] == sentence.korean()[-1] == sentence.punctuation


@pytest.mark.parametrize(
    ("singular", "plural"),
    [("box", "boxes"), ("strawberry", "strawberries"), ("toy", "toys"), ("tomato", "tomatoes")],
)
def test_plurals_are_spelt_correctly(singular: str, plural: str) -> None:
    assert plural_of(singular) == plural


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("study", "study studies studied studied studying"),
        ("write", "write writes wrote written writing"),
        ("hug", "hug hugs hugged hugged hugging"),
        ("watch", "watch watches watched watched watching"),
        ("carry", "carry carries carried carried carrying"),
        ("play", "play plays played played playing"),
        ("swim", "swim swims swam swum swimming"),
        ("do", "do does did done doing"),
        ("go", "go goes went gone going"),
        ("sit", "sit sits sat sat sitting"),
        ("take", "take takes took taken taking"),
        ("understand", "understand understands understood understood understanding"),
    ],
)
def test_verbs_of_the_lexicon_have_the_right_forms(base: str, forms: str) -> None:
    verbs = [verb for verb in (*TRANSITIVE, *INTRANSITIVE, *MOTION) if verb.forms.base == base]
    assert verbs
    assert all(verb.forms == tuple(forms.split()) for verb in verbs)
