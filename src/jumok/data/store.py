"""The store: pairs encoded once, then read through memory maps for the rest of the run.

    data/
      store.json            counts, parts with their weights, vocabulary hash, sha256 and size of every file,
                            and a checksum of itself
      source.ids            piece ids of all sentences, one after the other, without marks
      source.offsets        where each sentence begins; one number more than there are sentences
      source.text           only with piece sampling: the sentences themselves, and where each begins
      source.text-offsets
      target.…              likewise

A store is written beside its place and renamed into it when every byte is on the disk: it is whole or absent.
Pairs are encoded in blocks and appended, so ten million of them need no more memory than ten thousand.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jumok.errors import DataError, ModelFolderError, StorageError
from jumok.values import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["PairStore", "Part", "PieceEncoder", "VocabularyPair", "open_store", "write_store"]

FORMAT = 2
META = "store.json"
SOURCE_MARKS, TARGET_MARKS = 1, 2  # a source row ends with </s>; a target row also begins with <s>
NO_PIECES, TOO_MANY_PIECES = "no pieces", "too many pieces"

_BLOCK = 4096  # pairs encoded at a time: enough for the encoder's threads, small in memory


class PieceEncoder(Protocol):
    """What the store needs of `text.Subwords`."""

    @property
    def size(self) -> int: ...
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...
    def sample(self, text: str, strength: float, generator: np.random.Generator) -> list[int]: ...
    def to_bytes(self) -> bytes: ...


class VocabularyPair(Protocol):
    """What the store needs of `text.Vocabularies`."""

    @property
    def source(self) -> PieceEncoder: ...
    @property
    def target(self) -> PieceEncoder: ...


@dataclass(frozen=True, slots=True)
class Part:
    """The pairs of one corpus on their way into the store, and how often an epoch takes each of them."""

    name: str
    pairs: Iterable[Pair]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Pairs `first` … `last - 1` of a store came from one corpus and share its weight."""

    name: str
    weight: float
    first: int
    last: int


@dataclass(frozen=True)
class StoredSide:
    """One language of a store: arrays that live on the disk."""

    ids: NDArray[Any]  # (pieces of all sentences,) uint16 or uint32
    offsets: NDArray[np.int64]  # (sentences + 1,)
    text: NDArray[np.uint8] | None = None
    text_offsets: NDArray[np.int64] | None = None

    def sentence_ids(self, index: int) -> NDArray[Any]:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def sentence_text(self, index: int) -> str:
        if self.text is None or self.text_offsets is None:
            raise StorageError(
                "The encoded pairs were stored without their text, which piece sampling needs. "
                "Write the store again with keep_text=True."
            )
        return self.text[self.text_offsets[index] : self.text_offsets[index + 1]].tobytes().decode("utf-8")

    @cached_property
    def piece_counts(self) -> NDArray[np.int32]:
        return np.diff(self.offsets).astype(np.int32)


@dataclass(frozen=True)
class PairStore:
    """Encoded pairs on the disk. Lengths count the marks that a batch puts around a sentence."""

    folder: Path
    source: StoredSide
    target: StoredSide
    parts: tuple[StoredPart, ...]
    fingerprint: str
    vocabulary: str  # sha256 of the vocabularies that cut the pieces
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        return self.source.piece_counts + np.int32(SOURCE_MARKS)

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        return self.target.piece_counts + np.int32(TARGET_MARKS)

    @property
    def has_text(self) -> bool:
        return self.source.text is not None

    def pair_ids(self, index: int) -> tuple[list[int], list[int]]:
        """The piece ids of both sides, without marks."""
        return self.source.sentence_ids(index).tolist(), self.target.sentence_ids(index).tolist()

    def pair_text(self, index: int) -> Pair:
        return Pair(self.source.sentence_text(index), self.target.sentence_text(index))


