"""Lines: the bytes of a file, plain or compressed, as a stream of lines of text.

Lines end at "\\n" and nowhere else: U+2028, U+0085 and their like are characters of a sentence, and whoever
splits at them shifts every line that follows. Nothing is repaired in silence: what is dropped (a byte order
mark, carriage returns) is noticed in a counter; bytes that are not UTF-8 are refused with their place.

A compressed file may claim to be anything. It is read in small pieces, and refused as soon as a line is
longer than any sentence or the whole expands more than text can.
"""

from __future__ import annotations

import lzma
import os
import shutil
import tempfile
import weakref
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from jumok.errors import DataError
from jumok.storage import standard_input

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator

__all__ = ["COMPRESSIONS", "LONGEST_LINE", "InputFile", "read_lines", "spool"]

COMPRESSIONS = (".gz", ".xz", ".zst")
LONGEST_LINE = 1 << 20  # bytes
BYTE_ORDER_MARK, CARRIAGE_RETURN, NO_FINAL_NEWLINE = "byte order mark", "carriage return", "no final newline"

_BLOCK = 1 << 18
_COMPRESSED_BLOCK = 1 << 9  # so small that even a bomb expands to a few megabytes at a time
_EXPANSION = 500  # text compresses 3 to 10 times, a template repeated for ever perhaps 300 times
_EXPANSION_FREE = 1 << 18  # bytes of output below which nobody minds
_LARGEST_WINDOW = 1 << 27  # bytes of memory that xz and zstd may ask for
_BOM = b"\xef\xbb\xbf"


class InputFile:
    """A file to read from, under the name that messages use for it."""

    def __init__(self, path: Path | str, *, name: str = "", spooled: bool = False) -> None:
        self.path = Path(path)
        # A name may hold any bytes; what is printed and stored of it is text.
        self.name = name or os.fsencode(path).decode("utf-8", "replace")
        self.spooled = spooled

    @property
    def plain_name(self) -> str:
        """The file's name without the suffix of its compression."""
        return self.path.stem if self.path.suffix in COMPRESSIONS else self.path.name


def spool(stream: IO[bytes] | None = None) -> InputFile:
    """Keep standard input in a temporary file, so that it can be read more than once."""
    stream = stream or standard_input()
    handle, path = tempfile.mkstemp(prefix="jumok-")
    with os.fdopen(handle, "wb") as copy:
        shutil.copyfileobj(stream, copy)
    file = InputFile(path, name="standard input", spooled=True)
    weakref.finalize(file, Path(path).unlink, missing_ok=True)
    return file


def read_lines(file: InputFile, noticed: Counter[str]) -> Iterator[str]:
    """The lines of a file without their ends. What is dropped on the way is counted in `noticed`."""
    rest = b""
    line, offset = 1, 0  # of the first byte in `data`
    for block in _blocks(file):
        if offset == 0 and not rest and block.startswith(_BOM):
            noticed[BYTE_ORDER_MARK] += 1
            block = block[len(_BOM) :]
            offset = len(_BOM)
        data = rest + block
        end = data.rfind(b"\n")
        if end >= 0:
            lines = _decode(file, data[:end], line, offset)
            yield from _without_returns(lines, noticed)
            line += len(lines)
            offset += end + 1
        rest = data[end + 1 :]
        if len(rest) > LONGEST_LINE:
            raise _too_long(file, line)
    if rest:
        noticed[NO_FINAL_NEWLINE] += 1
        yield from _without_returns(_decode(file, rest, line, offset), noticed)


def _decode(file: InputFile, data: bytes, line: int, offset: int) -> list[str]:
    """Whole lines as text. `line` and `offset` say where in the file they begin."""
    if len(data) > LONGEST_LINE:
        for number, content in enumerate(data.split(b"\n"), start=line):
            if len(content) > LONGEST_LINE:
                raise _too_long(file, number)
    try:
        return data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        number, column = before.count(b"\n"), error.start - (before.rfind(b"\n") + 1)
        raise DataError(
            f"{file.name} is not UTF-8 text: on line {line + number:,}, byte {column + 1:,} is "
            f"0x{data[error.start]:02X} (offset {offset + error.start:,} in the file). "
            + _encoding_hint(data, offset)
        ) from None


