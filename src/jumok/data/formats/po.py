"""gettext catalogues (.po): msgid and msgstr.

Fuzzy, obsolete and untranslated entries are dropped and counted. In an entry with plural forms, the singular
is paired with the first form of the translation, and the plural with each further form. If the translation
has a single form, as in Korean, this form is paired with the plural only.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from jumok.data.encodings import check_encoding
from jumok.data.formats.pair_file import PairFile, line_error, make_pair, refuse_columns, shorten
from jumok.data.input_files import InputFile, read_blocks
from jumok.data.lines import read_lines
from jumok.text.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import NumberedPair, ReadOptions

FUZZY, OBSOLETE, UNTRANSLATED = "fuzzy entry", "obsolete entry", "entry without a translation"
_STRING = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*)?"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_CHARSET = re.compile(rb"charset=([\w.:-]+)", re.IGNORECASE)


@dataclass
class _Entry:
    """An entry: the line of its first string, and its strings by keyword, such as `msgid` or `msgstr[0]`."""

    line: int = 0
    fuzzy: bool = False
    strings: dict[str, list[str]] = field(default_factory=dict)

    def text(self, keyword: str) -> str:
        escaped = "".join(self.strings.get(keyword, ()))
        return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), escaped)

    def pairs(self) -> Iterator[tuple[str, str]]:
        singular, plural = self.text("msgid"), self.text("msgid_plural")
        forms = [self.text(keyword) for keyword in self.strings if keyword.startswith("msgstr")]
        for number, form in enumerate(forms):
            if form.strip():
                yield (plural if plural and (number or len(forms) == 1) else singular), form


def open_po(file: InputFile, options: ReadOptions) -> PairFile:
    """Open a catalogue. Its header may name the encoding, the target language and the source language."""
    refuse_columns(file, options)
    file = _with_declared_encoding(file)
    header = next((entry for entry in _entries(file, Counter()) if not entry.text("msgid")), _Entry())
    fields = dict(line.split(":", 1) for line in header.text("msgstr").split("\n") if ":" in line)
    codes = [
        language.code if (language := find_language(fields.get(name, "").strip())) else ""
        for name in ("X-Source-Language", "Language")
    ]
    return PairFile(partial(_read, file), (codes[0], codes[1]))


def _with_declared_encoding(file: InputFile) -> InputFile:
    declared = _CHARSET.search(next(read_blocks(file), b"")[:4096])
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    # `CHARSET` is the placeholder that gettext writes until a translator fills in the encoding.
    if file.encoding or name in {"utf-8", "utf8", "charset", "ascii", "us-ascii"}:
        return file
    return InputFile(file.path, name=file.name, encoding=check_encoding(name), member=file.member)


def _read(file: InputFile, dropped: Counter[str]) -> Iterator[NumberedPair]:
    for entry in _entries(file, dropped):
        if not entry.text("msgid"):
            continue  # the header
        if entry.fuzzy:
            dropped[FUZZY] += 1
            continue
        pairs = list(entry.pairs())
        if not pairs:
            dropped[UNTRANSLATED] += 1
        for source, target in pairs:
            yield entry.line, make_pair(_one_line(source), _one_line(target), dropped)


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")) if "\n" in text else text


def _entries(file: InputFile, dropped: Counter[str]) -> Iterator[_Entry]:
    """Yield the entries. After its msgstr, an entry ends at a blank line, a comment, a msgctxt or a msgid."""
    entry, keyword = _Entry(), ""  # the keyword of the string that the next lines may continue
    for number, line in enumerate(read_lines(file, dropped), start=1):
        stripped = line.strip()
        if stripped.startswith("#~"):
            if stripped.removeprefix("#~").lstrip().startswith("msgid "):
                dropped[OBSOLETE] += 1
            if not entry.strings:  # a comment `#, fuzzy` before this line belongs to the obsolete entry
                entry.fuzzy = False
            continue
        match = _STRING.fullmatch(stripped)
        if keyword.startswith("msgstr") and (
            not stripped or stripped.startswith("#") or (match and match[1] in {"msgctxt", "msgid"})
        ):
            yield entry
            entry, keyword = _Entry(), ""
        if stripped.startswith("#"):
            entry.fuzzy = entry.fuzzy or (stripped.startswith("#,") and "fuzzy" in stripped)
        elif match and (match[1] or keyword):
            keyword = match[1] or keyword
            entry.line = entry.line or number
            entry.strings.setdefault(keyword, []).append(match[2])
        elif stripped:
            raise line_error(
                file, number, "is not part of a gettext catalogue", f"Received: {shorten(stripped)}"
            )
    if entry.strings:
        yield entry
