"""Text is split at sentence ends, line breaks between sentences are preserved, and no input takes long."""

from __future__ import annotations

import time

import pytest

from jumok.errors import RecipeError
from jumok.text.language_detection import detect_languages
from jumok.text.sentences import (
    MULTIPLE_SENTENCES,
    check_sentences,
    line_spans,
    multiple_sentences_share,
    replace_sentences,
    sentence_spans,
    sentences_for_scores,
    sentences_for_texts,
    split_sentences,
    text_spans,
)


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One two three. Four five six! Seven?", ["One two three.", "Four five six!", "Seven?"]),
        ("See e.g. this one here. Then that.", ["See e.g. this one here.", "Then that."]),
        ("Dr. Kim is in today. He waits.", ["Dr. Kim is in today.", "He waits."]),
        ('He said: "Go home now." Then he left.', ['He said: "Go home now."', "Then he left."]),
        ("Well, I think so... Maybe not at all.", ["Well, I think so...", "Maybe not at all."]),
        ("나는 집에 간다. 너는 책을 읽는다.", ["나는 집에 간다.", "너는 책을 읽는다."]),
        ("私は行く。あなたは来る！", ["私は行く。", "あなたは来る！"]),
        ("I met Dr. Kim and J. Lee. They left.", ["I met Dr. Kim and J. Lee.", "They left."]),
        ("A sign says E.S.E. Electronics.", ["A sign says E.S.E. Electronics."]),
        ("wearing the number &quot; 93 . &quot;", ["wearing the number &quot; 93 . &quot;"]),
        ("Yes. I go. So do I. Go!", ["Yes.", "I go.", "So do I.", "Go!"]),
        ("1. Open the door. 2. Go in.", ["1. Open the door.", "2. Go in."]),
        ("네. 알겠습니다.", ["네.", "알겠습니다."]),
        ("Стоит 5 тыс. рублей. Дорого.", ["Стоит 5 тыс. рублей.", "Дорого."]),
        ("Np. łódź, 5 mln. šest. Ďalej.", ["Np. łódź, 5 mln. šest.", "Ďalej."]),
        ("It costs 3.50 at example.com today. Good.", ["It costs 3.50 at example.com today.", "Good."]),
        ("one\n\n  two\t\n---\n", ["one", "two"]),
        ("", []),
        ("... !!!", []),
    ],
)
def test_a_text_is_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_spaces_between_sentences_become_the_separator_of_the_language() -> None:
    text = "  one. Two three four.\r\n\tFive  "
    spans = sentence_spans(text)
    assert "".join(replace_sentences(text, spans, split(text), "de")) == text
    english = "One two three. Four."
    assert "".join(replace_sentences(english, sentence_spans(english), ["一。", "二。"], "ja")) == "一。二。"
    for space in ("\u3000", "\u00a0 ", "  "):
        japanese = f"本当ですか？{space}行きましょう。"
        spans = sentence_spans(japanese)
        assert (
            "".join(replace_sentences(japanese, spans, ["Really?", "Let's go."], "en")) == "Really? Let's go."
        )
        assert "".join(replace_sentences(japanese, spans, ["真的？", "走吧。"], "zh")) == "真的？走吧。"


@pytest.mark.parametrize("text", ["a" * 100_000, "one two " * 2_000, "가" * 5_000])
def test_text_without_a_sentence_end_is_split_into_bounded_parts(text: str) -> None:
    parts = split(text)
    assert max(map(len, parts)) <= 1_000
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_a_long_sentence_is_split_at_a_comma_then_at_a_space_then_anywhere() -> None:
    clause = "x" * 89 + " " + "y" * 9
    for comma in (",", ""):
        parts = split(f"{comma} ".join([clause] * 30))
        assert len(parts) > 2
        assert all(part.endswith("y" + comma) for part in parts[:-1] if comma)
        whole_words = {*clause.split(), *f"{clause}{comma}".split()}
        assert all(set(part.split()) <= whole_words for part in parts)
    accents = split("e\u0301" * 1_500)
    assert "".join(accents) == "e\u0301" * 1_500
    assert not any(part.startswith("\u0301") for part in accents)
    assert split("x" * 1_000) == ["x" * 1_000]


@pytest.mark.parametrize(
    "text",
    ["." * 100_000, ". " * 50_000, "a. " * 33_000, '."' * 50_000, "." + '"' * 99_000, "a." + " " * 99_000,
     "。" * 100_000, "x" * 100_000, "? A" * 33_000, "\n" * 100_000],
)  # fmt: skip
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    start = time.process_time()
    sentence_spans(text)
    line_spans(text)
    detect_languages(text, ["en", "de", "ko", "ja"])
    assert time.process_time() - start < 2


def test_lines_are_not_split_into_sentences_in_the_mode_keep() -> None:
    text = "  One two. Three four. \n\n...\n Five."
    assert [text[start:end] for start, end in line_spans(text)] == ["One two. Three four.", "...", "Five."]
    assert text_spans(text, "keep") == line_spans(text)
    # Only a very long line is split.
    assert [end - start for start, end in line_spans("x" * 25_000)] == [10_000, 10_000, 5_000]
    assert text_spans(text) == sentence_spans(text)
    assert split_sentences(text) == ["One two.", "Three four.", "Five."]


def test_an_unknown_mode_is_refused_with_the_nearest_mode() -> None:
    with pytest.raises(RecipeError, match=r"sentences is split or keep\. Received: 'kepp'\. Did you mean"):
        check_sentences("kepp")


@pytest.mark.parametrize(
    ("share", "texts", "scores"),
    [(None, "split", "keep"), (0.0005, "split", "split"), (0.003, "split", "keep"), (0.8, "keep", "keep")],
)
def test_the_share_of_texts_with_several_sentences_decides_whether_texts_are_split(
    share: float | None, texts: str, scores: str
) -> None:
    facts = {} if share is None else {MULTIPLE_SENTENCES: share}
    assert (sentences_for_texts(facts), sentences_for_scores(facts)) == (texts, scores)


def test_the_share_of_texts_with_several_sentences_is_counted() -> None:
    assert multiple_sentences_share(["I go.", "I go. You go.", "Dr. Kim goes.", "He?"]) == 0.25
    assert multiple_sentences_share([]) == 0.0
