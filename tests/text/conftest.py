"""Pieces learnt once from a few hundred made-up sentences, one vocabulary of each kind."""

from __future__ import annotations

import itertools

import pytest

from jumok.recipe import TextSettings
from jumok.text import Subwords, learn_subwords

WHO = ["I", "You", "The teacher", "My friend", "나는", "선생님은", "친구가", "彼は"]
DOES = [
    "understand",
    "understate",
    "undertake",
    "overtake",
    "overstate",
    "restate",
    "retake",
    "stand",
    "take",
]
WHAT = ["nothing", "something", "17 books", "집에서 책을", "책에서", "本を読む", "no book"]
WHEN = ["today.", "tomorrow!", "in 1999?", "오늘.", "내일, 아마도.", "明日。"]


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    made = [" ".join(parts) for parts in itertools.product(WHO, DOES, WHAT, WHEN)]
    return [f"<polite> {sentence}" if i % 3 == 0 else sentence for i, sentence in enumerate(made)]


@pytest.fixture(scope="session", params=["unigram", "bpe"])
def subwords(request: pytest.FixtureRequest, sentences: list[str]) -> Subwords:
    return learn_subwords(sentences, TextSettings(kind=request.param), pieces=400)


@pytest.fixture(scope="session")
def unigram(sentences: list[str]) -> Subwords:
    return learn_subwords(sentences, TextSettings(kind="unigram"), pieces=400)


@pytest.fixture(scope="session")
def bpe(sentences: list[str]) -> Subwords:
    return learn_subwords(sentences, TextSettings(kind="bpe"), pieces=400)


@pytest.fixture(scope="session")
def without_bytes(sentences: list[str]) -> Subwords:
    return learn_subwords(sentences, TextSettings(byte_fallback=False), pieces=200)
