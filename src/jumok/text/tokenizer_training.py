"""Learning pieces from sentences.

SentencePiece learns; this module decides what it is told: which sentences (a sample of a large corpus, always
the same one), how many characters become pieces of their own, and which tags stay whole.
"""

from __future__ import annotations

import io
import itertools
import random
import re
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.text.normalising import escape, normalise
from jumok.text.subwords import Subwords, Vocabularies
from jumok.values import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.recipe import TextSettings

__all__ = ["learn_subwords", "learn_vocabularies"]

# More sentences than this hardly change the pieces and take minutes to learn from.
_SENTENCES_A_PIECE, _SENTENCES_AT_LEAST = 25, 100_000
_MOST_COPIES = 8
_LONGEST_SENTENCE = 1000  # characters; SentencePiece drops longer lines than 4192 bytes whole

# SentencePiece keeps these for itself and would drop the whole sentence: tab and ▅ are boundaries to it.
_NOT_LEARNT = str.maketrans("\t▅\0\n\r", "     ")

_TAG = re.compile(r"(?:^|(?<= ))<[A-Za-z][A-Za-z0-9_-]*>(?= |$)")
_MOST_TAGS = 32
_OFTEN = 0.002  # of all sentences

# Up to this many characters each becomes a piece: alphabets. Beyond it the rare ones are left to bytes.
_SMALL_INVENTORY = 1000
_COVERAGE = 0.9995
_LEAST_FREE_PIECES = 32


def learn_subwords(
    sentences: Iterable[str], settings: TextSettings, *, pieces: int, threads: int = 4
) -> Subwords:
    """Learn about `pieces` pieces; `.size` says how many it became.

    A small corpus gives fewer. More are learnt only where the request leaves no room for letters beside the
    marks and the 256 bytes. The result depends on the sentences, the settings and `threads`, which is
    therefore a constant and not the number of cores.
    """
    sample = _sample(sentences, most=max(_SENTENCES_A_PIECE * pieces, _SENTENCES_AT_LEAST))
    if not sample:
        raise DataError(
            "There is no sentence to learn pieces from: the corpus is empty, or all its lines are blank."
        )
    tags = _frequent_tags(sample)
    reserved = 4 + len(tags) + (256 if settings.byte_fallback else 0)
    pieces = max(pieces, reserved + _LEAST_FREE_PIECES)
    rare = _rare_characters(sample, room=(pieces - reserved) // 2, bytes_too=settings.byte_fallback)
    return Subwords(_train(_spread(sample, rare), settings, pieces=pieces, tags=tags, threads=threads))


def learn_vocabularies(
    source_sentences: Iterable[str], target_sentences: Iterable[str], settings: TextSettings, pieces: int
) -> Vocabularies:
    """The pieces of both sides: learnt from both together where `settings.shared`, else apart."""
    if settings.shared:
        both = learn_subwords(itertools.chain(source_sentences, target_sentences), settings, pieces=pieces)
        return Vocabularies(source=both, target=both, shared=True)
    source = learn_subwords(source_sentences, settings, pieces=pieces)
    target = learn_subwords(target_sentences, settings, pieces=pieces)
    return Vocabularies(source=source, target=target, shared=False)


def _sample(sentences: Iterable[str], *, most: int) -> list[str]:
    """At most `most` sentences, each equally likely, always the same ones (Vitter 1985, algorithm R)."""
    generator = random.Random(0)
    sample: list[str] = []
    filled = (sentence for sentence in sentences if sentence and not sentence.isspace())
    for count, sentence in enumerate(filled, start=1):
        if count <= most:
            sample.append(_prepare(sentence))
        elif (place := generator.randrange(count)) < most:
            sample[place] = _prepare(sentence)
    return sample


def _prepare(sentence: str) -> str:
    return escape(normalise(sentence[:_LONGEST_SENTENCE])).translate(_NOT_LEARNT)


def _frequent_tags(sample: Sequence[str]) -> list[str]:
    """Tags such as `<polite>` that occur often enough to be one piece, most frequent first."""
    counts = Counter(tag for sentence in sample if "<" in sentence for tag in set(_TAG.findall(sentence)))
    enough = max(2, _OFTEN * len(sample))
    often = [tag for tag, count in counts.items() if count >= enough]
    # By name where counts are equal: the order of a set changes from one process to the next.
    return sorted(often, key=lambda tag: (-counts[tag], tag))[:_MOST_TAGS]


def _rare_characters(sample: Sequence[str], *, room: int, bytes_too: bool) -> set[str]:
    """The characters that become no piece: those that do not fit and, beyond alphabets, those seldom seen."""
    counts: Counter[str] = Counter()
    for sentence in sample:
        counts.update(sentence)
    needed = counts.total()
    if bytes_too and len(counts) > _SMALL_INVENTORY:
        needed = ceil(_COVERAGE * needed)
    ranked = counts.most_common()
    covered = itertools.accumulate((count for _, count in ranked), initial=0)
    enough = sum(before < needed for before in covered)
    return {character for character, _ in ranked[min(room, enough) :]} - {" "}


def _spread(sample: Sequence[str], rare: set[str]) -> list[str]:
    """The sample without rare characters, each sentence at most `_MOST_COPIES` times, its copies far apart.

    SentencePiece looks for long repetitions in time quadratic in their length: a thousand equal lines in a
    row take it seconds, ten thousand minutes. (It also reads lines with counts, but then takes thrice as long
    for any corpus.)
    """
    blank = str.maketrans(dict.fromkeys(rare, " "))
    counts = Counter(sentence.translate(blank) if rare else sentence for sentence in sample)
    copies = [sentence for sentence, count in counts.items() for _ in range(min(count, _MOST_COPIES) - 1)]
    random.Random(0).shuffle(copies)
    return [*counts, *copies]


def _train(
    sentences: Sequence[str], settings: TextSettings, *, pieces: int, tags: Sequence[str], threads: int
) -> bytes:
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type=settings.kind,
        vocab_size=pieces,
        hard_vocab_limit=False,
        character_coverage=1.0,  # it takes no less than 0.98; rare characters have been left out already
        byte_fallback=settings.byte_fallback,
        # A tag's piece includes the space before it, as a word's does: one piece rather than two.
        user_defined_symbols=[f"▁{tag}" for tag in tags],
        split_digits=True,  # a number is copied digit by digit
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=True,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=BEGIN,
        eos_id=END,
        num_threads=threads,
        minloglevel=2,
    )
    return model.getvalue()
