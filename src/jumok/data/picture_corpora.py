"""Corpora of pictures: a folder with one class per sub-folder, or a TSV of paths and captions.

    pets/cat/*.png, pets/dog/*.png                  the sub-folder is the class
    captions.ko.tsv: picture ⇥ caption [⇥ regions]  header optional; paths are relative to the file's folder

A region is a box around the object that a word of the caption names. `2:0.1,0.25,0.5,0.75` is the region of
word 2 (counted from 0): its left, top, right and bottom edge as shares of the picture. If the rest of the
word is a particle, `2/1:…` is the region of the first letter of word 2, and `2/3:…` of its first three
letters. Several regions are separated by spaces.

A TSV may be untrusted, so its paths must stay in the folder of the TSV.
"""

from __future__ import annotations

import errno
import hashlib
import os
import unicodedata
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.input_files import InputFile, without_compression
from jumok.data.lines import read_lines
from jumok.data.readers import split_weight
from jumok.errors import DataError
from jumok.pictures.reading import PICTURE_SUFFIXES, measure_picture, read_picture
from jumok.text.languages import find_language
from jumok.types import Pair, Picture, Region

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jumok.data.corpora import Corpus
    from jumok.data.formats.pair_file import NumberedPair, PairReader

OTHER_FILE = "file that is not a picture"
_HEADERS = {"picture", "image", "path", "file"}


def holds_pictures(path: str | Path) -> bool:
    """Return whether a corpus consists of pictures: a folder, or a .tsv of paths and captions.

    The first line of such a .tsv that is not blank begins with the path of a picture, or with a header such
    as `picture`. As on the command line, the path may have a weight: `pets:2.5`.
    """
    path = Path(split_weight(str(path))[0])
    if path.is_dir():
        return True
    if not without_compression(path.name).lower().endswith(".tsv") or not path.is_file():
        return False
    try:
        cells = _first_cells(InputFile(path))
    except DataError:  # files of captions are UTF-8, so this file is not one
        return False
    return bool(cells) and (cells[0].casefold() in _HEADERS or cells[0].lower().endswith(PICTURE_SUFFIXES))


def open_picture_reader(path: Path) -> tuple[PairReader, str]:
    """Return the reader of a corpus of pictures, and the language of its captions ("" if unknown)."""
    if path.is_dir():
        if not any(_class_pictures(path, Counter())):
            raise DataError(
                f"{path} is a folder without pictures in sub-folders. Name a file of pairs, or give it "
                f"one sub-folder per class, such as {path / 'cat'}, with {', '.join(PICTURE_SUFFIXES)} files."
            )
        return partial(_read_classes, path), ""
    file = InputFile(path)
    return partial(_read_captions, file), _caption_language(file)


