"""What a shortlist costs, and what it brings: the same sentences translated with it and without."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from jumok.evaluation.scores import Scores, score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.decoding import Translator
    from jumok.values import Pair

__all__ = ["ShortlistCosts", "shortlist_costs"]

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class ShortlistCosts:
    """The BLEU of the whole vocabulary and of the shortlist, and how many times faster the second is."""

    whole: Scores
    shortlisted: Scores
    speed: float

    @property
    def bleu(self) -> float:
        """What it costs."""
        return self.whole.bleu - self.shortlisted.bleu


def shortlist_costs(whole: Translator, shortlisted: Translator, pairs: Sequence[Pair]) -> ShortlistCosts:
    """Two translators of one model, the second with a shortlist. They take turns; medians are compared."""
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    seconds: dict[Translator, list[float]] = {whole: [], shortlisted: []}
    texts: dict[Translator, list[str]] = {}
    for translator in (whole, shortlisted) * ROUNDS:
        started = time.perf_counter()
        found = translator.translate(sources, scores=False)
        seconds[translator].append(time.perf_counter() - started)
        texts[translator] = [translation.text for translation in found]
    with_all, with_few = (
        score(texts[one], references, language=whole.target_language, metrics=("bleu",))
        for one in (whole, shortlisted)
    )
    return ShortlistCosts(with_all, with_few, median(seconds[whole]) / median(seconds[shortlisted]))
