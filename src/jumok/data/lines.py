"""Read a file, plain or compressed, as a stream of lines of text.

Lines end at "\\n" and nowhere else: U+2028, U+0085 and the like are characters of a sentence, and splitting
at them would shift every line that follows. (If the beginning of a file, at least 64 KiB or the whole file,
has "\\r" and no "\\n", the file comes from an old Mac, and its lines end at "\\r".) Nothing is repaired
silently: a byte order mark and carriage returns are dropped and counted in `dropped`. A file with bytes that
are not valid UTF-8 is refused: the message has the line and the offset of these bytes, and the encoding that
probably fits. If `file.encoding` names another encoding, a file with bytes that are not valid in that
encoding is refused.
"""

from __future__ import annotations

import codecs
from itertools import chain
from typing import TYPE_CHECKING

from jumok.data.encodings import encoding_advice, find_utf16, is_utf8_instead, name_binary_file
from jumok.data.input_files import read_blocks
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from jumok.data.encodings import Encoding
    from jumok.data.input_files import InputFile

MAX_LINE_BYTES = 1 << 20
BYTE_ORDER_MARK, CARRIAGE_RETURN, NO_FINAL_NEWLINE = "byte order mark", "carriage return", "no final newline"
OLD_MAC_LINE_END = "old Mac line end"

_HEAD_BYTES = 1 << 16
_MIN_BYTES_TO_FIND_UTF16 = 64


def read_lines(file: InputFile, dropped: Counter[str]) -> Iterator[str]:
    """Yield the lines of a file without their ends; `dropped` also counts a missing final newline."""
    head, blocks = _read_head(file)
    rest = b""
    line, offset = 1, 0  # where the first byte of `data` is in the file
    newline = b"\r" if b"\n" not in head and b"\r" in head else b"\n"
    if head.startswith(codecs.BOM_UTF8):
        dropped[BYTE_ORDER_MARK] += 1
        head = head.removeprefix(codecs.BOM_UTF8)
        offset = len(codecs.BOM_UTF8)
    for block in chain([head], blocks):
        data = rest + block
        end = data.rfind(newline)
        if end >= 0:
            lines = _decode(file, data[:end], line, offset, newline)
            yield from _without_returns(lines, newline, dropped)
            line += len(lines)
            offset += end + 1
        rest = data[end + 1 :]
        if len(rest) > MAX_LINE_BYTES:
            raise _line_too_long_error(file, line)
    if rest:
        dropped[NO_FINAL_NEWLINE] += 1
        lines = _decode(file, rest, line, offset, newline)
        yield from lines if newline == b"\r" else _without_returns(lines, newline, dropped)


def _read_head(file: InputFile) -> tuple[bytes, Iterator[bytes]]:
    """Return the beginning of the file and the blocks after it.

    The beginning has a line end, or at least `_HEAD_BYTES` bytes, or is all of the file.

    Raise if the file has a known binary format. Raise also if it is UTF-16, because ASCII letters in UTF-16
    would be valid UTF-8.
    """
    if file.encoding:
        _refuse_utf8(file)
    blocks = read_transcoded(file) if file.encoding else read_blocks(file)
    head = b""
    for block in blocks:
        head += block
        if b"\n" in head or len(head) >= _HEAD_BYTES:
            break
    if kind := name_binary_file(head):
        raise DataError(f"{file.name} is not a text file: it is {kind}")
    start = head[:_HEAD_BYTES]
    if len(start) >= _MIN_BYTES_TO_FIND_UTF16 and (encoding := find_utf16(start)):
        raise DataError(
            f"{file.name} is not UTF-8 text. It looks like {encoding.title}: {_how_to_read(encoding)}"
        )
    return head, blocks


def _refuse_utf8(file: InputFile) -> None:
    """Raise if a file is UTF-8 although `file.encoding` names another encoding, which could give mojibake."""
    if not is_utf8_instead(next(read_blocks(file), b"")[:_HEAD_BYTES], file.encoding):
        return
    raise DataError(
        f"{file.name} is UTF-8 text. Received: --encoding {file.encoding}. Leave it out; if only other files "
        "have that encoding, convert them to UTF-8."
    )


def read_transcoded(file: InputFile) -> Iterator[bytes]:
    """Yield the contents of a file, decoded from `file.encoding` and encoded as UTF-8."""
    decoder = codecs.getincrementaldecoder(file.encoding)()
    consumed = 0
    try:
        for block in read_blocks(file):
            consumed += len(block)
            yield decoder.decode(block).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        start = consumed - len(error.object) + error.start if isinstance(error, UnicodeDecodeError) else 0
        raise DataError(
            f"{file.name} is not {file.encoding} text: {getattr(error, 'reason', error)} near byte "
            f"{start:,}. Leave --encoding out to be told which encoding it probably has."
        ) from None


def _decode(file: InputFile, data: bytes, line: int, offset: int, newline: bytes) -> list[str]:
    """Return the lines in `data` as text; `line` and `offset` say where `data` begins in the file."""
    if len(data) > MAX_LINE_BYTES:
        for number, content in enumerate(data.split(newline), start=line):
            if len(content) > MAX_LINE_BYTES:
                raise _line_too_long_error(file, number)
    try:
        return data.decode("utf-8").split(newline.decode())
    except UnicodeDecodeError as error:
        before = data[: error.start]
        number, column = before.count(newline), error.start - (before.rfind(newline) + 1)
        lines = data.split(newline)
        is_beginning = offset <= len(codecs.BOM_UTF8)
        head = data[:_HEAD_BYTES] if is_beginning else b""
        advice = encoding_advice(head, lines[number], lines[:number] + lines[number + 1 :], _how_to_read)
        raise DataError(
            f"{file.name} is not UTF-8 text: on line {line + number:,}, byte {column + 1:,} is "
            f"0x{data[error.start]:02X} (offset {offset + error.start:,} in the file). {advice}"
        ) from None


def _how_to_read(encoding: Encoding) -> str:
    return f"add --encoding {encoding.codec} (in Python: encoding={encoding.codec!r})."


def _without_returns(lines: list[str], newline: bytes, dropped: Counter[str]) -> list[str]:
    """Drop the carriage return that Windows puts before each newline. In old Mac files, only count lines."""
    if newline == b"\r":
        dropped[OLD_MAC_LINE_END] += len(lines)
        return lines
    count = sum(line.endswith("\r") for line in lines)
    if not count:
        return lines
    dropped[CARRIAGE_RETURN] += count
    return [line.removesuffix("\r") for line in lines]


def _line_too_long_error(file: InputFile, line: int) -> DataError:
    return DataError(
        f"Line {line:,} of {file.name} is longer than {MAX_LINE_BYTES:,} bytes, which no sentence is. "
        "Does the file have one sentence per line, and a newline after each?"
    )
