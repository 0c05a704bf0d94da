"""A report on a corpus: what is in it and what is wrong with it, before training.

    report = check_corpora(corpora, validation=[valid], tests=[test])
    report.kept, report.skipped[Fault.DUPLICATE], report.faults[0].examples

The report applies the rules of `faults.py` in one pass. Training applies the same rules. Training uses the
`report.kept` pairs, minus the pairs with too many tokens and minus the `report.held_out` pairs, which are for
validation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jumok.data.alignments import describe_links_out_of_range
from jumok.data.cleaning import Cleaner, InspectedBlock, leak_keys
from jumok.data.faults import CleaningLimits, Fault
from jumok.data.hash_set import HashSet
from jumok.data.hold_out import hold_out_from_hashes, sentence_key, source_hashes
from jumok.text.language_detection import detect_languages
from jumok.text.languages import LANGUAGES, language_name
from jumok.text.scripts import classify_characters
from jumok.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from jumok.data.corpora import Corpus
    from jumok.text.scripts import Characters

_MAX_EXAMPLES = 3  # per fault
_MAX_CACHED_WORD_COUNTS = 1_000_000
_SAMPLE_PAIRS = 200  # to find out which side is in which language
_MIN_SWAP_MARGIN = 40  # percentage points by which the other language is more likely, on both sides


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty pair and its line. `detail` explains a fault that the sentences alone do not show."""

    corpus: str
    line: int
    source: str
    target: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """How many pairs have a fault, how many are skipped because of it, and a few examples."""

    fault: Fault
    meaning: str
    count: int
    skipped: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class SideReport:
    """One side of the corpus. `histogram[n]` is the number of sentences with n words."""

    language: str
    words: int
    characters: int
    distinct_words: int
    histogram: tuple[int, ...]

    def percentile(self, percent: float) -> int:
        """Return the length in words that `percent` % of the sentences do not exceed."""
        sums = np.cumsum(self.histogram)
        return int(np.searchsorted(sums, percent / 100 * sums[-1])) if len(sums) else 0


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """How many pairs one corpus has, and what its reader dropped, such as a byte order mark."""

    name: str
    pairs: int
    weight: float
    dropped: Mapping[str, int]  # what was dropped → how often
    note: str = ""  # choices of its reader, such as columns


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """The report. `pairs` is `kept` plus the sum of `skipped`.

    `held_out` is how many of the kept pairs are for validation instead of training.
    """

    pairs: int
    kept: int
    skipped: Mapping[Fault, int]
    faults: tuple[FaultReport, ...]  # only faults that occur, in the order of `Fault`
    source: SideReport
    target: SideReport
    corpora: tuple[CorpusSummary, ...]
    leaked: Mapping[str, int]  # validation or test set → how many of its sources are in the corpus
    set_sizes: Mapping[str, int] = field(default_factory=dict)  # validation or test set → number of its pairs
    tests: tuple[str, ...] = ()  # the names of the test sets
    held_out: int = 0
    refusal: str = ""  # why training would refuse the corpora, "" if it would not
    language_fault: str = ""  # swapped sides, or a side in the wrong script, "" if the languages fit

    def count(self, fault: Fault) -> int:
        return next((report.count for report in self.faults if report.fault is fault), 0)


