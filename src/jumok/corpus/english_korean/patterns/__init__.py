"""The sentence patterns, one function each. Importing this package fills the registry."""

from jumok.corpus.english_korean.patterns import (
    descriptions,
    embedding,
    linking,
    modes,
    questions,
    statements,
    triple,
)
from jumok.corpus.english_korean.patterns.registry import PATTERNS, Pattern

__all__ = [
    "PATTERNS",
    "Pattern",
    "descriptions",
    "embedding",
    "linking",
    "modes",
    "questions",
    "statements",
    "triple",
]
