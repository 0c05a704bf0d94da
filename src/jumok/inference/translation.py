"""A translation: the text, how likely the model found it, and on request which words stand behind which."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.text.words import word_spans
from jumok.values import Alignment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.text.words import Span

__all__ = ["Translation"]


@dataclass(frozen=True)
class Translation:
    """One line translated.

    `score` is log p / length^α of the text, 0 for an empty line. `alternatives` are the other translations of
    an n-best list with their scores, best first; those that read the same are left out. `parts` are source
    and translation of each stretch that was translated by itself: one, unless the line was too long for the
    model.
    """

    source: str
    text: str
    score: float
    pieces: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, float], ...] = ()
    parts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    align: Callable[[str, str], Alignment] | None = field(default=None, repr=False, compare=False)

    @property
    def whole(self) -> str:
        """The text of a line that the model took at once; one pass shows nothing of a line in parts."""
        if len(self.parts) > 1:
            raise DataError(
                "This sentence is too long to be looked at in one pass: it was translated in "
                f"{len(self.parts)} parts. Give a shorter sentence, or look at the `parts` of its "
                "translation in Python, one by one."
            )
        return self.text

    @cached_property
    def alignment(self) -> Alignment:
        """Links between the words of source and text, computed when first asked for."""
        if self.align is None:
            return Alignment(frozenset())
        source_words, text_words = word_spans(self.source), word_spans(self.text)
        links: set[tuple[int, int]] = set()
        source_end = text_end = 0
        for source, text in self.parts:
            source_start, text_start = self.source.index(source, source_end), self.text.index(text, text_end)
            source_map = _whole_words(source, source_start, source_words)
            text_map = _whole_words(text, text_start, text_words)
            links.update((source_map[i], text_map[j]) for i, j in self.align(source, text).sure)
            source_end, text_end = source_start + len(source), text_start + len(text)
        return Alignment(frozenset(links))


def _whole_words(part: str, start: int, words: Sequence[Span]) -> list[int]:
    """For each word of a part that begins at `start`, the word of the whole line that holds it."""
    found: list[int] = []
    word = 0
    for begin, _ in word_spans(part):
        while words[word][1] <= start + begin:
            word += 1
        found.append(word)
    return found