def _encoding_hint(data: bytes, offset: int) -> str:
    if offset == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "It looks like UTF-16. Convert it, for example with `iconv -f utf-16 -t utf-8`."
    return "Convert the file to UTF-8, for example with `iconv -f latin1 -t utf-8`, or repair that line."


def _without_returns(lines: list[str], noticed: Counter[str]) -> list[str]:
    """Drop the carriage return that Windows puts before each newline."""
    ending = sum(line.endswith("\r") for line in lines)
    if not ending:
        return lines
    noticed[CARRIAGE_RETURN] += ending
    return [line.removesuffix("\r") for line in lines]


def _too_long(file: InputFile, line: int) -> DataError:
    return DataError(
        f"Line {line:,} of {file.name} is longer than {LONGEST_LINE:,} bytes, which is no sentence. "
        "Is the file what its name says, with one sentence a line and lines ended by a newline?"
    )


def _blocks(file: InputFile) -> Iterator[bytes]:
    """The contents in blocks of moderate size, decompressed by the suffix of the name."""
    try:
        with file.path.open("rb") as raw:
            suffix = file.path.suffix
            if suffix in COMPRESSIONS:
                yield from _gathered(_expanded(file, raw, _DECOMPRESSORS[suffix]))
            else:
                while block := raw.read(_BLOCK):
                    yield block
    except FileNotFoundError:
        raise DataError(f"There is no file {file.name}.") from None
    except IsADirectoryError:
        raise DataError(f"{file.name} is a folder. Name the files in it.") from None
    except OSError as error:
        raise DataError(f"{file.name} cannot be read: {error.strerror or error}.") from error


class _Decompressor(Protocol):
    """What zlib, lzma and zstandard have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)  # 31: a gzip header and trailer


def _xz() -> _Decompressor:
    return lzma.LZMADecompressor(memlimit=_LARGEST_WINDOW)


def _zstandard() -> _Decompressor:
    import zstandard  # imported here: few corpora need it

    return zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()


_DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {".gz": _gzip, ".xz": _xz, ".zst": _zstandard}


def _expanded(file: InputFile, raw: IO[bytes], new: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Decompress, one stream after the other as gzip, xz and zstd allow, under a cap on the expansion."""
    decompressor = None
    consumed = produced = 0
    while data := raw.read(_COMPRESSED_BLOCK):
        consumed += len(data)
        while data:
            decompressor = decompressor or new()
            output = _decompress(file, decompressor, data)
            produced += len(output)
            if produced > max(_EXPANSION_FREE, _EXPANSION * consumed):
                raise DataError(
                    f"{file.name} expands more than {_EXPANSION} times, which text never does; it was not "
                    "read further. Decompress it yourself if you trust it."
                )
            yield output
            data = b""
            if decompressor.eof:
                data = decompressor.unused_data.lstrip(b"\0")  # streams may be padded with zeros
                decompressor = None
    if decompressor is not None:
        raise _damaged(file, "it ends in the middle")


def _decompress(file: InputFile, decompressor: _Decompressor, data: bytes) -> bytes:
    try:
        return decompressor.decompress(data)
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise _damaged(file, str(error)) from None
    except Exception as error:
        # zstandard's error is named here rather than imported above, to leave the package unloaded.
        if type(error).__name__ != "ZstdError":
            raise
        raise _damaged(file, str(error)) from None


def _damaged(file: InputFile, what: str) -> DataError:
    return DataError(f"{file.name} cannot be decompressed: {what}. Fetch or make it again.")


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small pieces into blocks, so that lines are split a thousand at a time."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)
