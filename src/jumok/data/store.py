"""The store: pairs that are encoded once and then read through memory maps during the run.

    data/
      store.json            counts, corpora with their weights, hash of the tokenizers, sha256 and size of
                            every file, and a checksum of itself
      source.ids            token ids of all sentences, concatenated, without special tokens; for
                            pictures the pixel values of all patches, one byte per value
      source.offsets        where each sentence begins, and the end of the last: (sentences + 1) numbers
      source.text           only for token sampling: the sentences themselves, concatenated
      source.text-offsets   where the text of each sentence begins, in bytes, and the end of the last
      target.…              the same for the target

A store is written atomically (`storage.folders.new_folder`): it is complete or absent. Pairs are encoded in
blocks and appended, so ten million pairs need no more memory than ten thousand.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jumok.data.spool import OUT_OF_MEMORY_ADVICE, SpooledPairs
from jumok.data.spool import WORKER_CODE as SPOOL_WORKER_CODE
from jumok.errors import DataError, ModelFolderError, StorageError
from jumok.storage.folders import json_with_checksum, new_folder, read_json_with_checksum, write_and_sync
from jumok.system.processes import available_cores
from jumok.system.worker_processes import WorkerProcesses
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from jumok.data.spool import SpooledBlock

FORMAT = 2
MANIFEST = "store.json"
# A source row ends with </s>; a target row also begins with <s>.
SOURCE_SPECIAL_TOKENS, TARGET_SPECIAL_TOKENS = 1, 2
SORTED, FEISTEL = "sorted", "feistel"
MAX_SORTED_PAIRS = 1_000_000
"""Larger stores have the order FEISTEL. If their weights are whole numbers, their batches are planned by
`feistel_plan.py`, which takes four bytes per pair instead of a hundred."""
NO_TOKENS, TOO_MANY_TOKENS = "no tokens", "too many tokens"
_FILES = {
    f"{side}.{kind}" for side in ("source", "target") for kind in ("ids", "offsets", "text", "text-offsets")
}

_PIXEL_DTYPE = "|u1"
_BLOCK_PAIRS = 4096  # encoded at a time: enough for the tokenizer's threads, small in memory


class TokenizerLike(Protocol):
    """The part of a tokenizer that the store and the batches use."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def token_shape(self) -> tuple[int, ...]: ...
    def encode_batch(self, texts: Sequence[str], *, threads: int = -1) -> list[list[int]]: ...
    def sample(self, text: str, strength: float, generator: np.random.Generator) -> list[int]: ...
    def to_bytes(self) -> bytes: ...


class TokenizerPairLike(Protocol):
    """The tokenizers of both sides."""

    @property
    def source(self) -> TokenizerLike: ...
    @property
    def target(self) -> TokenizerLike: ...


@dataclass(frozen=True, slots=True)
class CorpusPairs:
    """The pairs of one corpus, and how often each pair occurs per epoch (`weight`)."""

    name: str
    pairs: Iterable[Pair]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """One corpus in a store: its pairs are `first` … `end - 1`."""

    name: str
    weight: float
    first: int
    end: int


@dataclass(frozen=True)
class StoredSide:
    """One side of a store, as memory maps."""

    ids: NDArray[Any]  # (tokens of all sentences,) uint16 or uint32; for pictures: (patches, value) uint8
    offsets: NDArray[np.int64]  # (sentences + 1,)
    text: NDArray[np.uint8] | None = None
    text_offsets: NDArray[np.int64] | None = None

    def sentence_ids(self, index: int) -> NDArray[Any]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def sentence_text(self, index: int) -> str:
        if self.text is None or self.text_offsets is None:
            raise StorageError(
                "The encoded pairs were stored without their text, which token sampling needs. "
                "Write the store again with store_text=True."
            )
        return self.text[self.text_offsets[index] : self.text_offsets[index + 1]].tobytes().decode("utf-8")

    @cached_property
    def token_counts(self) -> NDArray[np.int32]:
        return np.diff(self.offsets).astype(np.int32)


