"""ZIP archives as they are downloaded: OPUS in the Moses format, or one file of pairs.

en-ko.txt.zip       OpenSubtitles.en-ko.en, OpenSubtitles.en-ko.ko, OpenSubtitles.en-ko.ids, README, LICENSE
kor-eng.zip         kor.txt, _about.txt
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from jumok.data.encodings import name_binary_file
from jumok.data.formats.pair_file import PairFile, ReadOptions, refuse_columns
from jumok.data.formats.parallel import read_parallel
from jumok.data.input_files import member_names, read_blocks
from jumok.errors import DataError
from jumok.text.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.data.formats.pair_file import OpenPairs
    from jumok.data.input_files import InputFile

_MAX_NAMES_LISTED = 8
_ARCHIVES = {".zip", ".xlsx", ".xlsm", ".ods"}  # archives, which are not opened inside an archive


def open_zip(
    file: InputFile, options: ReadOptions, *, find_format: Callable[[InputFile], OpenPairs | None]
) -> PairFile:
    """Open the two parallel texts in an archive, or its one file of pairs.

    Files whose names begin with a full stop or an underscore are ignored. `find_format` returns the function
    that opens a file, or None if the file is not a file of pairs.
    """
    names = [name for name in member_names(file) if not PurePosixPath(name).name.startswith((".", "_"))]
    text_pairs = _parallel_texts(names)
    if len(text_pairs) == 1:
        refuse_columns(file, options)
        [(first, second)] = text_pairs
        codes = _language_of(first), _language_of(second)
        sides = file.in_archive(first), file.in_archive(second)
        return PairFile(partial(read_parallel, *sides), codes, f"{first} and {second}")
    others = [] if text_pairs else [n for n in names if PurePosixPath(n).suffix.lower() not in _ARCHIVES]
    pair_files, errors = [], []
    for member in map(file.in_archive, others):
        try:
            open_format = find_format(member)
        except DataError as error:  # a .txt in another encoding: perhaps only a licence
            errors.append(error)
            continue
        if open_format is not None:
            pair_files.append((member, open_format))
    if errors and not pair_files:
        raise errors[0]
    if len(pair_files) == 1:
        member, open_format = pair_files[0]
        opened = open_format(member, options)
        return PairFile(opened.read, opened.languages, "; ".join(filter(None, (member.member, opened.note))))
    raise _no_corpus_error(file, names, several=len(text_pairs) > 1 or len(pair_files) > 1)


def _parallel_texts(names: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of file names that differ only in their suffix, which is a language in both.

    Three texts with the same stem, such as `x.en`, `x.ko` and `x.de`, give no pair.
    """
    return [
        (sides[0], sides[1])
        for stem, texts in _texts_by_stem(names).items()
        if len(sides := _in_order(stem, texts)) == 2 and _language_of(sides[0]) != _language_of(sides[1])
    ]


def _texts_by_stem(names: list[str]) -> dict[str, list[str]]:
    """Return stem → file names with this stem, without the file names whose suffix is not a language."""
    by_stem: dict[str, list[str]] = {}
    for name in names:
        if _language_of(name):
            by_stem.setdefault(name.rpartition(".")[0], []).append(name)
    return by_stem


def _in_order(stem: str, names: list[str]) -> list[str]:
    """Sort names such as `x.en-ko.ko` and `x.en-ko.en` by the order of languages in the stem (en, ko)."""
    order = stem.rpartition(".")[2].split("-")
    return sorted(
        names, key=lambda name: order.index(end) if (end := name.rpartition(".")[2]) in order else len(order)
    )


def _language_of(name: str) -> str:
    """Return the language of a suffix such as `.ko` or `.zh_CN`; "" for other suffixes.

    The part before `_` must be in lower case: `README.EN` is not taken for an English text.
    """
    suffix = PurePosixPath(name).suffix.removeprefix(".")
    language = find_language(suffix) if suffix.partition("_")[0].islower() else None
    return language.code if language else ""


def _no_corpus_error(file: InputFile, names: list[str], *, several: bool) -> DataError:
    kind = name_binary_file(next(read_blocks(file), b""))
    if kind and "ZIP archive" not in kind:
        return DataError(f"{file.name} is {kind}")
    listed = ", ".join(names[:_MAX_NAMES_LISTED]) + (", …" if len(names) > _MAX_NAMES_LISTED else "")
    if several:
        reason = "several corpora"
    elif any(len(texts) > 2 for texts in _texts_by_stem(names).values()):
        reason = "one text in more than two languages"
    else:
        reason = "no two texts such as x.en and x.ko, and no file of pairs"
    return DataError(
        f"{file.name} is an archive with {reason}. Received: {listed or 'no files'}. Extract the files "
        "that you want and name them."
    )
