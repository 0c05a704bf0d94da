"""The tokenizer files of a run folder or a model folder.

| file                                    | content                                                          |
| --------------------------------------- | ---------------------------------------------------------------- |
| pieces.model                            | one vocabulary for both languages                                |
| source.model, target.model              | one vocabulary per side                                          |
| source.spm, target.spm, vocabulary.json | an imported model: SentencePiece models, and the tokens by id    |

A vocabulary is a SentencePiece model, with two exceptions. For pictures, `source.model` is JSON with the size
of pictures and patches. For a classifier, `target.model` is JSON with the names of the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError
from jumok.storage.model_folder import IMPORTED_VOCABULARY, SEPARATE_VOCABULARIES, SHARED_VOCABULARY
from jumok.text.tokenizer import Tokenizer, TokenizerPair, load_tokenizer, untrusted_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def tokenizers_to_files(tokenizers: TokenizerPair) -> dict[str, bytes]:
    """Return the contents of the tokenizer files, by file name."""
    from jumok.text.imported_vocabulary import imported_tokenizers_to_files  # start-up
    from jumok.text.joint_vocabulary import JointVocabularyTokenizer  # start-up

    source, target = tokenizers.source, tokenizers.target
    if isinstance(source, JointVocabularyTokenizer) and isinstance(target, JointVocabularyTokenizer):
        return imported_tokenizers_to_files(source, target, shared=tokenizers.shared)
    sides = [source] if tokenizers.shared else [source, target]
    names = _file_names(shared=tokenizers.shared)
    return {name: tokenizer.to_bytes() for name, tokenizer in zip(names, sides, strict=True)}


def tokenizers_from_files(files: Mapping[str, bytes]) -> TokenizerPair:
    """Return the tokenizers that the files describe. This is the inverse of `tokenizers_to_files`."""
    if IMPORTED_VOCABULARY[-1] in files:
        from jumok.text.imported_vocabulary import imported_tokenizers_from_files  # start-up

        return imported_tokenizers_from_files(files)
    shared = SHARED_VOCABULARY[0] in files
    return _pair([_from_bytes(files[name]) for name in _file_names(shared=shared)])


def read_tokenizers(folder: Path, *, shared: bool) -> TokenizerPair:
    """Return the tokenizers in a folder. If a file cannot be read, the error names the file.

    `shared` says which files a trained model has. For the files of an imported model, it has no effect.
    """
    if (folder / IMPORTED_VOCABULARY[-1]).exists():
        try:
            return tokenizers_from_files({name: (folder / name).read_bytes() for name in IMPORTED_VOCABULARY})
        except OSError as error:
            raise ModelFolderError(
                f"The tokenizer at {error.filename} cannot be read: {error.strerror}."
            ) from None
        except ModelFolderError as error:
            raise ModelFolderError(f"{folder}: {error}") from None
    return _pair([load_tokenizer(folder / name, parse=_from_bytes) for name in _file_names(shared=shared)])


def _from_bytes(data: bytes) -> Tokenizer:
    """Return the tokenizer that these bytes describe. A SentencePiece model never begins with `{`."""
    if data.startswith(b'{"pictures"'):
        from jumok.text.picture_tokenizer import PictureTokenizer  # start-up

        return PictureTokenizer.from_bytes(data)
    if data.startswith(b'{"classes"'):
        from jumok.text.class_names import ClassNames  # start-up

        return ClassNames.from_bytes(data)
    return untrusted_tokenizer(data)


def _file_names(*, shared: bool) -> tuple[str, ...]:
    return SHARED_VOCABULARY if shared else SEPARATE_VOCABULARIES


def _pair(sides: list[Tokenizer]) -> TokenizerPair:
    return TokenizerPair(source=sides[0], target=sides[-1], shared=len(sides) == 1)
