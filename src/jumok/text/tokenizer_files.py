"""The tokenizer files of a run folder or a model folder.

| file                       | content                            |
| -------------------------- | ---------------------------------- |
| pieces.model               | one vocabulary for both languages  |
| source.model, target.model | one vocabulary per side            |

A vocabulary is a SentencePiece model. For pictures `source.model` is JSON with the size of pictures and
patches; for a classifier `target.model` is JSON with the names of the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.storage import SEPARATE_VOCABULARIES, SHARED_VOCABULARY
from jumok.text.class_names import ClassNames
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.tokenizer import Tokenizer, TokenizerPair, load_tokenizer, tokenizer_from_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jumok.text.tokenizer import Tokenizer

__all__ = ["read_tokenizers", "tokenizers_from_files", "tokenizers_to_files"]


def tokenizers_to_files(tokenizers: TokenizerPair) -> dict[str, bytes]:
    """Return file name → bytes."""
    sides = [tokenizers.source] if tokenizers.shared else [tokenizers.source, tokenizers.target]
    names = _file_names(shared=tokenizers.shared)
    return {name: tokenizer.to_bytes() for name, tokenizer in zip(names, sides, strict=True)}


def tokenizers_from_files(files: Mapping[str, bytes]) -> TokenizerPair:
    """Return the tokenizers; the inverse of `tokenizers_to_files`."""
    shared = SHARED_VOCABULARY[0] in files
    return _pair([_from_bytes(files[name]) for name in _file_names(shared=shared)])


def read_tokenizers(folder: Path, *, shared: bool) -> TokenizerPair:
    """Return the tokenizers in a folder; an error names the file that cannot be read."""
    return _pair([load_tokenizer(folder / name, parse=_from_bytes) for name in _file_names(shared=shared)])


def _from_bytes(data: bytes) -> Tokenizer:
    """Return the tokenizer that these bytes describe; a SentencePiece model never begins like these JSONs."""
    if data.startswith(b'{"pictures"'):
        return PictureTokenizer.from_bytes(data)
    return ClassNames.from_bytes(data) if data.startswith(b'{"classes"') else tokenizer_from_file(data)


def _file_names(*, shared: bool) -> tuple[str, ...]:
    return SHARED_VOCABULARY if shared else SEPARATE_VOCABULARIES


def _pair(sides: list[Tokenizer]) -> TokenizerPair:
    return TokenizerPair(source=sides[0], target=sides[-1], shared=len(sides) == 1)
