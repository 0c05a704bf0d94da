"""gettext catalogues (.po): entries without a translation are filled in. All other entries are copied.

In the header, the charset becomes UTF-8. The language is set if the header names no language or the source
language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.languages import is_same_language
from jumok.documents.message import Message, has_same_placeholders
from jumok.documents.text_document import CompositeTemplate, declare_utf8, line_end_of, read_text, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.text_document import TextTemplate

_HEADER = re.compile(r'^msgid ""\s*\nmsgstr\s(?:[ \t]*+"[^\n]*+\n?+)++', re.MULTILINE)
_LANGUAGE = re.compile(r'((?:"|\\n)Language:)[ \t]*+([\w@.-]*+)[ \t]*+(?=\\n|")')
_STRING_LINE = re.compile(r'\s*(?:(msg\w+(?:\[\d+\])?)\s+)?"(.*)"\s*$')


@dataclass(frozen=True, slots=True)
class UntranslatedEntry:
    """An entry without a translation. Its comments and msgid lines are copied unchanged."""

    comments: str
    msgid_lines: str  # the lines of msgctxt, msgid and msgid_plural
    messages: list[Message]  # the texts to translate: the singular, the plural or both
    msgstr_keywords: list[str]  # msgstr, or msgstr[0], msgstr[1], …

    @property
    def segments(self) -> list[str]:
        return [text for message in self.messages for text in message.segments]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        remaining = iter(translations)
        texts = [message.fill([next(remaining) for _ in message.segments]) for message in self.messages]
        comments = self.comments
        if not all(
            has_same_placeholders(message.text, text)
            for message, text in zip(self.messages, texts, strict=True)
        ):
            comments += "#, fuzzy\n"  # changed placeholders may crash the program: a person must check it
        # If the entry has several forms, the first form gets the translation of the singular, and every other
        # form gets the translation of the plural.
        filled = [
            f'{keyword} "{_escape(texts[min(index, len(texts) - 1)])}"\n'
            for index, keyword in enumerate(self.msgstr_keywords)
        ]
        return (comments + self.msgid_lines + "".join(filled)).removesuffix("\n")


def _parse(text: str) -> CompositeTemplate:
    parts: list[str | TextTemplate] = []
    for entry in _split_entries(text.replace("\r\n", "\n")):
        untranslated = _read_untranslated(entry)
        if untranslated is None:
            parts.append(_declare_utf8_in_header(entry))
        else:
            parts.extend([untranslated, "\n" * entry.endswith("\n")])
    return CompositeTemplate(parts, line_end_of(text))


def _declare_utf8_in_header(entry: str) -> str:
    """Return the header with the charset UTF-8. Any other entry is returned unchanged.

    A translated entry may contain a charset too: msgid "Content-Type: text/html; charset=latin1".
    """
    is_header = _HEADER.search(entry) is not None
    return declare_utf8(entry, r"(?:\"|\\n)Content-Type:[^\"\n]*?") if is_header else entry


def _split_entries(text: str) -> Iterator[str]:
    """Yield entries and empty lines. An entry ends at an empty line, or where the next entry starts."""
    entry: list[str] = []
    has_msgstr = False
    for line in StringIO(text):
        stripped = line.strip()
        if not stripped or (has_msgstr and stripped.startswith(("#", "msgctxt", "msgid"))):
            yield "".join(entry)
            entry, has_msgstr = [], False
        entry.append(line)
        if not stripped:
            yield entry.pop()
        has_msgstr = has_msgstr or stripped.startswith("msgstr")
    yield "".join(entry)


def _read_untranslated(entry: str) -> UntranslatedEntry | None:
    """Return the parsed entry, or None if it is no entry, or if any of its forms has a translation."""
    comments, msgid_lines = [], []
    strings: dict[str, list[str]] = {}
    keyword = ""
    for line in split_lines(entry):
        if line.startswith("#"):
            comments.append(line)
            continue
        match = _STRING_LINE.match(line)
        if not match or not (match[1] or keyword):
            return None
        keyword = match[1] or keyword
        strings.setdefault(keyword, []).append(match[2])
        if not keyword.startswith("msgstr"):
            msgid_lines.append(line)
    values = {keyword: "".join(parts) for keyword, parts in strings.items()}
    msgstr_keywords = [keyword for keyword in values if keyword.startswith("msgstr")]
    if not values.get("msgid") or not msgstr_keywords or any(values[keyword] for keyword in msgstr_keywords):
        return None
    sources = [_unescape(values[keyword]) for keyword in ("msgid", "msgid_plural") if keyword in values]
    if len(msgstr_keywords) == 1:
        # If there is a plural, the language has one form for all numbers, so only the plural is translated.
        sources = sources[-1:]
    return UntranslatedEntry(
        "".join(f"{line}\n" for line in comments),
        "\n".join(msgid_lines) + "\n",
        [Message(source) for source in sources],
        msgstr_keywords,
    )


def _unescape(text: str) -> str:
    characters = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: characters.get(match[1], match[1]), text)


def _escape(text: str) -> str:
    escapes = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    return "".join(escapes.get(character, character) for character in text)


def _set_language(text: str, language: str, source_language: str) -> str:
    """Set the language in the header, if the header names no language or the source language."""

    def fill(field: re.Match[str]) -> str:
        has_other_language = bool(field[2]) and not is_same_language(field[2], source_language)
        return field[0] if has_other_language else f"{field[1]} {language}"

    return _HEADER.sub(lambda header: _LANGUAGE.sub(fill, header[0], count=1), text, count=1)


PO = DocumentFormat(
    (".po",),
    "text/x-gettext-translation; charset=utf-8",
    partial(read_text, parse=_parse, set_language=_set_language),
    syntax_characters=b"\n",
)
