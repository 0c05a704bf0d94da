"""The sentence patterns, one function each. Importing this package fills the registry.

The order in which patterns are registered is part of the corpus: another one would draw other sentences.
`belongings` comes first, and takes `descriptions`, `identities` and `places` with it in this order.
"""

from jumok.corpus.english_korean.patterns import (
    belongings,
    descriptions,
    embedding,
    identities,
    linking,
    modes,
    places,
    questions,
    statements,
    triple,
)
from jumok.corpus.english_korean.patterns.registry import PATTERNS, Pattern

__all__ = [
    "PATTERNS",
    "Pattern",
    "belongings",
    "descriptions",
    "embedding",
    "identities",
    "linking",
    "modes",
    "places",
    "questions",
    "statements",
    "triple",
]
