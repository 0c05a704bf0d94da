"""Cleaning: which pairs training keeps, and why it skips the others.

    skipped = Counter()
    for pair in clean_pairs(corpora, limits, skipped=skipped): ...

Every pair that is read is either kept or skipped. `corpus_report.check_corpora` applies the same rules and
counts every fault.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from jumok.data.alignments import describe_links_out_of_range
from jumok.data.faults import BlockCharacters, CleaningLimits, Fault, Findings, Inspector
from jumok.data.hash_set import HashSet
from jumok.data.hold_out import sentence_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jumok.data.corpora import Corpus
    from jumok.data.formats.pair_file import NumberedPair
    from jumok.types import Pair

_BLOCK_PAIRS = 8192
SKIPPING_FAULTS = [fault for fault in Fault if fault.skips]


@dataclass(frozen=True)
class InspectedBlock:
    """A few thousand pairs and their faults. Masks have one element per pair."""

    pairs: list[NumberedPair]
    characters: BlockCharacters
    findings: Findings
    skip_reasons: dict[Fault, NDArray[np.bool_]]  # fault → pairs skipped for it; no pair is in two masks
    kept: NDArray[np.bool_]

    def kept_pairs(self) -> Iterator[Pair]:
        return (pair for (_, pair), kept in zip(self.pairs, self.kept, strict=True) if kept)


class Cleaner:
    """Decides which pairs are kept and which are skipped.

    Use one cleaner for all corpora, so that it finds duplicates across corpora.

    Pairs whose source is in a corpus of `exclude`, a validation or test set, are skipped. If `thorough` is
    true, the cleaner also finds three faults that take more time and skip no pair: repeated sources with
    another target, links out of range, swapped sides.
    """

    def __init__(
        self,
        limits: CleaningLimits | None = None,
        *,
        exclude: Sequence[Corpus] = (),
        thorough: bool = False,
    ) -> None:
        self.limits = limits or CleaningLimits()
        self.skipped: Counter[Fault] = Counter()
        self._excluded_hashes = {hash(key) for corpus in exclude for key in leak_keys(corpus)}
        self._thorough = thorough
        self._seen_pairs = HashSet()
        self._seen_sources = HashSet() if thorough else None

    def clean(self, corpus: Corpus) -> Iterator[Pair]:
        """Yield the pairs of a corpus that training keeps, in order; `skipped` counts the others."""
        for block in self.blocks(corpus):
            if block.kept.all():
                yield from (pair for _, pair in block.pairs)
            else:
                yield from block.kept_pairs()

    def blocks(self, corpus: Corpus, dropped: Counter[str] | None = None) -> Iterator[InspectedBlock]:
        """Yield all pairs of a corpus with their faults; `dropped` counts what the reader dropped."""
        # A picture has none of the faults of a sentence, so only the target is inspected.
        only_target = corpus.plain or corpus.pictures
        inspector = Inspector(
            corpus.source_language, corpus.target_language, self.limits, only_target=only_target
        )
        numbered = corpus.numbered_pairs(dropped)
        while pairs := list(islice(numbered, _BLOCK_PAIRS)):
            yield self._inspect(pairs, inspector, pictures=corpus.pictures)

    def _inspect(self, pairs: list[NumberedPair], inspector: Inspector, *, pictures: bool) -> InspectedBlock:
        sources = [pair.source_identity if pictures else pair.source for _, pair in pairs]
        targets = [pair.target for _, pair in pairs]
        findings, characters = inspector.inspect([""] * len(pairs) if pictures else sources, targets)
        plain = inspector.only_target and not pictures
        findings.update(self._faults_across_pairs(sources, targets, plain=plain))
        if self._thorough:
            out_of_range = np.array([bool(describe_links_out_of_range(pair)) for _, pair in pairs])
            if out_of_range.any():
                findings[Fault.LINKS_OUT_OF_RANGE] = out_of_range
            if (swapped := inspector.find_swapped(characters)).any():
                findings[Fault.SWAPPED] = swapped
        skip_reasons, kept = self._decide(findings, len(pairs))
        for fault, mask in skip_reasons.items():
            self.skipped[fault] += int(mask.sum())
        return InspectedBlock(pairs, characters, findings, skip_reasons, kept)

    def _faults_across_pairs(self, sources: list[str], targets: list[str], *, plain: bool) -> Findings:
        """Return the faults that depend on other pairs, either of these corpora or of excluded corpora."""
        findings: Findings = {}
        # Python's hash has 64 bits, is fast and is cached in the string. The hash of a string differs between
        # processes, but every process finds the same duplicates.
        hashes = np.fromiter(map(hash, zip(sources, targets, strict=True)), np.int64, count=len(sources))
        new = self._seen_pairs.add(hashes)
        findings[Fault.DUPLICATE] = ~new
        if self._seen_sources is not None and not plain:
            source_hashes = np.fromiter(map(hash, sources), np.int64, count=len(sources))
            findings[Fault.OTHER_TARGET] = new & ~self._seen_sources.add(source_hashes)
        if self._excluded_hashes:
            compared = targets if plain else sources
            leaked = (hash(sentence_key(sentence)) in self._excluded_hashes for sentence in compared)
            findings[Fault.LEAKED] = np.fromiter(leaked, bool, count=len(sources))
        return {fault: mask for fault, mask in findings.items() if mask.any()}

    def _decide(
        self, findings: Findings, count: int
    ) -> tuple[dict[Fault, NDArray[np.bool_]], NDArray[np.bool_]]:
        """Return which pairs are skipped for each fault, and which are kept.

        A pair with several faults is skipped for one fault only: the first in the order of `Fault`.
        """
        kept = np.ones(count, dtype=bool)
        skip_reasons: dict[Fault, NDArray[np.bool_]] = {}
        for fault in SKIPPING_FAULTS:
            if fault in findings and fault not in self.limits.tolerated:
                skip_reasons[fault] = kept & findings[fault]
                kept &= ~findings[fault]
        return skip_reasons, kept


def leak_keys(corpus: Corpus) -> Iterator[str]:
    """Yield the key of each source of a validation or test set. Plain text has a key for each sentence."""
    return (sentence_key(pair.target if corpus.plain else pair.source_identity) for pair in corpus.pairs())


def clean_pairs(
    corpora: Sequence[Corpus],
    limits: CleaningLimits | None = None,
    *,
    exclude: Sequence[Corpus] = (),
    skipped: Counter[Fault] | None = None,
) -> Iterator[Pair]:
    """Yield the pairs of all corpora that training keeps; `skipped` counts the others by fault."""
    cleaner = Cleaner(limits, exclude=exclude)
    if skipped is not None:
        cleaner.skipped = skipped
    for corpus in corpora:
        yield from cleaner.clean(corpus)
