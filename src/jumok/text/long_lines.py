"""Lines that are too long for a model, cut where it hurts least.

First at the ends of sentences, then at commas and the like, then at spaces, and where there are none,
anywhere. No character is lost: the parts are slices of the line, and only the spaces between them are left
out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Count = Callable[[str], int]

__all__ = ["join_parts", "split_line"]

# Where a part may end, in the order in which they are tried. Full-width marks need no space after them.
_BOUNDARIES = (
    re.compile(r"[.?!…]+[\"'”’»)\]]*\s+|[。！？｡]+[”’」』）]*\s*"),
    re.compile(r"[,;:–—]+[\"'”’»)\]]*\s+|[、，；：]+\s*"),
    re.compile(r"\s+"),
)
_SENTENCES = 0

# A sentence with fewer pieces than this is joined to the next: it may be no more than "Dr.".
_FEW_PIECES = 6

# Written without spaces between words.
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my", "yue", "wuu", "bo", "dz"})


def split_line(line: str, count: Count, longest: int) -> list[str]:
    """The parts of a line, each of at most `longest` pieces as `count` counts them."""
    return _split(line.strip(), count, longest, level=_SENTENCES)


def join_parts(parts: list[str], language: str) -> str:
    """The translations of parts as one line of the target language."""
    if len(parts) == 1:
        return parts[0]
    spaced = re.split(r"[-_]", language.lower())[0] not in _UNSPACED_LANGUAGES
    return (" " if spaced else "").join(part for part in parts if part)


def _split(text: str, count: Count, longest: int, *, level: int) -> list[str]:
    if count(text) <= longest or len(text) < 2:
        return [text]
    if level == len(_BOUNDARIES):
        middle = _middle(text)
        halves = (text[:middle], text[middle:])
        return [part for half in halves for part in _split(half, count, longest, level=level)]
    pieces = _cut(text, _BOUNDARIES[level])
    room = _FEW_PIECES if level == _SENTENCES else longest
    parts: list[str] = []
    for part in _pack(text, pieces, count, room=room, longest=longest):
        parts.extend(_split(part, count, longest, level=level + 1))
    return parts


def _cut(text: str, boundary: re.Pattern[str]) -> list[tuple[int, int]]:
    """The stretches between boundaries; what marks a boundary belongs to the stretch before it."""
    ends = [match.end() for match in boundary.finditer(text) if match.end() < len(text)]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))


def _pack(text: str, stretches: list[tuple[int, int]], count: Count, *, room: int, longest: int) -> list[str]:
    """Put neighbours together: always while they have fewer than `room` pieces, never above `longest`."""
    parts: list[str] = []
    begin, end, size = 0, 0, 0
    for start, stop in stretches:
        more = count(text[start:stop].strip())
        if size and (size >= room or size + more > longest):
            parts.append(text[begin:end].strip())
            begin, size = start, 0
        end, size = stop, size + more
    return [*parts, text[begin:end].strip()]


def _middle(text: str) -> int:
    """A place near the middle where no accent is torn from its letter."""
    middle = len(text) // 2
    while middle > 1 and unicodedata.category(text[middle]).startswith("M"):
        middle -= 1
    return middle
