"""Pairs of large corpora: read once, cleaned on all cores, and kept on disk.

    spool = Spool.read(folder, corpora, exclude=validation, with_keys=True)
    spool.kept, spool.skipped           counts of pairs
    spool.pairs(corpus)                 the clean pairs of a corpus, in order, any number of times

One process reads the files and sends blocks of pairs to workers (`spool_worker.py`), which find the faults of
each pair, hash the pair, and write the pairs without faults to the disk. Duplicates are then found by
comparing hashes, a fraction of the hashes at a time, so that memory does not grow with the corpus. The first
of several equal pairs is kept, as in `cleaning.py`, which cleans in one process. Hashes are blake2b, which is
the same in every process.

    of every pair that was read:
    000017.faults     0, or 1 + index in `SKIPPING_FAULTS` of the first fault that the pair alone shows
    000017.hashes     hash of the pair

    of every pair whose number in `faults` is 0:
    000017.text       source, tab, target and line end
    000017.lengths    (pair, 2) bytes of the source and of the target
    000017.keys       hash of the source (or of the sentence of plain text) without case and punctuation;
                      only if the pairs are read `with_keys` or with `exclude`
    000017.leaked     whether this key is the key of a source in a corpus of `exclude`
    000017.keep       whether the pair is kept: it is neither a duplicate nor leaked

While the pairs are encoded, the workers also write files with the token ids of each block. `store.py` reads
and removes these files.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.data.cleaning import SKIPPING_FAULTS, leak_keys
from jumok.data.faults import CleaningLimits, Fault, Inspector
from jumok.data.hold_out import MIN_PAIRS_PER_HELD_OUT, HoldOut, key_hash
from jumok.storage.folders import disk_errors, make_folder
from jumok.system.processes import available_cores
from jumok.system.worker_processes import WorkerProcesses
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from jumok.data.corpora import Corpus

BLOCK_PAIRS = 32_768
INSPECTED_PAIRS = 8192
"""Number of pairs that are inspected together, as in `cleaning.py`. The expected ratio of lengths is learnt
from this many pairs at the beginning of the corpus."""
MIN_SPOOLED_BYTES = 64 * 2**20
"""Smaller corpora are read by one process and kept in memory."""
MAX_COMPARED_HASHES = 8 * 2**20
"""Hashes that are compared at a time."""
COMPRESSED_FACTOR = 4  # gzip makes text about this many times smaller
OUT_OF_MEMORY_ADVICE = "If memory is short, end other programs; then run the same command again."
WORKER_CODE = "from jumok.data.spool_worker import main; main()"
_HISTOGRAM_BITS = 16


def should_spool(corpora: Sequence[Corpus]) -> bool:
    """Return whether the corpora are of text and their files have at least `MIN_SPOOLED_BYTES` in total."""
    if any(corpus.pictures for corpus in corpora):
        return False
    return sum(corpus.num_bytes(COMPRESSED_FACTOR) for corpus in corpora) >= MIN_SPOOLED_BYTES


@dataclass(frozen=True, slots=True)
class SpooledBlock:
    """A block of `num_read` pairs of one corpus.

    `first` is the index of its first pair among all pairs that were read for the spool.
    """

    folder: Path
    number: int  # index of the block in the spool
    corpus: int  # index of its corpus in the corpora of the spool
    first: int
    num_read: int

    @classmethod
    def for_files(cls, folder: Path, number: int) -> SpooledBlock:
        """Return a block that can only read and write its files. The other fields are placeholders."""
        return cls(folder, number, corpus=0, first=0, num_read=0)

    def __str__(self) -> str:
        return f"pairs {self.first + 1:,} to {self.first + self.num_read:,}"

    def path(self, kind: str) -> Path:
        return self.folder / f"{self.number:06d}.{kind}"

    def write(self, kind: str, values: NDArray[Any]) -> None:
        """Write an array. `ndarray.tofile` would not report a full disk if the array is small."""
        self.path(kind).write_bytes(values.tobytes())

    def array(self, kind: str, dtype: str) -> NDArray[Any]:
        return np.fromfile(self.path(kind), dtype=dtype)

    def lengths(self) -> NDArray[np.uint32]:
        return self.array("lengths", "<u4").reshape(-1, 2)

    def ends(self) -> NDArray[np.int64]:
        """Return where each pair ends in the text, in bytes. A pair also has a tab and a line end."""
        return np.cumsum(self.lengths().sum(axis=1, dtype=np.int64) + 2)

    def kept_mask(self) -> NDArray[np.bool_]:
        return self.array("keep", "?")

    def training_mask(self, hold_out: HoldOut) -> NDArray[np.bool_]:
        """Return which pairs are training pairs: they are kept, and not held out."""
        if not hold_out.threshold:
            return self.kept_mask()
        return self.kept_mask() & ~hold_out.mask(self.array("keys", "<u8"))

    def texts(self, mask: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
        """Return the sources and targets of some pairs."""
        data, ends, lengths = self.path("text").read_bytes(), self.ends(), self.lengths()
        starts = ends - lengths.sum(axis=1, dtype=np.int64) - 2
        tabs, line_ends = starts + lengths[:, 0], ends - 1
        spans = list(zip(*(offsets[mask].tolist() for offsets in (starts, tabs, line_ends)), strict=True))
        if data.isascii():
            text = data.decode("ascii")
            sources = [text[start:tab] for start, tab, _ in spans]
            return sources, [text[tab + 1 : end] for _, tab, end in spans]
        return (
            [data[start:tab].decode("utf-8", "surrogatepass") for start, tab, _ in spans],
            [data[tab + 1 : end].decode("utf-8", "surrogatepass") for _, tab, end in spans],
        )

    def kept_bytes(self) -> Iterator[memoryview]:
        """Yield the bytes of the kept pairs, in order and in runs as long as possible."""
        data, ends = memoryview(self.path("text").read_bytes()), self.ends()
        kept = np.concatenate([[False], self.kept_mask(), [False]]).astype(np.int8)
        bounds = np.concatenate([[0], ends])
        [starts], [stops] = np.nonzero(np.diff(kept) == 1), np.nonzero(np.diff(kept) == -1)
        for start, stop in zip(bounds[starts].tolist(), bounds[stops].tolist(), strict=True):
            yield data[start:stop]


@dataclass(frozen=True, slots=True)
class SpooledPairs:
    """The training pairs of one corpus of a spool, in order."""

    spool: Spool
    corpus: int  # its index in the corpora of the spool
    hold_out: HoldOut

    def blocks(self) -> list[SpooledBlock]:
        return [block for block in self.spool.blocks if block.corpus == self.corpus]

    def __iter__(self) -> Iterator[Pair]:
        for block in self.blocks():
            yield from map(Pair, *block.texts(block.training_mask(self.hold_out)))


class Spool:
    """Clean pairs on disk, in the order of their corpora. The folder is removed with this Python object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blocks: list[SpooledBlock] = []
        self.skipped: Counter[Fault] = Counter()
        self.kept = 0
        self.has_alignments = False  # whether pairs that were read had alignments; a spool keeps none
        with disk_errors(folder, "The corpus itself is intact."):
            # An empty folder stays, because its permissions may be private.
            if not folder.is_dir() or any(folder.iterdir()):
                shutil.rmtree(folder, ignore_errors=True)
                make_folder(folder)
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @classmethod
    def read(
        cls, folder: Path, corpora: Sequence[Corpus], *, exclude: Sequence[Corpus] = (), with_keys: bool
    ) -> Spool:
        """Read and clean corpora; pairs whose source is in a corpus of `exclude` are skipped.

        Set `with_keys` if pairs are to be held out of the spool.
        """
        spool = cls(folder)
        excluded = [key_hash(key) for corpus in exclude for key in leak_keys(corpus)]
        first_message = {"folder": str(folder), "excluded": excluded, "with_keys": with_keys}
        workers: WorkerProcesses[SpooledBlock] = WorkerProcesses(
            WORKER_CODE, count=available_cores(), first=first_message, advice=OUT_OF_MEMORY_ADVICE
        )
        with disk_errors(folder, "The corpus itself is intact."):
            for block, _ in workers.map(spool._requests(corpora)):
                spool.blocks.append(block)
            spool.blocks.sort(key=lambda block: block.number)
            spool._mark_kept_pairs()
        return spool

    def _requests(self, corpora: Sequence[Corpus]) -> Iterator[tuple[SpooledBlock, dict[str, Any]]]:
        number = first = 0
        for index, corpus in enumerate(corpora):
            inspector = Inspector(
                corpus.source_language, corpus.target_language, CleaningLimits(), only_target=corpus.plain
            )
            numbered = corpus.numbered_pairs()
            while pairs := [pair for _, pair in islice(numbered, BLOCK_PAIRS)]:
                self.has_alignments = self.has_alignments or any(pair.alignment is not None for pair in pairs)
                sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
                ratio = inspector.learn_ratio(sources[:INSPECTED_PAIRS], targets[:INSPECTED_PAIRS])
                message = {
                    "number": number,
                    "languages": [corpus.source_language, corpus.target_language],
                    "plain": corpus.plain,
                    "expected_ratio": ratio,
                    "sources": sources,
                    "targets": targets,
                }
                yield SpooledBlock(self.folder, number, index, first, len(pairs)), message
                number, first = number + 1, first + len(pairs)

    def _mark_kept_pairs(self) -> None:
        """Find duplicates, count the skipped pairs, and write a mask of the kept pairs of each block."""
        duplicates = self._duplicates()
        for block in self.blocks:
            faults = block.array("faults", "u1")
            duplicate = duplicates[block.first : block.first + block.num_read][faults == 0]
            leaked = block.array("leaked", "?")
            keep = ~duplicate & ~leaked
            block.write("keep", keep)
            self.kept += int(keep.sum())
            counts = np.bincount(faults, minlength=len(SKIPPING_FAULTS) + 1)[1:].tolist()
            self.skipped.update(dict(zip(SKIPPING_FAULTS, counts, strict=True)))
            self.skipped[Fault.DUPLICATE] += int(duplicate.sum())
            self.skipped[Fault.LEAKED] += int((leaked & ~duplicate).sum())

    def _duplicates(self) -> NDArray[np.bool_]:
        """Return a mask of the pairs that equal an earlier pair, among all pairs that were read."""
        total = sum(block.num_read for block in self.blocks)
        duplicates = np.zeros(total, dtype=bool)
        num_parts = -(-total // MAX_COMPARED_HASHES)
        for part in range(num_parts):
            hashes, indices = [], []
            for block in self.blocks:
                values = block.array("hashes", "<u8")
                chosen = (
                    np.flatnonzero(values % np.uint64(num_parts) == part) if num_parts > 1 else slice(None)
                )
                hashes.append(values[chosen])
                indices.append(np.arange(block.first, block.first + block.num_read)[chosen])
            compared, index = np.concatenate(hashes), np.concatenate(indices)
            is_first = np.zeros(len(compared), dtype=bool)
            is_first[np.unique(compared, return_index=True)[1]] = True
            duplicates[index[~is_first]] = True
        return duplicates

    def pairs(self, corpus: int | None = None) -> Iterator[Pair]:
        """Yield the clean pairs of one corpus, by its index, or of all corpora if `corpus` is None."""
        for block in self.blocks:
            if corpus in (None, block.corpus):
                yield from map(Pair, *block.texts(block.kept_mask()))

    def sample(self, stride: int) -> Iterator[Pair]:
        """Yield one of every `stride` clean pairs, beginning with the first."""
        num_passed = 0  # clean pairs in the blocks before
        for block in self.blocks:
            positions = np.flatnonzero(block.kept_mask())
            chosen = np.zeros(len(block.lengths()), dtype=bool)
            chosen[positions[-num_passed % stride :: stride]] = True
            num_passed += len(positions)
            if chosen.any():
                yield from map(Pair, *block.texts(chosen))

    def held_out(self, hold_out: HoldOut) -> Iterator[Pair]:
        """Yield the clean pairs that are held out."""
        for block in self.blocks:
            held_out = block.kept_mask() & ~block.training_mask(hold_out)
            if held_out.any():
                yield from map(Pair, *block.texts(held_out))

    def choose_hold_out(self, count: int) -> HoldOut:
        """Choose the pairs to hold out, with the same result as `hold_out_from_hashes`.

        The spool must have been read `with_keys`. The first pass over the hashes finds the bucket of the
        threshold. The second pass finds the threshold in this bucket.
        """
        max_pairs = min(count, self.kept // MIN_PAIRS_PER_HELD_OUT)
        if max_pairs <= 0:
            return HoldOut(0)
        shift = np.uint64(64 - _HISTOGRAM_BITS)
        histogram = np.zeros(1 << _HISTOGRAM_BITS, dtype=np.int64)
        for keys in self._keys():
            histogram += np.bincount((keys >> shift).astype(np.int64), minlength=len(histogram))
        cumulative = np.cumsum(histogram)
        bucket = int(np.searchsorted(cumulative, max_pairs, side="right"))
        inside = np.concatenate([keys[keys >> shift == bucket] for keys in self._keys()])
        rank = max_pairs - (int(cumulative[bucket - 1]) if bucket else 0)
        return HoldOut(int(np.partition(inside, rank)[rank]))

    def _keys(self) -> Iterator[NDArray[np.uint64]]:
        return (block.array("keys", "<u8")[block.kept_mask()] for block in self.blocks)


def spool_folder(run: Path) -> Path:
    """Return the folder of a spool in a run folder.

    If the process is killed, the folder stays. A later run recognises it by its name and removes it
    (`remove_leftovers`).
    """
    return run / f"reading.tmp-{os.getpid()}"
