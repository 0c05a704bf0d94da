"""Properties of all generated pairs, tested on a large sample.

Coverage is not measured here. Measuring it would take several times as long as generating the pairs, and
`test_korean_generation.py` runs the same lines of code with fewer pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from jumok.datasets.english_korean import SPLITS, generate
from jumok.datasets.english_korean.hangul import final_of, with_final
from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
    DEGREES,
    FREQUENCIES,
    GIVING,
    INTRANSITIVE,
    MANNERS,
    MOTION,
    NOUNS,
    NUMBERS,
    STATES,
    TIMES,
    TRAITS,
    TRANSITIVE,
    reserved_split,
)
from jumok.text.words import split_words

if TYPE_CHECKING:
    from jumok.types import Pair

pytestmark = pytest.mark.no_cover

TAG = "<polite> "


@cache
def pairs(split: str = "train") -> tuple[Pair, ...]:
    return tuple(generate(split, 16_000 if split == "train" else 800))


@cache
def target_words() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(split_words(pair.target)) for pair in pairs())


@cache
def target_vocabulary() -> frozenset[str]:
    return frozenset(word for words in target_words() for word in words)


def test_a_quarter_of_the_pairs_is_polite_by_default() -> None:
    tagged = sum(pair.source.startswith(TAG) for pair in pairs())
    assert 0.22 < tagged / len(pairs()) < 0.28


def test_pairs_are_distinct_and_english_determines_korean() -> None:
    translations = {pair.source: pair.target for split in SPLITS for pair in pairs(split)}
    assert len(translations) == sum(len(pairs(split)) for split in SPLITS)


@pytest.mark.parametrize("count", [3_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_english_determines_korean_and_its_split_whatever_the_seed(count: int) -> None:
    translations: dict[str, str] = {}
    splits: dict[str, str] = {}
    for split, split_count in (("train", count), ("valid", count // 10), ("test", count // 10)):
        for seed in (11, 12):
            for pair in generate(split, split_count, seed=seed):
                assert translations.setdefault(pair.source, pair.target) == pair.target
                assert splits.setdefault(pair.source.removeprefix(TAG), split) == split


def test_a_sentence_with_or_without_the_tag_is_in_only_one_split() -> None:
    sources = [{pair.source.removeprefix(TAG) for pair in pairs(split)} for split in SPLITS]
    assert not sources[0] & sources[1]
    assert not sources[0] & sources[2]
    assert not sources[1] & sources[2]


# --- held-out combinations --------------------


@cache
def held_out_regex(split: str) -> re.Pattern[str]:
    """Return an expression that finds verbs with objects whose combination is reserved for this split."""
    alternatives = []
    for verb in TRANSITIVE:
        if verb.after:
            continue
        for noun in dict.fromkeys(verb.objects):
            if reserved_split(verb, noun) == split and "person" not in noun.classes:
                forms = "|".join(sorted(set(verb.forms)))
                names = f"{' '.join(noun.english)}|{' '.join(noun.plural)}"
                alternatives.append(rf"(?:{forms}) (?:(?:an?|the|this|that|these|those|my) )?(?:{names})\b")
    return re.compile(rf"\b(?:{'|'.join(alternatives)})")


@pytest.mark.parametrize("split", ["valid", "test"])
def test_held_out_combinations_never_occur_in_training(split: str) -> None:
    assert not [pair.source for pair in pairs() if held_out_regex(split).search(pair.source)]
    num_matches = sum(bool(held_out_regex(split).search(pair.source)) for pair in pairs(split))
    assert num_matches > 0.05 * len(pairs(split))  # the expression finds only the simplest combinations


def test_combinations_held_out_for_test_never_occur_in_valid() -> None:
    assert not [pair.source for pair in pairs("valid") if held_out_regex("test").search(pair.source)]


def test_every_content_word_is_frequent_in_training() -> None:
    counts = Counter(word.lower() for pair in pairs() for word in split_words(pair.source))
    adverbs = (*TIMES, *FREQUENCIES, *MANNERS, *DEGREES, *NUMBERS)
    forms = [
        *({noun.english[-1].lower(), noun.plural[-1].lower()} for noun in NOUNS),
        *(set(verb.forms) for verb in (*TRANSITIVE, *INTRANSITIVE, *MOTION, *GIVING)),
        *({adjective.english} for adjective in (*ADJECTIVES, *STATES, *TRAITS, *ATTRIBUTES)),
        *({adverb.english[-1].lower()} for adverb in adverbs),
    ]
    rare = [words for words in forms if sum(counts[word] for word in words) < 8]
    assert not rare


# --- length and alignment --------------------


def test_most_sentences_are_short_and_none_is_too_long() -> None:
    lengths = [len(split_words(pair.source)) for pair in pairs()]
    assert max(*lengths, *(len(words) for words in target_words())) <= 30
    assert sum(4 <= length <= 10 for length in lengths) > 0.75 * len(lengths)
    assert any(length > 20 for length in lengths)


def test_links_are_in_range_and_every_target_word_has_a_sure_link() -> None:
    for split in SPLITS:
        for pair in pairs(split)[:4_000]:
            assert pair.alignment is not None
            source, target = split_words(pair.source), split_words(pair.target)
            assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in pair.alignment.possible)
            assert {j for _, j in pair.alignment.sure} == set(range(len(target)))


def test_every_english_noun_has_a_sure_link() -> None:
    nouns = {word for noun in NOUNS for word in (noun.english[-1], noun.plural[-1])}
    for pair in pairs()[:4_000]:
        assert pair.alignment is not None
        linked = {i for i, _ in pair.alignment.sure}
        missing = [
            word for i, word in enumerate(split_words(pair.source)) if word in nouns and i not in linked
        ]
        assert not missing, pair


# --- English --------------------


@pytest.mark.parametrize(
    "wrong",
    [
        r"\b[Aa] (?!uni|use|one)[aeiou]",
        r"\b[Aa]n (?!hour)[^aeiou]",
        r"\bI (?:is|are|has|does|were)\b",
        r"^(?:<polite> )?(?:He|She|It|Minsu|Yuna) (?:are|am|have|do|were)\b",
        r"\b(?:[Ww]e|[Tt]hey|[Yy]ou) (?:is|am|has|does|was)\b",
        r"\b(?:do|does|did|will|can|could|may|must) not \w+(?:ed|s)\b(?<!dress)(?<!pass)(?<!miss)(?<!need)",
        r"\b(\w+) \1\b",
        r"\bto home\b",
        r"  | [.,?]",
    ],
)
def test_english_has_no_known_mistakes(wrong: str) -> None:
    assert not [pair.source for pair in pairs() if re.search(wrong, pair.source)]


# --- Korean --------------------


def is_open(syllable: str) -> bool:
    """Return whether a syllable ends in a vowel."""
    return not final_of(syllable)


# Words that end in the same syllable, but not in the particle.
NOT_PARTICLES = {
    "을": {"지을", "모을"},
    "은": {"지은", "모은"},
    "가": {"작가"},
    "과": {"사과"},
}


@pytest.mark.parametrize(
    ("particle", "after_vowel"),
    [("을", False), ("를", True), ("은", False), ("가", True), ("과", False), ("와", True)],
)
def test_particles_agree_with_the_sound_before_them(particle: str, after_vowel: bool) -> None:
    with_particle = {word for word in target_vocabulary() if len(word) > 1 and word[-1] == particle}
    wrong = {word for word in with_particle if is_open(word[-2]) != after_vowel} - NOT_PARTICLES.get(
        particle, set()
    )
    assert with_particle
    assert not wrong


def test_ro_follows_a_vowel_or_rieul() -> None:
    words = {word for word in target_vocabulary() if word.endswith("로") and len(word) > 1}
    assert {"지하철로", "서울로", "집으로"} <= words
    assert {final_of(word[-2]) for word in words} == {"", "ㄹ"}


def test_adjectives_never_take_the_ending_of_verbs() -> None:
    words = target_vocabulary()
    words_before_negation = {  # with the ending that follows a verb
        first for row in target_words() for first, second in pairwise(row) if second == "않는다"
    }
    assert words_before_negation
    for adjective in (*ADJECTIVES, *STATES, *TRAITS):
        text = adjective.stem.text
        wrong = {text + "는다", text + "는"}
        if is_open(text[-1]):
            wrong.add(text[:-1] + with_final(text[-1], "ㄴ") + "다")
        if adjective.stem.kind == "adjective":
            assert not words & wrong
            assert text + "지" not in words_before_negation


@pytest.mark.parametrize(
    "wrong",
    [
        r"(?:오늘|어제|내일|매일|매주)에",
        r"(?:^| )(?:나가|저가|너가|누구가|나의|저의|너의) ",
        r"들들|은는|을를|께서(?:이|은) ",
        r"(?:어머니|아버지|할머니|할아버지|선생님|교수님)(?:는|은|가|이|에게)\b",
        r"[가-힣]것이다|[가-힣](?<!자전)거예요|[가-힣](?<!민)(?<!지)수 (?:있|없)",
        r"  | [.,?]|,",
        r"모자를 (?:입|신)|신발을 (?:입|쓰)|바지를 (?:쓰|신)|안경을 (?:입|신)",
        r"(?:았|었|했|갔|왔)서 ",
        r"알지 않|있지 않는",
        r"당신|[A-Za-z]",
    ],
)
def test_korean_has_no_known_mistakes(wrong: str) -> None:
    assert not [pair.target for pair in pairs() if re.search(wrong, pair.target)]


def test_elders_take_an_honorific_verb() -> None:
    """If an elder is the topic of a sentence of at most eight words, one clause as a rule, -시- follows."""
    for pair, words in zip(pairs(), target_words(), strict=True):
        if len(words) < 9 and words[1:2] and any(word.endswith("께서는") for word in words[:2]):
            text = "".join(words[1:])
            assert re.search("[시신실셔셨세십]|께서도", text), pair


def test_only_polite_sentences_end_in_yo() -> None:
    for pair, words in zip(pairs(), target_words(), strict=True):
        assert words[-2].endswith("요") == pair.source.startswith(TAG), pair


def test_polite_sentences_use_the_humble_pronoun() -> None:
    for pair, words in zip(pairs(), target_words(), strict=True):
        is_polite = pair.source.startswith(TAG)
        wrong = {"나는", "내가", "내", "너는", "네가"} if is_polite else {"저는", "제가", "저를", "제"}
        assert not wrong.intersection(words), pair
