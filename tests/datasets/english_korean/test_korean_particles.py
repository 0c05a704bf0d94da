"""Syllables are decomposed correctly, and nouns with particles equal forms written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.datasets.english_korean.hangul import attach, compose, decompose, final_of, with_final

PARTICLES = [
    ("사과", "은", "사과는"),
    ("책", "은", "책은"),
    ("서울", "은", "서울은"),
    ("어머니", "은", "어머니는"),
    ("학생들", "은", "학생들은"),
    ("나", "은", "나는"),
    ("저", "은", "저는"),
    ("우리", "은", "우리는"),
    ("개", "이", "개가"),
    ("곰", "이", "곰이"),
    ("돈", "이", "돈이"),
    ("나", "이", "내가"),
    ("저", "이", "제가"),
    ("너", "이", "네가"),
    ("누구", "이", "누가"),
    ("그", "이", "그가"),
    ("그녀", "이", "그녀가"),
    ("지하철", "이", "지하철이"),
    ("우유", "을", "우유를"),
    ("물", "을", "물을"),
    ("밥", "을", "밥을"),
    ("꽃", "을", "꽃을"),
    ("나", "을", "나를"),
    ("너", "을", "너를"),
    ("누구", "을", "누구를"),
    ("컴퓨터", "을", "컴퓨터를"),
    ("빵", "과", "빵과"),
    ("우유", "과", "우유와"),
    ("딸", "과", "딸과"),
    ("친구", "과", "친구와"),
    ("버스", "으로", "버스로"),
    ("서울", "으로", "서울로"),
    ("연필", "으로", "연필로"),
    ("지하철", "으로", "지하철로"),
    ("칼", "으로", "칼로"),
    ("부산", "으로", "부산으로"),
    ("집", "으로", "집으로"),
    ("숟가락", "으로", "숟가락으로"),
    ("미국", "으로", "미국으로"),
    ("집", "에", "집에"),
    ("학교", "에서", "학교에서"),
    ("아이", "에게", "아이에게"),
    ("나", "의", "내"),
    ("저", "의", "제"),
    ("너", "의", "네"),
    ("우리", "의", "우리"),
    ("그", "의", "그의"),
    ("민수", "의", "민수의"),
    ("토끼", "보다", "토끼보다"),
    ("역", "까지", "역까지"),
    ("그녀", "도", "그녀도"),
    ("물", "만", "물만"),
]


@pytest.mark.parametrize(("noun", "particle", "expected"), PARTICLES)
def test_a_particle_follows_the_final_sound(noun: str, particle: str, expected: str) -> None:
    assert attach(noun, particle) == expected


@pytest.mark.parametrize(
    ("particle", "expected"),
    [
        ("은", "할머니께서는"),
        ("이", "할머니께서"),
        ("에게", "할머니께"),
        ("을", "할머니를"),
        ("과", "할머니와"),
    ],
)
def test_an_honorific_noun_takes_honorific_particles(particle: str, expected: str) -> None:
    assert attach("할머니", particle, True) == expected


@pytest.mark.parametrize(
    ("syllable", "sounds"),
    [
        ("가", ("ㄱ", "ㅏ", "")),
        ("읽", ("ㅇ", "ㅣ", "ㄺ")),
        ("봤", ("ㅂ", "ㅘ", "ㅆ")),
        ("힣", ("ㅎ", "ㅣ", "ㅎ")),
    ],
)
def test_a_syllable_is_decomposed(syllable: str, sounds: tuple[str, str, str]) -> None:
    assert decompose(syllable) == sounds


@given(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3))
def test_composition_inverts_decomposition(syllable: str) -> None:
    assert compose(*decompose(syllable)) == syllable
    assert with_final(with_final(syllable, "ㄴ"), final_of(syllable)) == syllable


def test_a_word_that_is_not_hangul_has_no_final_sound() -> None:
    assert final_of("TV") == ""
