"""Messages in JSON: i18n files, Flutter's ARB, and Xcode's string catalogues.

Strings are replaced in place. The order, the indentation and the rest of the file do not change.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from jumok.documents.document import DocumentFormat
from jumok.documents.message import EncodedMessage, Message, has_same_placeholders
from jumok.documents.text_document import CompositeTemplate, decode_text, read_text
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.text_document import TextEncoding, TextTemplate

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++')


class _JsonValue(NamedTuple):
    """A string or an object of a JSON file: its path of keys, and its span. Inside a list, the key is ""."""

    path: tuple[str, ...]
    start: int
    end: int


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"This is not JSON: {error.msg}, line {error.lineno:,}, column {error.colno:,}."
        ) from None
    except ValueError:  # Python reads integers of up to 4,300 digits
        raise DataError(
            "A number in this JSON has thousands of digits. Remove it, or write it as a string."
        ) from None
    except RecursionError:
        raise DataError("This JSON has too many objects inside each other.") from None


def _scan(text: str) -> Iterator[_JsonValue]:
    """Yield string values and objects in file order. The span of an object covers only its "{"."""
    path: list[str] = []
    in_objects: list[bool] = []  # for each open bracket, whether it begins an object and not a list
    expects_key = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            if token == "{":
                yield _JsonValue(tuple(path), match.start(), match.end())
            in_objects.append(token == "{")
            path.append("")
            expects_key = token == "{"
        elif token in "}]":
            in_objects.pop()
            path.pop()
        elif token == ",":
            expects_key = in_objects[-1]
        elif expects_key:
            path[-1] = json.loads(token)
            expects_key = False
        elif token.startswith('"'):
            yield _JsonValue(tuple(path), match.start(), match.end())


def _encode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parse(text: str, *, skips_metadata: bool = False) -> CompositeTemplate:
    _load(text)
    parts: list[str | TextTemplate] = []
    position = 0
    for path, start, end in _scan(text):
        if text[start] != '"' or (skips_metadata and any(key.startswith("@") for key in path)):
            continue
        raw = text[start:end]
        parts += [text[position:start], EncodedMessage(raw, Message(json.loads(raw)), _encode)]
        position = end
    return CompositeTemplate([*parts, text[position:]])


def _set_locale(text: str, language: str, _source_language: str) -> str:
    return re.sub(r'("@@locale"\s*:\s*)"[^"]*"', rf'\g<1>"{language}"', text, count=1)


JSON = DocumentFormat(
    (".json",), "application/json", partial(read_text, parse=_parse), syntax_characters=b'",{['
)
ARB = DocumentFormat(
    (".arb",),
    "application/json",
    partial(read_text, parse=partial(_parse, skips_metadata=True), set_language=_set_locale),
    syntax_characters=b'",{[',
)


# --- String catalogues --------------------------------------------------------------------------------------


_STATE = ("stringUnit", "state")
_VALUE = ("stringUnit", "value")


class _EmptyUnit(NamedTuple):
    """A localisation with an empty text that is marked "new": the spans of its state and its text."""

    state: tuple[int, int]
    value: tuple[int, int]


class _CatalogueEntry(NamedTuple):
    """A string of a catalogue, and the position at which its localisation is inserted.

    The position is the start of a JSON object, just after the "{".
    """

    message: Message
    languages: frozenset[str]
    """The languages that have a localisation."""
    position: int
    is_localizations: bool
    """Whether this object is the value of "localizations". If not, the object is the string itself, which has
    no key "localizations" yet."""
    is_empty: bool
    """Whether this object is empty. If not, a comma is inserted after the localisation."""
    empty_units: Mapping[str, _EmptyUnit]
    """The localisations that have no text yet, by language."""


@dataclass(frozen=True, slots=True)
class StringCatalogue:
    """An .xcstrings file.

    Each string without a localisation in the target language gets one, except a string whose source has
    variations, such as plural forms. A localisation that is empty and has the state "new" is filled in.
    """

    text: str
    encoding: TextEncoding
    entries: list[_CatalogueEntry]
    notes: Sequence[str] = ()

    @property
    def segments(self) -> list[str]:
        return [text for entry in self.entries for text in entry.message.segments]

    def write(
        self, translations: Sequence[SegmentTranslation], language: str = "", source_language: str = ""
    ) -> bytes:
        pieces = []
        position = start = 0
        for entry in self.entries:
            end = start + len(entry.message.segments)
            filled = entry.message.fill(translations[start:end])
            start = end
            if language and language not in entry.languages:
                pieces += [self.text[position : entry.position], _localisation(entry, filled, language)]
                position = entry.position
            elif unit := entry.empty_units.get(language):
                replacements = {unit.state: _state_of(entry, filled), unit.value: filled}
                for span in sorted(replacements):
                    pieces += [self.text[position : span[0]], _encode(replacements[span])]
                    position = span[1]
        return self.encoding.encode("".join([*pieces, self.text[position:]]))


def _state_of(entry: _CatalogueEntry, filled: str) -> str:
    return "translated" if has_same_placeholders(entry.message.text, filled) else "needs_review"


def _localisation(entry: _CatalogueEntry, filled: str, language: str) -> str:
    """Return the JSON to insert, indented as Xcode indents it."""
    unit = {"stringUnit": {"state": _state_of(entry, filled), "value": filled}}
    localisation = {language: unit} if entry.is_localizations else {"localizations": {language: unit}}
    lines = json.dumps(localisation, ensure_ascii=False, indent=2, separators=(",", " : ")).split("\n")[1:-1]
    indent = " " * (6 if entry.is_localizations else 4)
    inserted = "".join(f"\n{indent}{line}" for line in lines)
    return inserted + ("" if entry.is_empty else ",")


def _read_catalogue(data: bytes) -> StringCatalogue:
    text, encoding = decode_text(data)
    content = _load(text)
    if not isinstance(content, dict) or not isinstance(content.get("strings"), dict):
        raise DataError('This is no string catalogue: it has no object "strings".')
    source_language = str(content.get("sourceLanguage", "en"))
    spans = {value.path: (value.start, value.end) for value in _scan(text)}
    entries = []
    for key, string in content["strings"].items():
        if not isinstance(string, dict) or string.get("shouldTranslate") is False:
            continue
        stored = string.get("localizations")
        localizations = stored if isinstance(stored, dict) else {}
        if _has_variations(localizations.get(source_language)):
            continue
        message = Message(_source_text(localizations.get(source_language), key))
        path = ("strings", key) if stored is None else ("strings", key, "localizations")
        if message.segments and path in spans and text[spans[path][0]] == "{":
            is_empty = not (string if stored is None else localizations)
            units = {
                language: _EmptyUnit(spans[*path, language, *_STATE], spans[*path, language, *_VALUE])
                for language, localization in localizations.items()
                if _is_empty_unit(localization)
            }
            entries.append(
                _CatalogueEntry(
                    message, frozenset(localizations), spans[path][1], stored is not None, is_empty, units
                )
            )
    return StringCatalogue(text, encoding, sorted(entries, key=lambda entry: entry.position))


def _is_empty_unit(localization: Any) -> bool:
    """Return whether a localisation has the state "new" and an empty text, as Xcode adds it."""
    unit = localization.get("stringUnit") if isinstance(localization, dict) else None
    return isinstance(unit, dict) and unit.get("state") == "new" and unit.get("value") == ""


def _has_variations(localization: Any) -> bool:
    """Return whether a string has forms per number or device, which one translation cannot replace."""
    return isinstance(localization, dict) and "variations" in localization


def _source_text(localization: Any, key: str) -> str:
    """Return the text in the source language. If the catalogue does not contain it, the key is the text."""
    unit = localization.get("stringUnit") if isinstance(localization, dict) else None
    value = unit.get("value") if isinstance(unit, dict) else None
    return value if isinstance(value, str) else key


XCSTRINGS = DocumentFormat((".xcstrings",), "application/json", _read_catalogue, syntax_characters=b'",{[')