def median_side_and_grey(pairs: Iterable[Pair]) -> tuple[int, bool]:
    """Return the median of the pictures' longer sides in pixels, and whether all pictures are grey.

    There must be at least one pair.
    """
    pictures = [measure_picture(pair.source) for pair in pairs]
    sides = sorted(max(picture.width, picture.height) for picture in pictures)
    return sides[len(sides) // 2], all(picture.grey for picture in pictures)


def picture_errors(corpus: Corpus) -> Iterator[str]:
    """Decode every picture. Yield an error message for each picture that cannot be decoded."""
    for pair in corpus.pairs():
        try:
            if pair.picture is not None:
                read_picture(pair.source, size=1, channels=1)
        except DataError as error:
            yield str(error)


def unreadable_refusal(count: int) -> str:
    """Return why training would refuse a corpus with this many unreadable pictures; "" if `count` is 0."""
    return f"Pictures that cannot be decoded: {count:,}. Repair or remove them." if count else ""


def _read_classes(folder: Path, dropped: Counter[str]) -> Iterator[NumberedPair]:
    for number, (path, name) in enumerate(_class_pictures(folder, dropped), start=1):
        yield number, Pair(str(path), name, picture=Picture(_digest(path, str(folder))))


def _class_pictures(folder: Path, dropped: Counter[str]) -> Iterator[tuple[Path, str]]:
    """Yield each picture and its class, sorted by class and then by path."""
    for class_folder in sorted(path for path in folder.iterdir() if path.is_dir()):
        if class_folder.name.startswith("."):
            continue
        for path in sorted(class_folder.rglob("*")):
            if path.is_dir():
                continue
            # macOS writes a file ._a.jpg beside a.jpg.
            hidden = any(part.startswith(".") for part in path.relative_to(class_folder).parts)
            if path.suffix.lower() in PICTURE_SUFFIXES and not hidden:
                # A file name may be any bytes, but only text can be stored as the name of a class.
                name = os.fsencode(class_folder.name).decode("utf-8", "replace")
                yield path, unicodedata.normalize("NFC", name)
            else:
                dropped[OTHER_FILE] += 1


def _read_captions(file: InputFile, dropped: Counter[str]) -> Iterator[NumberedPair]:
    folder = file.path.parent
    root = folder.resolve()
    header_allowed = True  # until the first line that is not blank
    for number, line in enumerate(read_lines(file, dropped), start=1):
        if not line.strip():
            yield number, Pair("", "")
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if header_allowed and cells[0].casefold() in _HEADERS:
            header_allowed = False
            continue
        header_allowed = False
        where = f"Line {number:,} of {file.name}"
        if not 2 <= len(cells) <= 3 or not cells[0]:
            raise DataError(
                f"{where} should have a picture, its caption and perhaps regions, separated by tabs. "
                f"Received: {line[:80]!r}."
            )
        path = _path_inside(folder, root, cells[0], where)
        regions = _parse_regions(cells[2], where) if len(cells) == 3 else ()
        yield number, Pair(str(path), cells[1], picture=Picture(_digest(path, where), regions))


def _path_inside(folder: Path, root: Path, name: str, where: str) -> Path:
    """Return the path of a picture. Raise if the picture is outside the folder of its TSV.

    `root` is the folder without symbolic links. `where` names the line in messages.
    """
    try:
        resolved = (root / name).resolve()
        is_inside = not Path(name).is_absolute() and resolved.is_relative_to(root)
    except (OSError, ValueError) as error:
        raise DataError(f"{where} has no valid path: {error}. Received: {name[:80]!r}.") from None
    if not is_inside:
        raise DataError(
            f"{where} names a picture outside the folder of the file, or by an absolute path. That could be "
            f"any file of this computer. Received: {name[:200]!r}. Put the pictures into {folder} or below "
            "it, and write their paths relative to it."
        )
    return folder / name


def _digest(path: Path, where: str) -> str:
    try:
        if not path.is_file():
            raise FileNotFoundError(errno.ENOENT, "there is no such file")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{where}: the picture {path} cannot be read: {error.strerror}.") from None


def _parse_regions(text: str, where: str) -> tuple[Region, ...]:
    try:
        return tuple(_parse_region(item) for item in text.split())
    except ValueError:
        raise DataError(
            f"{where} has regions that cannot be read. A region is word:left,top,right,bottom, such as "
            f"2:0.1,0.25,0.5,0.75, with edges from 0 to 1. Received: {text[:80]!r}."
        ) from None


def format_regions(regions: Iterable[Region]) -> str:
    """Format regions for the third column of a TSV."""
    return " ".join(
        f"{region.word}{'' if region.letters is None else f'/{region.letters}'}:"
        f"{region.left:g},{region.top:g},{region.right:g},{region.bottom:g}"
        for region in regions
    )


def _parse_region(item: str) -> Region:
    name, colon, box = item.partition(":")
    word, slash, count = name.partition("/")
    letters = int(count) if slash else None
    left, top, right, bottom = map(float, box.split(","))
    is_box = 0 <= left < right <= 1 and 0 <= top < bottom <= 1
    if not colon or int(word) < 0 or not is_box or (letters is not None and letters < 1):
        raise ValueError(item)
    return Region(int(word), left, top, right, bottom, letters)


def _first_cells(file: InputFile) -> list[str]:
    lines: Iterable[str] = read_lines(file, Counter())
    first = next((line for line in lines if line.strip()), "")
    return [cell.strip() for cell in first.split("\t")]


def _caption_language(file: InputFile) -> str:
    """Return the language of the header `picture ⇥ ko`, or of the name `captions.ko.tsv`."""
    cells = _first_cells(file)
    names = cells[1:2] if cells[0].casefold() in _HEADERS else []
    for name in [*names, *reversed(file.plain_name.split(".")[1:-1])]:
        language = find_language(name) if name.islower() else None
        if language:
            return language.code
    return ""
