"""Normalisation and escaping before tokenisation, and unescaping after it.

Text is normalised to NFC, so that each word has only one spelling. Nothing is lowercased, folded or trimmed.
NFC sorts each run of combining marks in quadratic time. A line of 80 KB can therefore take a minute, so runs
are bounded first, as in Unicode's stream-safe text format (UAX #15, section 13): the invisible combining
grapheme joiner (U+034F) is inserted after every 30 marks. No language writes more than a few marks in a row.

SentencePiece writes a space as "▁" (U+2581) and cannot distinguish this space from a "▁" in the text. A "▁"
in the text is therefore escaped.
"""

from __future__ import annotations

import itertools
import re
import unicodedata

MAX_MARKS = 30
_GRAPHEME_JOINER = "\u034f"
# A run of fewer than 14 characters cannot exceed MAX_MARKS. No mark is a letter, a digit or a space. The
# canonical decomposition of a mark has at most two marks, and the decomposition of a letter has at most
# three. So 13 characters and the letter before them have at most 2 · 13 + 3 < MAX_MARKS marks.
_POSSIBLE_RUN = re.compile(r"[^\w\s]{14,}")
# This pattern is searched in every third character of a text. A run of 14 has at least four of these
# characters.
_SAMPLE_OF_RUN = re.compile(r"[^\w\s]{4}")

# Unicode reserves these code points for internal use by programs, so no text contains them on purpose.
_ESCAPED_BAR, _ESCAPE_PREFIX = "\ufdd0", "\ufdd1"

_TO_ESCAPE = re.compile("[\u2581\ufdd0\ufdd1]")
_ESCAPED = re.compile("\ufdd0|\ufdd1[\ufdd0\ufdd1]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """Return the text in NFC, with bounded runs of combining marks.

    A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD.
    """
    if text.isascii():
        return text
    return to_nfc(replace_surrogates(text))


def to_nfc(text: str) -> str:
    """Return the text in NFC, with bounded runs of combining marks, in time linear in its length."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", bound_marks(text))


def is_composed(text: str) -> bool:
    """Return whether a text is in NFC, apart from runs of marks that are too long."""
    return text.isascii() or unicodedata.is_normalized("NFC", bound_marks(text))


def bound_marks(text: str) -> str:
    """Put a joiner after every 30 combining marks of a run, counted in the canonical decomposition."""
    if not _SAMPLE_OF_RUN.search(text[::3]):  # three times faster, and almost all texts return here
        return text
    parts: list[str] = []
    end = 0
    for run in _POSSIBLE_RUN.finditer(text):
        start = max(run.start() - 1, end)  # the decomposition of the letter before the run may end with marks
        parts += [text[end:start], _bound_run(text[start : run.end()])]
        end = run.end()
    return "".join([*parts, text[end:]]) if parts else text


def _bound_run(text: str) -> str:
    """Put joiners into a text of marks, which may begin with the letter before them."""
    characters, count = [], 0
    for character in text:
        classes = [*map(unicodedata.combining, unicodedata.normalize("NFD", character))]
        if all(classes):
            if count + len(classes) > MAX_MARKS:
                characters.append(_GRAPHEME_JOINER)
                count = 0
            count += len(classes)
        else:
            last_starter = max(i for i, combining_class in enumerate(classes) if not combining_class)
            count = len(classes) - 1 - last_starter
        characters.append(character)
    return "".join(characters)


def replace_surrogates(text: str) -> str:
    """Replace every surrogate by U+FFFD."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def escape(text: str) -> str:
    """Return the text with each "▁" escaped. `unescape` restores the text."""
    if text.isascii():
        return text
    return _TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


def unescape(text: str) -> str:
    """Undo `escape`. An escape prefix without a second character, which a model can generate, stays."""
    if _ESCAPED_BAR not in text and _ESCAPE_PREFIX not in text:  # faster than a regular expression
        return text
    return _ESCAPED.sub(lambda match: _ORIGINALS[match[0]], text)


def unescaped_offsets(text: str) -> list[int]:
    """Return for each offset in an escaped text, including its end, the offset in the unescaped text."""
    removed = [0] * (len(text) + 1)  # the number of characters that are removed just before each offset
    for match in _ESCAPED.finditer(text):
        if len(match[0]) == 2:
            removed[match.start() + 1] = 1
    return [offset - total for offset, total in enumerate(itertools.accumulate(removed))]


_ESCAPES = {
    "▁": _ESCAPED_BAR,
    _ESCAPED_BAR: _ESCAPE_PREFIX + _ESCAPED_BAR,
    _ESCAPE_PREFIX: _ESCAPE_PREFIX + _ESCAPE_PREFIX,
}
_ORIGINALS = {escaped: original for original, escaped in _ESCAPES.items()}
