"""Detect the language of a text, among a few candidate languages.

py3langid compares the text with about 140 languages. If another language is much more probable than every
candidate, no candidate is detected (`_MIN_RATIO`). Languages that py3langid or `languages.py` does not know
are never detected.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jumok.text.languages import LANGUAGES
from jumok.text.scripts import classify_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_CHARACTERS = 2_000  # more text adds hardly any information
_MIN_RATIO = 0.3
"""The minimum of p(candidate) / p(most probable language). For "Hello", p(English) / p(Breton) is 0.80."""
_LANGUAGE_OF_VARIETY = {  # label of py3langid → the language of which it is a variety
    "ary": "ar",
    "arz": "ar",
    "hbo": "he",
    "grc": "el",
    "nb": "no",
    "nn": "no",
    "pcm": "en",
    "sdh": "ku",
    "uzs": "uz",
    "wuu": "zh",
    "yue": "zh",
}


def detect_languages(text: str, candidates: Sequence[str]) -> list[tuple[str, float]]:
    """Return each candidate with a confidence from 0 to 100, best first. Ties keep the order of `candidates`.

    A candidate has the confidence 0 if another language is much more probable, or if the text has no letter
    of its scripts.
    """
    text = text[:_MAX_CHARACTERS]
    probabilities = _language_probabilities(text)
    characters = classify_characters([text])
    recognised: dict[str, float] = {}
    best = max(probabilities.values())
    for code in candidates:
        language = LANGUAGES.get(code)
        probability = probabilities.get(_LANGUAGE_OF_VARIETY.get(code, code), 0.0)
        if probability >= _MIN_RATIO * best and language and characters.count_letters(language.scripts)[0]:
            recognised[code] = probability
    # If the most probable language is not recognised as a candidate, its probability reduces the confidences.
    total = sum(recognised.values()) + (best if best not in recognised.values() else 0.0)
    confidences = [(code, round(100 * recognised.get(code, 0.0) / total, 1)) for code in candidates]
    return sorted(confidences, key=lambda code_and_confidence: -code_and_confidence[1])


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # start-up

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _language_probabilities(text: str) -> dict[str, float]:
    """Return the probability of every language that py3langid knows. Varieties count as their language."""
    probabilities: dict[str, float] = {}
    for label, probability in _identifier().rank(text):
        code = _LANGUAGE_OF_VARIETY.get(label, label)
        probabilities[code] = probabilities.get(code, 0.0) + probability
    return probabilities
