"""The sentences of a run: cleaned, with a validation set apart, and what is known of them.

A corpus is read several times (to count, to learn pieces, to encode). Up to a million pairs stay in memory
after the first time; beyond that the files are read again, so that ten million pairs need no more memory
than one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, compress, filterfalse, islice
from operator import not_
from typing import TYPE_CHECKING

from jumok.corpus import Cleaner, HoldOut, Part, hold_out_of, sentence_key, source_hashes
from jumok.errors import DataError
from jumok.text import split_words
from jumok.training.derive import CorpusFacts
from jumok.values import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jumok.corpus import Corpus

__all__ = ["Sentences", "read_sentences"]

MOST_IN_MEMORY = 1_000_000
MOST_COUNTED = 50_000


@dataclass(frozen=True)
class Sentences:
    """Training pairs that can be read again and again, and the validation pairs taken from them or given."""

    corpora: Sequence[Corpus]
    against: Sequence[Corpus]
    validation: Sequence[Pair]
    facts: CorpusFacts
    fingerprint: str
    skipped: Mapping[str, int]
    hold_out: HoldOut
    kept: Sequence[Sequence[Pair]] | None = field(repr=False)
    """Those to train on, of each corpus, where they are few enough to stay in memory."""

    def parts(self) -> list[Part]:
        """The pairs of each corpus with its weight. The streams are to be read in their order, once."""
        streams: Sequence[Iterable[Pair]] = self.kept if self.kept is not None else self._read_again()
        return [
            Part(corpus.name, stream, corpus.weight)
            for corpus, stream in zip(self.corpora, streams, strict=True)
        ]

    def _read_again(self) -> list[Iterator[Pair]]:
        streams = _streams(Cleaner(against=self.against), self.corpora)
        return [filterfalse(self.hold_out.__contains__, stream) for stream in streams]

    def pairs(self) -> Iterator[Pair]:
        return chain.from_iterable(part.pairs for part in self.parts())


def read_sentences(corpora: Sequence[Corpus], valid: Sequence[Corpus], *, held_out: int) -> Sentences:
    """Read everything once. Sentences of the validation set are never trained on."""
    cleaner = Cleaner(against=valid)
    given = [
        pair for corpus in valid for pair in corpus.pairs() if (pair.source or corpus.plain) and pair.target
    ]
    digest = hashlib.sha256(repr([corpus.weight for corpus in corpora]).encode())
    kept, total, aligned = _read_once(_streams(cleaner, corpora), digest)
    skipped = {fault.title: count for fault, count in cleaner.skipped.items() if count}
    if not total:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
        raise DataError(
            f"No pair was left to train on. Received: {sum(skipped.values()):,} pairs; skipped: "
            f"{reasons or 'none'}. `jumok check` with the same files shows examples of each."
        )
    _digest_pairs(digest, given)

    def pairs(*, from_memory: bool = True) -> Iterator[Pair]:
        if kept is not None and from_memory:
            return chain.from_iterable(kept)
        return chain.from_iterable(_streams(Cleaner(against=valid), corpora))

    hold_out, validation = HoldOut(0), given
    if not valid:
        hashes = source_hashes(pairs())
        hold_out = hold_out_of(hashes, count=held_out)
        held = hold_out.among(hashes).tolist()
        if kept is not None and not aligned:
            validation = list(compress(pairs(), held))
        else:  # alignments are read again, since the pairs in memory have lost them
            validation = [pair for pair in pairs(from_memory=False) if pair in hold_out]
    if not validation:
        first, *others = ((pair.source or pair.target) for pair in islice(pairs(), MOST_COUNTED))
        only = others and all(sentence_key(other) == sentence_key(first) for other in others)
        same = f", all of {first[:60]!r}" if only else ""
        raise DataError(
            f"There is no sentence to validate on. Received: {total:,} pairs after cleaning{same}, "
            f"{len(valid)} validation files. Give a validation set with --valid, or ten pairs or more of "
            "different sources."
        )
    facts = _facts(pairs(), total, total - (0 if valid else len(validation)), corpora[0])
    if kept is not None and not valid:
        trained = map(not_, held)
        kept = [list(compress(those, trained)) for those in kept]
    return Sentences(
        corpora=corpora,
        against=valid,
        validation=validation,
        facts=facts,
        fingerprint=digest.hexdigest(),
        skipped=skipped,
        hold_out=hold_out,
        kept=kept,
    )


def _streams(cleaner: Cleaner, corpora: Sequence[Corpus]) -> list[Iterator[Pair]]:
    return [cleaner.clean(corpus) for corpus in corpora]


def _read_once(
    streams: Sequence[Iterator[Pair]], digest: hashlib._Hash
) -> tuple[list[list[Pair]] | None, int, bool]:
    """All pairs in lists, or None where they are too many; how many there are, and whether any is aligned."""
    kept: list[list[Pair]] | None = []
    total, aligned = 0, False
    for stream in streams:
        if kept is not None:
            kept.append([])
        while block := list(islice(stream, 8192)):
            _digest_pairs(digest, block)
            total += len(block)
            aligned = aligned or any(pair.alignment is not None for pair in block)
            kept = kept if total <= MOST_IN_MEMORY else None
            if kept is not None:  # alignments are not trained on, and are larger than the sentences
                kept[-1].extend(Pair(pair.source, pair.target) for pair in block)
    return kept, total, aligned


def _digest_pairs(digest: hashlib._Hash, pairs: Sequence[Pair]) -> None:
    text = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
    digest.update(text.encode("utf-8", "surrogatepass"))


def _facts(pairs: Iterator[Pair], total: int, training: int, corpus: Corpus) -> CorpusFacts:
    """What settings are derived from, counted on a sample: every k-th pair."""
    stride = max(total // MOST_COUNTED, 1)
    source, target, counted = Counter[str](), Counter[str](), 0
    for pair in islice(pairs, 0, None, stride):
        counted += 1
        source.update(pair.source.split())
        target.update(pair.target.split())
    source, target = _words(source), _words(target)
    share = training / max(counted, 1)
    return CorpusFacts(
        pairs=training,
        source_words=round(source.total() * share),
        target_words=round(target.total() * share),
        distinct_source_words=len(source),
        distinct_target_words=len(target),
        distinct_characters=len({character for word in chain(source, target) for character in word}),
        source_language=corpus.source_language,
        target_language=corpus.target_language,
        plain=corpus.plain,
    )


def _words(units: Counter[str]) -> Counter[str]:
    """Words from what stands between spaces; each distinct unit is split once, which is most of the cost."""
    words = Counter[str]()
    for unit, count in units.items():
        for word in split_words(unit):
            words[word] += count
    return words
