"""The interface of all tokenizers.

`Tokenizer` is a SentencePiece model and uses its ids. `JointVocabularyTokenizer` looks up the pieces of a
SentencePiece model in a separate vocabulary, like models of Marian. `PictureTokenizer` is for pictures, and
`ClassNames` is for classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.random import Generator


class AnyTokenizer(Protocol):
    """Text to token ids and back. The ids 0 to 3 are `<pad>`, `<unk>`, `<s>` and `</s>`."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens, including the four special tokens. For pictures, the number is 0."""
        ...

    @property
    def token_shape(self) -> tuple[int, ...]:
        """The shape of one token: () for an id, (number of pixel values,) for a patch of a picture."""
        ...

    @property
    def fingerprint(self) -> str:
        """A SHA-256 in hexadecimal. Equal tokenizers have the same fingerprint."""
        ...

    def to_bytes(self) -> bytes:
        """Return everything that determines the ids."""
        ...

    def normalise_spaces(self, text: str) -> str:
        """Return the text with ordinary spaces in place of special spaces that the model has not learnt."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return token ids without `<s>` and `</s>`; for a picture, its patches."""
        ...

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[list[int]]:
        """Return `encode` of each text."""
        ...

    def sample(self, text: str, strength: float, generator: Generator) -> list[int]:
        """Return the token ids of a random segmentation. Strength 0 gives the best segmentation.

        Tokenizers with only one segmentation return it, or raise an UnsupportedError for a higher strength.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        ...

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens as strings for display."""
        ...

    def word_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Return for each token the index of its word in `split_words(text)`, or −1 if it has no word."""
        ...