def check_corpora(
    corpora: Sequence[Corpus],
    *,
    validation: Sequence[Corpus] = (),
    tests: Sequence[Corpus] = (),
    hold_out: int = 0,
    limits: CleaningLimits | None = None,
) -> CorpusReport:
    """Read all corpora once and report.

    Pairs whose source is in a `validation` set are skipped, as in training. Pairs whose source is in one of
    the `tests` are reported but kept, because training does not know the test sets. `hold_out` is the number
    of pairs to hold out for validation; 0 if a validation set is given.
    """
    cleaner = Cleaner(limits, exclude=validation, thorough=True)
    tally = _Tally(corpora)
    leaks = _Leaks([*validation, *tests])
    hashes = [np.empty(0, np.uint64)]
    summaries: list[CorpusSummary] = []
    for corpus in corpora:
        dropped: Counter[str] = Counter()
        before = tally.pairs
        for block in cleaner.blocks(corpus, dropped):
            tally.add(corpus.name, block)
            leaks.add(block)
            if hold_out:
                hashes.append(source_hashes(block.kept_pairs()))
        summaries.append(
            CorpusSummary(corpus.name, tally.pairs - before, corpus.weight, dict(dropped), corpus.note)
        )
    all_hashes = np.concatenate(hashes)
    held_out = hold_out_from_hashes(all_hashes, count=hold_out).count(all_hashes)
    skipped = {fault: count for fault, count in cleaner.skipped.items() if count}
    # With neither a hold-out nor a validation set, the caller does not ask whether training can validate.
    can_validate = bool(held_out) if hold_out else not validation or _has_pairs(validation)
    return CorpusReport(
        pairs=tally.pairs,
        kept=tally.kept,
        skipped=skipped,
        faults=tally.faults(cleaner.skipped, cleaner.limits),
        source=tally.source.report(),
        target=tally.target.report(),
        corpora=tuple(summaries),
        leaked=leaks.counts(),
        set_sizes=leaks.sizes,
        tests=tuple(corpus.name for corpus in tests),
        held_out=held_out,
        refusal=_refusal(tally.kept, skipped, can_validate=can_validate, has_validation_set=bool(validation)),
        language_fault=tally.language_fault(),
    )


def _has_pairs(validation: Sequence[Corpus]) -> bool:
    return any(
        (pair.source or corpus.plain) and pair.target for corpus in validation for pair in corpus.pairs()
    )


def _refusal(kept: int, skipped: Mapping[Fault, int], *, can_validate: bool, has_validation_set: bool) -> str:
    """Return why training would refuse the corpora, "" if it would not."""
    if not kept:
        reasons = ", ".join(f"{count:,} {fault.title}" for fault, count in skipped.items())
        return f"no pair is left to train on. All were skipped: {reasons or 'there are none'}."
    if can_validate:
        return ""
    if has_validation_set:
        return "the validation set holds no pairs."
    few = "fewer than ten are left" if kept < 10 else "too few have different sources"
    return (
        f"no pair can be held out for validation, as {few}. Give a validation set with --valid, or at least "
        "ten pairs with different sources."
    )


def _describe_language_fault(
    source_text: str, target_text: str, source_language: str, target_language: str
) -> str:
    """Return what is wrong with the languages of the two sides, "" if nothing is."""
    codes = [source_language, target_language]
    if not all(code in LANGUAGES for code in codes) or codes[0] == codes[1]:
        return ""
    margins = []  # per side: by how many percentage points the other language is more likely
    for text, code in zip((source_text, target_text), codes, strict=True):
        confidence = dict(detect_languages(text, codes))
        other = codes[1 - codes.index(code)]
        margins.append(confidence[other] - confidence[code])
    source_name, target_name = map(language_name, codes)
    if min(margins) > _MIN_SWAP_MARGIN:
        return (
            f"The sides seem to be swapped: the source looks like {target_name}, the target like "
            f"{source_name}. If the corpus is a table, add --columns 2,1; if it is two text files, name the "
            "second one first."
        )
    for side, text, code in (("source", source_text, codes[0]), ("target", target_text, codes[1])):
        characters = classify_characters([text])
        script, scripts = characters.main_script(), LANGUAGES[code].scripts
        if script and script not in scripts:
            return f"The {side} is written in {script}, but {language_name(code)} is written in {scripts[0]}."
    return ""


