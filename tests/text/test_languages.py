"""The table of languages is consistent, and a language is found by its codes and its name."""

from __future__ import annotations

from itertools import pairwise

import pytest

from jumok.errors import DataError
from jumok.text.languages import LANGUAGES, find_language, language_code, language_name
from jumok.text.scripts import SCRIPTS, classify_characters

SAMPLES = {
    "en": "Hello", "ko": "안녕", "ja": "こんにちは", "zh": "你好", "ru": "Привет", "el": "Γειά", "he": "שלום",
    "ar": "مرحبا", "hi": "नमस्ते", "th": "สวัสดี", "ka": "გამარჯობა", "hy": "Բարեւ", "am": "ሰላም", "ta": "வணக்கம்",
    "km": "សួស្តី", "my": "မင်္ဂလာပါ", "vi": "Xin chào", "lo": "ສະບາຍດີ", "bn": "নমস্কার", "te": "నమస్కారం",
}  # fmt: skip


def test_every_language_is_distinct_and_has_known_scripts() -> None:
    languages = list(LANGUAGES.values())
    assert len(languages) >= 60
    for field in ("code", "long_code", "name"):
        assert len({getattr(language, field) for language in languages}) == len(languages)
    assert all(language.scripts and set(language.scripts) <= set(SCRIPTS) for language in languages)


@pytest.mark.parametrize("code", SAMPLES)
def test_a_greeting_is_in_the_script_of_its_language(code: str) -> None:
    characters = classify_characters([SAMPLES[code]])
    assert characters.main_script() in LANGUAGES[code].scripts
    assert characters.count_letters(LANGUAGES[code].scripts) == characters.count_letters()


def test_ascii_characters_have_the_same_classes_in_both_code_paths() -> None:
    """A block with only ASCII characters is classified by a faster code path."""
    text = "".join(map(chr, range(128)))
    slow_path = classify_characters([text, "é"]).classes[: len(text)]
    assert classify_characters([text]).classes[: len(text)].tolist() == slow_path.tolist()


def test_scripts_do_not_overlap() -> None:
    ranges = sorted(span for script in SCRIPTS.values() for span in script.ranges)
    assert all(left[1] < right[0] for left, right in pairwise(ranges))


@pytest.mark.parametrize("word", ["ko", "kor", "Korean", "korean", "KOREAN", "ko-KR", "ko_KR"])
def test_a_language_is_found_by_its_code_or_name_and_a_region_is_ignored(word: str) -> None:
    language = find_language(word)
    assert language is not None
    assert (language.code, language.name) == ("ko", "Korean")


def test_an_unknown_language_is_refused_with_the_nearest_name() -> None:
    assert language_code(" DE ") == "de"
    assert language_name("de") == "German"
    assert language_name("tlh") == "tlh"
    with pytest.raises(DataError, match=r"Unknown language 'Germn'.* Did you mean \"German\""):
        language_code("Germn")
    with pytest.raises(DataError, match=r"Unknown language 'klingon'\. Use a code"):
        language_code("klingon")
