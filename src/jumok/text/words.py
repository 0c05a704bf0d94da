"""Split text into words at spaces. Punctuation at the start or end of a word is split off.

People align these units, so alignments, attention maps and gold files use their indices. A tag such as
`<polite>` is one word. Scripts without spaces between words are split into single characters. A combining
character always stays with its base character.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise

Span = tuple[int, int]
"""Start and end (exclusive) in a text, in characters."""

UNSPACED_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # 々 〆 〇
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),  # small kana of Ainu
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFF9F),  # half-width kana
    (0x20000, 0x3FFFF),  # Han, rare
)
"""Code points of scripts that are written without spaces between words. Both ends belong to a range."""

_JOINERS = "\u200c\u200d"


def split_words(text: str) -> list[str]:
    """Return the words of a sentence: 'No, I go home.' → ['No', ',', 'I', 'go', 'home', '.']."""
    return [text[start:end] for start, end in word_spans(text)]


def word_spans(text: str) -> list[Span]:
    """Return the span of each word of `split_words`."""
    spans: list[Span] = []
    start = 0
    for end in [*(i for i, c in enumerate(text) if c.isspace()), len(text)]:
        if end > start:
            spans.extend(_split_unit(text, start, end))
        start = end + 1
    return spans


def _split_unit(text: str, start: int, end: int) -> list[Span]:
    """Split the punctuation from both ends of a unit without spaces. Each punctuation character is a word."""
    if text[start] == "<" and text[end - 1] == ">" and end - start > 2:
        return [(start, end)]
    clusters = _clusters(text, start, end)
    left, right = 0, len(clusters)
    while left < right and _is_punctuation(text[clusters[left][0]]):
        left += 1
    while right > left and _is_punctuation(text[clusters[right - 1][0]]):
        right -= 1
    return clusters[:left] + _join_spaced(text, clusters[left:right]) + clusters[right:]


def _clusters(text: str, start: int, end: int) -> list[Span]:
    """Split a text into single characters.

    These emoji are not split: an emoji with a skin tone, symbols that are connected by joiners, and a flag
    of two regional indicators. A combining character or a joiner stays with the character before it.
    """
    bounds = [start]
    for i in range(start + 1, end):
        # A flag is complete with two regional indicators, so the third one begins the next flag.
        completes_flag = i - bounds[-1] == 1 and _is_regional(text[i - 1]) and _is_regional(text[i])
        if not (_is_combining(text[i]) or _continues_emoji(text[i - 1], text[i]) or completes_flag):
            bounds.append(i)
    return list(pairwise([*bounds, end]))


def _join_spaced(text: str, clusters: list[Span]) -> list[Span]:
    """Join neighbouring clusters into words, except those of scripts without spaces."""
    spans: list[Span] = []
    open_word = False
    for start, end in clusters:
        unspaced = _is_unspaced(text[start])
        if open_word and not unspaced:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        open_word = not unspaced
    return spans


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _is_combining(character: str) -> bool:
    # `unicodedata.combining` cannot be used, because it returns 0 for the vowel signs of Thai.
    return unicodedata.category(character)[0] == "M" or character in _JOINERS


def _continues_emoji(before: str, character: str) -> bool:
    """Return whether a character continues an emoji: a skin tone, or a symbol after a joiner.

    For example, 👩‍👩‍👧 is one emoji of five characters.
    """
    joined = before == "\u200d" and unicodedata.category(character) == "So"
    return joined or "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_regional(character: str) -> bool:
    """Return whether a character is a regional indicator, e.g. 🇰. A flag such as 🇰🇷 has two of them."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return code >= UNSPACED_RANGES[0][0] and any(low <= code <= high for low, high in UNSPACED_RANGES)
