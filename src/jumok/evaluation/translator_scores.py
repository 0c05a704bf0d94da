"""Scores of a translator on a test set, and its alignment error if the set has gold alignments."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError
from jumok.evaluation.alignment_error import AlignmentScores, score_alignments
from jumok.evaluation.pointing import PointingScores, score_pointing
from jumok.evaluation.scores import METRICS, Scores, score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.translator import Translator
    from jumok.types import Pair

MAX_SWAPPED_PAIRS = 50  # largest number of pairs that are scored in both directions
MIN_SWAPPED_GAIN = 1.0  # nats per token by which the swapped direction must be better


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores and translations of a test set. `alignment` is None if `align_and_score` returns None."""

    scores: Scores
    alignment: AlignmentScores | None
    translations: tuple[str, ...]
    pointing: PointingScores | None = None  # of captions whose pictures have gold regions

    def as_dict(self) -> dict[str, float | str | int]:
        """Return the scores for JSON. Keys of alignment and pointing scores begin with these words."""
        entries = self.scores.as_dict()
        if self.alignment is not None:
            entries["alignment_error"] = self.alignment.error
            entries["alignment_precision"] = self.alignment.precision
            entries["alignment_recall"] = self.alignment.recall
            entries["alignment_sentences"] = self.alignment.sentences
        if self.pointing is not None:
            entries["pointing"] = self.pointing.accuracy
            entries["pointing_overlap"] = self.pointing.overlap
            entries["pointing_words"] = self.pointing.words
            entries["pointing_written"] = self.pointing.written
        return entries


def evaluate_translator(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    metrics: Sequence[str] = METRICS,
    sentences: str | None = None,
) -> Evaluation:
    """Score the translations of the sources; with gold, also alignments to references, and pointing.

    BLEU's tokenizer depends on the translator's target language unless `tokenize` names one. Lines of several
    sentences are split or kept as `sentences` says, by default as the model was trained.
    Addresses and placeholders that a translation has lost are not restored.
    """
    translations = translator.translate(
        [pair.source for pair in pairs],
        scores=False,
        beam=beam,
        length_penalty=length_penalty,
        sentences=sentences or translator.sentences_for_scores,
        protect=False,
    )
    texts = [translation.text for translation in translations]
    return evaluate_translations(
        translator, pairs, texts, tokenize=tokenize, lowercase=lowercase, metrics=metrics
    )


def evaluate_translations(
    translator: Translator,
    pairs: Sequence[Pair],
    translations: Sequence[str],
    *,
    tokenize: str | None = None,
    lowercase: bool = False,
    metrics: Sequence[str] = METRICS,
) -> Evaluation:
    """Like `evaluate_translator`, for given translations."""
    texts = tuple(translations)
    scores = score(
        texts,
        [pair.target for pair in pairs],
        language=translator.target_language,
        tokenize=tokenize,
        lowercase=lowercase,
        metrics=metrics,
    )
    pointing = score_pointing(translator, pairs, texts)
    return Evaluation(scores, align_and_score(translator, pairs), texts, pointing)


def align_and_score(translator: Translator, pairs: Sequence[Pair]) -> AlignmentScores | None:
    """Score the translator's alignments of the pairs that have a gold alignment.

    The result is None if no pair has one, or if the model has no cross-attention or cannot report it.
    """
    aligned = [pair for pair in pairs if pair.alignment is not None]
    gold = [pair.alignment for pair in aligned if pair.alignment is not None]
    try:
        if not gold or not translator.model.has_cross_attention:
            return None
    except UnsupportedError:  # raised if only CTranslate2 can run the model
        return None
    return score_alignments(translator.align_all(aligned), gold)


def looks_swapped(translator: Translator, pairs: Sequence[Pair]) -> bool:
    """Return whether the model finds these pairs (at least one) far more probable with swapped sides.

    This works for any two languages, even if they have the same script: a model gives words of its source
    language hardly any probability in a translation.
    """
    sample = pairs[:: -(-len(pairs) // MAX_SWAPPED_PAIRS)]
    sources, targets = [pair.source for pair in sample], [pair.target for pair in sample]
    try:
        loss = _loss(translator, sources, targets)
        swapped_loss = _loss(translator, targets, sources)
    except UnsupportedError:  # raised if only CTranslate2 can run the model
        return False
    # If no pair is short enough, a loss is NaN, and the comparison is False.
    return swapped_loss + MIN_SWAPPED_GAIN < loss


def _loss(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> float:
    """Return the loss per token of the targets, over the pairs that are short enough; NaN if none is."""
    from jumok.data.batching import padded_batch  # start-up
    from jumok.evaluation.text_scores import TokenScores, score_batch  # start-up

    tokenizers, max_tokens = translator.tokenizers, translator.max_source_tokens
    ids = zip(tokenizers.source.encode_batch(sources), tokenizers.target.encode_batch(targets), strict=True)
    short = [(source, target) for source, target in ids if max(len(source), len(target)) <= max_tokens]
    total = TokenScores()
    for source, target in short:
        total += score_batch(translator.model, padded_batch([source], [target]))
    return total.loss if short else nan