class _Tally:
    """Sums over the blocks of all corpora."""

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        self.pairs = self.kept = 0
        first = corpora[0] if corpora else None
        self._plain = first is not None and first.plain
        self.source = _SideTally(first.source_language if first else "")
        self.target = _SideTally(first.target_language if first else "")
        self._sample = ("", "")  # the beginning of each side of the first corpus
        self._counts: Counter[Fault] = Counter()
        self._examples: dict[Fault, list[Example]] = {}

    def add(self, corpus_name: str, block: InspectedBlock) -> None:
        if not self.pairs:
            beginning = block.pairs[:_SAMPLE_PAIRS]
            self._sample = (
                " ".join(pair.source for _, pair in beginning),
                " ".join(pair.target for _, pair in beginning),
            )
        self.pairs += len(block.pairs)
        self.kept += int(block.kept.sum())
        self.source.add(block.characters.source)
        self.target.add(block.characters.target)
        for fault, mask in block.findings.items():
            self._counts[fault] += int(mask.sum())
            examples = self._examples.setdefault(fault, [])
            for index in np.flatnonzero(mask)[: _MAX_EXAMPLES - len(examples)]:
                line, pair = block.pairs[index]
                detail = describe_links_out_of_range(pair) if fault is Fault.LINKS_OUT_OF_RANGE else ""
                examples.append(Example(corpus_name, line, pair.source, pair.target, detail))

    def language_fault(self) -> str:
        if self._plain:
            return ""
        return _describe_language_fault(*self._sample, self.source.language, self.target.language)

    def faults(self, skipped: Mapping[Fault, int], limits: CleaningLimits) -> tuple[FaultReport, ...]:
        return tuple(
            FaultReport(
                fault,
                fault.meaning(limits, plain=self._plain),
                count,
                skipped.get(fault, 0),
                tuple(self._examples[fault]),
            )
            for fault in Fault
            if (count := self._counts[fault])
        )


class _SideTally:
    """Sums over the sentences of one side."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._words = self._characters = 0
        self._distinct = HashSet()
        self._histogram = np.zeros(1, dtype=np.int64)
        self._word_counts = _WordCounts()

    def add(self, side: Characters) -> None:
        spans = zip(side.starts.tolist(), side.lengths.tolist(), strict=True)
        sentences = (side.text[start : start + length] for start, length in spans)
        count_words = self._word_counts.__getitem__
        counts = np.array([sum(map(count_words, sentence.split())) for sentence in sentences], dtype=np.int64)
        self._words += int(counts.sum())
        self._characters += int(side.lengths.sum())
        histogram = np.bincount(counts, minlength=len(self._histogram))
        histogram[: len(self._histogram)] += self._histogram
        self._histogram = histogram
        self._distinct.add(_hashes(self._word_counts.new_words))
        self._word_counts.new_words.clear()
        if len(self._word_counts) > _MAX_CACHED_WORD_COUNTS:
            self._word_counts.clear()

    def report(self) -> SideReport:
        histogram = np.trim_zeros(self._histogram, "b").tolist()
        return SideReport(self.language, self._words, self._characters, len(self._distinct), tuple(histogram))


class _WordCounts(dict[str, int]):
    """Cache: text between two spaces → how many words `split_words` finds in it.

    `new_words` are the words of texts that were not in the cache.
    """

    def __init__(self) -> None:
        super().__init__()
        self.new_words: set[str] = set()

    def __missing__(self, unit: str) -> int:
        words = split_words(unit)
        self.new_words.update(words)
        self[unit] = len(words)
        return len(words)


class _Leaks:
    """Which sentences of the validation and test sets are also in the corpus."""

    def __init__(self, held_out_sets: Sequence[Corpus]) -> None:
        self.sizes: dict[str, int] = {}
        self._keys: dict[str, Counter[int]] = {}
        self._leaked_keys: set[int] = set()
        for corpus in held_out_sets:
            keys = Counter(map(hash, leak_keys(corpus)))
            self._keys[corpus.name] = keys
            self.sizes[corpus.name] = keys.total()
        self._all_keys = frozenset[int]().union(*self._keys.values())

    def add(self, block: InspectedBlock) -> None:
        if self._all_keys:
            keys = (hash(sentence_key(pair.source_identity or pair.target)) for _, pair in block.pairs)
            self._leaked_keys.update(self._all_keys.intersection(keys))

    def counts(self) -> dict[str, int]:
        return {
            name: sum(count for key, count in keys.items() if key in self._leaked_keys)
            for name, keys in self._keys.items()
        }


def _hashes(words: Iterable[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, words), np.int64)
