"""Normalisation and escaping before tokenisation, and unescaping after it.

Text is normalised to NFC, so that one word has one spelling; nothing is lowercased, folded or trimmed.
SentencePiece writes a space as "▁" (U+2581) and cannot distinguish it from a "▁" in the text, so that
character is escaped.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["escape", "normalise", "replace_surrogates", "unescape", "unescaped_offsets"]

# Unicode reserves these code points for internal use by programs, so no text contains them on purpose.
_BAR, _ESCAPE_PREFIX = "\ufdd0", "\ufdd1"

_TO_ESCAPE = re.compile("[\u2581\ufdd0\ufdd1]")
_ESCAPED = re.compile("\ufdd0|\ufdd1[\ufdd0\ufdd1]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """Return the text in NFC. A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", replace_surrogates(text))


def replace_surrogates(text: str) -> str:
    """Replace every surrogate by U+FFFD."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def escape(text: str) -> str:
    """Return the text without "▁"; `unescape` restores it."""
    if text.isascii():
        return text
    return _TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


def unescape(text: str) -> str:
    """Invert `escape`. A lone prefix, which only a model can generate, stays as it is."""
    if text.isascii():
        return text
    return _ESCAPED.sub(lambda match: _ORIGINALS[match[0]], text)


def unescaped_offsets(text: str) -> list[int]:
    """Return for each offset in an escaped text, including its end, the offset in the unescaped text."""
    offsets = list(range(len(text) + 1))
    prefixed = (match for match in _ESCAPED.finditer(text) if len(match[0]) == 2)
    for removed, match in enumerate(prefixed):
        offsets[match.start() + 1 :] = [i - removed - 1 for i in range(match.start() + 1, len(text) + 1)]
    return offsets


_ESCAPES = {"▁": _BAR, _BAR: _ESCAPE_PREFIX + _BAR, _ESCAPE_PREFIX: _ESCAPE_PREFIX + _ESCAPE_PREFIX}
_ORIGINALS = {escaped: original for original, escaped in _ESCAPES.items()}
