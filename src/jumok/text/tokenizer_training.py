"""Train tokenizers with SentencePiece.

This module chooses which sentences SentencePiece reads (a fixed sample of a large corpus), which characters
get a token of their own, and which tags are never split.
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
from jumok.text.normalisation import escape, normalise
from jumok.text.tokenizer import Tokenizer, TokenizerPair
from jumok.types import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.config.recipe import TextSettings

# The sample has at most 25 sentences per token, or 100,000 sentences if this is more. A larger sample hardly
# changes the vocabulary, and training would take minutes.
_SENTENCES_PER_TOKEN, _MIN_SAMPLE_LIMIT = 25, 100_000
_MAX_COPIES = 8
_MAX_SENTENCE_CHARACTERS = 1000  # SentencePiece drops lines longer than 4192 bytes

# SentencePiece uses these characters internally (tab and ▅ as boundaries) and drops sentences with them.
_RESERVED_TO_SPACES = str.maketrans("\t▅\0\n\r", "     ")

_TAG = re.compile(r"(?:^|(?<= ))<[A-Za-z][A-Za-z0-9_-]*>(?= |$)")
_MAX_TAGS = 32
_MIN_TAG_SHARE = 0.002  # share of the sentences that have the tag

# If a corpus has at most this many distinct characters, each becomes a token, if the vocabulary has room for
# them. If a corpus has more, and with byte fallback, rare characters are encoded as bytes.
_MAX_ALPHABET = 1000
_CHARACTER_COVERAGE = 0.9995
_MIN_FREE_TOKENS = 32  # the minimum number of tokens besides special tokens, tags and bytes


def train_tokenizer(
    sentences: Iterable[str], settings: TextSettings, *, vocab_size: int, threads: int = 4
) -> Tokenizer:
    """Train a tokenizer with about `vocab_size` tokens.

    The vocabulary is smaller if the corpus is small. It is larger only if `vocab_size` leaves fewer than
    `_MIN_FREE_TOKENS` tokens besides the special tokens, the tags and the 256 bytes. The result depends on
    the sentences, the settings and `threads`. The default of `threads` is therefore a constant and not the
    number of cores.
    """
    sample = _sample(sentences, max_size=max(_SENTENCES_PER_TOKEN * vocab_size, _MIN_SAMPLE_LIMIT))
    if not sample:
        raise DataError(
            "There is no sentence to train a tokenizer on: the corpus is empty, or all its lines are blank."
        )
    tags = _frequent_tags(sample)
    reserved = 4 + len(tags) + (256 if settings.byte_fallback else 0)  # special tokens, tags, bytes
    vocab_size = max(vocab_size, reserved + _MIN_FREE_TOKENS)
    rare = _rare_characters(sample, (vocab_size - reserved) // 2, byte_fallback=settings.byte_fallback)
    sentences = _spread_duplicates(sample, rare)
    return Tokenizer(_train(sentences, settings, vocab_size=vocab_size, tags=tags, threads=threads))


def train_tokenizers(
    source_sentences: Iterable[str], target_sentences: Iterable[str], settings: TextSettings, vocab_size: int
) -> TokenizerPair:
    """Train one tokenizer for both sides if `settings.shared` is true. Otherwise, train one for each side."""
    if settings.shared:
        both_sides = itertools.chain(source_sentences, target_sentences)
        tokenizer = train_tokenizer(both_sides, settings, vocab_size=vocab_size)
        return TokenizerPair(source=tokenizer, target=tokenizer, shared=True)
    source = train_tokenizer(source_sentences, settings, vocab_size=vocab_size)
    target = train_tokenizer(target_sentences, settings, vocab_size=vocab_size)
    return TokenizerPair(source=source, target=target, shared=False)


def _sample(sentences: Iterable[str], *, max_size: int) -> list[str]:
    """Draw at most `max_size` sentences uniformly, with a fixed seed (Vitter 1985, algorithm R)."""
    generator = random.Random(0)
    sample: list[str] = []
    non_blank = (sentence for sentence in sentences if sentence and not sentence.isspace())
    for count, sentence in enumerate(non_blank, start=1):
        if count <= max_size:
            sample.append(_prepare(sentence))
        elif (index := generator.randrange(count)) < max_size:
            sample[index] = _prepare(sentence)
    return sample


def _prepare(sentence: str) -> str:
    return escape(normalise(sentence[:_MAX_SENTENCE_CHARACTERS])).translate(_RESERVED_TO_SPACES)


def _frequent_tags(sample: Sequence[str]) -> list[str]:
    """Return tags such as `<polite>` that occur often enough to be one token, most frequent first."""
    counts = Counter(tag for sentence in sample if "<" in sentence for tag in set(_TAG.findall(sentence)))
    min_count = max(2, _MIN_TAG_SHARE * len(sample))
    frequent = [tag for tag, count in counts.items() if count >= min_count]
    # Ties are sorted by name, because the iteration order of a set differs between processes.
    return sorted(frequent, key=lambda tag: (-counts[tag], tag))[:_MAX_TAGS]


def _rare_characters(sample: Sequence[str], max_characters: int, *, byte_fallback: bool) -> set[str]:
    """Return the characters that get no token of their own.

    Only the `max_characters` most frequent characters get a token. With byte fallback and a large character
    set, only as many of them get a token as `_CHARACTER_COVERAGE` requires.
    """
    counts: Counter[str] = Counter()
    for sentence in sample:
        counts.update(sentence)
    needed = counts.total()
    if byte_fallback and len(counts) > _MAX_ALPHABET:
        needed = ceil(_CHARACTER_COVERAGE * needed)
    ranked = counts.most_common()
    covered = itertools.accumulate((count for _, count in ranked), initial=0)
    num_needed = sum(before < needed for before in covered)
    return {character for character, _ in ranked[min(max_characters, num_needed) :]} - {" "}


def _spread_duplicates(sample: Sequence[str], rare: set[str]) -> list[str]:
    """Return the distinct sentences, followed by shuffled copies of repeated sentences.

    In all sentences, rare characters are replaced by spaces. No sentence occurs more than `_MAX_COPIES`
    times.

    SentencePiece finds long repetitions in time quadratic in their length. A thousand equal lines in a row
    take seconds, and ten thousand take minutes. SentencePiece can also read lines with counts, but this takes
    three times as long for any corpus.
    """
    blank = str.maketrans(dict.fromkeys(rare, " "))
    counts = Counter(sentence.translate(blank) if rare else sentence for sentence in sample)
    copies = [sentence for sentence, count in counts.items() for _ in range(min(count, _MAX_COPIES) - 1)]
    random.Random(0).shuffle(copies)
    return [*counts, *copies]


def _train(
    sentences: Sequence[str], settings: TextSettings, *, vocab_size: int, tags: Sequence[str], threads: int
) -> bytes:
    from sentencepiece import SentencePieceTrainer  # start-up

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type=settings.kind,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        character_coverage=1.0,  # `_spread_duplicates` has removed the rare characters
        byte_fallback=settings.byte_fallback,
        # The token of a tag includes the space before the tag, so that the space is not a separate token.
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
