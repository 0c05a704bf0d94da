"""Cost of a shortlist in BLEU and its speed-up, from translations with and without the shortlist."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from jumok.evaluation.scores import Scores, score
from jumok.inference.text_options import LINE_BY_LINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.translator import Translator
    from jumok.types import Pair

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class ShortlistCost:
    """BLEU with the full vocabulary and with the shortlist, and how many times faster the latter is."""

    full_vocabulary: Scores
    shortlist: Scores
    speedup: float

    @property
    def bleu_loss(self) -> float:
        """BLEU with the full vocabulary − BLEU with the shortlist."""
        return self.full_vocabulary.bleu - self.shortlist.bleu


def measure_shortlist_cost(full: Translator, shortlisted: Translator, pairs: Sequence[Pair]) -> ShortlistCost:
    """Compare two translators of one model, one of them with a shortlist: their BLEU and median times."""
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    seconds: dict[Translator, list[float]] = {full: [], shortlisted: []}
    texts: dict[Translator, list[str]] = {}
    for translator in (full, shortlisted) * _ROUNDS:
        start = time.perf_counter()
        translations = translator.translate(sources, scores=False, **LINE_BY_LINE)
        seconds[translator].append(time.perf_counter() - start)
        texts[translator] = [translation.text for translation in translations]
    full_scores, shortlist_scores = (
        score(texts[translator], references, language=full.target_language, metrics=("bleu",))
        for translator in (full, shortlisted)
    )
    speedup = median(seconds[full]) / median(seconds[shortlisted])
    return ShortlistCost(full_scores, shortlist_scores, speedup)
