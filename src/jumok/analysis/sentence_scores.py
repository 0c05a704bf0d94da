"""Scores of every sentence of a corpus, to find the sentences that a model translates badly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.evaluation.scores import make_metric
from jumok.inference.teacher_forcing import cross_entropies
from jumok.inference.text_options import LINE_BY_LINE
from jumok.text.words import split_words
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.translator import OnProgress, Translator


MAX_REPEATED_WORDS = 4  # length of the longest repetition that is looked for
BLOCK_PAIRS = 8  # few, so that progress is reported often


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """The scores of one pair and its translation."""

    source: str
    reference: str
    hypothesis: str
    chrf: float
    loss: float | None
    """−log p of the reference in nats per token; None if the pair is too long for the model."""
    uncovered: tuple[str, ...]
    """Source words to which no word of the translation is aligned, without punctuation and tags. Empty if the
    model has no cross-attention."""
    repeats: int
    """The number of words of the translation that repeat the words right before them: 1 in "a b b"."""
    change: float | None
    """chrF − chrF of the previous model; None without a previous model."""


def score_sentences(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    previous: Translator | None = None,
    on_progress: OnProgress | None = None,
) -> list[SentenceScore]:
    """Translate every source and score its translation, in the order of the pairs.

    `on_progress(done, total)` counts pairs. An exception that it raises ends the work.
    """
    scores: list[SentenceScore] = []
    for start in range(0, len(pairs), BLOCK_PAIRS):
        scores += _score_block(translator, pairs[start : start + BLOCK_PAIRS], previous)
        if on_progress is not None:
            on_progress(len(scores), len(pairs))
    return scores


def _score_block(
    translator: Translator, pairs: Sequence[Pair], previous: Translator | None
) -> list[SentenceScore]:
    texts, metric = _translate(translator, pairs), make_metric("chrf")
    previous_texts = None if previous is None else _translate(previous, pairs)
    uncovered, losses = _uncovered(translator, pairs, texts), _losses(translator, pairs)
    scores = []
    for i, (pair, text) in enumerate(zip(pairs, texts, strict=True)):
        chrf = float(metric.sentence_score(text, [pair.target]).score)
        change = None
        if previous_texts is not None:
            change = chrf - float(metric.sentence_score(previous_texts[i], [pair.target]).score)
        repeats = _count_repeats(split_words(text))
        scores.append(
            SentenceScore(pair.source, pair.target, text, chrf, losses[i], uncovered[i], repeats, change)
        )
    return scores


def _translate(translator: Translator, pairs: Sequence[Pair]) -> list[str]:
    sources = [pair.source for pair in pairs]
    return [translation.text for translation in translator.translate(sources, **LINE_BY_LINE)]


def _uncovered(translator: Translator, pairs: Sequence[Pair], texts: Sequence[str]) -> list[tuple[str, ...]]:
    if not translator.model.has_cross_attention:
        return [()] * len(pairs)
    translated_pairs = [Pair(pair.source, text) for pair, text in zip(pairs, texts, strict=True)]
    uncovered = []
    for pair, alignment in zip(translated_pairs, translator.align_all(translated_pairs), strict=True):
        covered = {source for source, _ in alignment.sure}
        words = enumerate(split_words(pair.source))
        uncovered.append(tuple(word for i, word in words if i not in covered and _is_word(word)))
    return uncovered


def _is_word(word: str) -> bool:
    """Whether a word is neither punctuation nor a tag such as `<polite>`."""
    return any(map(str.isalnum, word)) and not (word.startswith("<") and word.endswith(">"))


def _losses(translator: Translator, pairs: Sequence[Pair]) -> list[float | None]:
    sources = translator.source_ids([pair.source for pair in pairs])
    targets = translator.tokenizers.target.encode_batch([pair.target for pair in pairs])
    max_tokens = translator.max_source_tokens
    short = [i for i in range(len(pairs)) if max(len(sources[i]), len(targets[i])) <= max_tokens]
    losses: list[float | None] = [None] * len(pairs)
    entropies = cross_entropies(translator.model, [sources[i] for i in short], [targets[i] for i in short])
    for i, entropy in zip(short, entropies, strict=True):
        losses[i] = entropy
    return losses


def _count_repeats(words: Sequence[str]) -> int:
    """Count the words of sequences that repeat the sequence right before them.

    A sequence has at most `MAX_REPEATED_WORDS` words.
    """
    repeated: set[int] = set()
    for period in range(1, MAX_REPEATED_WORDS + 1):
        for start in range(period, len(words) - period + 1):
            if list(words[start - period : start]) == list(words[start : start + period]):
                repeated.update(range(start, start + period))
    return len(repeated)
