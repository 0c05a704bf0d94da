"""Guess the encoding of bytes that are not UTF-8, and recognise files that are not text.

This module converts nothing. A message names the encoding that fits and shows a line decoded with it, and the
user decides. An encoding fits if every byte is valid in it and nearly all characters are common characters of
the language. Bytes of Korean text are also valid Chinese, so Korean is tried first. If Chinese bytes are
decoded as Korean, the result is Hangul mixed with many Hanja. Hanja do not count as common, so Korean does
not fit.
"""

from __future__ import annotations

import codecs
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jumok.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MIN_COMMON_SHARE = 0.8  # of the characters that are not ASCII
_MIN_KANA_SHARE = 0.1
_MAX_CONTROL_SHARE = 0.02  # of the bytes; text has tabs and line ends only
_PREVIEW_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding: its codec name in Python and iconv, and a title for messages."""

    codec: str
    title: str


UTF_16 = Encoding("utf-16", "UTF-16")
UTF_16_LE, UTF_16_BE = (
    Encoding("utf-16-le", "UTF-16 without a byte order mark"),
    Encoding("utf-16-be", "UTF-16 (big-endian) without a byte order mark"),
)


def check_encoding(name: str) -> str:
    """Return `name`. Raise a DataError if it names no known encoding of text. "" stands for UTF-8."""
    try:
        b"a".decode(name or "utf-8")
    except (LookupError, UnicodeError):  # UTF-16 and UTF-32 are known too, but cannot decode a single byte
        try:
            is_unicode = codecs.lookup(name).name.startswith("utf-")
        except LookupError:
            is_unicode = False
        if not is_unicode:
            common = (
                "utf-8",
                "utf-16",
                "cp949",
                "euc-kr",
                "shift_jis",
                "gb18030",
                "big5",
                "cp1252",
                "latin1",
            )
            raise DataError(
                f"There is no encoding {name!r}.{suggest(name, common)} Common ones: {', '.join(common)}."
            ) from None
    return name


def is_utf8_instead(data: bytes, encoding: str) -> bool:
    """Return whether a text that is said to be in `encoding` is UTF-8 instead.

    `data` may end in the middle of a character. Text in another encoding is hardly ever valid UTF-8 by
    chance. Return False for pure ASCII, and if `encoding` is a form of Unicode (UTF-8, UTF-16).
    """
    if data.isascii() or codecs.lookup(encoding).name.startswith("utf-"):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


# --- advice on bytes that are not UTF-8 ---


def encoding_advice(
    head: bytes, bad_line: bytes, other_lines: Sequence[bytes], how_to_read: Callable[[Encoding], str]
) -> str:
    """Return what the bytes probably are and what to do.

    `head` is the beginning of the file, or empty if the bad line is far from the beginning. `bad_line` is the
    first line that is not UTF-8, `other_lines` are lines before and after it. `how_to_read` says how to read
    the input in an encoding.
    """
    if kind := name_binary_file(head):
        return f"It is {kind}"
    encoding = find_utf16(head)
    if encoding is not None:
        return f"It looks like {encoding.title}: {how_to_read(encoding)}"
    if _control_share(head) > _MAX_CONTROL_SHARE:
        return "It is binary data, not text. Is it the right file?"
    bad_lines = [bad_line, *(line for line in other_lines if not _decodes_as_utf8(line))]
    encoding = guess_encoding(b"\n".join(bad_lines))
    decoded = f"{encoding.title}: {_preview(bad_line, encoding)!r}" if encoding else ""
    num_good_lines = sum(_decodes_as_utf8(line) for line in other_lines if not line.isascii())
    if num_good_lines > len(bad_lines):
        guess = f" (in {decoded})" if encoding else ""
        return (
            f"The lines around it are UTF-8, so do not convert the file: repair or delete that line{guess}."
        )
    if encoding is None:
        return "jumok cannot tell which encoding it has. Find out where the file comes from, and convert it."
    return f"It looks like {decoded}. If that reads right, {how_to_read(encoding)}"


def _decodes_as_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _preview(line: bytes, encoding: Encoding) -> str:
    text = " ".join(line.decode(encoding.codec, "replace").split())
    return text if len(text) <= _PREVIEW_CHARACTERS else text[: _PREVIEW_CHARACTERS - 1] + "…"


def _control_share(data: bytes) -> float:
    controls = len(data) - len(data.translate(None, bytes([*range(9), 11, *range(14, 32), 127])))
    return controls / max(len(data), 1)


# --- encodings ---


def find_utf16(head: bytes) -> Encoding | None:
    """Return the form of UTF-16 that a byte order mark or the zero bytes show; None if neither shows it.

    In UTF-16, spaces, line ends and Latin letters have a zero byte. At least 4 % of the bytes are therefore
    zero, and nearly all zeros are at even offsets, or nearly all at odd offsets.
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF_16
    head = head[: len(head) // 2 * 2]
    if not head:
        return None
    zeros = head[::2].count(0), head[1::2].count(0)  # at even and at odd offsets
    if sum(zeros) < 0.04 * len(head) or min(zeros) > 0.05 * sum(zeros):
        return None
    encoding = UTF_16_LE if zeros[1] > zeros[0] else UTF_16_BE
    text = head.decode(encoding.codec, "replace")
    unprintable = sum(not (character.isprintable() or character.isspace()) for character in text)
    return encoding if unprintable <= 0.02 * len(text) + 1 else None


def guess_encoding(data: bytes) -> Encoding | None:
    """Return the encoding in which bytes that are not UTF-8 read as common characters, or None."""
    for encoding, common_share in _ENCODINGS_TO_TRY:
        try:
            text = data.decode(encoding.codec)
        except UnicodeDecodeError:
            continue
        non_ascii = [character for character in text if character > "\x7f"]
        if non_ascii and common_share(non_ascii, text) >= _MIN_COMMON_SHARE:
            return encoding
    return None


_EAST_ASIAN_MARKS = frozenset("、。，．・：；？！「」『』（）〈〉《》【】“”‘’…—～·　")


def _has_lead_byte(character: str, codec: str, first: int, last: int) -> bool:
    """Return whether a character has two bytes in an encoding, with a first byte from `first` to `last`."""
    try:
        encoded = character.encode(codec)
    except UnicodeEncodeError:
        return False
    return len(encoded) == 2 and first <= encoded[0] <= last


def _common_share(
    non_ascii: Sequence[str], text: str, *, codec: str, first: int, last: int, kana: bool = False
) -> float:
    """Return the share of common characters: their lead byte in `codec` is from `first` to `last`.

    Set `kana` for Japanese. Kana then count as common characters, and the result is 0.0 if the text has
    hardly any kana.
    """
    counts = Counter(non_ascii)
    is_kana = {character: "\u3041" <= character <= "\u30fe" for character in counts}
    if kana and sum(counts[c] for c in counts if is_kana[c]) < _MIN_KANA_SHARE * len(non_ascii):
        return 0.0
    common = sum(
        count
        for character, count in counts.items()
        if character in _EAST_ASIAN_MARKS
        or (kana and is_kana[character])
        or _has_lead_byte(character, codec, first, last)
    )
    return common / len(non_ascii)


def _cyrillic_share(non_ascii: Sequence[str], text: str) -> float:
    """Return the share of Cyrillic letters in lower case; 0.0 if most letters of the text are not Cyrillic.

    The share is multiplied by 1.2, because some letters are capitals. The result may thus exceed 1.
    """
    letters = sum(character.isalpha() for character in text)
    cyrillic = [character for character in non_ascii if "\u0400" <= character <= "\u04ff"]
    if 2 * len(cyrillic) < letters:
        return 0.0
    return 1.2 * sum(character.islower() for character in cyrillic) / max(len(non_ascii), 1)


_WESTERN = frozenset(
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿŒœŠšŽžŸ“”‘’„–—…€°§«»¿¡©®™·\xa0"
)


def _western_share(non_ascii: Sequence[str], text: str) -> float:
    """Return the share of accented letters and common marks; 0.0 if most letters are not ASCII."""
    letters = sum(character.isalpha() for character in text)
    # + 2: in a very short text, one letter more may be accented.
    if 2 * sum(character.isalpha() for character in non_ascii) > letters + 2:
        return 0.0
    return sum(character in _WESTERN for character in non_ascii) / len(non_ascii)


_ENCODINGS_TO_TRY: list[tuple[Encoding, Callable[[Sequence[str], str], float]]] = [
    # `first` and `last` are the lead bytes of the syllables of KS X 1001, and of the first level of the
    # Japanese and Chinese characters.
    (Encoding("cp949", "CP949 (Korean)"), partial(_common_share, codec="euc_kr", first=0xB0, last=0xC8)),
    (
        Encoding("cp932", "Shift-JIS (Japanese)"),
        partial(_common_share, codec="cp932", first=0x88, last=0x97, kana=True),
    ),
    (
        Encoding("euc_jp", "EUC-JP (Japanese)"),
        partial(_common_share, codec="euc_jp", first=0xB0, last=0xCF, kana=True),
    ),
    (Encoding("gb18030", "GB18030 (Chinese)"), partial(_common_share, codec="gb2312", first=0xB0, last=0xD7)),
    (Encoding("big5", "Big5 (Chinese)"), partial(_common_share, codec="big5", first=0xA4, last=0xC6)),
    (Encoding("cp1251", "Windows-1251 (Cyrillic)"), _cyrillic_share),
    (Encoding("koi8_r", "KOI8-R (Cyrillic)"), _cyrillic_share),
    (Encoding("cp1252", "Windows-1252 (Western European, also called latin1)"), _western_share),
]


# --- files that are not text ---

_SAVE_TABLE = "Save its table as .xlsx, .csv or .tsv."
_SIGNATURES: list[tuple[bytes, str]] = [
    (b"%PDF", "a PDF file, from which pairs cannot be read. " + _SAVE_TABLE),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office file in a format from before 2007 (.doc, .xls, .ppt), "
     "or one with a password. Save it as .xlsx without a password."),
    (b"{\\rtf", "an RTF file, from which pairs cannot be read. " + _SAVE_TABLE),
    (b"\x1f\x8b", "compressed with gzip. Add .gz to its name."),
    (b"BZh", "compressed with bzip2. Add .bz2 to its name."),
    (b"\xfd7zXZ\0", "compressed with xz. Add .xz to its name."),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard. Add .zst to its name."),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive. Extract the file with the pairs."),
    (b"Rar!", "a RAR archive. Extract the file with the pairs."),
    (b"SQLite format 3\0", "an SQLite database. Export the pairs as .csv."),
    (b"\x89PNG", "a picture. Is it the right file?"),
    (b"\xff\xd8\xff", "a picture. Is it the right file?"),
    (b"GIF8", "a picture. Is it the right file?"),
]  # fmt: skip
_ZIP_CONTENTS: list[tuple[bytes, str]] = [
    (b"word/", "a Word document (.docx), which is no list of pairs. " + _SAVE_TABLE),
    (b"ppt/", "a PowerPoint file (.pptx), which is no list of pairs. " + _SAVE_TABLE),
    (b"xl/", "an Excel workbook. Add .xlsx to its name."),
    (b"opendocument.spreadsheet", "an OpenDocument spreadsheet. Add .ods to its name."),
    (b"opendocument.", "an OpenDocument file, which is no list of pairs. Save its table as .ods or .csv."),
    (b"epub", "an e-book (.epub), which is no list of pairs."),
]


def name_binary_file(head: bytes) -> str:
    """Return the name of the binary format that a file begins with, and advice. Return "" for other files."""
    if head.startswith(b"PK\3\4"):
        default = "a ZIP archive. Add .zip to its name, or extract the file with the pairs."
        return next((kind for mark, kind in _ZIP_CONTENTS if mark in head), default)
    return next((kind for mark, kind in _SIGNATURES if head.startswith(mark)), "")
