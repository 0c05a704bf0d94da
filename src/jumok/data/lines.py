"""Read a file, plain or compressed, as a stream of lines of text.

Lines end at "\\n" and nowhere else: U+2028, U+0085 and the like are characters of a sentence, and splitting
at them would shift every line that follows. Nothing is repaired silently: a byte order mark and carriage
returns are dropped and counted in `dropped`; bytes that are not UTF-8 are refused with line and offset.

A compressed file may expand to anything. It is read in small chunks, and refused as soon as a line is longer
than any sentence or the file expands more than text does.

To support another compression, add a function and a row to `COMPRESSIONS`.
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

__all__ = ["COMPRESSIONS", "MAX_LINE_BYTES", "InputFile", "read_lines", "spool", "without_compression"]

MAX_LINE_BYTES = 1 << 20
BYTE_ORDER_MARK, CARRIAGE_RETURN, NO_FINAL_NEWLINE = "byte order mark", "carriage return", "no final newline"

_BLOCK_BYTES = 1 << 18
_COMPRESSED_CHUNK_BYTES = 1 << 9  # small: even a zip bomb expands to only a few megabytes at a time
_MAX_EXPANSION = 500  # text compresses 3 to 10 times; one endlessly repeated sentence, perhaps 300 times
_MIN_EXPANDED_LIMIT = 1 << 18  # bytes of output that are allowed whatever the expansion
_MAX_WINDOW_BYTES = 1 << 27  # memory that xz and zstd may use
_BOM = b"\xef\xbb\xbf"


class InputFile:
    """A file to read from, under the name that messages use for it."""

    def __init__(self, path: Path | str, *, name: str = "", spooled: bool = False) -> None:
        self.path = Path(path)
        # A file name may be any bytes, but only text can be printed and stored.
        self.name = name or os.fsencode(path).decode("utf-8", "replace")
        self.spooled = spooled

    @property
    def plain_name(self) -> str:
        """The file's name without the suffix of its compression."""
        return without_compression(self.path.name)


def without_compression(name: str) -> str:
    """Return the name of a file without the suffix of its compression: `pairs.tsv.gz` → `pairs.tsv`."""
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and dot + suffix in COMPRESSIONS else name


def spool(stream: IO[bytes] | None = None) -> InputFile:
    """Copy standard input to a temporary file, so that it can be read more than once."""
    stream = stream or standard_input()
    handle, path = tempfile.mkstemp(prefix="jumok-")
    with os.fdopen(handle, "wb") as copy:
        shutil.copyfileobj(stream, copy)
    file = InputFile(path, name="standard input", spooled=True)
    weakref.finalize(file, Path(path).unlink, missing_ok=True)
    return file


def read_lines(file: InputFile, dropped: Counter[str]) -> Iterator[str]:
    """Yield the lines of a file without their ends; `dropped` also counts a missing final newline."""
    rest = b""
    line, offset = 1, 0  # of the first byte in `data`
    for block in _blocks(file):
        if offset == 0 and not rest and block.startswith(_BOM):
            dropped[BYTE_ORDER_MARK] += 1
            block = block[len(_BOM) :]
            offset = len(_BOM)
        data = rest + block
        end = data.rfind(b"\n")
        if end >= 0:
            lines = _decode(file, data[:end], line, offset)
            yield from _without_returns(lines, dropped)
            line += len(lines)
            offset += end + 1
        rest = data[end + 1 :]
        if len(rest) > MAX_LINE_BYTES:
            raise _line_too_long_error(file, line)
    if rest:
        dropped[NO_FINAL_NEWLINE] += 1
        yield from _without_returns(_decode(file, rest, line, offset), dropped)


def _decode(file: InputFile, data: bytes, line: int, offset: int) -> list[str]:
    """Return the lines in `data` as text; `line` and `offset` are where they begin in the file."""
    if len(data) > MAX_LINE_BYTES:
        for number, content in enumerate(data.split(b"\n"), start=line):
            if len(content) > MAX_LINE_BYTES:
                raise _line_too_long_error(file, number)
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


def _without_returns(lines: list[str], dropped: Counter[str]) -> list[str]:
    """Drop the carriage return that Windows puts before each newline."""
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


def _blocks(file: InputFile) -> Iterator[bytes]:
    """Yield the contents in blocks of moderate size, decompressed according to the suffix of the name."""
    try:
        with file.path.open("rb") as raw:
            suffix = file.path.suffix
            if suffix in COMPRESSIONS:
                yield from _merge_chunks(_decompressed(file, raw, COMPRESSIONS[suffix]))
            else:
                while block := raw.read(_BLOCK_BYTES):
                    yield block
    except FileNotFoundError:
        raise DataError(f"There is no file {file.name}.") from None
    except IsADirectoryError:
        raise DataError(f"{file.name} is a folder. Name the files in it.") from None
    except OSError as error:
        raise DataError(f"{file.name} cannot be read: {error.strerror or error}.") from error


class _Decompressor(Protocol):
    """The common interface of zlib, lzma and zstandard."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)  # 31: a gzip header and trailer


def _xz() -> _Decompressor:
    return lzma.LZMADecompressor(memlimit=_MAX_WINDOW_BYTES)


def _zstandard() -> _Decompressor:
    import zstandard  # start-up

    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()


COMPRESSIONS: dict[str, Callable[[], _Decompressor]] = {".gz": _gzip, ".xz": _xz, ".zst": _zstandard}
"""Suffix of a compressed file → function that returns its decompressor."""


def _decompressed(
    file: InputFile, raw: IO[bytes], new_decompressor: Callable[[], _Decompressor]
) -> Iterator[bytes]:
    """Decompress with a limit on the expansion; a gzip, xz or zstd file may consist of several streams."""
    decompressor = None
    consumed = produced = 0
    while data := raw.read(_COMPRESSED_CHUNK_BYTES):
        consumed += len(data)
        while data:
            decompressor = decompressor or new_decompressor()
            output = _decompress(file, decompressor, data)
            produced += len(output)
            if produced > max(_MIN_EXPANDED_LIMIT, _MAX_EXPANSION * consumed):
                raise DataError(
                    f"{file.name} expands more than {_MAX_EXPANSION} times, which text never does; reading "
                    "stopped. Decompress it yourself if you trust it."
                )
            yield output
            data = b""
            if decompressor.eof:
                data = decompressor.unused_data.lstrip(b"\0")  # streams may be padded with zeros
                decompressor = None
    if decompressor is not None:
        raise _damage_error(file, "it is truncated")


def _decompress(file: InputFile, decompressor: _Decompressor, data: bytes) -> bytes:
    try:
        return decompressor.decompress(data)
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise _damage_error(file, str(error)) from None
    except Exception as error:
        # The class is compared by name because zstandard may not be imported.
        if type(error).__name__ != "ZstdError":
            raise
        raise _damage_error(file, str(error)) from None


def _damage_error(file: InputFile, reason: str) -> DataError:
    return DataError(f"{file.name} cannot be decompressed: {reason}. Download or compress it again.")


def _merge_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Join small chunks into blocks, so that many lines are split at once."""
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if size >= _BLOCK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if size:
        yield b"".join(pending)
