"""TBX: terms of a term base, in the form of TBX-Basic and its predecessors (MARTIF).

    <termEntry><langSet xml:lang="en"><tig><term>student</term></tig></langSet> …        until 2018
    <conceptEntry><langSec xml:lang="en"><termSec><term>student</term></termSec></langSec> …       since 2019

Each term of the source language makes a pair with the first term of the target language. Further target terms
are synonyms, and a translation needs only one term.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from jumok.data.formats.pair_file import PairFile, make_pair, refuse_columns
from jumok.data.formats.xml_events import read_xml
from jumok.errors import DataError
from jumok.text.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import NumberedPair, ReadOptions
    from jumok.data.input_files import InputFile

_ENTRIES, _LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")
NOT_IN_BOTH = "concept without one of the two languages"


def open_tbx(file: InputFile, options: ReadOptions) -> PairFile:
    """Open a term base. If it has more than two languages, `options` must choose two of them."""
    refuse_columns(file, options)
    language_counts: Counter[str] = Counter()
    for entry in read_xml(file, _TbxEntries(), Counter()):
        language_counts.update(entry.terms.keys())
    codes = list(language_counts)
    requested = [code for code in (options.source, options.target) if code]
    missing = [code for code in requested if code not in codes]
    listed = ", ".join(f"{code} ({count:,})" for code, count in language_counts.most_common())
    if missing:
        raise DataError(
            f"{file.name} has no terms in {' and '.join(missing)}. Its languages: {listed or 'none'}. Use a "
            "glossary that has both languages of the translation."
        )
    if len(requested) < 2 and len(codes) != 2:
        raise DataError(
            f"{file.name} has terms in: {listed or 'no language'}. A glossary needs terms in two languages; "
            "if it has more, name the source language and the target language."
        )
    source, target = requested if len(requested) == 2 else codes
    if len(requested) == 1 and (options.source == target or options.target == source):
        source, target = target, source
    return PairFile(partial(_read, file, source, target), (source, target))


def _read(file: InputFile, source: str, target: str, dropped: Counter[str]) -> Iterator[NumberedPair]:
    for entry in read_xml(file, _TbxEntries(), dropped):
        sources, targets = entry.terms.get(source), entry.terms.get(target)
        if not sources or not targets:
            dropped[NOT_IN_BOTH] += 1
            continue
        for term in sources:
            yield entry.line, make_pair(term, targets[0], dropped)


@dataclass(slots=True)
class _Entry:
    """A concept: its line, and its terms by language."""

    line: int
    terms: dict[str, list[str]] = field(default_factory=dict)


class _TbxEntries:
    """Collects concepts from XML events."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._entry: _Entry | None = None
        self._language = ""
        self._term: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name in _ENTRIES:
            self._entry = _Entry(line)
        elif name in _LANGUAGES:
            tag = attributes.get("xml:lang") or attributes.get("lang", "")
            first = tag.strip().replace("_", "-").partition("-")[0].lower()
            language = find_language(first)
            self._language = language.code if language else first
        elif name == "term" and self._entry is not None:
            self._term = []

    def end(self, name: str) -> None:
        if self._entry is None:
            return
        if name == "term" and self._term is not None:
            text = " ".join("".join(self._term).split())
            terms = self._entry.terms.setdefault(self._language, [])
            if text and text not in terms:
                terms.append(text)
            self._term = None
        elif name in _ENTRIES:
            self._entries.append(self._entry)
            self._entry = None

    def text(self, data: str) -> None:
        if self._term is not None:
            self._term.append(data)

    def take(self) -> list[_Entry]:
        entries, self._entries = self._entries, []
        return entries
