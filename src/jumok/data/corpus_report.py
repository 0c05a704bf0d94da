"""The check-up: what is in a corpus and what is wrong with it, before anybody trains on it.

    report = check_up(corpora, against=[valid], tests=[test])
    report.kept, report.skipped[Fault.DUPLICATE], report.faults[0].examples

One pass with the rules of `faults.py`, which are also those of training: `report.kept` pairs is what training
will get, before pieces are counted and `report.held_out` of them are put aside for validation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jumok.corpus.alignments import links_outside
from jumok.corpus.clean import Cleaner, InspectedBlock, leak_keys
from jumok.corpus.faults import Fault, Limits
from jumok.corpus.seen import SeenHashes
from jumok.corpus.split import hold_out_of, sentence_key, source_hashes
from jumok.text import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from jumok.corpus.corpora import Corpus
    from jumok.corpus.scripts import Characters

__all__ = ["CheckUp", "CorpusSize", "Example", "FaultReport", "SideReport", "check_up"]

_EXAMPLES = 3  # kept of each fault
_UNITS = 1_000_000  # kept with their words


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty pair and where it stands; `detail` where the sentences alone do not show the fault."""

    corpus: str
    line: int
    source: str
    target: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """How many pairs have a fault, how many are skipped because of it, and a few of them."""

    fault: Fault
    meaning: str
    count: int
    skipped: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class SideReport:
    """One language of the corpus. `histogram[n]` is how many sentences have n words."""

    language: str
    words: int
    characters: int
    distinct_words: int
    histogram: tuple[int, ...]

    def percentile(self, share: float) -> int:
        """The length in words that `share` per cent of the sentences do not exceed."""
        sums = np.cumsum(self.histogram)
        return int(np.searchsorted(sums, share / 100 * sums[-1])) if len(sums) else 0


@dataclass(frozen=True, slots=True)
class CorpusSize:
    """How many pairs a corpus has, and what its reader dropped or noticed on the way."""

    name: str
    pairs: int
    weight: float
    noticed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CheckUp:
    """The result. `pairs` = `kept` + everything in `skipped`; of those kept, `held_out` are not learnt."""

    pairs: int
    kept: int
    skipped: Mapping[Fault, int]
    faults: tuple[FaultReport, ...]  # those that occur, in the order of `Fault`
    source: SideReport
    target: SideReport
    corpora: tuple[CorpusSize, ...]
    leaked: Mapping[str, int]  # of each validation or test set: how many of its sources are in the corpus
    against: Mapping[str, int] = field(default_factory=dict)  # and how many pairs it has
    tests: tuple[str, ...] = ()  # those of them that training does not know
    held_out: int = 0

    def count(self, fault: Fault) -> int:
        return next((report.count for report in self.faults if report.fault is fault), 0)


def check_up(
    corpora: Sequence[Corpus],
    *,
    against: Sequence[Corpus] = (),
    tests: Sequence[Corpus] = (),
    hold_out: int = 0,
    limits: Limits | None = None,
) -> CheckUp:
    """Read everything once and report.

    `against` are the sets that training is given too, and whose sentences it leaves out. Training knows
    nothing of `tests`: what leaks from them is told, and kept. `hold_out` pairs are asked for validation.
    """
    cleaner = Cleaner(limits, against=against, thorough=True)
    tally = _Tally(corpora)
    leaks = _Leaks([*against, *tests])
    hashes = [np.empty(0, np.uint64)]
    sizes: list[CorpusSize] = []
    for corpus in corpora:
        noticed: Counter[str] = Counter()
        before = tally.pairs
        for block in cleaner.blocks(corpus, noticed):
            tally.add(corpus.name, block)
            leaks.look(block)
            if hold_out:
                hashes.append(source_hashes(block.kept_pairs()))
        sizes.append(CorpusSize(corpus.name, tally.pairs - before, corpus.weight, dict(noticed)))
    return CheckUp(
        pairs=tally.pairs,
        kept=tally.kept,
        skipped={fault: count for fault, count in cleaner.skipped.items() if count},
        faults=tally.faults(cleaner.skipped, cleaner.limits),
        source=tally.source.report(),
        target=tally.target.report(),
        corpora=tuple(sizes),
        leaked=leaks.counts(),
        against=leaks.sizes,
        tests=tuple(corpus.name for corpus in tests),
        held_out=hold_out_of(np.concatenate(hashes), count=hold_out).count(np.concatenate(hashes)),
    )


