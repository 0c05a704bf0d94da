"""Systems that translate the same artificial test set with different numbers of errors."""

from __future__ import annotations

import random

import pytest

WORDS = [
    "the",
    "a",
    "big",
    "dog",
    "cat",
    "house",
    "runs",
    "sleeps",
    "in",
    "near",
    "tree",
    ".",
    ",",
    "Old",
    "river",
]


@pytest.fixture(scope="session")
def references() -> list[str]:
    generator = random.Random(1)
    return [" ".join(generator.choices(WORDS, k=generator.randrange(4, 15))) for _ in range(300)]


def corrupt(sentences: list[str], share: float, seed: int) -> list[str]:
    """Replace about this share of the words by random words."""
    generator = random.Random(seed)
    return [
        " ".join(generator.choice(WORDS) if generator.random() < share else word for word in sentence.split())
        for sentence in sentences
    ]


@pytest.fixture(scope="session")
def baseline(references: list[str]) -> list[str]:
    """Translations with about 30% random words."""
    return corrupt(references, 0.30, seed=2)


@pytest.fixture(scope="session")
def system(references: list[str]) -> list[str]:
    """A system that is hardly better than the baseline."""
    return corrupt(references, 0.28, seed=3)


@pytest.fixture(scope="session")
def better_system(references: list[str]) -> list[str]:
    """A system that is much better than the baseline."""
    return corrupt(references, 0.10, seed=4)
