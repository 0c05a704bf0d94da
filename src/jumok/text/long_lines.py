"""Split lines that are too long for a model.

A line is split at the ends of sentences. A sentence that is still too long is split at commas and similar
marks, then at spaces, then anywhere. The parts are slices of the line without the spaces between them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from jumok.text.languages import find_language
from jumok.text.normalisation import MAX_MARKS

if TYPE_CHECKING:
    from collections.abc import Callable

    CountTokens = Callable[[str], int]

# Patterns for the end of a part, tried in this order. No space is needed after full-width punctuation.
_BOUNDARIES = (
    re.compile(r"[.?!…]+[\"'”’»)\]]*\s+|[。！？｡]+[”’」』）]*\s*"),
    re.compile(r"[,;:–—]+[\"'”’»)\]]*\s+|[、，；：]+\s*"),
    re.compile(r"\s+"),
)
_SENTENCE_LEVEL = 0  # the index of the pattern for the ends of sentences

# A sentence with fewer tokens than this is joined to the next sentence, if both fit, because it may be just
# "Dr.".
_MIN_SENTENCE_TOKENS = 6

# Languages without a space between sentences. Thai is not in this set. Thai has no spaces between words, but
# it has spaces between sentences.
_WITHOUT_SPACE_BETWEEN_SENTENCES = frozenset({"zh", "ja", "yue", "wuu", "lzh"})


def split_line(line: str, count_tokens: CountTokens, max_tokens: int) -> list[str]:
    """Return the parts of a line, with at most `max_tokens` tokens each, as `count_tokens` counts them.

    A part that is a single character may have more tokens.
    """
    return _split(line.strip(), count_tokens, max_tokens, level=_SENTENCE_LEVEL)


@cache  # unbounded, because loaded models have only a few target languages
def sentence_separator(language: str) -> str:
    """Return the separator between two sentences on a line: " ", or "" in languages without such spaces."""
    base = re.split(r"[-_]", language.lower())[0]
    known_language = find_language(base)
    code = known_language.code if known_language else base
    return "" if code in _WITHOUT_SPACE_BETWEEN_SENTENCES else " "


def _split(text: str, count_tokens: CountTokens, max_tokens: int, *, level: int) -> list[str]:
    if count_tokens(text) <= max_tokens or len(text) < 2:
        return [text]
    if level == len(_BOUNDARIES):
        middle = _middle(text)
        halves = (text[:middle], text[middle:])
        return [part for half in halves for part in _split(half, count_tokens, max_tokens, level=level)]
    spans = _spans_between(text, _BOUNDARIES[level])
    min_tokens = _MIN_SENTENCE_TOKENS if level == _SENTENCE_LEVEL else max_tokens
    parts: list[str] = []
    for part in _merge_spans(text, spans, count_tokens, min_tokens=min_tokens, max_tokens=max_tokens):
        parts.extend(_split(part, count_tokens, max_tokens, level=level + 1))
    return parts


def _spans_between(text: str, boundary: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the spans that end at a boundary. Each span includes the boundary at its end."""
    ends = [match.end() for match in boundary.finditer(text) if match.end() < len(text)]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))


def _merge_spans(
    text: str, spans: list[tuple[int, int]], count_tokens: CountTokens, *, min_tokens: int, max_tokens: int
) -> list[str]:
    """Merge neighbouring spans into parts with at least `min_tokens` tokens, if `max_tokens` allows it."""
    parts: list[str] = []
    part_start, part_end, num_tokens = 0, 0, 0
    for start, end in spans:
        span_tokens = count_tokens(text[start:end].strip())
        if num_tokens and (num_tokens >= min_tokens or num_tokens + span_tokens > max_tokens):
            parts.append(text[part_start:part_end].strip())
            part_start, num_tokens = start, 0
        part_end, num_tokens = end, num_tokens + span_tokens
    return [*parts, text[part_start:part_end].strip()]


def _middle(text: str) -> int:
    """Return an index near the middle that does not separate a combining character from its letter.

    If this letter is the first character, or is more than `MAX_MARKS` before the middle, return the middle.
    """
    middle = len(text) // 2
    for index in range(middle, max(middle - MAX_MARKS - 1, 0), -1):
        if not unicodedata.category(text[index]).startswith("M"):
            return index
    return middle
