"""The tokenizer of a Marian model: SentencePiece splits a text, and a separate vocabulary has the ids.

Such a model has one SentencePiece model per language and usually one vocabulary for both languages, which
contains the pieces of both SentencePiece models. Pieces are looked up in the vocabulary as strings, and the
ids of SentencePiece are not used. A piece that is not in the vocabulary becomes `<unk>`.

A model with several target languages has tokens such as `>>ko<<`. If a source begins with such a token, the
token determines the target language. Otherwise the tokenizer puts `code` before the source.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, ModelFolderError, UnsupportedError, suggest
from jumok.text.character_map import limit_character_map
from jumok.text.normalisation import replace_surrogates
from jumok.text.plain_spaces import SPECIAL_CHARACTERS
from jumok.text.token_table import TokenTable
from jumok.text.word_mapping import NO_WORD
from jumok.types import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.random import Generator

NORMALISERS = ("none", "opus-mt")
"""The processing of a text before SentencePiece: none, or the steps of OPUS-MT's `preprocess.sh`."""

_SPECIAL_TOKENS = {PAD: "<pad>", UNKNOWN: "<unk>", BEGIN: "<s>", END: "</s>"}
_UNKNOWN_TEXT = "⁇"
_CODE = re.compile(r">>.*?<<")
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_MIN_TEXTS_FOR_THREADS = 32

# The substitutions of Moses' replace-unicode-punctuation, which OPUS-MT's preprocess.sh repeats.
_PUNCTUATION = str.maketrans(
    {
        **dict(zip("，、”“∶：？《》）！（；」「～’━〈〉【】％", ',,""::?"")!(;""~\'-<>[]%', strict=True)),
        **dict(zip("０１２３４５６７８９", "0123456789", strict=True)),
        "…": "...",
    }
)
_FULL_STOP = re.compile("[。．] *")
_SPACES = re.compile(" +")


