"""Glossaries in files: two columns of a table (TSV, CSV, XLSX, ODS), TBX, TMX, or any other file of pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.encodings import check_encoding, is_utf8_instead
from jumok.data.formats.pair_file import HEADER, ReadOptions
from jumok.data.formats.tbx import open_tbx
from jumok.data.input_files import InputFile, read_blocks
from jumok.data.readers import PAIR_FORMATS, find_pair_format
from jumok.errors import DataError
from jumok.text.glossary import Glossary
from jumok.text.languages import find_language
from jumok.text.script_ranges import letter_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jumok.data.formats.pair_file import PairFile
    from jumok.types import Pair

_TEXT_TABLES = (".tsv", ".tab", ".txt", ".csv")
_TABLES = (*_TEXT_TABLES, ".xlsx", ".xlsm", ".ods")


def read_glossary(
    path: str | Path, *, source_language: str = "", target_language: str = "", encoding: str = ""
) -> Glossary:
    """Read the terms of a file and their translations.

    If the file names its languages, `source_language` and `target_language` decide which side is the source.
    Otherwise, the first column is the source, unless the header is `target` and `source` in this order. In a
    table with more than two columns, the two columns are chosen as for training. If the choice is not clear,
    the first two columns of a TSV or CSV are read, because further columns may be notes. An XLSX or ODS is
    then refused.

    `encoding` is for text files that are not UTF-8. A file that is valid UTF-8 is read as UTF-8 nevertheless,
    unless `encoding` is another form of Unicode, such as UTF-16.
    """
    file = InputFile(path, encoding=check_encoding(encoding))
    if not file.path.is_file():
        raise DataError(f"There is no glossary {path}.")
    if encoding and is_utf8_instead(b"".join(read_blocks(file)), encoding):
        file = InputFile(path)
    options = ReadOptions(_code(source_language), _code(target_language))
    opened = _open(file, options)
    named_languages = {code for code in opened.languages if code}
    if len(named_languages) == 2 and not {options.source, options.target} - {""} <= named_languages:
        raise DataError(
            f"{file.name} has terms in {' and '.join(opened.languages)}. Received: a translation from "
            f"{source_language or 'an unknown language'} to {target_language or 'an unknown language'}."
        )
    if options.source:
        swap = opened.languages[1] == options.source
    else:
        swap = bool(options.target) and opened.languages[0] == options.target
    terms: dict[str, str] = {}
    line_of: dict[str, int] = {}
    dropped: Counter[str] = Counter()
    for line, pair in _entries(opened, file, dropped):
        term, translation = (pair.target, pair.source) if swap else (pair.source, pair.target)
        if terms.setdefault(term, translation) != translation:
            raise DataError(
                f"{file.name} has two translations of {term!r}: {terms[term]!r} on line {line_of[term]:,} "
                f"and {translation!r} on line {line:,}. Leave one of them out."
            )
        line_of.setdefault(term, line)
    if not terms:
        raise DataError(f"{file.name} has no terms. Is it the right file?")
    advice = _advice_if_swapped(
        file, options, names_languages=bool(named_languages), has_header=dropped[HEADER] > 0
    )
    _refuse_swapped(terms, file, options, advice)
    return Glossary(terms)


def _advice_if_swapped(
    file: InputFile, options: ReadOptions, *, names_languages: bool, has_header: bool
) -> str:
    """Return the end of the error for a glossary whose terms are in the target language: how to mend it."""
    if names_languages:
        return "Correct the languages that the file names."
    if Path(file.plain_name).suffix.lower() not in _TABLES:
        return "Swap the term and the translation of each entry."
    header = f"{options.target}⇥{options.source}"
    if has_header:
        return f"In the header, name these two columns by their languages: {header}."
    return f"Add a header that names the languages of these two columns: {header}."


def _refuse_swapped(terms: Mapping[str, str], file: InputFile, options: ReadOptions, advice: str) -> None:
    """Raise if most terms are in the target's script, and their translations in the source's script."""
    source, target = find_language(options.source), find_language(options.target)
    if source is None or target is None or not set(source.scripts).isdisjoint(target.scripts):
        return
    source_letter, target_letter = letter_pattern(source.scripts), letter_pattern(target.scripts)
    different = [(term, translation) for term, translation in terms.items() if term != translation]
    swapped = [
        (term, translation)
        for term, translation in different
        if not source_letter.search(term) and target_letter.search(term) and source_letter.search(translation)
    ]
    if 2 * len(swapped) > len(different):
        raise DataError(
            f"{file.name} seems to be swapped: {swapped[0][0]!r} should be {source.name}, and its "
            f"translation {swapped[0][1]!r} {target.name}. {advice}"
        )


def _open(file: InputFile, options: ReadOptions) -> PairFile:
    suffix = Path(file.plain_name).suffix.lower()
    if suffix == ".tbx":
        return open_tbx(file, options)
    open_pairs = find_pair_format(file)
    if open_pairs is None:
        suffixes = ", ".join([".tbx", *PAIR_FORMATS])
        raise DataError(
            f"{file.name} is not a glossary: a table with a term and its translation per line is needed, or "
            f"another file of pairs ({suffixes})."
        )
    try:
        return open_pairs(file, options)
    except DataError:
        if suffix not in _TEXT_TABLES:
            raise
        return open_pairs(file, ReadOptions(columns="1,2"))


def _entries(opened: PairFile, file: InputFile, dropped: Counter[str]) -> Iterator[tuple[int, Pair]]:
    for line, pair in opened.read(dropped):
        if not pair.source and not pair.target:
            continue
        if not pair.source or not pair.target:
            raise DataError(
                f"Line {line:,} of {file.name} has only one text: {pair.source or pair.target!r}. A term "
                "that is not translated has itself as its translation."
            )
        yield line, pair


def _code(name: str) -> str:
    language = find_language(name)
    return language.code if language else ""
