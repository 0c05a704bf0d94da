"""XLIFF 1.2 and 2.x: units with a source and a target.

    1.2  <trans-unit><source>Save</source><target state="translated">저장</target></trans-unit>
    2.x  <unit><segment state="final"><source>Save</source><target>저장</target></segment></unit>

Units without a target, units that are marked as not translated, and units with translate="no" are dropped and
counted. A unit inherits translate="no" from its group and its file. In 1.2, each segment
(`<mrk mtype="seg" mid="0">` in seg-source and target) is a separate pair, and segments without a translation
are left out. Proposals, notes and glossaries are not read.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from jumok.data.formats.inline_codes import INLINE_CODE, SegmentText
from jumok.data.formats.pair_file import PairFile, make_pair, refuse_columns
from jumok.data.formats.xml_events import read_xml
from jumok.errors import DataError
from jumok.text.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import NumberedPair, ReadOptions
    from jumok.data.input_files import InputFile

UNTRANSLATED, DO_NOT_TRANSLATE = "unit without a translation", "unit that is not to be translated"
OTHER_LANGUAGES = "unit in other languages"
_UNTRANSLATED_STATES = frozenset({"new", "needs-translation", "initial"})
_IGNORED_ELEMENTS = frozenset(
    {"alt-trans", "bin-unit", "glossary", "header", "matches", "note", "notes", "originalData"}
)
_UNITS = frozenset({"trans-unit", "segment"})  # elements that become one `_Unit`, in 1.2 and in 2.x
_SIDES = frozenset({"source", "seg-source", "target"})


class _Unit(NamedTuple):
    line: int
    languages: tuple[str, str]
    pairs: list[tuple[str, str]]
    code_count: int
    drop_reason: str  # why there are no pairs, "" if there are


def open_xliff(file: InputFile, options: ReadOptions) -> PairFile:
    """Open an XLIFF file; its languages are those of its first unit."""
    refuse_columns(file, options)
    handler = _XliffUnits()
    first = next(read_xml(file, handler, Counter()), None)
    if not handler.is_xliff:
        raise DataError(
            f"{file.name} is XML, but not XLIFF: it has no element <xliff>. Is it the right file?"
        )
    languages = first.languages if first else ("", "")
    codes = [language.code if (language := find_language(tag.lower())) else "" for tag in languages]
    return PairFile(partial(_read, file, languages), (codes[0], codes[1]))


def _read(file: InputFile, languages: tuple[str, str], dropped: Counter[str]) -> Iterator[NumberedPair]:
    for unit in read_xml(file, _XliffUnits(), dropped):
        drop_reason = unit.drop_reason if unit.languages == languages else OTHER_LANGUAGES
        if drop_reason:
            dropped[drop_reason] += 1
            continue
        if unit.code_count:
            dropped[INLINE_CODE] += unit.code_count
        for source, target in unit.pairs:
            yield unit.line, make_pair(source, target, dropped)


class _Side:
    """One side of a unit: its text, and the text of each of its marked segments."""

    def __init__(self) -> None:
        self.full_text = SegmentText()
        self.segments: dict[str, SegmentText] = {}
        self._open: list[str] = []  # ids of the open segments, "" for other elements

    @property
    def has_open_elements(self) -> bool:
        return bool(self._open)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        is_segment = name == "mrk" and attributes.get("mtype") == "seg"
        mid = attributes.get("mid", "") if is_segment else ""
        self._open.append(mid)
        for text in self._open_texts():
            text.start(name, attributes)
        if mid:  # a segment without an id cannot be paired with a segment of the other side
            self.segments[mid] = SegmentText()

    def end(self, name: str) -> None:
        self._open.pop()
        for text in self._open_texts():
            text.end(name)

    def add(self, data: str) -> None:
        for text in self._open_texts():
            text.add(data)

    def _open_texts(self) -> list[SegmentText]:
        return [self.full_text, *(self.segments[mid] for mid in self._open if mid in self.segments)]


class _XliffUnits:
    """Collects units from XML events."""

    def __init__(self) -> None:
        self.is_xliff = False
        self._units: list[_Unit] = []
        self._languages = ("", "")
        self._line = 0
        self._ignored_depth = 0  # number of open elements: an ignored element, and those inside it
        self._sides: dict[str, _Side] = {}
        self._side: _Side | None = None
        self._states: list[str] = []  # of the open unit and its target
        self._translate = [True]  # whether units inside each open element are to be translated

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if self._ignored_depth or name in _IGNORED_ELEMENTS:
            self._ignored_depth += 1
        elif self._side is not None:
            self._side.start(name, attributes)
        elif name in _SIDES:
            self._side = self._sides[name] = _Side()
            if name == "target":
                self._states.append(attributes.get("state", ""))
        else:
            translate = attributes.get("translate")
            self._translate.append(translate != "no" if translate else self._translate[-1])
            self._start_outside_sides(name, attributes, line)

    def _start_outside_sides(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name in _UNITS:
            self._line, self._sides, self._states = line, {}, [attributes.get("state", "")]
        elif name in {"xliff", "file"}:
            self.is_xliff = self.is_xliff or name == "xliff"
            source = attributes.get("source-language") or attributes.get("srcLang")
            target = attributes.get("target-language") or attributes.get("trgLang")
            self._languages = source or self._languages[0], target or self._languages[1]

    def end(self, name: str) -> None:
        if self._ignored_depth:
            self._ignored_depth -= 1
        elif self._side is not None and self._side.has_open_elements:
            self._side.end(name)
        elif self._side is not None:
            self._side = None
        else:
            if name in _UNITS:
                self._units.append(self._unit())
            self._translate.pop()

    def text(self, data: str) -> None:
        if self._side is not None and not self._ignored_depth:
            self._side.add(data)

    def take(self) -> list[_Unit]:
        units, self._units = self._units, []
        return units

    def _is_marked_untranslated(self) -> bool:
        return not _UNTRANSLATED_STATES.isdisjoint(self._states)

    def _unit(self) -> _Unit:
        source, target = self._sides.get("source"), self._sides.get("target")
        drop_reason, pairs, code_count = "", [], 0
        if not self._translate[-1]:
            drop_reason = DO_NOT_TRANSLATE
        elif not (source and target and target.full_text.text().strip()) or self._is_marked_untranslated():
            drop_reason = UNTRANSLATED
        else:
            code_count = source.full_text.code_count + target.full_text.code_count
            segmented = self._sides.get("seg-source", source)
            common_ids = [mid for mid in target.segments if mid in segmented.segments]
            if common_ids:
                sides = (segmented.segments, target.segments)
                texts = [(sides[0][mid].text(), sides[1][mid].text()) for mid in common_ids]
                pairs = [
                    (source_text, target_text) for source_text, target_text in texts if target_text.strip()
                ]
                drop_reason = "" if pairs else UNTRANSLATED
            else:
                pairs = [(source.full_text.text(), target.full_text.text())]
        return _Unit(self._line, self._languages, pairs, code_count, drop_reason)
