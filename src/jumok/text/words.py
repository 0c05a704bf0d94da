"""Words: space-separated units with the punctuation at their edges apart.

They are what people align, so alignments, attention pictures and gold files all count in these units.
A tag such as `<polite>` is one word. Scripts written without spaces fall into single characters.
"""

from __future__ import annotations

import unicodedata

__all__ = ["split_words", "word_spans"]

Span = tuple[int, int]

# Han, kana, Thai, Lao, Khmer and Myanmar are written without spaces.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF))


def split_words(text: str) -> list[str]:
    """The words of a sentence: 'No, I go home.' → ['No', ',', 'I', 'go', 'home', '.']."""
    return [text[start:end] for start, end in word_spans(text)]


def word_spans(text: str) -> list[Span]:
    """Where each word of `split_words` starts and ends, in characters."""
    spans: list[Span] = []
    start = 0
    for end in [*(i for i, c in enumerate(text) if c.isspace()), len(text)]:
        if end > start:
            spans.extend(_peel(text, start, end))
        start = end + 1
    return spans


def _peel(text: str, start: int, end: int) -> list[Span]:
    """Take the punctuation off both ends of an unspaced unit, one character a word."""
    if text[start] == "<" and text[end - 1] == ">" and end - start > 2:
        return [(start, end)]
    left, right = start, end
    while left < right and _is_mark(text[left]):
        left += 1
    while right > left and _is_mark(text[right - 1]):
        right -= 1
    before = [(i, i + 1) for i in range(start, left)]
    after = [(i, i + 1) for i in range(right, end)]
    return before + _split_unspaced(text, left, right) + after


def _split_unspaced(text: str, start: int, end: int) -> list[Span]:
    """Cut after each character of a script that uses no spaces; combining marks stay with their base."""
    spans: list[Span] = []
    word = start
    for i in range(start, end):
        if _is_unspaced(text[i]) and not unicodedata.combining(text[i]):
            if word < i:
                spans.append((word, i))
            word = i
        elif i > word and _is_unspaced(text[word]) and not unicodedata.category(text[i]).startswith("M"):
            spans.append((word, i))
            word = i
    if word < end:
        spans.append((word, end))
    return spans


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return any(low <= code <= high for low, high in _UNSPACED)
