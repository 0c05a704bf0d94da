"""TMX 1.1 to 1.4b: translation memories.

    <tu><tuv xml:lang="en-US"><seg>Save</seg></tuv><tuv xml:lang="ko"><seg>저장</seg></tuv></tu>

A unit may have any number of languages, and several variants of a language (en-US, en-GB). Each variant of
the source makes a pair with each variant of the target, up to 64 pairs per unit. Equal variants of a
language count once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING

from jumok.data.formats.inline_codes import INLINE_CODE, SegmentText
from jumok.data.formats.pair_file import PairFile, make_pair, refuse_columns
from jumok.data.formats.xml_events import read_xml
from jumok.errors import DataError
from jumok.text.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import NumberedPair, ReadOptions
    from jumok.data.input_files import InputFile

_UNITS_TO_FIND_LANGUAGES = 1000
_MAX_PAIRS_PER_UNIT = 64
NOT_IN_BOTH = "unit without one of the two languages"
TOO_MANY_VARIANTS = "pair of variants beyond the 64th of a unit"


def open_tmx(file: InputFile, options: ReadOptions) -> PairFile:
    """Open a translation memory. If its units are in more than two languages, `options` must choose two.

    The first 1,000 units are searched for languages. The search goes on after them until two or more
    languages are found, with each requested language among them.
    """
    refuse_columns(file, options)
    handler = _TmxUnits()
    language_counts: Counter[str] = Counter()
    requested = {code for code in (options.source, options.target) if code}
    for number, unit in enumerate(read_xml(file, handler, Counter()), start=1):
        language_counts.update(unit.texts.keys())
        has_languages = len(language_counts) > 1 and requested <= language_counts.keys()
        if number >= _UNITS_TO_FIND_LANGUAGES and has_languages:
            break
    if not handler.is_tmx:
        raise DataError(f"{file.name} is XML, but not TMX: it has no element <tmx>. Is it the right file?")
    source, target = _choose_languages(file, options, language_counts, handler.header_language)
    codes = [language.code if (language := find_language(code)) else "" for code in (source, target)]
    return PairFile(partial(_read, file, source, target), (codes[0], codes[1]))


def _choose_languages(
    file: InputFile, options: ReadOptions, language_counts: Counter[str], header_language: str
) -> tuple[str, str]:
    """Return the two languages of the pairs, as `_primary_subtag` returns them."""
    codes = list(language_counts)
    listed = ", ".join(f"{code} ({count:,})" for code, count in language_counts.most_common())
    requested = [code for code in (options.source, options.target) if code]
    missing = [code for code in requested if code not in codes]
    if len(codes) < 2:
        raise DataError(
            f"{file.name} holds no sentence pairs: its units are in {listed or 'no language'}. jumok needs "
            "two languages. Variants such as en-US and en-GB count as one language."
        )
    if len(requested) == 2 and not missing:
        return options.source, options.target
    if len(codes) == 2 and not missing:
        source, target = sorted(codes, key=lambda code: code != header_language)  # the header's comes first
        return (target, source) if options.source == target or options.target == source else (source, target)
    if missing:
        raise DataError(f"{file.name} has no units in {' and '.join(missing)}. Its languages: {listed}.")
    raise DataError(f"{file.name} has units in several languages: {listed}. Choose two with --from and --to.")


def _read(file: InputFile, source: str, target: str, dropped: Counter[str]) -> Iterator[NumberedPair]:
    for unit in read_xml(file, _TmxUnits(), dropped):
        if unit.code_count:
            dropped[INLINE_CODE] += unit.code_count
        sources, targets = unit.texts.get(source), unit.texts.get(target)
        if not sources or not targets:
            dropped[NOT_IN_BOTH] += 1
            continue
        if len(sources) * len(targets) > _MAX_PAIRS_PER_UNIT:
            dropped[TOO_MANY_VARIANTS] += len(sources) * len(targets) - _MAX_PAIRS_PER_UNIT
        for source_text, target_text in islice(product(sources, targets), _MAX_PAIRS_PER_UNIT):
            yield unit.line, make_pair(source_text, target_text, dropped)


@dataclass(slots=True)
class _Unit:
    """A translation unit: its line, its distinct texts by language, and how many inline codes they had."""

    line: int
    texts: dict[str, list[str]] = field(default_factory=dict)
    code_count: int = 0


class _TmxUnits:
    """Collects translation units from XML events."""

    def __init__(self) -> None:
        self.is_tmx = False
        self.header_language = ""  # the source language that the header names
        self._units: list[_Unit] = []
        self._unit: _Unit | None = None
        self._language = ""
        self._segment: SegmentText | None = None

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if self._segment is not None:
            self._segment.start(name, attributes)
        elif name == "tu":
            self._unit = _Unit(line)
        elif name == "tuv":
            self._language = _primary_subtag(attributes.get("xml:lang") or attributes.get("lang", ""))
        elif name == "seg" and self._unit is not None:
            self._segment = SegmentText()
        elif name == "header":
            self.header_language = _primary_subtag(attributes.get("srclang", ""))
        elif name == "tmx":
            self.is_tmx = True

    def end(self, name: str) -> None:
        unit = self._unit
        if unit is None:
            return
        if name == "seg" and self._segment is not None:
            texts, text = unit.texts.setdefault(self._language, []), self._segment.text()
            if text not in texts:
                texts.append(text)
            unit.code_count += self._segment.code_count
            self._segment = None
        elif self._segment is not None:
            self._segment.end(name)
        elif name == "tu":
            self._units.append(unit)
            self._unit = None

    def text(self, data: str) -> None:
        if self._segment is not None:
            self._segment.add(data)

    def take(self) -> list[_Unit]:
        units, self._units = self._units, []
        return units


def _primary_subtag(tag: str) -> str:
    """Return `en` for EN-US, eng and English: the code that jumok knows, or the first part of the tag."""
    first = tag.strip().replace("_", "-").partition("-")[0].lower()
    language = find_language(first)
    return language.code if language else first
