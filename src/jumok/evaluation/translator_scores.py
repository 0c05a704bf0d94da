"""A translator against a test set: its scores, and its alignment error where somebody drew the gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.evaluation.alignment import AlignmentScores, score_alignments
from jumok.evaluation.scores import METRICS, Scores, score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.decoding import Translator
    from jumok.values import Pair

__all__ = ["Evaluation", "align_and_score", "evaluate_translator"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a translator made of a test set. `alignment` is None without gold, or without attention."""

    scores: Scores
    alignment: AlignmentScores | None
    translations: tuple[str, ...]

    def as_dict(self) -> dict[str, float | str | int]:
        """The scores and, as `alignment_…`, the shares of the alignment; ready for JSON."""
        found = self.scores.as_dict()
        if self.alignment is not None:
            found["alignment_error"] = self.alignment.error
            found["alignment_precision"] = self.alignment.precision
            found["alignment_recall"] = self.alignment.recall
            found["alignment_sentences"] = self.alignment.sentences
        return found


def evaluate_translator(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    metrics: Sequence[str] = METRICS,
) -> Evaluation:
    """Translate the sources and score them; align each source with its reference and score that too.

    BLEU's tokeniser follows the translator's target language unless `tokenize` says otherwise.
    """
    translated = translator.translate(
        [pair.source for pair in pairs], beam=beam, length_penalty=length_penalty, scores=False
    )
    texts = tuple(translation.text for translation in translated)
    scores = score(
        texts,
        [pair.target for pair in pairs],
        language=translator.target_language,
        tokenize=tokenize,
        lowercase=lowercase,
        metrics=metrics,
    )
    return Evaluation(scores, align_and_score(translator, pairs), texts)


def align_and_score(translator: Translator, pairs: Sequence[Pair]) -> AlignmentScores | None:
    """Against gold, where somebody drew it and the model has an alignment to read."""
    marked = [pair for pair in pairs if pair.alignment is not None]
    gold = [pair.alignment for pair in marked if pair.alignment is not None]
    if not gold or not translator.model.looks_at_source:
        return None
    return score_alignments(translator.align_all(marked), gold)
