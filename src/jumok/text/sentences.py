"""Split a text into sentences to translate, and join their translations with what was between them.

Models are trained on single sentences, so a paragraph is split at the ends of its sentences. Line breaks,
indentation and lines without a letter or digit stay unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from jumok.text.long_lines import sentence_separator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.text.words import Span

__all__ = ["replace_sentences", "sentence_spans"]

# A lower-case letter after a full stop continues the sentence ("e.g. this"); full-width punctuation needs no
# space. A run of full stops is matched once, from its first, so that thousands of them cost linear time.
_SENTENCE_END = re.compile(r"(?<![.?!…])[.?!…]++[\"'”’»)\]]*+\s++(?=[^a-zà-ÿ])|[。！？｡]++[”’」』）]*+\s*+")
_LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_MIN_WORDS = 3  # "Dr. Kim": a shorter sentence is joined to the next
# Longer text without a sentence end is split anyway, so that a worker never gets more than it can hold.
_MAX_CHARACTERS = 1_000
_SPLIT_AFTER = (", ", "、", "，", " ")  # best first


def sentence_spans(text: str) -> list[Span]:
    """Return the start and end of each sentence, without the white space around it."""
    return [span for line in _LINE.finditer(text) for span in _spans_of_line(text, line.start(), line.end())]


def replace_sentences(
    text: str, spans: Sequence[Span], translated: Sequence[str], language: str
) -> list[str]:
    """Return the text with its sentences replaced, as a list to be joined.

    The list alternates: the text before the first sentence, the first sentence, the text between it and the
    second, …, the text after the last. Spaces between two sentences become the separator of `language`, the
    target language.
    """
    parts: list[str] = []
    previous_end = 0
    for (start, end), sentence in zip(spans, translated, strict=True):
        between = text[previous_end:start]
        if previous_end and not between.strip(" "):
            between = sentence_separator(language)
        parts.extend([between, sentence])
        previous_end = end
    return [*parts, text[previous_end:]]


def _spans_of_line(text: str, start: int, end: int) -> list[Span]:
    spans: list[Span] = []
    sentence_start = start
    for match in _SENTENCE_END.finditer(text, start, end):
        if len(text[sentence_start : match.end()].split()) >= _MIN_WORDS or not match.group()[-1].isspace():
            spans.append((sentence_start, match.end()))
            sentence_start = match.end()
    spans.append((sentence_start, end))
    trimmed = [_trim(text, *part) for span in spans for part in _split_long(text, *span)]
    return [(left, right) for left, right in trimmed if any(c.isalnum() for c in text[left:right])]


def _split_long(text: str, start: int, end: int) -> list[Span]:
    parts: list[Span] = []
    while end - start > _MAX_CHARACTERS:
        split = _split_position(text, start + _MAX_CHARACTERS // 2, start + _MAX_CHARACTERS)
        parts.append((start, split))
        start = split
    return [*parts, (start, end)]


def _split_position(text: str, low: int, high: int) -> int:
    """Return the best position between `low` and `high` that does not separate an accent from its letter."""
    for separator in _SPLIT_AFTER:
        if (index := text.rfind(separator, low, high)) >= 0:
            return index + len(separator)
    position = high
    while position > low and unicodedata.category(text[position]).startswith("M"):
        position -= 1
    return position


def _trim(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
