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