@dataclass(frozen=True)
class PairStore:
    """Encoded pairs on disk. Lengths count the special tokens that a batch adds to a sentence."""

    folder: Path
    source: StoredSide
    target: StoredSide
    corpora: tuple[StoredCorpus, ...]
    fingerprint: str  # sha256 of the names and hashes of all files
    tokenizer_hash: str  # sha256 of the tokenizers that the pairs were encoded with
    skipped: Mapping[str, int] = field(default_factory=dict)  # reason → number of pairs
    order: str = SORTED
    """How epochs are laid out: by `batch_plan.py` (SORTED); by `feistel_plan.py` if all weights are whole
    numbers (FEISTEL)."""

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        return self.source.token_counts + np.int32(self.special_tokens[0])

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        return self.target.token_counts + np.int32(TARGET_SPECIAL_TOKENS)

    @property
    def special_tokens(self) -> tuple[int, int]:
        """Special tokens that a batch adds to a source and to a target; a picture has no </s>."""
        return (SOURCE_SPECIAL_TOKENS if self.source.ids.ndim == 1 else 0), TARGET_SPECIAL_TOKENS

    @property
    def has_text(self) -> bool:
        return self.source.text is not None

    def pair_ids(self, index: int) -> tuple[list[int], list[int]]:
        """Return the token ids of both sides, without special tokens."""
        return self.source.sentence_ids(index).tolist(), self.target.sentence_ids(index).tolist()

    def pair_text(self, index: int) -> Pair:
        return Pair(self.source.sentence_text(index), self.target.sentence_text(index))


def hash_tokenizers(tokenizers: TokenizerPairLike) -> str:
    """Return one sha256 of both tokenizers; ids are valid only with the tokenizers that encoded them."""
    digest = hashlib.sha256()
    for side in (tokenizers.source, tokenizers.target):
        data = side.to_bytes()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def write_store(
    folder: Path,
    corpora: Sequence[CorpusPairs],
    tokenizers: TokenizerPairLike,
    *,
    max_tokens: int,
    store_text: bool = False,
    order: str | None = None,
) -> PairStore:
    """Encode all pairs into `folder`. Pairs with more than `max_tokens` on a side are skipped and counted.

    `store_text` also stores the sentences, for token sampling. `order` is SORTED or FEISTEL. By default, the
    number of pairs decides. Give the order of an old store to write that store again. If the folder holds a
    store, that store is replaced. If it holds anything else, this function raises.
    """
    _refuse_foreign_folder(folder)
    with new_folder(folder, failure_note="The corpus itself is intact.", replace=True) as temporary:
        contents = _write_contents(
            temporary, corpora, tokenizers, max_tokens=max_tokens, store_text=store_text
        )
        order = order or (FEISTEL if contents["pairs"] > MAX_SORTED_PAIRS else SORTED)
        manifest = contents if order == SORTED else {**contents, "order": order}
        write_and_sync(temporary / MANIFEST, json_with_checksum(manifest))
    return open_store(folder, verify_content=False)


def open_store(folder: Path, *, verify_content: bool = True) -> PairStore:
    """Open a store. Verify the size of every file. With `verify_content`, verify its sha256 as well."""
    manifest = _read_manifest(folder)
    try:
        files: dict[str, dict[str, Any]] = manifest["files"]
        for name, expected in files.items():
            _check_file(folder, name, expected, verify_content=verify_content)
        store = PairStore(
            folder=folder,
            source=_open_side(folder, "source", manifest),
            target=_open_side(folder, "target", manifest),
            corpora=tuple(
                StoredCorpus(part["name"], part["weight"], part["first"], part["last"])
                for part in manifest["parts"]
            ),
            fingerprint=manifest["fingerprint"],
            tokenizer_hash=manifest["vocabulary"],
            skipped=manifest["skipped"],
            order=manifest.get("order", SORTED),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damage_error(folder, f"{MANIFEST} has been changed ({error!r})") from None
    except OSError as error:
        raise StorageError(f"The encoded pairs in {folder} cannot be read: {error}.") from error
    if manifest["fingerprint"] != _fingerprint(files):
        raise _damage_error(folder, f"the fingerprint in {MANIFEST} is not that of its files")
    if len(store) != manifest["pairs"] or len(store.target.offsets) != len(store.source.offsets):
        raise _damage_error(folder, f"it should hold {manifest['pairs']:,} pairs and holds {len(store):,}")
    return store


class _AppendedFile:
    """A file that is hashed while it is appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._digest = hashlib.sha256()
        self._bytes = 0

    def append(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._bytes += len(data)

    def finish(self) -> dict[str, Any]:
        """Flush the file to the disk; return its entry in the manifest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"bytes": self._bytes, "sha256": self._digest.hexdigest()}

    def close(self) -> None:
        self._file.close()


