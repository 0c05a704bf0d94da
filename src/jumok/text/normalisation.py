"""What is done to a text before it is cut, and undone after: as little as the round trip needs.

Text is brought to NFC, so that one word has one spelling; nothing is lowercased, folded or trimmed.
SentencePiece writes a space as "▁" (U+2581) and cannot tell it from a "▁" that stood in the text, so that
character is escaped.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["escape", "normalise", "replace_surrogates", "unescape", "unescaped_offsets"]

# Unicode sets these code points aside for use inside a program, so a text never holds them on purpose.
_STANDS_FOR_BAR, _QUOTE = "\ufdd0", "\ufdd1"

_SPECIAL = re.compile("[\u2581\ufdd0\ufdd1]")
_ESCAPED = re.compile("\ufdd0|\ufdd1[\ufdd0\ufdd1]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """NFC. Half of a surrogate pair, which no file can hold as UTF-8, becomes U+FFFD."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", replace_surrogates(text))


def replace_surrogates(text: str) -> str:
    """U+FFFD for every surrogate."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def escape(text: str) -> str:
    """The text without "▁"; `unescape` brings it back."""
    if text.isascii():
        return text
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)


def unescape(text: str) -> str:
    """The inverse of `escape`; a lone quote, which only a model can produce, stays as it is."""
    if text.isascii():
        return text
    return _ESCAPED.sub(lambda found: _ORIGINALS[found[0]], text)


def unescaped_offsets(text: str) -> list[int]:
    """Where each position of an escaped text, its end included, stands in the unescaped text."""
    offsets = list(range(len(text) + 1))
    for removed, found in enumerate(found for found in _ESCAPED.finditer(text) if len(found[0]) == 2):
        offsets[found.start() + 1 :] = [i - removed - 1 for i in range(found.start() + 1, len(text) + 1)]
    return offsets


_ESCAPES = {"▁": _STANDS_FOR_BAR, _STANDS_FOR_BAR: _QUOTE + _STANDS_FOR_BAR, _QUOTE: _QUOTE + _QUOTE}
_ORIGINALS = {escaped: original for original, escaped in _ESCAPES.items()}
