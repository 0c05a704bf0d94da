"""Files to be translated: plain text, subtitles (.srt), HTML and gettext catalogues (.po).

Each becomes a document: the texts in it, and `write`, which gives the file back with those exchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Protocol

from jumok.errors import DataError
from jumok.serve.faults import Fault
from jumok.serve.limits import Limits
from jumok.serve.markup import Markup, read_markup
from jumok.serve.subtitles import read_cue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jumok.serve.translating import SpanLink

__all__ = ["FILE_TYPES", "Document", "read_document"]

FILE_TYPES = {
    ".txt": "text/plain; charset=utf-8",
    ".srt": "application/x-subrip; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".po": "text/x-gettext-translation; charset=utf-8",
}

_MARKS = {".txt": b"", ".srt": b"<{&\r\n", ".html": b"<&", ".po": b"\n"}
"""What makes reading a file of each type expensive, character by character."""
_BYTE_ORDER_MARK = "\ufeff"
_OTHER_ENCODING = r"charset\s*=\s*[\"']?)(?!utf-8\b)[\w.:-]+"
_IN_PAGE = re.compile(r"(<meta\b[^<>]*?" + _OTHER_ENCODING, re.IGNORECASE)
_IN_CATALOGUE = re.compile(r"(\"Content-Type:[^\"\n]*?" + _OTHER_ENCODING, re.IGNORECASE)
_TIME = re.compile(r"^\s*\d+:\d\d:\d\d[,.]\d+\s+-->")
_PLACEHOLDER = re.compile(r"%(?:\(\w++\))?+[-#0 +]*+\d*+(?:\.\d++)?+[a-zA-Z%]|\{[^{}]*+\}")


class Document(Protocol):
    """A file with texts in it."""

    @property
    def texts(self) -> list[str]: ...

    def write(self, translated: Sequence[str], links: Sequence[Sequence[SpanLink]]) -> str: ...


def read_document(name: str, data: bytes, *, most_marks: int = Limits.file_marks) -> tuple[str, Document]:
    """The type of a file, from the end of its name, and what is in it."""
    ending = re.split(r"[\\/]", name.lower())[-1].rpartition(".")[2] if "." in name else "txt"
    suffix = {**{known: known for known in FILE_TYPES}, ".htm": ".html"}.get(f".{ending}", "")
    if not suffix:
        raise DataError(f"Files of this type are not translated. Known types: {', '.join(FILE_TYPES)}.")
    marks = sum(map(data.count, _MARKS[suffix]))
    if marks > most_marks:
        raise Fault(
            413,
            f"The file has {marks:,} tags, entities or lines; it may have {most_marks:,}. Send it in parts.",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"The file is not UTF-8 (byte {error.start + 1:,}). Convert it and send it again."
        ) from None
    readers: dict[str, Callable[[str], Document]] = {
        ".txt": PlainText,
        ".srt": read_subtitles,
        ".html": read_page,
        ".po": read_catalogue,
    }
    document = readers[suffix](text)
    if data.startswith(_BYTE_ORDER_MARK.encode()):
        document = Composed([_BYTE_ORDER_MARK, document])
    return suffix, document


@dataclass(frozen=True, slots=True)
class PlainText:
    """One text, lines and all."""

    text: str

    @property
    def texts(self) -> list[str]:
        return [self.text]

    def write(self, translated: Sequence[str], links: Sequence[Sequence[SpanLink]]) -> str:
        return translated[0]


def read_page(text: str) -> Markup:
    """What comes back is UTF-8, whatever the page says of itself."""
    return read_markup(_IN_PAGE.sub(r"\1UTF-8", text))


# --- Subtitles ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Composed:
    """Documents within a file, with what stands between them verbatim."""

    parts: list[str | Document]
    line_end: str = "\n"
    """How lines of the file end; within the parts they end in a line feed."""

    @property
    def texts(self) -> list[str]:
        return [text for part in self.parts if not isinstance(part, str) for text in part.texts]

    def write(self, translated: Sequence[str], links: Sequence[Sequence[SpanLink]]) -> str:
        written, place = [], 0
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
            else:
                end = place + len(part.texts)
                written.append(part.write(translated[place:end], links[place:end]))
                place = end
        return "".join(written).replace("\n", self.line_end)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def read_subtitles(text: str) -> Composed:
    """Cues are the lines below a time, up to an empty one."""
    parts: list[str | Document] = []
    cue: list[str] | None = None
    for line in [*_lines(text.replace("\r\n", "\n").replace("\r", "\n")), ""]:
        if cue is not None and line.strip():
            cue.append(line)
            continue
        if cue:
            parts.extend(part for said in read_cue("\n".join(cue)) for part in (said, "\n"))
        cue = [] if _TIME.match(line) else None
        parts.append(line + "\n")
    parts.pop()  # the line that was added to end the last cue
    return Composed(parts, _line_end(text))


def _lines(text: str) -> list[str]:
    """What "\\n" ends, and nothing else that Unicode calls a line."""
    return [line.removesuffix("\n") for line in StringIO(text)]


# --- Catalogues ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """An entry that has no translation yet: its comments, its keys as they stand, and what to translate."""

    head: str
    keys: str
    sources: list[str]
    slots: list[str]  # msgstr, or msgstr[0], msgstr[1], …

    @property
    def texts(self) -> list[str]:
        return self.sources

    def write(self, translated: Sequence[str], links: Sequence[Sequence[SpanLink]]) -> str:
        head = self.head
        if any(
            sorted(_PLACEHOLDER.findall(source)) != sorted(_PLACEHOLDER.findall(target))
            for source, target in zip(self.sources, translated, strict=True)
        ):
            head += "#, fuzzy\n"  # a lost placeholder would crash the program: a person must look
        filled = [
            f'{slot} "{_quote(translated[min(number, len(translated) - 1)])}"\n'
            for number, slot in enumerate(self.slots)
        ]
        return (head + self.keys + "".join(filled)).removesuffix("\n")


def read_catalogue(text: str) -> Composed:
    """Entries that are translated, and the header, stay as they are."""
    parts: list[str | Document] = []
    for entry in _entries(text.replace("\r\n", "\n")):
        message = _message(entry)
        rest = _IN_CATALOGUE.sub(r"\1UTF-8", entry)  # of the header
        parts.extend([message, "\n" * entry.endswith("\n")] if message else [rest])
    return Composed(parts, _line_end(text))


def _entries(text: str) -> Iterator[str]:
    """An entry ends at an empty line, or where another begins: nothing else need stand between them."""
    entry: list[str] = []
    filled = False  # its msgstr has been seen
    for line in StringIO(text):
        begun = line.strip()
        if not begun or (filled and begun.startswith(("#", "msgctxt", "msgid"))):
            yield "".join(entry)
            entry, filled = [], False
        entry.append(line)
        if not begun:
            yield entry.pop()
        filled = filled or begun.startswith("msgstr")
    yield "".join(entry)


def _message(block: str) -> Message | None:
    head, keys = [], []
    written: dict[str, list[str]] = {}
    name = ""
    for line in _lines(block):
        if line.startswith("#"):
            head.append(line)
            continue
        match = re.match(r'\s*(?:(msg\w+(?:\[\d+\])?)\s+)?"(.*)"\s*$', line)
        if not match or not (match[1] or name):
            return None
        name = match[1] or name
        written.setdefault(name, []).append(match[2])
        if not name.startswith("msgstr"):
            keys.append(line)
    values = {name: "".join(pieces) for name, pieces in written.items()}
    slots = [name for name in values if name.startswith("msgstr")]
    if not values.get("msgid") or not slots or any(values[slot] for slot in slots):
        return None
    sources = [_unquote(values[name]) for name in ("msgid", "msgid_plural") if name in values]
    if len(slots) == 1:  # a language with one form says it of any number, and so as the plural does
        sources = sources[-1:]
    return Message("".join(f"{line}\n" for line in head), "\n".join(keys) + "\n", sources, slots)


def _unquote(text: str) -> str:
    names = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: names.get(match[1], match[1]), text)


def _quote(text: str) -> str:
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    return "".join(names.get(character, character) for character in text)
