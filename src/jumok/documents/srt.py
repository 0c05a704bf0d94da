"""SubRip subtitles (.srt): cues are the lines below a time, up to an empty line."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.subtitle_markup import read_cue
from jumok.documents.text_document import CompositeTemplate, line_end_of, read_text, split_lines

if TYPE_CHECKING:
    from jumok.documents.text_document import TextTemplate

__all__ = ["SRT"]

_TIME = re.compile(r"^\s*\d+:\d\d:\d\d[,.]\d+\s+-->")


def _parse(text: str) -> CompositeTemplate:
    parts: list[str | TextTemplate] = []
    cue: list[str] | None = None
    for line in [*split_lines(text.replace("\r\n", "\n").replace("\r", "\n")), ""]:
        if cue is not None and line.strip():
            cue.append(line)
            continue
        if cue:
            parts.extend(part for utterance in read_cue("\n".join(cue)) for part in (utterance, "\n"))
        cue = [] if _TIME.match(line) else None
        parts.append(line + "\n")
    parts.pop()  # the empty line that was appended to end the last cue
    return CompositeTemplate(parts, line_end_of(text))


SRT = DocumentFormat(
    (".srt",),
    "application/x-subrip; charset=utf-8",
    partial(read_text, parse=_parse),
    syntax_characters=b"<{&\r\n",
)
