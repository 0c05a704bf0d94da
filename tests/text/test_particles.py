"""Particles are split from the end of a word, and have the correct form after every syllable."""

from __future__ import annotations

import pytest

from jumok.text.korean_particles import (
    ALTERNATIONS,
    adapt_particle,
    ends_in_consonant,
    is_particle,
    noun_ends_before,
    split_particle,
)

SYLLABLES = [chr(code) for code in range(0xAC00, 0xD7A4)]


def final(syllable: str) -> int:
    """Return the number of the final consonant, or 0 if the syllable ends in a vowel."""
    return (ord(syllable) - 0xAC00) % 28


def test_there_are_11172_syllables_and_their_last_sound_is_known() -> None:
    assert len(SYLLABLES) == 11_172
    assert (
        sum(map(ends_in_consonant, SYLLABLES)) == 11_172 * 27 // 28
    )  # one of the 28 endings is no consonant


@pytest.mark.parametrize(("after_consonant", "after_vowel"), ALTERNATIONS)
def test_a_particle_has_the_right_form_after_every_syllable(after_consonant: str, after_vowel: str) -> None:
    copulas = ("이다", "이니", "이라", "이란", "이며", "이든")  # the 이 of these may stay after a vowel
    for old_stem, tail in (("책", after_consonant), ("나무", after_vowel)):
        for syllable in SYLLABLES:
            expected = after_consonant if final(syllable) else after_vowel
            if after_consonant == "으로" and final(syllable) == 8:  # ㄹ
                expected = "로"
            if after_consonant in copulas and tail == after_consonant:
                expected = after_consonant
            assert adapt_particle(syllable, tail, old_stem=old_stem) == expected
            assert is_particle(syllable, expected)


def test_the_particle_of_direction_is_shorter_after_a_vowel_and_after_a_final_l() -> None:
    assert adapt_particle("서울", "으로", old_stem="집") == "로"
    assert adapt_particle("집", "로", old_stem="서울") == "으로"
    assert adapt_particle("바다", "로부터", old_stem="서울") == "로부터"
    assert adapt_particle("산", "로서는", old_stem="바다") == "으로서는"


@pytest.mark.parametrize(
    ("word", "stem", "tail"),
    [
        ("학생은", "학생", "은"),
        ("학생들은", "학생", "들은"),
        ("도서관에서는", "도서관", "에서는"),
        ("고양이를", "고양이", "를"),
        ("고양이에게", "고양이", "에게"),
        ("사과가", "사과", "가"),
        ("나이", "나이", ""),
        ("과학자이다", "과학자", "이다"),
        ("의사였다", "의사", "였다"),
        ("서울로", "서울", "로"),
        ("책", "책", ""),
        ("도서관에서다", "도서관", "에서다"),
        ("학교까지였다", "학교", "까지였다"),
        ("API를", "API", "를"),
        ("간다", "간다", ""),
    ],
)
def test_a_word_is_split_into_its_stem_and_its_particles(word: str, stem: str, tail: str) -> None:
    assert split_particle(word) == (stem, tail)


@pytest.mark.parametrize(
    ("stem", "old_stem", "tail", "expected"),
    [
        ("교사", "학생", "은", "는"),
        ("교사", "학생", "이", "가"),
        ("교사", "학생", "이다", "이다"),
        ("교사", "학생", "이었다", "였다"),
        ("수강생", "의사", "다", "이다"),
        ("수강생", "의사", "예요", "이에요"),
        ("교사", "학생", "들은", "들은"),
        ("교사", "학생", "에게", "에게"),
        ("API", "학생", "을", "를"),
        ("HTML", "나무", "를", "을"),
        ("2026", "나무", "는", "은"),
    ],
)
def test_particles_are_adapted_to_another_word(stem: str, old_stem: str, tail: str, expected: str) -> None:
    assert adapt_particle(stem, tail, old_stem=old_stem) == expected


@pytest.mark.parametrize("tail", ["", "은", "의", "에서는", "들이", "이다", "입니다", "인데", "인지"])
def test_a_noun_ends_where_its_particles_begin(tail: str) -> None:
    assert noun_ends_before("한국", tail)


@pytest.mark.parametrize("tail", ["인", "인은", "인이", "인들은", "어", "어를", "산", "사람", "는"])
def test_a_noun_does_not_end_inside_a_longer_word(tail: str) -> None:
    assert not noun_ends_before("한국", tail)
