"""The names of classes as a vocabulary: one token per class, after the four special tokens.

The output of a classifier is one token. The classes are used as the target vocabulary, so that a classifier
has the same output layer, loss and model folder as other models.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, ModelFolderError
from jumok.text.tokenizer import Tokenizer
from jumok.types import END, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FIRST_CLASS = END + 1
MAX_CLASSES = 100_000


class ClassNames(Tokenizer):
    """The classes of a classifier, in the order of their ids."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        if len(self.names) != len(set(self.names)) or not 1 <= len(self.names) <= MAX_CLASSES:
            raise DataError(
                f"A classifier needs 1 to {MAX_CLASSES:,} classes with different names. "
                f"Received: {len(self.names):,}, {len(set(self.names)):,} of them different."
            )
        self._ids = {name: FIRST_CLASS + index for index, name in enumerate(self.names)}
        self._data = json.dumps({"classes": self.names}, ensure_ascii=False).encode("utf-8", "replace")

    @classmethod
    def from_bytes(cls, data: bytes) -> ClassNames:
        """Return the classes that `to_bytes` wrote. Damaged data raise a ModelFolderError."""
        try:
            return cls(str(name) for name in json.loads(data)["classes"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, DataError) as error:
            raise ModelFolderError(
                f"this is not a list of classes that jumok wrote ({error!r}). The file is damaged; "
                "copy it again from its origin."
            ) from None

    @property
    def vocab_size(self) -> int:
        """Number of classes plus the four special tokens, which are never predicted."""
        return FIRST_CLASS + len(self.names)

    def normalise_spaces(self, text: str) -> str:
        return text

    def encode(self, text: str) -> list[int]:
        """Return a list with the id of the class that `text` names, or with the id of `<unk>`."""
        return [self._ids.get(text, UNKNOWN)]

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[list[int]]:
        del threads
        return [self.encode(text) for text in texts]

    def sample(self, text: str, strength: float, generator: Any) -> list[int]:
        del strength, generator
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the names of the classes, without special tokens."""
        return [self.names[token - FIRST_CLASS] for token in ids if FIRST_CLASS <= token < self.vocab_size]

    def word_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        return [0] * len(ids)

    def __reduce__(self) -> tuple[object, ...]:
        return ClassNames.from_bytes, (self._data,)

    def __repr__(self) -> str:
        return f"<ClassNames: {len(self.names)} classes>"