class JointVocabularyTokenizer(TokenTable):
    """A SentencePiece model and the vocabulary in which its pieces are looked up.

    `vocabulary` has the tokens from id 4 on. `code` is a token such as `>>ko<<`, or "". It is put before
    every source text that does not begin with such a token. Target texts have no codes.
    """

    def __init__(
        self,
        sentencepiece: bytes,
        vocabulary: Sequence[str],
        *,
        normaliser: str = "none",
        code: str = "",
        is_source: bool = True,
    ) -> None:
        self.sentencepiece = sentencepiece
        self.vocabulary = tuple(vocabulary)
        self.normaliser = normaliser
        self.code = code
        self._is_source = is_source
        self._refuses_unknown_codes = True
        self._processor = _load_processor(sentencepiece)
        self._ids = {token: id_ for id_, token in enumerate(self.vocabulary, len(_SPECIAL_TOKENS))}
        tokens = [*_SPECIAL_TOKENS.values(), *self.vocabulary]
        super().__init__(tokens, [self._bytes_of(id_, token) for id_, token in enumerate(tokens)])
        if normaliser not in NORMALISERS or (code and code not in self.codes):
            raise ModelFolderError(
                f"A tokenizer cannot be used: it asks for the normaliser {normaliser!r} and the target "
                f"language {code!r}. Known normalisers: {', '.join(NORMALISERS)}. "
                f"Known target languages: {_format_codes(self.codes)}."
            )

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The tokens that name a target language, such as `>>ko<<`."""
        return tuple(token for token in self.vocabulary if _CODE.fullmatch(token))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that determines the ids, in hexadecimal."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """Return everything that determines the ids. The bytes are for comparisons and not for storage.

        `tokenizer_files` stores tokenizers.
        """
        settings = [self.vocabulary, self.normaliser, self.code, self._is_source]
        return json.dumps(settings, ensure_ascii=False).encode() + b"\0" + self.sentencepiece

    def accepting_any_text(self) -> JointVocabularyTokenizer:
        """Return a copy that treats an unknown language code as text, for use in servers."""
        accepting = copy.copy(self)
        accepting._refuses_unknown_codes = False
        return accepting

    @cached_property
    def _seen_spaces(self) -> frozenset[str]:
        """The `SPECIAL_CHARACTERS` that the tokenizer encodes without `<unk>` or byte tokens."""

        def is_seen(character: str) -> bool:
            ids = self.encode(f"a{character}a")
            return UNKNOWN not in ids and not any(map(_BYTE.fullmatch, self.tokens(ids)))

        return frozenset(filter(is_seen, SPECIAL_CHARACTERS))

    def encode(self, text: str) -> list[int]:
        """Return the token ids, without `<s>` and `</s>`. An unknown language code raises a DataError."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[list[int]]:
        """Return `encode` of each text. Many texts are encoded in threads, by default on all cores."""
        split = [self._split_code(replace_surrogates(text)) for text in texts]
        prepared = [
            normalise_punctuation(text) if self.normaliser == "opus-mt" else text for _, text in split
        ]
        if len(prepared) < _MIN_TEXTS_FOR_THREADS:
            pieces = [self._processor.encode(text, out_type=str) for text in prepared]
        else:
            pieces = self._processor.encode(prepared, out_type=str, num_threads=threads)
        ids = self._ids
        return [
            [*code_ids, *(ids.get(piece, UNKNOWN) for piece in row)]
            for (code_ids, _), row in zip(split, pieces, strict=True)
        ]

    def sample(self, text: str, strength: float, generator: Generator) -> list[int]:
        """Return `encode(text)`. A strength above 0 raises an UnsupportedError."""
        if strength > 0:
            raise UnsupportedError(
                "The tokenizer of an imported model has one segmentation per text. "
                f"Received: text.sampling = {strength}. Set it to 0."
            )
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids.

        `<unk>` becomes ⁇, and the other special tokens have no text. Invalid bytes become U+FFFD.
        """
        return super().decode(ids).strip()

    def word_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Return the index in `split_words(text)` for each token. A code that `encode` added has no word."""
        if self.code and ids and ids[0] == self._ids[self.code] and not text.startswith(self.code):
            return [NO_WORD, *super().word_of_token(text, ids[1:])]
        return super().word_of_token(text, ids)

    def _split_code(self, text: str) -> tuple[list[int], str]:
        """Return a list with the id of the language code, and the text after the code.

        If the text does not begin with a code, the list has the id of `self.code`. If `self.code` is "", or
        for target texts, the list is empty.
        """
        if not self._is_source or not self.codes:
            return [], text
        if match := _CODE.match(text):
            if match[0] in self.codes:
                return [self._ids[match[0]]], text[match.end() :]
            if self._refuses_unknown_codes:
                raise DataError(
                    f"This model does not know the target language {match[0]:.40}."
                    f"{suggest(match[0], self.codes)} It knows: {_format_codes(self.codes)}."
                )
        return ([self._ids[self.code]] if self.code else []), text

    def _bytes_of(self, id_: int, token: str) -> bytes:
        """Return the UTF-8 bytes of a token."""
        if id_ == UNKNOWN:
            return _UNKNOWN_TEXT.encode()
        if id_ in _SPECIAL_TOKENS or token == _SPECIAL_TOKENS[BEGIN]:  # <s> may be an ordinary token too
            return b""
        if _BYTE.fullmatch(token) and self._processor.is_byte(self._processor.piece_to_id(token)):
            return bytes.fromhex(token[3:5])
        return token.replace("▁", " ").encode()

    def __repr__(self) -> str:
        return f"<JointVocabularyTokenizer: {self.vocab_size} tokens, {self.fingerprint[:8]}>"


def normalise_punctuation(text: str) -> str:
    """Apply the steps of OPUS-MT's `preprocess.sh`.

    Full-width punctuation and digits become ASCII. Each character that is not printable becomes a space,
    except white space. Each run of spaces becomes a single space.
    """
    text = _FULL_STOP.sub(". ", text.translate(_PUNCTUATION))
    printable = "".join(" " if not c.isprintable() and not c.isspace() else c for c in text)
    return _SPACES.sub(" ", printable).strip(" ")


def _format_codes(codes: Sequence[str]) -> str:
    more = f" and {len(codes) - 20} others" if len(codes) > 20 else ""
    return " ".join(codes[:20]) + more if codes else "none"


def _load_processor(data: bytes) -> Any:
    from sentencepiece import SentencePieceProcessor  # start-up

    limit_character_map(data)
    processor = SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(data)
        if not processor.piece_size():
            raise RuntimeError("it has no pieces")
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelFolderError(
            f"A SentencePiece model cannot be used ({error}). The file is damaged; copy it again from its "
            "origin."
        ) from None
    return processor