class _SideWriter:
    """Appends the sentences of one side."""

    def __init__(self, folder: Path, name: str, *, store_text: bool) -> None:
        self._ids = _AppendedFile(folder / f"{name}.ids")
        self._offsets = _AppendedFile(folder / f"{name}.offsets")
        self._text = _AppendedFile(folder / f"{name}.text") if store_text else None
        self._text_offsets = _AppendedFile(folder / f"{name}.text-offsets") if store_text else None
        self._tokens = self._bytes = 0
        self.files = [file for file in (self._ids, self._offsets, self._text, self._text_offsets) if file]
        for file in (self._offsets, self._text_offsets):
            if file:
                file.append(np.zeros(1, "<i8").tobytes())

    def append(self, side: EncodedSide) -> None:
        if self._text and self._text_offsets:
            encoded = [text.encode("utf-8") for text in side.texts]
            self.append_text(b"".join(encoded), np.fromiter(map(len, encoded), "<i8", count=len(encoded)))
        self.append_ids(side.ids.tobytes(), side.counts)

    def append_ids(self, data: bytes, counts: NDArray[np.int64]) -> None:
        self._ids.append(data)
        self._tokens = _append_offsets(self._offsets, self._tokens, counts)

    def append_text(self, data: bytes, counts: NDArray[np.int64]) -> None:
        if self._text and self._text_offsets:
            self._text.append(data)
            self._bytes = _append_offsets(self._text_offsets, self._bytes, counts)


def _append_offsets(file: _AppendedFile, end: int, counts: NDArray[np.int64]) -> int:
    """Append the ends of the next sentences, given the `end` of the last sentence; return the new end."""
    ends = end + np.cumsum(counts, dtype="<i8")
    file.append(ends.tobytes())
    return int(ends[-1]) if len(ends) else end


def _write_contents(
    folder: Path,
    corpora: Sequence[CorpusPairs],
    tokenizers: TokenizerPairLike,
    *,
    max_tokens: int,
    store_text: bool,
) -> dict[str, Any]:
    """Write all files except the manifest, and return the contents of the manifest."""
    sides = {"source": tokenizers.source, "target": tokenizers.target}
    dtypes = {name: _ids_dtype(tokenizer) for name, tokenizer in sides.items()}
    shapes = {name: tokenizer.token_shape for name, tokenizer in sides.items() if tokenizer.token_shape}
    writers = {name: _SideWriter(folder, name, store_text=store_text) for name in sides}
    open_files = [file for writer in writers.values() for file in writer.files]
    skipped: Counter[str] = Counter()
    ranges: list[dict[str, Any]] = []
    first = 0
    try:
        for corpus in corpora:
            if isinstance(corpus.pairs, SpooledPairs):
                message = _encoding_message(corpus.pairs, tokenizers, max_tokens, store_text)
                end = first + _append_spooled(corpus.pairs, writers, message, skipped)
            else:
                end = first + _append_corpus(corpus, writers, tokenizers, max_tokens, skipped)
            ranges.append({"name": corpus.name, "weight": corpus.weight, "first": first, "last": end})
            first = end
        files = {file.path.name: file.finish() for file in open_files}
    finally:
        for file in open_files:
            file.close()
    if first == 0:
        raise DataError(
            f"No pair is left to train on: {_describe_skipped(skipped)}. At most {max_tokens} tokens per "
            "side are allowed; `jumok check` shows what is wrong with the corpus."
        )
    # Old names stay in the file, so that stores of this format can still be read: "longest" is the
    # maximum number of tokens, "parts" are the corpora, "last" is an exclusive end, "vocabulary" is a hash.
    return {
        "format": FORMAT,
        "pairs": first,
        "ids": dtypes,
        "longest": max_tokens,
        "parts": ranges,
        "skipped": dict(skipped),
        "vocabulary": hash_tokenizers(tokenizers),
        "fingerprint": _fingerprint(files),
        "files": files,
        **({"token_shapes": shapes} if shapes else {}),  # only for pictures
    }


