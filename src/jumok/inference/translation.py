"""A translation: its text, its score and, on request, its word alignment."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError
from jumok.text.words import word_spans
from jumok.types import Alignment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.text.words import Span


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    `score` is the score of the search: log p / length^α, and the coverage penalty if there is one
    (`search/finished.py`). It is 0 for a text that was not translated, and may be NaN if `translate` was
    called with `scores=False`.
    `tokens` are the tokens that the model produced, before terms were placed. `alternatives` are the other
    distinct translations of an n-best list with their scores, best first. `parts` has (source, translation)
    for each segment that was translated separately. A text of one sentence has one part, except if it is too
    long for the model. A text that was not translated has no parts. `notes` are warnings, for example that
    the translation was cut or repeats itself. `align` aligns the words of a part, given as source and
    translation.
    """

    source: str
    text: str
    score: float
    tokens: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, float], ...] = ()
    parts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    align: Callable[[str, str], Alignment] | None = field(default=None, repr=False, compare=False)

    @property
    def unsplit_text(self) -> str:
        """The text. Raise a DataError if it was translated in several parts, which share no attention map."""
        if len(self.parts) > 1:
            raise DataError(
                f"This text was translated in {len(self.parts)} parts, because it has several sentences or "
                "is too long for the model. Give one short sentence, or take the `parts` of its translation "
                "in Python, one by one."
            )
        return self.text

    @cached_property
    def alignment(self) -> Alignment:
        """The links between the words of `source` and `text`, computed on first use from those of `parts`."""
        if self.align is None:
            return Alignment(frozenset())
        source_words, text_words = word_spans(self.source), word_spans(self.text)
        links: set[tuple[int, int]] = set()
        source_end = text_end = 0
        for source, text in self.parts:
            # One of several parts may begin or end with white space, but the joined text does not.
            part = text if self.text.find(text, text_end) >= 0 else text.strip()
            source_start, text_start = self.source.index(source, source_end), self.text.index(part, text_end)
            source_map = _words_of_part(source, source_start, source_words)
            text_map = _words_of_part(part, text_start, text_words)
            links.update((source_map[i], text_map[j]) for i, j in self.align(source, text).sure)
            source_end, text_end = source_start + len(source), text_start + len(part)
        return Alignment(frozenset(links))

    def as_line(self) -> str:
        """Return the text on one line. All line breaks, e.g. U+2028, become spaces."""
        return " ".join(self.text.splitlines())

    def as_json(self, *, align: bool = False) -> str:
        """Return the translation as a JSON object on one line, with its word alignment if `align`."""
        record: dict[str, Any] = {
            "source": self.source,
            "text": self.text,
            "score": _finite(self.score),
            "tokens": list(self.tokens),
        }
        if self.alternatives:
            record["alternatives"] = [
                {"text": text, "score": _finite(score)} for text, score in self.alternatives
            ]
        if self.notes:
            record["notes"] = list(self.notes)
        if align:
            record["alignment"] = str(self.alignment)
        return json.dumps(record, ensure_ascii=False)


def _words_of_part(part: str, start: int, words: Sequence[Span]) -> list[int]:
    """Return, for each word of a part, the index of the word of the text that contains it.

    The part begins at the offset `start` of the text. `words` are the spans of the words of the text.
    """
    indices: list[int] = []
    word = 0
    for begin, _ in word_spans(part):
        while words[word][1] <= start + begin:
            word += 1
        indices.append(word)
    return indices


def _finite(score: float) -> float | None:
    """Return a rounded score for JSON; None for infinity and NaN, which JSON does not have."""
    return round(score, 5) if math.isfinite(score) else None
