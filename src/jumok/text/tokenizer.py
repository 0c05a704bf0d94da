"""The tokenizer: text to token ids and back.

    decode(encode(text)) == normalise(text)     with byte fallback, for every text

The tokenizer is a thin layer over a SentencePiece model. It guarantees the equation above, samples
segmentations with the caller's generator, and finds the word that each token belongs to.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError
from jumok.text.character_map import refuse_character_map
from jumok.text.normalisation import escape, normalise
from jumok.text.subword_sampling import BpeDropout, NBestSampler, SegmentationSampler, resample_groups
from jumok.text.token_table import TokenTable
from jumok.types import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numpy.random import Generator

    from jumok.text.protocol import AnyTokenizer

_SPECIAL_TOKENS = {PAD: "<pad>", UNKNOWN: "<unk>", BEGIN: "<s>", END: "</s>"}
_UNKNOWN_TEXT = "⁇"
_MIN_TEXTS_FOR_THREADS = 32


class Tokenizer(TokenTable):
    """A SentencePiece model. Create it with `train_tokenizer`, `load_tokenizer` or `Tokenizer.from_bytes`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._processor, tokens = _parse(data)
        super().__init__(tokens, [self._bytes_of(id_, token) for id_, token in enumerate(tokens)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Tokenizer:
        """Return the tokenizer that `to_bytes` wrote. Damaged data raise a ModelFolderError."""
        return cls(data)

    def to_bytes(self) -> bytes:
        """Return the SentencePiece model, which any program with SentencePiece can read."""
        return self._data

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the model in hexadecimal."""
        return hashlib.sha256(self._data).hexdigest()

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Tags such as `<polite>` that have a token of their own."""
        return tuple(token[1:] for token in self._tokens if token.startswith("▁<") and token.endswith(">"))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of the best segmentation, without `<s>` and `</s>`."""
        ids: list[int] = self._processor.encode(escape(normalise(text)), out_type=int)
        return ids

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[list[int]]:
        """Return `encode` of each text. Many texts are encoded in threads, by default on all cores."""
        prepared = [escape(normalise(text)) for text in texts]
        if len(prepared) < _MIN_TEXTS_FOR_THREADS:
            return [self._processor.encode(text, out_type=int) for text in prepared]
        ids: list[list[int]] = self._processor.encode(prepared, out_type=int, num_threads=threads)
        return ids

    def sample(self, text: str, strength: float, generator: Generator) -> list[int]:
        """Return the token ids of a random segmentation. All randomness comes from the generator.

        Strength 0 gives the best segmentation. For unigram models, the strength is the share of words that
        get another segmentation, among the words that have one. For BPE models, it is the probability that a
        merge is skipped.
        """
        best = self.encode(text)
        if strength <= 0:
            return best
        return resample_groups(best, self._splittable_texts, self._sampler, strength, generator)

    def _bytes_of(self, id_: int, token: str) -> bytes:
        """Return the UTF-8 bytes of a token."""
        if id_ in (PAD, BEGIN, END):
            return b""
        if id_ == UNKNOWN:
            return _UNKNOWN_TEXT.encode()
        if self._processor.is_byte(id_):
            return bytes.fromhex(token[3:5])  # <0xE2>
        return token.replace("▁", " ").encode()

    @cached_property
    def _splittable_texts(self) -> list[str | None]:
        """The text of each token.

        The text is None for tokens that sampling never changes: special tokens, bytes and tags.
        """
        return [
            None
            if id_ in _SPECIAL_TOKENS or self._processor.is_byte(id_) or token.startswith("▁<")
            else token.replace("▁", " ")
            for id_, token in enumerate(self._tokens)
        ]

    @cached_property
    def _sampler(self) -> SegmentationSampler:
        processor = _load_processor(self._data + _NO_SPACE_BEFORE_TEXT)
        scores = [processor.get_score(id_) for id_ in range(self.vocab_size)]
        try:
            processor.nbest_encode_as_ids(" ", nbest_size=2)
        except RuntimeError:  # only unigram models have n-best lists
            # In a BPE model, the score of a token is −rank.
            ids = {text: id_ for id_, text in enumerate(self._splittable_texts) if text is not None}
            return BpeDropout({text: -scores[id_] for text, id_ in ids.items()}, ids)
        return NBestSampler(lambda text, n: list(processor.nbest_encode_as_ids(text, nbest_size=n)), scores)

    def __reduce__(self) -> tuple[object, ...]:
        return Tokenizer.from_bytes, (self._data,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"<Tokenizer: {self.vocab_size} tokens, {self.fingerprint[:8]}>"


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """The tokenizers of the source and the target.

    If `shared` is true, both tokenizers have the same vocabulary. They are then the same object, unless each
    side has a SentencePiece model of its own.
    """

    source: AnyTokenizer
    target: AnyTokenizer
    shared: bool


def untrusted_tokenizer(data: bytes) -> Tokenizer:
    """Return the tokenizer in the bytes of an untrusted file, after a check for character maps."""
    refuse_character_map(data)
    return Tokenizer.from_bytes(data)


def load_tokenizer(path: Path, *, parse: Callable[[bytes], Tokenizer] = untrusted_tokenizer) -> Tokenizer:
    """Return the tokenizer stored in a file. `parse` creates the tokenizer from the bytes of the file."""
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise ModelFolderError(f"The tokenizer at {path} cannot be read: {error.strerror}.") from None
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}") from None


# The sampler encodes parts of a text, and SentencePiece must not put a space before a part. If these bytes
# are appended to a serialised ModelProto, the parser merges this field into the message: normalizer_spec
# (field 3) { add_dummy_prefix (field 3): false }
_NO_SPACE_BEFORE_TEXT = bytes([3 << 3 | 2, 2, 3 << 3, 0])


def _load_processor(data: bytes) -> Any:
    from sentencepiece import SentencePieceProcessor  # start-up

    processor = SentencePieceProcessor()
    processor.load_from_serialized_proto(data)
    return processor


def _parse(data: bytes) -> tuple[Any, list[str]]:
    """Return SentencePiece's processor and the tokens by id.

    Raise a ModelFolderError if the data is damaged.
    """
    try:
        processor = _load_processor(data)
        tokens = [processor.id_to_piece(i) for i in range(processor.piece_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelFolderError(_foreign_file_message(f"SentencePiece reports: {error}")) from None
    if dict(enumerate(tokens[:4])) != _SPECIAL_TOKENS:
        raise ModelFolderError(_foreign_file_message(f"the first four tokens are {' '.join(tokens[:4])}"))
    return processor, tokens


def _foreign_file_message(reason: str) -> str:
    return (
        f"this is not a tokenizer that jumok wrote ({reason}). The file is damaged or comes from another "
        "program; download it again or train the tokenizer again."
    )
