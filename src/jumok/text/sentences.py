"""A text as the sentences to be translated, and what stands between them and is kept.

Models are trained on single sentences, so a paragraph is cut at the ends of its sentences. Line breaks,
indentation and lines without a letter or digit stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from jumok.decoding.splitting import join_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.text import Span

__all__ = ["lay_out", "sentence_spans"]

# After a full stop a small letter goes on with the sentence ("e.g. this"); full-width marks need no space.
# A row of full stops is looked at once, from its first: thousands of them must cost no more than letters.
_END = re.compile(r"(?<![.?!…])[.?!…]++[\"'”’»)\]]*+\s++(?=[^a-zà-ÿ])|[。！？｡]++[”’」』）]*+\s*+")
_LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_FEW_WORDS = 3  # "Dr. Kim": so short a sentence is joined to the next
# Whatever has no end for so long is cut all the same: a worker must never hold more at once than it can do.
_MOST_CHARACTERS = 1_000
_PLACES = (", ", "、", "，", " ")  # where that hurts least, best first


def sentence_spans(text: str) -> list[Span]:
    """Where each sentence starts and ends, without the spaces around it."""
    return [span for line in _LINE.finditer(text) for span in _in_line(text, line.start(), line.end())]


def lay_out(text: str, spans: Sequence[Span], translated: Sequence[str], language: str) -> list[str]:
    """The text with its sentences exchanged: what stands before the first, the first, what is between, …"""
    joined: list[str] = []
    last = 0
    for (start, end), sentence in zip(spans, translated, strict=True):
        between = text[last:start]
        if last and not between.strip(" "):
            # Between two sentences of a line stands what the target language writes there.
            between = join_parts(["x", "x"], language)[1:-1]
        joined.extend([between, sentence])
        last = end
    return [*joined, text[last:]]


def _in_line(text: str, start: int, end: int) -> list[Span]:
    spans: list[Span] = []
    begin = start
    for match in _END.finditer(text, start, end):
        if len(text[begin : match.end()].split()) >= _FEW_WORDS or not match.group()[-1].isspace():
            spans.append((begin, match.end()))
            begin = match.end()
    spans.append((begin, end))
    trimmed = [_trim(text, *part) for span in spans for part in _bounded(text, *span)]
    return [(left, right) for left, right in trimmed if any(c.isalnum() for c in text[left:right])]


def _bounded(text: str, start: int, end: int) -> list[Span]:
    parts: list[Span] = []
    while end - start > _MOST_CHARACTERS:
        cut = _cut(text, start + _MOST_CHARACTERS // 2, start + _MOST_CHARACTERS)
        parts.append((start, cut))
        start = cut
    return [*parts, (start, end)]


def _cut(text: str, least: int, most: int) -> int:
    """The last good place of a stretch, or its end; no accent is torn from its letter."""
    for place in _PLACES:
        if (found := text.rfind(place, least, most)) >= 0:
            return found + len(place)
    cut = most
    while cut > least and unicodedata.category(text[cut]).startswith("M"):
        cut -= 1
    return cut


def _trim(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
