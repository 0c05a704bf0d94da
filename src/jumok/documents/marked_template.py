"""Text in which marks stand for the segments, until the file is written.

Marks can be nested: a footnote, or an image with a text box, is an atomic element of one segment and contains
other segments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jumok.documents.segment import is_unchanged, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.segment import Segment, Tag

    Render = Callable[[Sequence[str | Tag]], str]

_MARK = re.compile("\0([0-9]+)\0")  # the text around the marks contains no NUL


@dataclass(frozen=True, slots=True)
class MarkedSegment:
    """A segment for which a mark stands, and the function that writes the segment in its format."""

    segment: Segment
    render: Render
    before: str = ""
    after: str = ""
    """Markup that stays before and after the words, whatever their order."""
    fills_target: bool = False
    """Whether the translation is written beside the source (XLIFF), even if it equals the source."""


class MarkedTemplate:
    """Text with marks, and the segments that replace them. A reader adds segments and sets `markup`."""

    def __init__(self) -> None:
        self.markup = ""
        self._marked_segments: list[MarkedSegment] = []

    def add(self, marked_segment: MarkedSegment) -> str:
        """Add a segment and return its mark, which stands for the segment in the markup."""
        self._marked_segments.append(marked_segment)
        return f"\0{len(self._marked_segments) - 1}\0"

    @property
    def segments(self) -> list[str]:
        return [marked_segment.segment.source for marked_segment in self._marked_segments]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        def expand(match: re.Match[str]) -> str:
            index = int(match[1])
            return _MARK.sub(expand, _write_segment(self._marked_segments[index], translations[index]))

        return _MARK.sub(expand, self.markup)


def _write_segment(marked_segment: MarkedSegment, translation: SegmentTranslation) -> str:
    segment = marked_segment.segment
    if "\0" in translation.text:  # a model can produce a NUL, which would look like a mark
        translation = replace(translation, text=translation.text.replace("\0", " "))
    if is_unchanged(segment, translation) and segment.raw is not None and not marked_segment.fills_target:
        return segment.raw
    words = marked_segment.render(place(segment, translation))
    return marked_segment.before + words + marked_segment.after


def render_tags(pieces: Iterable[str | Tag], encode: Callable[[str], str] = str) -> str:
    """Concatenate text and tags. `encode` is applied to the text and not to the tags."""
    return "".join(
        encode(piece)
        if isinstance(piece, str)
        else piece.element.opening
        if piece.begins
        else piece.element.closing
        for piece in pieces
    )
