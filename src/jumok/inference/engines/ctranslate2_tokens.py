"""The names of tokens in CTranslate2, which takes strings: special tokens by name, all others by id."""

from __future__ import annotations

SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")


def token_names(vocab_size: int) -> list[str]:
    """Return the name of every token of a vocabulary, by id."""
    return [*SPECIAL_TOKENS, *map(str, range(len(SPECIAL_TOKENS), vocab_size))]
