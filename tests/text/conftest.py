"""Fixtures: about 3,000 artificial sentences, and tokenizers of each kind that are trained on them once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from jumok.config.recipe import TextSettings
from jumok.text.tokenizer_training import train_tokenizer

if TYPE_CHECKING:
    from jumok.text.tokenizer import Tokenizer

SUBJECTS = ["I", "You", "The teacher", "My friend", "나는", "선생님은", "친구가", "彼は"]
VERBS = [
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
OBJECTS = ["nothing", "something", "17 books", "집에서 책을", "책에서", "本を読む", "no book"]
TIMES = ["today.", "tomorrow!", "in 1999?", "오늘.", "내일, 아마도.", "明日。"]


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    plain = [" ".join(parts) for parts in itertools.product(SUBJECTS, VERBS, OBJECTS, TIMES)]
    return [f"<polite> {sentence}" if i % 3 == 0 else sentence for i, sentence in enumerate(plain)]


@pytest.fixture(scope="session", params=["unigram", "bpe"])
def tokenizer(request: pytest.FixtureRequest, sentences: list[str]) -> Tokenizer:
    return train_tokenizer(sentences, TextSettings(kind=request.param), vocab_size=400)


@pytest.fixture(scope="session")
def unigram(sentences: list[str]) -> Tokenizer:
    return train_tokenizer(sentences, TextSettings(kind="unigram"), vocab_size=400)


@pytest.fixture(scope="session")
def bpe(sentences: list[str]) -> Tokenizer:
    return train_tokenizer(sentences, TextSettings(kind="bpe"), vocab_size=400)


@pytest.fixture(scope="session")
def tokenizer_without_bytes(sentences: list[str]) -> Tokenizer:
    """A tokenizer without byte fallback: unknown characters become `<unk>`."""
    return train_tokenizer(sentences, TextSettings(byte_fallback=False), vocab_size=200)
