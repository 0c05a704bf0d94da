"""Subtitles of SubRip (.srt) and WebVTT (.vtt): a cue is the text below a line with times.

In WebVTT, an empty line ends a cue. Notes, styles and regions have no times, so they are copied. In SubRip,
which has no notes, styles or regions, an empty line does not end a cue. A cue ends at the next line with
times, or at the number above this line.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.subtitle_markup import read_cue
from jumok.documents.text_document import CompositeTemplate, line_end_of, read_text, split_lines
from jumok.errors import DataError

if TYPE_CHECKING:
    from jumok.documents.text_document import TextTemplate

_TIME = re.compile(r"^\s*(?:\d+:)?\d\d?:\d\d[,.]\d+\s*-->")


def _parse(text: str, *, is_vtt: bool = False) -> CompositeTemplate:
    parts: list[str | TextTemplate] = []
    cue: list[str] | None = None
    for line in [*split_lines(text.replace("\r\n", "\n").replace("\r", "\n")), ""]:
        is_time = _TIME.match(line) is not None
        if cue is not None and line.strip() and not is_time:
            cue.append(line)
            continue
        next_number = cue.pop() if cue and is_time and cue[-1].strip().isdecimal() else None
        if cue:
            parts.extend([read_cue("\n".join(cue), has_entities=is_vtt), "\n"])
        if next_number is not None:
            parts.append(f"{next_number}\n")
        cue = [] if is_time or (cue is not None and not is_vtt) else None
        parts.append(line + "\n")
    parts.pop()  # the empty line that was appended to end the last cue
    if not text.endswith(("\n", "\r")) and parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].removesuffix("\n")
    return CompositeTemplate(parts, line_end_of(text))


def _parse_vtt(text: str) -> CompositeTemplate:
    if not re.match(r"WEBVTT(?:\s|$)", text):
        raise DataError("This is no WebVTT file: its first line does not begin with WEBVTT.")
    return _parse(text, is_vtt=True)


def _set_vtt_language(text: str, language: str, _source_language: str) -> str:
    """Replace the language in the header, if the header names a language.

    The header ends at the first empty line.
    """
    header, blank, cues = text.partition("\r\n\r\n" if "\r\n" in text else "\n\n")
    return re.sub(r"(?m)^(Language:[ \t]*)[\w-]+", rf"\g<1>{language}", header) + blank + cues


SRT = DocumentFormat(
    (".srt",),
    "application/x-subrip; charset=utf-8",
    partial(read_text, parse=_parse),
    syntax_characters=b"<{&\r\n",
)
VTT = DocumentFormat(
    (".vtt",),
    "text/vtt; charset=utf-8",
    partial(read_text, parse=_parse_vtt, set_language=_set_vtt_language),
    syntax_characters=b"<{&\r\n",
)