def vocabulary_hash(vocabularies: VocabularyPair) -> str:
    """One sha256 for both vocabularies: ids must be read with the very pieces they were cut with."""
    digest = hashlib.sha256()
    for side in (vocabularies.source, vocabularies.target):
        data = side.to_bytes()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def write_store(
    folder: Path,
    parts: Sequence[Part],
    vocabularies: VocabularyPair,
    *,
    longest: int,
    keep_text: bool = False,
) -> PairStore:
    """Encode all pairs into `folder`; those with over `longest` pieces on a side are skipped and counted.

    `keep_text` also stores the sentences, for piece sampling. A store that already stands there is replaced;
    any other folder is left alone.
    """
    _refuse_foreign(folder)
    temporary = folder.with_name(folder.name + ".tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        _write_contents(temporary, parts, vocabularies, longest=longest, keep_text=keep_text)
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
        _sync_folder(folder.parent)
    except OSError as error:
        raise StorageError(f"The encoded pairs could not be written to {folder}: {error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return open_store(folder, thorough=False)


def open_store(folder: Path, *, thorough: bool = True) -> PairStore:
    """Open a store and check it: the size of every file and, where `thorough`, its sha256."""
    meta = _read_meta(folder)
    try:
        files: dict[str, dict[str, Any]] = meta["files"]
        for name, expected in files.items():
            _check_file(folder, name, expected, thorough=thorough)
        store = PairStore(
            folder=folder,
            source=_open_side(folder, "source", meta),
            target=_open_side(folder, "target", meta),
            parts=tuple(StoredPart(**part) for part in meta["parts"]),
            fingerprint=meta["fingerprint"],
            vocabulary=meta["vocabulary"],
            skipped=meta["skipped"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, f"{META} is not as it was written ({error!r})") from None
    except OSError as error:
        raise StorageError(f"The encoded pairs in {folder} cannot be read: {error}.") from error
    if meta["fingerprint"] != _fingerprint(files):
        raise _damaged(folder, f"the fingerprint in {META} is not that of its files")
    if len(store) != meta["pairs"] or len(store.target.offsets) != len(store.source.offsets):
        raise _damaged(folder, f"it should hold {meta['pairs']:,} pairs and holds {len(store):,}")
    return store


class _Column:
    """A file that is appended to, and knows its sha256 at the end."""

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
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"bytes": self._bytes, "sha256": self._digest.hexdigest()}

    def abandon(self) -> None:
        self._file.close()


class _SideWriter:
    """Appends the sentences of one language."""

    def __init__(self, folder: Path, name: str, ids_type: str, *, keep_text: bool) -> None:
        self.ids_type = ids_type
        self._ids = _Column(folder / f"{name}.ids")
        self._offsets = _Column(folder / f"{name}.offsets")
        self._text = _Column(folder / f"{name}.text") if keep_text else None
        self._text_offsets = _Column(folder / f"{name}.text-offsets") if keep_text else None
        self._pieces = self._bytes = 0
        self.columns = [c for c in (self._ids, self._offsets, self._text, self._text_offsets) if c]
        for column in (self._offsets, self._text_offsets):
            if column:
                column.append(np.zeros(1, "<i8").tobytes())

    def append(self, texts: list[str], ids: list[list[int]]) -> None:
        flat = np.fromiter(chain.from_iterable(ids), self.ids_type, count=sum(map(len, ids)))
        self._ids.append(flat.tobytes())
        self._pieces = _append_offsets(self._offsets, self._pieces, map(len, ids))
        if self._text and self._text_offsets:
            encoded = [text.encode("utf-8") for text in texts]
            self._text.append(b"".join(encoded))
            self._bytes = _append_offsets(self._text_offsets, self._bytes, map(len, encoded))


def _append_offsets(column: _Column, position: int, lengths: Iterable[int]) -> int:
    ends = position + np.cumsum(np.fromiter(lengths, "<i8"), dtype="<i8")
    column.append(ends.tobytes())
    return int(ends[-1]) if len(ends) else position


def _write_contents(
    folder: Path, parts: Sequence[Part], vocabularies: VocabularyPair, *, longest: int, keep_text: bool
) -> None:
    types = {name: _ids_type(getattr(vocabularies, name).size) for name in ("source", "target")}
    writers = {name: _SideWriter(folder, name, kind, keep_text=keep_text) for name, kind in types.items()}
    columns = [column for writer in writers.values() for column in writer.columns]
    skipped: Counter[str] = Counter()
    stored: list[dict[str, Any]] = []
    first = 0
    try:
        for part in parts:
            last = first + _append_part(part, writers, vocabularies, longest, skipped)
            stored.append({"name": part.name, "weight": part.weight, "first": first, "last": last})
            first = last
        files = {column.path.name: column.finish() for column in columns}
    finally:
        for column in columns:
            column.abandon()
    if first == 0:
        raise DataError(
            f"No pair is left to train on: {_tell(skipped)}. Pairs may have at most {longest} pieces a side; "
            "`jumok check` shows what is wrong with the corpus."
        )
    meta = {
        "format": FORMAT,
        "pairs": first,
        "ids": types,
        "longest": longest,
        "parts": stored,
        "skipped": dict(skipped),
        "vocabulary": vocabulary_hash(vocabularies),
        "fingerprint": _fingerprint(files),
        "files": files,
    }
    from jumok.storage import checked_json  # late: `jumok check` opens this room and needs none of it

    column = _Column(folder / META)
    column.append(checked_json(meta))
    column.finish()
    _sync_folder(folder)


def _append_part(
    part: Part,
    writers: Mapping[str, _SideWriter],
    vocabularies: VocabularyPair,
    longest: int,
    skipped: Counter[str],
) -> int:
    """Encode one corpus block by block; how many of its pairs were stored."""
    stored = 0
    for block in _blocks(part.pairs):
        sources = [pair.source for pair in block]
        targets = [pair.target for pair in block]
        source_ids = vocabularies.source.encode_batch(sources)
        target_ids = vocabularies.target.encode_batch(targets)
        kept: list[int] = []
        for index, (source, target) in enumerate(zip(source_ids, target_ids, strict=True)):
            if not target or (not source and sources[index]):  # plain text has no source
                skipped[NO_PIECES] += 1
            elif len(source) > longest or len(target) > longest:
                skipped[TOO_MANY_PIECES] += 1
            else:
                kept.append(index)
        writers["source"].append([sources[i] for i in kept], [source_ids[i] for i in kept])
        writers["target"].append([targets[i] for i in kept], [target_ids[i] for i in kept])
        stored += len(kept)
    return stored


def _blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while block := list(islice(iterator, _BLOCK)):
        yield block


def _ids_type(size: int) -> str:
    return "<u2" if size <= 65536 else "<u4"


def _fingerprint(files: Mapping[str, Mapping[str, Any]]) -> str:
    """A sha256 over the contents of all files, in the order of their names."""
    listed = "".join(f"{name} {files[name]['sha256']}\n" for name in sorted(files))
    return hashlib.sha256(listed.encode("utf-8")).hexdigest()


def _read_meta(folder: Path) -> dict[str, Any]:
    from jumok.storage import read_checked_json  # late: as above

    if not (folder / META).exists():
        raise StorageError(f"There are no encoded pairs in {folder}: it has no {META}.")
    try:
        meta = read_checked_json(folder / META)
    except ModelFolderError as error:
        raise _damaged(folder, str(error).removesuffix(".")) from None
    if meta.get("format") != FORMAT:
        raise _damaged(folder, f"{META} is not of format {FORMAT}")
    return meta


def _check_file(folder: Path, name: str, expected: Mapping[str, Any], *, thorough: bool) -> None:
    path = folder / name
    if not path.is_file():
        raise _damaged(folder, f"{name} is missing")
    size = path.stat().st_size
    if size != expected["bytes"]:
        raise _damaged(folder, f"{name} should have {expected['bytes']:,} bytes and has {size:,}")
    if thorough:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected["sha256"]:
                raise _damaged(folder, f"the contents of {name} have changed since they were written")


def _open_side(folder: Path, name: str, meta: Mapping[str, Any]) -> StoredSide:
    has_text = f"{name}.text" in meta["files"]
    return StoredSide(
        ids=_map(folder / f"{name}.ids", meta["ids"][name]),
        offsets=_map(folder / f"{name}.offsets", "<i8"),
        text=_map(folder / f"{name}.text", "u1") if has_text else None,
        text_offsets=_map(folder / f"{name}.text-offsets", "<i8") if has_text else None,
    )


def _map(path: Path, kind: str) -> NDArray[Any]:
    """A read-only view of a file; a plain array, because indexing the memmap subclass is slower."""
    if not path.stat().st_size:  # nothing cannot be mapped
        return np.empty(0, np.dtype(kind))
    return np.asarray(np.memmap(path, dtype=np.dtype(kind), mode="r"))


def _damaged(folder: Path, what: str) -> StorageError:
    return StorageError(
        f"The encoded pairs in {folder} are damaged: {what}. Delete that folder; they are encoded again "
        "from the corpus by the next run."
    )


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and not (folder / META).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise StorageError(
            f"{folder} is in the way: the encoded pairs belong there, but it holds something else. "
            "Move it away or choose another folder."
        )


def _sync_folder(folder: Path) -> None:
    """A rename is only as durable as the folder that lists it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _tell(skipped: Mapping[str, int]) -> str:
    if not skipped:
        return "the corpus is empty"
    return ", ".join(f"{count:,} with {reason}" for reason, count in sorted(skipped.items()))
