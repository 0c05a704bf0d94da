"""What CTranslate2, which takes words, calls each piece: the marks by their names, all others by number."""

from __future__ import annotations

__all__ = ["MARKS", "token_names"]

MARKS = ("<pad>", "<unk>", "<s>", "</s>")


def token_names(pieces: int) -> list[str]:
    """The name of every piece of a vocabulary, by id."""
    return [*MARKS, *map(str, range(len(MARKS), pieces))]
