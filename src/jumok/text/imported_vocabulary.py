"""The tokenizer files of an imported model: two SentencePiece models, and the tokens by id as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jumok.errors import ModelFolderError
from jumok.storage.model_folder import IMPORTED_VOCABULARY
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE, _TARGET, _VOCABULARY = IMPORTED_VOCABULARY


class _StoredVocabulary(BaseModel):
    """The content of `vocabulary.json`. If `target` is None, both sides use the tokens in `source`.

    `code` is the token of the target language, such as `>>ko<<`, or "".
    """

    model_config = ConfigDict(extra="forbid")

    source: list[str]
    target: list[str] | None
    normaliser: str
    code: str


def imported_tokenizers_to_files(
    source: JointVocabularyTokenizer, target: JointVocabularyTokenizer, *, shared: bool
) -> dict[str, bytes]:
    """Return the contents of the tokenizer files, by file name."""
    vocabulary = {
        "source": source.vocabulary,
        "target": None if shared else target.vocabulary,
        "normaliser": source.normaliser,
        "code": source.code,
    }
    text = json.dumps(vocabulary, ensure_ascii=False, indent=0)
    return {_SOURCE: source.sentencepiece, _TARGET: target.sentencepiece, _VOCABULARY: text.encode()}


def imported_tokenizers_from_files(files: Mapping[str, bytes]) -> TokenizerPair:
    """Return the tokenizers of the files that `imported_tokenizers_to_files` made."""
    try:
        stored = _StoredVocabulary.model_validate_json(files[_VOCABULARY])
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ModelFolderError(
            f"{_VOCABULARY} cannot be used: {reason}. Copy the folder again from its origin."
        ) from None
    target_tokens = stored.source if stored.target is None else stored.target

    def read(name: str, tokens: list[str], **options: Any) -> JointVocabularyTokenizer:
        try:
            return JointVocabularyTokenizer(files[name], tokens, normaliser=stored.normaliser, **options)
        except ModelFolderError as error:
            raise ModelFolderError(f"{name}: {error}") from None

    return TokenizerPair(
        source=read(_SOURCE, stored.source, code=stored.code),
        target=read(_TARGET, target_tokens, is_source=False),
        shared=stored.target is None,
    )
