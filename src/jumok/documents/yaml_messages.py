"""Messages in YAML: keys, text, lists and blocks of text, read line by line.

The text of values is replaced. The key at the top is also replaced if it is the source language, as in Rails.
Nothing else changes. Some syntax cannot be read line by line: anchors, tags, lists and mappings in brackets,
and text over several lines without | or >. A file with such syntax is refused, and the error names the line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.languages import is_same_language
from jumok.documents.message import EncodedMessage, Message
from jumok.documents.text_document import CompositeTemplate, line_end_of, read_text, split_lines
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.text_document import TextTemplate

_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+"' + r"|'(?:[^']++|'')*+'")
_KEY_END = re.compile(r":(?:\s|$)")
_COMMENT = re.compile(r"\s#")
_BLOCK = re.compile(r"[|>][+-]?\s*(?:\s#.*)?")
_NOT_TEXT = re.compile(
    r"~|null|true|false|yes|no|on|off|[-+]?[\d.,_:]+(?:[eE][-+]?\d+)?|0x[\da-fA-F]+|\[\]|\{\}"
    r"|\d{4}-\d\d?-\d\d?(?:(?:T|\s+)\d\d?:\d\d:\d\d[\d.]*\s*(?:Z|[-+]\d[\d:]*)?)?"  # a date, or date and time
    r"|:\w+",  # a symbol of Ruby
    re.IGNORECASE,
)
_UNSUPPORTED_STARTS = tuple("&*!{[?%@`")
# Matches texts that YAML reads as they are, without quotation marks.
_SAFE_PLAIN = re.compile(r"[^\W\d_](?:[^:#\n]|:(?=\S)|(?<=\S)#)*(?<![\s:])")


def _parse(text: str) -> CompositeTemplate:
    lines = split_lines(text.replace("\r\n", "\n"))
    parts: list[str | TextTemplate] = []
    index = 0
    max_indent = len(text)  # of the next line: if it is deeper, it continues the text of this line
    while index < len(lines):
        line = lines[index]
        index += 1
        content = line.strip()
        if not content or content.startswith("#") or content in ("---", "..."):
            parts.append(f"{line}\n")
            continue
        if len(line) - len(line.lstrip(" ")) > max_indent:
            raise _line_error(line, index)
        before, value = _split_line(line, index)
        parts.append(before)
        max_indent = len(text) if not value or value.startswith("#") else _indent_of_node(before)
        if _BLOCK.fullmatch(value):
            end = _end_of_block(lines, index, _indent_of_node(before))
            parts.append(f"{value}\n")
            if index < end:
                parts += [_Block.read(lines[index:end], folded=value[0] == ">"), "\n"]
            index = end
        else:
            parts += [*_read_value(value, index), "\n"]
    if not text.endswith("\n") and parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].removesuffix("\n")
    return CompositeTemplate(parts, line_end_of(text))


def _split_line(line: str, number: int) -> tuple[str, str]:
    """Split a line into the text before its value, and the value."""
    items = re.match(r" *(- +)*-?", line)
    start = items.end() if items else 0
    if line[start - 1 : start] == "-" and line[start : start + 1].strip():  # text that begins with a dash
        start -= 1
    rest = line[start:]
    quoted = _QUOTED.match(rest)
    key_end = _KEY_END.match(rest, quoted.end()) if quoted else _KEY_END.search(rest)
    comment = _COMMENT.search(rest)
    if key_end and not quoted and comment and comment.start() < key_end.start():
        key_end = None
    if key_end and rest.startswith(_UNSUPPORTED_STARTS):
        raise _line_error(line, number)
    is_item = "-" in line[:start]
    if (key_end is None and not is_item) or line.lstrip(" ").startswith("\t"):
        raise _line_error(line, number)
    start += key_end.end() if key_end else 0
    start += len(line[start:]) - len(line[start:].lstrip())
    return line[:start], line[start:]


def _read_value(value: str, number: int) -> list[str | TextTemplate]:
    if not value or value.startswith("#"):
        return [value]
    quoted = _QUOTED.match(value)
    if quoted:
        text, rest = quoted[0], value[quoted.end() :]
        if rest.strip() and not re.match(r"\s+#", rest):
            raise _line_error(value, number)
        if value[0] == "'":
            return [EncodedMessage(text, Message(text[1:-1].replace("''", "'")), _encode_single), rest]
        if not _is_json(text):
            raise _line_error(value, number)
        return [EncodedMessage(text, Message(json.loads(text)), _encode_double), rest]
    comment = _COMMENT.search(value)
    text = (value[: comment.start()] if comment else value).rstrip()
    if _NOT_TEXT.fullmatch(text):
        return [value]
    if text.startswith((*_UNSUPPORTED_STARTS, '"', "'", "|", ">")) or _KEY_END.search(text):
        raise _line_error(value, number)
    return [EncodedMessage(text, Message(text), _encode_plain), value[len(text) :]]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:  # an escape that YAML has and JSON does not have
        return False
    return True


def _line_error(line: str, number: int) -> DataError:
    return DataError(
        f"Line {number:,} is not understood: {line.strip()[:60]!r}. Keys with one value per line, lists and "
        "blocks of text after | or > are read; anchors, tags, brackets and text that continues on the next "
        "line are not."
    )


def _indent_of_node(before: str) -> int:
    """Return the indentation of the key of a block, or of the dash if the block is a list item."""
    items = re.match(r" *(?:- +)*", before)
    marks = items[0] if items else ""
    return len(marks) if before[len(marks) :].strip() else len(marks.rstrip()) - 1


def _end_of_block(lines: Sequence[str], start: int, indent: int) -> int:
    """Return the index of the first line after a block of text.

    The lines of a block are indented deeper than `indent`. Empty lines at its end do not belong to the block.
    """
    end = start
    for index in range(start, len(lines)):
        stripped = lines[index].strip()
        if stripped and len(lines[index]) - len(lines[index].lstrip(" ")) <= indent:
            break
        if stripped:
            end = index + 1
    return end


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of a block of text, without the line end of the last line."""

    raw: str
    indent: str
    message: Message

    @classmethod
    def read(cls, lines: Sequence[str], *, folded: bool) -> _Block:
        indents = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
        indent = " " * min(indents, default=0)
        text = "\n".join(line.removeprefix(indent) for line in lines)
        if folded:  # a single line break is a space
            text = re.sub(r"(?<=\S)\n(?=\S)", " ", text)
        return cls("\n".join(lines), indent, Message(text))

    @property
    def segments(self) -> list[str]:
        return self.message.segments

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        text = self.message.fill(translations)
        if text == self.message.text:
            return self.raw
        return "\n".join(f"{self.indent if line.strip() else ''}{line}" for line in text.split("\n"))


def _encode_double(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _encode_single(text: str) -> str:
    return _encode_double(text) if "\n" in text else "'" + text.replace("'", "''") + "'"


def _encode_plain(text: str) -> str:
    is_safe = _SAFE_PLAIN.fullmatch(text) and not _NOT_TEXT.fullmatch(text)
    return text if is_safe else _encode_double(text)


def _set_language(text: str, language: str, source_language: str) -> str:
    """Replace the key at the top if it is the only one and names the source language, as in Rails' en.yml."""
    keys = re.findall(r"^([^\s#'\"-][^:\n]*):", text, re.MULTILINE)
    if len(keys) != 1 or not is_same_language(keys[0], source_language):
        return text
    return re.sub(rf"^{re.escape(keys[0])}:", f"{language}:", text, count=1, flags=re.MULTILINE)


YAML = DocumentFormat(
    (".yml", ".yaml"),
    "application/yaml",
    partial(read_text, parse=_parse, set_language=_set_language),
    syntax_characters=b"\n",
)
