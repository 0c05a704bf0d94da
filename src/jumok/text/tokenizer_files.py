"""The tokenizer files of a run folder or a model folder.

| file                                    | content                                                          |
| --------------------------------------- | ---------------------------------------------------------------- |
| pieces.model                            | one vocabulary for both languages                                |
| source.model, target.model              | one vocabulary per side                                          |
| source.spm, target.spm, vocabulary.json | an imported model: SentencePiece models, and the tokens by id    |

A vocabulary is a SentencePiece model. For pictures `source.model` is JSON with the size of pictures and
patches; for a classifier `target.model` is JSON with the names of the classes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jumok.errors import ModelFolderError
from jumok.storage.model_folder import IMPORTED_VOCABULARY, SEPARATE_VOCABULARIES, SHARED_VOCABULARY
from jumok.text.class_names import ClassNames
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.tokenizer import Tokenizer, TokenizerPair, load_tokenizer, tokenizer_from_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SOURCE, _TARGET, _VOCABULARY = IMPORTED_VOCABULARY


def tokenizers_to_files(tokenizers: TokenizerPair) -> dict[str, bytes]:
    """Return file name → bytes."""
    source, target = tokenizers.source, tokenizers.target
    if isinstance(source, JointVocabularyTokenizer) and isinstance(target, JointVocabularyTokenizer):
        vocabulary = {
            "source": source.vocabulary,
            "target": None if tokenizers.shared else target.vocabulary,
            "normaliser": source.normaliser,
            "code": source.code,
        }
        text = json.dumps(vocabulary, ensure_ascii=False, indent=0)
        return {_SOURCE: source.sentencepiece, _TARGET: target.sentencepiece, _VOCABULARY: text.encode()}
    sides = [source] if tokenizers.shared else [source, target]
    names = _file_names(shared=tokenizers.shared)
    return {name: tokenizer.to_bytes() for name, tokenizer in zip(names, sides, strict=True)}


def tokenizers_from_files(files: Mapping[str, bytes]) -> TokenizerPair:
    """Return the tokenizers; the inverse of `tokenizers_to_files`."""
    if _VOCABULARY in files:
        return _imported_pair(files)
    shared = SHARED_VOCABULARY[0] in files
    return _pair([_from_bytes(files[name]) for name in _file_names(shared=shared)])


def read_tokenizers(folder: Path, *, shared: bool) -> TokenizerPair:
    """Return the tokenizers in a folder; an error names the file that cannot be read."""
    if (folder / _VOCABULARY).exists():
        return _imported_pair({name: (folder / name).read_bytes() for name in IMPORTED_VOCABULARY})
    return _pair([load_tokenizer(folder / name, parse=_from_bytes) for name in _file_names(shared=shared)])


def _from_bytes(data: bytes) -> Tokenizer:
    """Return the tokenizer that these bytes describe; a SentencePiece model never begins with `{`."""
    if data.startswith(b'{"pictures"'):
        return PictureTokenizer.from_bytes(data)
    return ClassNames.from_bytes(data) if data.startswith(b'{"classes"') else tokenizer_from_file(data)


class _StoredVocabulary(BaseModel):
    """The content of `vocabulary.json`. `target` is None if both sides have the tokens of `source`."""

    model_config = ConfigDict(extra="forbid")

    source: list[str]
    target: list[str] | None
    normaliser: str
    code: str


def _imported_pair(files: Mapping[str, bytes]) -> TokenizerPair:
    try:
        stored = _StoredVocabulary.model_validate_json(files[_VOCABULARY])
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ModelFolderError(
            f"{_VOCABULARY} cannot be used: {reason}. Copy the folder again from its origin."
        ) from None
    options: dict[str, Any] = {"normaliser": stored.normaliser}
    target_tokens = stored.source if stored.target is None else stored.target
    return TokenizerPair(
        source=JointVocabularyTokenizer(files[_SOURCE], stored.source, code=stored.code, **options),
        target=JointVocabularyTokenizer(files[_TARGET], target_tokens, is_source=False, **options),
        shared=stored.target is None,
    )


def _file_names(*, shared: bool) -> tuple[str, ...]:
    return SHARED_VOCABULARY if shared else SEPARATE_VOCABULARIES


def _pair(sides: list[Tokenizer]) -> TokenizerPair:
    return TokenizerPair(source=sides[0], target=sides[-1], shared=len(sides) == 1)
