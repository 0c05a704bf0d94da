"""Texts are cut at the ends of their sentences, what is between them stays, and hostile ones cost little."""

from __future__ import annotations

import time

import pytest

from jumok.serve.detecting import detect
from jumok.serve.sentences import lay_out, sentence_spans


def cut(text: str) -> list[str]:
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
        ("one\n\n  two\t\n---\n", ["one", "two"]),
        ("", []),
        ("... !!!", []),
    ],
)
def test_a_text_is_cut_into_its_sentences(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


def test_what_stands_between_sentences_stays_or_is_what_the_language_writes() -> None:
    text = "  one. Two three four.\r\n\tFive  "
    spans = sentence_spans(text)
    assert "".join(lay_out(text, spans, cut(text), "de")) == text
    assert (
        "".join(
            lay_out("One two three. Four.", sentence_spans("One two three. Four."), ["一。", "二。"], "ja")
        )
        == "一。二。"
    )


@pytest.mark.parametrize("text", ["a" * 100_000, "one two " * 2_000, "가" * 5_000])
def test_what_has_no_end_is_cut_into_parts_that_a_worker_can_do(text: str) -> None:
    parts = cut(text)
    assert max(map(len, parts)) <= 1_000
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_a_sentence_without_end_is_cut_at_a_comma_or_a_space_and_between_letters_last() -> None:
    clause = "x" * 89 + " " + "y" * 9
    for mark in (",", ""):
        parts = cut(f"{mark} ".join([clause] * 30))
        assert len(parts) > 2
        assert all(part.endswith("y" + mark) for part in parts[:-1] if mark)
        assert all(set(part.split()) <= set(f"{clause} {clause}{mark}".split()) for part in parts)
    accents = cut("e\u0301" * 1_500)
    assert "".join(accents) == "e\u0301" * 1_500
    assert not any(part.startswith("\u0301") for part in accents)
    assert cut("x" * 1_000) == ["x" * 1_000]


@pytest.mark.parametrize(
    "text",
    ["." * 100_000, ". " * 50_000, "a. " * 33_000, '."' * 50_000, "." + '"' * 99_000, "a." + " " * 99_000,
     "。" * 100_000, "x" * 100_000, "? A" * 33_000, "\n" * 100_000],
)  # fmt: skip
def test_hostile_texts_cost_little(text: str) -> None:
    begin = time.process_time()
    sentence_spans(text)
    detect(text, ["en", "de", "ko", "ja"])
    assert time.process_time() - begin < 2