def _encoding_message(
    corpus: SpooledPairs, tokenizers: TokenizerPairLike, max_tokens: int, store_text: bool
) -> dict[str, Any]:
    """Write the tokenizers to the spool, and return the first message for the workers that encode."""
    from jumok.text.tokenizer import TokenizerPair  # start-up
    from jumok.text.tokenizer_files import tokenizers_to_files  # start-up

    if not isinstance(tokenizers, TokenizerPair):
        raise StorageError(f"Pairs on disk are encoded by tokenizers of jumok. Received: {tokenizers!r}.")
    for name, data in tokenizers_to_files(tokenizers).items():
        (corpus.spool.folder / name).write_bytes(data)
    return {
        "folder": str(corpus.spool.folder),
        "shared": tokenizers.shared,
        "max_tokens": max_tokens,
        "store_text": store_text,
    }


def _append_corpus(
    corpus: CorpusPairs,
    writers: Mapping[str, _SideWriter],
    tokenizers: TokenizerPairLike,
    max_tokens: int,
    skipped: Counter[str],
) -> int:
    """Encode one corpus block by block; return how many of its pairs were stored."""
    num_stored = 0
    for block in _blocks(corpus.pairs):
        encoded = encode_pairs(
            [pair.source for pair in block], [pair.target for pair in block], tokenizers, max_tokens
        )
        writers["source"].append(encoded.source)
        writers["target"].append(encoded.target)
        skipped.update(encoded.skipped)
        num_stored += len(encoded.source.counts)
    return num_stored


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """One side of some pairs. `ids` has the ids of all texts, `counts` the number of ids of each text.

    For pictures, `ids` has pixel values, `counts` the number of patches of each picture.
    """

    texts: list[str]
    ids: NDArray[Any]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    """The encoded pairs, and how many were skipped."""

    source: EncodedSide
    target: EncodedSide
    skipped: Counter[str]


def encode_pairs(
    sources: list[str], targets: list[str], tokenizers: TokenizerPairLike, max_tokens: int, **options: int
) -> EncodedPairs:
    """Encode pairs. Skip and count pairs without tokens, and pairs with more than `max_tokens` on a side.

    The only option for the tokenizers is `threads`.
    """
    source_ids = tokenizers.source.encode_batch(sources, **options)
    target_ids = tokenizers.target.encode_batch(targets, **options)
    stored: list[int] = []  # the indices of the pairs that are not skipped
    skipped: Counter[str] = Counter()
    for index, (source, target) in enumerate(zip(source_ids, target_ids, strict=True)):
        # The source of plain text is empty, which is valid. A picture is never too long: the recipe sets
        # the number of patches for all pictures.
        source_length = 1 if tokenizers.source.token_shape else len(source)
        if not target or (not source_length and sources[index]):
            skipped[NO_TOKENS] += 1
        elif source_length > max_tokens or len(target) > max_tokens:
            skipped[TOO_MANY_TOKENS] += 1
        else:
            stored.append(index)
    return EncodedPairs(
        _encoded_side([sources[i] for i in stored], [source_ids[i] for i in stored], tokenizers.source),
        _encoded_side([targets[i] for i in stored], [target_ids[i] for i in stored], tokenizers.target),
        skipped,
    )


def _encoded_side(texts: list[str], ids: list[Any], tokenizer: TokenizerLike) -> EncodedSide:
    counts, dtype = np.fromiter(map(len, ids), "<i8", count=len(ids)), _ids_dtype(tokenizer)
    if dtype == _PIXEL_DTYPE:
        pixels = np.frombuffer(b"".join(patches.tobytes() for patches in ids), np.uint8)
        return EncodedSide(texts, pixels, counts)
    flat = np.fromiter(chain.from_iterable(ids), dtype, count=int(counts.sum()))
    return EncodedSide(texts, flat, counts)


def _append_spooled(
    corpus: SpooledPairs, writers: Mapping[str, _SideWriter], message: dict[str, Any], skipped: Counter[str]
) -> int:
    """Encode one corpus of a spool on all cores, and append its blocks in order."""
    blocks = corpus.blocks()
    workers: WorkerProcesses[SpooledBlock] = WorkerProcesses(
        SPOOL_WORKER_CODE,
        count=available_cores(),
        first={**message, "threshold": corpus.hold_out.threshold},
        advice=OUT_OF_MEMORY_ADVICE,
    )
    num_stored, encoded_numbers = 0, set[int]()
    next_blocks = iter(blocks)
    next_block = next(next_blocks, None)
    for block, answer in workers.map((block, {"number": block.number}) for block in blocks):
        skipped.update(answer["skipped"])
        encoded_numbers.add(block.number)
        while next_block is not None and next_block.number in encoded_numbers:
            num_stored += _append_block(next_block, writers)
            next_block = next(next_blocks, None)
    return num_stored