class _Tally:
    """Adds up blocks."""

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        self.pairs = self.kept = 0
        first = corpora[0] if corpora else None
        self.source = _SideTally(first.source_language if first else "")
        self.target = _SideTally(first.target_language if first else "")
        self._counts: Counter[Fault] = Counter()
        self._examples: dict[Fault, list[Example]] = {}

    def add(self, corpus: str, block: InspectedBlock) -> None:
        self.pairs += len(block.pairs)
        self.kept += int(block.kept.sum())
        self.source.add(block.characters.source)
        self.target.add(block.characters.target)
        for fault, where in block.findings.items():
            self._counts[fault] += int(where.sum())
            examples = self._examples.setdefault(fault, [])
            for index in np.flatnonzero(where)[: _EXAMPLES - len(examples)]:
                line, pair = block.pairs[index]
                detail = links_outside(pair) if fault is Fault.LINKS else ""
                examples.append(Example(corpus, line, pair.source, pair.target, detail))

    def faults(self, skipped: Mapping[Fault, int], limits: Limits) -> tuple[FaultReport, ...]:
        return tuple(
            FaultReport(
                fault, fault.meaning(limits), count, skipped.get(fault, 0), tuple(self._examples[fault])
            )
            for fault in Fault
            if (count := self._counts[fault])
        )


class _SideTally:
    """Adds up one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._words = self._characters = 0
        self._distinct = SeenHashes()
        self._histogram = np.zeros(1, dtype=np.int64)
        self._units = _UnitLengths()

    def add(self, side: Characters) -> None:
        places = zip(side.starts.tolist(), side.lengths.tolist(), strict=True)
        sentences = (side.text[start : start + length] for start, length in places)
        words_of = self._units.__getitem__
        counts = np.array([sum(map(words_of, sentence.split())) for sentence in sentences], dtype=np.int64)
        self._words += int(counts.sum())
        self._characters += int(side.lengths.sum())
        histogram = np.bincount(counts, minlength=len(self._histogram))
        histogram[: len(self._histogram)] += self._histogram
        self._histogram = histogram
        self._distinct.add(_hashes(self._units.new_words))
        self._units.new_words.clear()
        if len(self._units) > _UNITS:
            self._units.clear()

    def report(self) -> SideReport:
        histogram = np.trim_zeros(self._histogram, "b").tolist()
        return SideReport(self.language, self._words, self._characters, len(self._distinct), tuple(histogram))


class _UnitLengths(dict[str, int]):
    """How many words, as training counts them, stand in what is between spaces. Each is split once."""

    def __init__(self) -> None:
        super().__init__()
        self.new_words: set[str] = set()

    def __missing__(self, unit: str) -> int:
        words = split_words(unit)
        self.new_words.update(words)
        self[unit] = len(words)
        return len(words)


class _Leaks:
    """Which sentences of the validation and test sets were met in the corpus."""

    def __init__(self, against: Sequence[Corpus]) -> None:
        self.sizes: dict[str, int] = {}
        self._keys: dict[str, Counter[int]] = {}
        self._met: set[int] = set()
        for corpus in against:
            keys = Counter(map(hash, leak_keys(corpus)))
            self._keys[corpus.name] = keys
            self.sizes[corpus.name] = keys.total()
        self._wanted = frozenset[int]().union(*self._keys.values())

    def look(self, block: InspectedBlock) -> None:
        if self._wanted:
            keys = (hash(sentence_key(pair.source or pair.target)) for _, pair in block.pairs)
            self._met.update(self._wanted.intersection(keys))

    def counts(self) -> dict[str, int]:
        return {
            name: sum(count for key, count in keys.items() if key in self._met)
            for name, keys in self._keys.items()
        }


def _hashes(words: Iterable[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, words), np.int64)
