"""The sentences of a run: cleaned, with the validation set held out, and counted.

A corpus is read several times (to count, to learn a vocabulary, to encode). The clean pairs of large files
are written to disk once and then read from there (`SpoolReader`). Of smaller files, up to a million pairs are
cached in memory after the first pass; with more pairs, the files are read again each time. Ten million pairs
therefore need little more memory than one million: some bytes per pair, for hashes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, compress, filterfalse, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jumok.config.derive import CorpusFacts
from jumok.data.cleaning import Cleaner
from jumok.data.hold_out import HoldOut, hold_out_from_hashes, sentence_key, source_hashes
from jumok.data.picture_corpora import median_side_and_grey
from jumok.data.spool import Spool, SpooledPairs, should_spool
from jumok.data.store import CorpusPairs
from jumok.errors import DataError
from jumok.text.words import split_words
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jumok.data.corpora import Corpus
    from jumok.data.faults import Fault

MAX_CACHED_PAIRS = 1_000_000
SAMPLE_PAIRS = 50_000
MIN_MEASURED_PICTURES = 100
"""The minimum number of pictures that are measured; all are, if there are fewer. They are evenly spaced. Up
to twice as many are measured, because the stride is rounded down."""
BLOCK_PAIRS = 8192


@dataclass(frozen=True)
class Sentences:
    """Training pairs that can be read any number of times, and the validation pairs."""

    corpora: Sequence[Corpus]
    validation_corpora: Sequence[Corpus]
    validation_pairs: Sequence[Pair]
    facts: CorpusFacts
    fingerprint: str
    skipped: Mapping[str, int]
    hold_out: HoldOut
    cached_pairs: Sequence[Sequence[Pair]] | None = field(repr=False)
    """The training pairs of each corpus; None if there are too many for memory, or if they are in `spool`."""
    spool: Spool | None = field(default=None, repr=False)
    """The clean pairs on disk, if the files are large."""
    sources: Mapping[str, Any] | None = field(default=None, repr=False)
    """The files that were read (`describe_sources`). The value is None if an input is not a file, or if a
    file changed while it was read."""

    def corpus_pairs(self) -> list[CorpusPairs]:
        """Return the training pairs and the weight of each corpus.

        The caller must read the pairs of the corpora in order, and each only once.
        """
        streams: Sequence[Iterable[Pair]]
        if self.spool is not None:
            numbers = range(len(self.corpora))
            streams = [SpooledPairs(self.spool, number, self.hold_out) for number in numbers]
        else:
            streams = self.cached_pairs if self.cached_pairs is not None else self._read_again()
        return [
            CorpusPairs(corpus.file_names, stream, corpus.weight)
            for corpus, stream in zip(self.corpora, streams, strict=True)
        ]

    def _read_again(self) -> list[Iterator[Pair]]:
        streams = _clean_streams(self.corpora, Cleaner(exclude=self.validation_corpora))
        return [filterfalse(self.hold_out.__contains__, stream) for stream in streams]

    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(corpus.pairs for corpus in self.corpus_pairs())


def read_sentences(
    corpora: Sequence[Corpus], valid: Sequence[Corpus], *, held_out_pairs: int, work: Path | None = None
) -> Sentences:
    """Read and clean the corpora, and choose the validation set, whose sentences are never trained on.

    The validation set is `valid`. If `valid` is empty, at most `held_out_pairs` pairs of the corpora, and at
    most a tenth of them, are held out for validation. The clean pairs of large files are stored in the folder
    `work`, by default in the system's folder for temporary files.
    """
    reader: CorpusReader
    if should_spool(corpora):
        reader = SpoolReader(corpora, valid, work or Path(tempfile.mkdtemp(prefix="jumok-")))
    else:
        reader = CorpusReader(corpora, valid)
    validation_pairs = [
        pair for corpus in valid for pair in corpus.pairs() if (pair.source or corpus.plain) and pair.target
    ]
    reader.read()
    reader.add_to_fingerprint(validation_pairs)
    split = (
        TrainingSplit(HoldOut(0), validation_pairs, reader.cached_pairs)
        if valid
        else reader.split(held_out_pairs)
    )
    if not split.validation:
        raise reader.no_validation_error()
    return Sentences(
        corpora=corpora,
        validation_corpora=valid,
        validation_pairs=split.validation,
        facts=reader.facts(num_training=reader.num_pairs - (0 if valid else len(split.validation))),
        fingerprint=reader.fingerprint(),
        skipped=reader.skipped,
        hold_out=split.hold_out,
        cached_pairs=split.training,
        spool=reader.spool,
    )


class TrainingSplit(NamedTuple):
    """The validation pairs and the training pairs, and which pairs of the corpora are held out."""

    hold_out: HoldOut  # holds out no pair if the user named a validation set
    validation: Sequence[Pair]
    training: Sequence[Sequence[Pair]] | None  # by corpus; None: they are read from files or spool


class CorpusReader:
    """Reads the clean pairs of several corpora: the first time from files, then from memory if they fit."""

    def __init__(self, corpora: Sequence[Corpus], valid: Sequence[Corpus]) -> None:
        self.corpora, self.valid = corpora, valid
        self.cached_pairs: list[list[Pair]] | None = []  # by corpus; None if there are too many for memory
        self.spool: Spool | None = None
        self.num_pairs = 0
        self.skipped: dict[str, int] = {}
        self._has_alignments = False
        self._cleaner = Cleaner(exclude=valid)
        self._digest = hashlib.sha256(repr([corpus.weight for corpus in corpora]).encode())

    def read(self) -> None:
        """Make the first pass: count, cache and fingerprint the pairs. Raise if no pair is left."""
        for stream in _clean_streams(self.corpora, self._cleaner):
            if self.cached_pairs is not None:
                self.cached_pairs.append([])
            while block := list(islice(stream, BLOCK_PAIRS)):
                self._add_block(block)
        self._count_skipped(self._cleaner.skipped)

    def _count_skipped(self, skipped: Mapping[Fault, int]) -> None:
        self.skipped = {fault.title: count for fault, count in skipped.items() if count}
        if not self.num_pairs:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
            raise DataError(
                f"No pair was left to train on. Received: {sum(self.skipped.values()):,} pairs; skipped: "
                f"{reasons or 'none'}. `jumok check` with the same files shows examples of each."
            )

    def _add_block(self, block: list[Pair]) -> None:
        self.add_to_fingerprint(block)
        self.num_pairs += len(block)
        self._has_alignments = self._has_alignments or any(pair.alignment is not None for pair in block)
        if self.num_pairs > MAX_CACHED_PAIRS:
            self.cached_pairs = None
        if self.cached_pairs is not None:
            # Alignments are left out: training does not use them, and they need more memory than the text.
            self.cached_pairs[-1].extend(
                Pair(pair.source, pair.target, picture=pair.picture) for pair in block
            )

    def pairs(self) -> Iterator[Pair]:
        """Yield all clean pairs again; those from memory have no alignments."""
        if self.cached_pairs is None:
            return self._read_again()
        return chain.from_iterable(self.cached_pairs)

    def _read_again(self) -> Iterator[Pair]:
        return chain.from_iterable(_clean_streams(self.corpora, Cleaner(exclude=self.valid)))

    def every(self, stride: int) -> Iterator[Pair]:
        """Yield one of every `stride` pairs."""
        return islice(self.pairs(), 0, None, stride)

    def add_to_fingerprint(self, pairs: Sequence[Pair]) -> None:
        text = "".join(f"{pair.source_identity}\t{pair.target}\n" for pair in pairs)
        self._digest.update(text.encode("utf-8", "surrogatepass"))

    def fingerprint(self) -> str:
        return self._digest.hexdigest()

    def split(self, count: int) -> TrainingSplit:
        """Choose at most `count` validation pairs by a hash of their source; the others are for training."""
        hashes = source_hashes(self.pairs())
        hold_out = hold_out_from_hashes(hashes, count=count)
        is_held_out = hold_out.mask(hashes).tolist()
        if self.cached_pairs is None or self._has_alignments:  # cached pairs have no alignments
            validation = [pair for pair in self._read_again() if pair in hold_out]
        else:
            validation = list(compress(self.pairs(), is_held_out))
        return TrainingSplit(hold_out, validation, self._cached_without(is_held_out))

    def _cached_without(self, is_held_out: list[bool]) -> list[list[Pair]] | None:
        """Return the cached pairs of each corpus that are not held out.

        `is_held_out` has one value per pair of all corpora.
        """
        if self.cached_pairs is None:
            return None
        training, start = [], 0
        for pairs in self.cached_pairs:
            flags = is_held_out[start : start + len(pairs)]
            training.append([pair for pair, held_out in zip(pairs, flags, strict=True) if not held_out])
            start += len(pairs)
        return training

    def facts(self, *, num_training: int) -> CorpusFacts:
        """Return the facts that settings are derived from.

        Words are counted in an evenly spaced sample of at least `SAMPLE_PAIRS` pairs. A smaller corpus is
        counted completely. The numbers of words are scaled to `num_training` pairs; the numbers of distinct
        words and characters are those of the sample.
        """
        sample = self.every(max(self.num_pairs // SAMPLE_PAIRS, 1))
        source_units, target_units, num_counted = Counter[str](), Counter[str](), 0
        for pair in sample:
            num_counted += 1
            if pair.picture is None:
                source_units.update(pair.source.split())
            target_units.update(pair.target.split())
        source, target = _count_words(source_units), _count_words(target_units)
        scale = num_training / max(num_counted, 1)
        corpus = self.corpora[0]
        sampled_pictures = self.every(max(self.num_pairs // MIN_MEASURED_PICTURES, 1))
        side, grey = median_side_and_grey(sampled_pictures) if corpus.pictures else (0, False)
        return CorpusFacts(
            pairs=num_training,
            source_words=round(source.total() * scale),
            target_words=round(target.total() * scale),
            distinct_source_words=len(source),
            distinct_target_words=len(target),
            distinct_characters=len({character for word in chain(source, target) for character in word}),
            source_language=corpus.source_language,
            target_language=corpus.target_language,
            plain=corpus.plain,
            picture_side=side,
            grey_pictures=grey,
        )

    def no_validation_error(self) -> DataError:
        first, *others = ((pair.source or pair.target) for pair in islice(self.pairs(), SAMPLE_PAIRS))
        all_same = others and all(sentence_key(other) == sentence_key(first) for other in others)
        same = f", all with the sentence {first[:60]!r}" if all_same else ""
        pairs_text = "1 pair" if self.num_pairs == 1 else f"{self.num_pairs:,} pairs"
        return DataError(
            f"There is no sentence to validate on. Received: {pairs_text} after cleaning{same}, "
            f"{len(self.valid)} validation files. Give a validation set with --valid, or at least ten "
            "pairs with different sources."
        )


class SpoolReader(CorpusReader):
    """Reads the files of large corpora once, on all cores; afterwards the clean pairs are read from a spool.

    The pairs, their order and the fingerprint are those of a `CorpusReader`.
    """

    def __init__(self, corpora: Sequence[Corpus], valid: Sequence[Corpus], work: Path) -> None:
        super().__init__(corpora, valid)
        self.cached_pairs = None
        self._work = work

    def read(self) -> None:
        spool = Spool.read(self._work, self.corpora, exclude=self.valid, with_keys=not self.valid)
        self.spool, self.num_pairs, self._has_alignments = spool, spool.kept, spool.has_alignments
        for block in spool.blocks:
            for lines in block.kept_bytes():
                self._digest.update(lines)
        self._count_skipped(spool.skipped)

    def pairs(self) -> Iterator[Pair]:
        return iter(()) if self.spool is None else self.spool.pairs()

    def every(self, stride: int) -> Iterator[Pair]:
        return iter(()) if self.spool is None else self.spool.sample(stride)

    def split(self, count: int) -> TrainingSplit:
        if self.spool is None:
            return TrainingSplit(HoldOut(0), [], None)
        hold_out = self.spool.choose_hold_out(count)
        if self._has_alignments:  # a spool has no alignments
            return TrainingSplit(hold_out, [pair for pair in self._read_again() if pair in hold_out], None)
        return TrainingSplit(hold_out, list(self.spool.held_out(hold_out)), None)


def _clean_streams(corpora: Sequence[Corpus], cleaner: Cleaner) -> list[Iterator[Pair]]:
    """Return one stream per corpus. Duplicates are found across corpora, so streams must be read in order."""
    return [cleaner.clean(corpus) for corpus in corpora]


def _count_words(units: Counter[str]) -> Counter[str]:
    """Split whitespace-separated units into words. Splitting is slow, so each distinct unit is split once."""
    words = Counter[str]()
    for unit, count in units.items():
        for word in split_words(unit):
            words[word] += count
    return words