def _append_block(block: SpooledBlock, writers: Mapping[str, _SideWriter]) -> int:
    """Append an encoded block, and remove its files; return how many pairs it has."""
    count = 0
    for name, writer in writers.items():
        counts = block.array(f"{name}-counts", "<i8")
        writer.append_ids(block.path(f"{name}-ids").read_bytes(), counts)
        if block.path(f"{name}-text").exists():
            text_counts = block.array(f"{name}-text-counts", "<i8")
            writer.append_text(block.path(f"{name}-text").read_bytes(), text_counts)
        for kind in ("ids", "counts", "text", "text-counts"):
            block.path(f"{name}-{kind}").unlink(missing_ok=True)
        count = len(counts)
    return count


def _blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while block := list(islice(iterator, _BLOCK_PAIRS)):
        yield block


def _ids_dtype(tokenizer: TokenizerLike) -> str:
    if tokenizer.token_shape:
        return _PIXEL_DTYPE
    return "<u2" if tokenizer.vocab_size <= 65536 else "<u4"


def _fingerprint(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the sha256 of the names and hashes of all files, in the order of their names."""
    lines = "".join(f"{name} {files[name]['sha256']}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not (folder / MANIFEST).exists():
        raise StorageError(f"There are no encoded pairs in {folder}: it has no {MANIFEST}.")
    try:
        manifest = read_json_with_checksum(folder / MANIFEST)
    except ModelFolderError as error:
        raise _damage_error(folder, str(error).removesuffix(".")) from None
    if manifest.get("format") != FORMAT:
        raise StorageError(
            f"The encoded pairs in {folder} were written by another version of jumok (format "
            f"{manifest.get('format')}, expected {FORMAT}). Delete that folder; the next run encodes them "
            "again."
        )
    return manifest


def _check_file(folder: Path, name: str, expected: Mapping[str, Any], *, verify_content: bool) -> None:
    path = folder / name
    if not path.is_file():
        raise _damage_error(folder, f"{name} is missing")
    size = path.stat().st_size
    if size != expected["bytes"]:
        raise _damage_error(folder, f"{name} should have {expected['bytes']:,} bytes and has {size:,}")
    if verify_content:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected["sha256"]:
                raise _damage_error(folder, f"the content of {name} has changed since it was written")


def _open_side(folder: Path, name: str, manifest: Mapping[str, Any]) -> StoredSide:
    has_text = f"{name}.text" in manifest["files"]
    token_shape = manifest.get("token_shapes", {}).get(name, ())
    return StoredSide(
        ids=_memory_map(folder / f"{name}.ids", manifest["ids"][name]).reshape(-1, *token_shape),
        offsets=_memory_map(folder / f"{name}.offsets", "<i8"),
        text=_memory_map(folder / f"{name}.text", "u1") if has_text else None,
        text_offsets=_memory_map(folder / f"{name}.text-offsets", "<i8") if has_text else None,
    )


def _memory_map(path: Path, dtype: str) -> NDArray[Any]:
    """Map a file read-only, as a plain array, because indexing the memmap subclass is slower."""
    if not path.stat().st_size:  # an empty file cannot be mapped
        return np.empty(0, np.dtype(dtype))
    return np.asarray(np.memmap(path, dtype=np.dtype(dtype), mode="r"))


def _damage_error(folder: Path, reason: str) -> StorageError:
    return StorageError(
        f"The encoded pairs in {folder} are damaged: {reason}. Delete that folder; the next run "
        "encodes them again."
    )


def _refuse_foreign_folder(folder: Path) -> None:
    """Raise if the folder is neither a store nor the remains of a store.

    Up to version 0.1, a process that was killed while it replaced a store could leave files without a
    manifest.
    """
    if not folder.exists() or (folder / MANIFEST).is_file():
        return
    if not folder.is_dir() or any(path.name not in _FILES for path in folder.iterdir()):
        raise StorageError(
            f"{folder} is in the way: it holds something other than encoded pairs. "
            "Move it away or choose another folder."
        )


def _describe_skipped(skipped: Mapping[str, int]) -> str:
    if not skipped:
        return "the corpus is empty"
    return ", ".join(f"{count:,} with {reason}" for reason, count in sorted(skipped.items()))
