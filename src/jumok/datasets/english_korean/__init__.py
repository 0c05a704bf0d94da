"""Everyday English and Korean: a grammar, written by this project, that generates pairs with gold alignments.

    for pair in generate("train", 150_000):
        ...

Without a tag, the Korean is in plain style ("I go home." → "나는 집에 간다."); the tag `<polite>` requests
polite style ("<polite> I go home." → "저는 집에 가요."). The English side, with its tag, determines the
Korean. Nothing is downloaded.
"""

from jumok.datasets.english_korean.generation import generate, pattern_names
from jumok.datasets.english_korean.inventory import capacity, content_words
from jumok.datasets.english_korean.splits import SPLITS

__all__ = ["SPLITS", "capacity", "content_words", "generate", "pattern_names"]
