"""Text is split into words. Gold files and attention maps use word indices, so results must not change."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.text.words import split_words, word_spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("No, I go home.", ["No", ",", "I", "go", "home", "."]),
        ("<polite> I go home .", ["<polite>", "I", "go", "home", "."]),
        ("  two   spaces ", ["two", "spaces"]),
        ("don't 3,000 a-b", ["don't", "3,000", "a-b"]),
        ('"«hi»..."', ['"', "«", "hi", "»", ".", ".", ".", '"']),
        ("집에 가요.", ["집에", "가요", "."]),
        ("これはペンです。", ["こ", "れ", "は", "ペ", "ン", "で", "す", "。"]),
        ("我用Python写、再见", ["我", "用", "Python", "写", "、", "再", "见"]),
        ("人々と𠮷野ｶﾅ", ["人", "々", "と", "𠮷", "野", "ｶ", "ﾅ"]),
        ("<>", ["<", ">"]),
        ("...", [".", ".", "."]),
        ("", []),
        (" \t\u3000\u00a0", []),
    ],
)
def test_punctuation_and_unspaced_scripts_are_split(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_thai_combining_characters_stay_with_their_base() -> None:
    # MAI HAN-AKAT and SARA II have combining class 0, but are written above the consonant before them.
    assert split_words("วันนี้ดี") == ["วั", "น", "นี้", "ดี"]


def test_a_devanagari_word_stays_whole() -> None:
    assert split_words("नमस्ते, दुनिया।") == ["नमस्ते", ",", "दुनिया", "।"]


def test_a_symbol_keeps_its_variation_selector() -> None:
    assert split_words("love❤\ufe0f ❤\ufe0f!") == ["love", "❤\ufe0f", "❤\ufe0f", "!"]


def test_an_emoji_of_several_characters_is_one_word() -> None:
    family, wave = "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f44b\U0001f3fd"
    assert split_words(f"I {family}{wave}.") == ["I", family, wave, "."]
    assert split_words("a\u200db \U0001f469\U0001f467") == ["a\u200db", "\U0001f469", "\U0001f467"]


def test_the_two_regional_indicators_of_a_flag_are_one_word() -> None:
    korea, france = "\U0001f1f0\U0001f1f7", "\U0001f1eb\U0001f1f7"
    assert split_words(f"I {korea}{france}.") == ["I", korea, france, "."]
    assert split_words(f"{korea}집{france}") == [korea, "집", france]
    # The third regional indicator has no partner. After another character, a new flag begins.
    assert split_words(f"{korea}\U0001f1eb {korea}!{france}") == [korea, "\U0001f1eb", korea, "!", france]


@given(st.text())
def test_words_contain_all_characters_except_spaces(text: str) -> None:
    spans = word_spans(text)
    assert "".join(split_words(text)) == "".join(text.split())
    assert all(start < end for start, end in spans)
    assert spans == sorted(spans)


@given(st.text())
def test_normal_form_does_not_change_the_number_of_words(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    decomposed = unicodedata.normalize("NFD", text)
    assert len(split_words(composed)) == len(split_words(decomposed))
