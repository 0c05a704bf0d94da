"""Input files as streams of bytes: plain and compressed files, members of ZIP archives, standard input.

A small compressed file may expand to gigabytes. It is read in small chunks, and refused as soon as it expands
more than text does.

To support another compression, add a function and a row to `COMPRESSIONS`.
"""

from __future__ import annotations

import bz2
import lzma
import os
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK_BYTES = 1 << 18
_COMPRESSED_CHUNK_BYTES = 1 << 9  # so small that a chunk of gzip, xz or zstd expands to about 16 MB at most
_MAX_BZIP2_OUTPUT_BYTES = 1 << 20  # at a time, because a chunk of bzip2 can expand to a gigabyte
_MAX_EXPANSION = 500  # text compresses 3 to 10 times; one endlessly repeated sentence, perhaps 300 times
_MIN_EXPANDED_LIMIT = 1 << 18  # bytes of output that are allowed whatever the expansion
_MAX_WINDOW_BYTES = 1 << 27  # memory that xz and zstd may use
_MAX_MEMBERS = 10_000  # of a ZIP archive; zipfile reads the list of all of them into memory
_ZIP_END, _ZIP_END_MAX_BYTES = b"PK\5\6", 22 + 65_535


class InputFile:
    """A file to read from, under the name that messages use for it.

    `encoding` is the encoding of the text; "" means UTF-8. If `path` is a ZIP archive, `member` is the name
    of the file in the archive that is read. `from_stream` is true for a copy of standard input, whose name
    has no suffix.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        name: str = "",
        from_stream: bool = False,
        encoding: str = "",
        member: str = "",
    ) -> None:
        self.path = Path(path)
        # A file name may be any bytes, but only text can be printed and stored.
        self.name = name or os.fsencode(path).decode("utf-8", "replace")
        self.from_stream = from_stream
        self.encoding = encoding
        self.member = member

    @property
    def plain_name(self) -> str:
        """The file's name without the suffix of its compression. In an archive, the name of the member."""
        return PurePath(self.member).name if self.member else without_compression(self.path.name)

    def in_archive(self, member: str) -> InputFile:
        """Return a member of this ZIP archive as a file."""
        return InputFile(self.path, name=f"{member} in {self.name}", encoding=self.encoding, member=member)


def without_compression(name: str) -> str:
    """Return the name of a file without the suffix of its compression: `pairs.tsv.gz` → `pairs.tsv`."""
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and dot + suffix.lower() in COMPRESSIONS else name


def standard_input() -> BinaryIO:
    """Return standard input as a stream of bytes. Raise if the shell has closed it (`<&-`)."""
    if sys.stdin is None:
        raise DataError("standard input is closed, so there is nothing to read. Name a file, or pipe one in.")
    return sys.stdin.buffer


def copy_stream(stream: IO[bytes] | None = None, *, encoding: str = "") -> InputFile:
    """Copy a stream (standard input if None) to a temporary file, so that it can be read more than once."""
    stream = stream or standard_input()
    handle, path = tempfile.mkstemp(prefix="jumok-")
    with os.fdopen(handle, "wb") as copy:
        shutil.copyfileobj(stream, copy)
    file = InputFile(path, name="standard input", from_stream=True, encoding=encoding)
    weakref.finalize(file, Path(path).unlink, missing_ok=True)
    return file


def read_blocks(file: InputFile) -> Iterator[bytes]:
    """Yield the contents in blocks of moderate size, decompressed according to the suffix of the name."""
    with _opened(file) as raw:
        suffix = file.path.suffix.lower()
        if file.member:
            yield from _member_blocks(file, raw)
        elif suffix in COMPRESSIONS:
            yield from _merge_chunks(_decompressed(file, raw, COMPRESSIONS[suffix]))
        else:
            while block := raw.read(_BLOCK_BYTES):
                yield block


@contextmanager
def _opened(file: InputFile) -> Iterator[IO[bytes]]:
    """Open the file. A system error while the file is opened or read becomes a DataError."""
    try:
        with file.path.open("rb") as raw:
            yield raw
    except FileNotFoundError:
        advice = " Download it first: jumok reads files." if "://" in file.name else ""
        raise DataError(f"There is no file {file.name}.{advice}") from None
    except IsADirectoryError:
        raise DataError(f"{file.name} is a folder. Name the files in it.") from None
    except OSError as error:
        raise DataError(f"{file.name} cannot be read: {error.strerror or error}.") from error


# --- compressed files ---


class _Decompressor(Protocol):
    """The common interface of zlib, bz2, lzma and zstandard."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)  # 31: a gzip header and trailer


class _Bzip2:
    """Decompresses bzip2 in steps, each with at most `_MAX_BZIP2_OUTPUT_BYTES` of output."""

    def __init__(self) -> None:
        self._decompressor = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    @property
    def needs_input(self) -> bool:
        return self._decompressor.needs_input

    def decompress(self, data: bytes, /) -> bytes:
        return self._decompressor.decompress(data, _MAX_BZIP2_OUTPUT_BYTES)


def _xz() -> _Decompressor:
    return lzma.LZMADecompressor(memlimit=_MAX_WINDOW_BYTES)


def _zstandard() -> _Decompressor:
    import zstandard  # start-up

    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()


COMPRESSIONS: dict[str, Callable[[], _Decompressor]] = {
    ".gz": _gzip,
    ".bz2": _Bzip2,
    ".xz": _xz,
    ".zst": _zstandard,
}
"""Suffix of a compressed file → function or class that makes its decompressor."""


def _decompressed(
    file: InputFile, raw: IO[bytes], new_decompressor: Callable[[], _Decompressor]
) -> Iterator[bytes]:
    """Decompress with a limit on the expansion; a compressed file may consist of several streams."""
    decompressor = None
    consumed = produced = 0
    has_more_output = False  # for the data that the decompressor has received
    while data := raw.read(_COMPRESSED_CHUNK_BYTES):
        if decompressor is None and consumed:
            data = data.lstrip(b"\0")  # padding of a stream that has ended
        consumed += len(data)
        while data or has_more_output:
            decompressor = decompressor or new_decompressor()
            output = _decompress(file, decompressor, data)
            produced += len(output)
            _check_expansion(file, produced, consumed)
            yield output
            data = b""
            if decompressor.eof:
                data = decompressor.unused_data.lstrip(b"\0")  # streams may be padded with zeros
                decompressor = None
            has_more_output = isinstance(decompressor, _Bzip2) and not decompressor.needs_input
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


def _check_expansion(file: InputFile, produced: int, consumed: int) -> None:
    if produced > max(_MIN_EXPANDED_LIMIT, _MAX_EXPANSION * consumed):
        raise DataError(
            f"{file.name} expands more than {_MAX_EXPANSION} times, which text never does; reading "
            "stopped. Decompress it yourself if you trust it."
        )


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


# --- ZIP archives ---


def member_names(file: InputFile) -> list[str]:
    """Return the names of the files in a ZIP archive."""
    with _opened(file) as raw, _archive(file, raw) as archive:
        return [info.filename for info in archive.infolist() if not info.is_dir()]


@contextmanager
def _archive(file: InputFile, raw: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive. An error while the archive is opened or read becomes a DataError."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(size - _ZIP_END_MAX_BYTES, 0))
    end = raw.read()
    position = end.rfind(_ZIP_END)
    count = int.from_bytes(end[position + 10 : position + 12], "little")
    if position >= 0 and count > _MAX_MEMBERS:
        raise DataError(
            f"{file.name} is an archive of more than {_MAX_MEMBERS:,} files. Extract the ones with pairs."
        )
    try:
        with zipfile.ZipFile(raw) as archive:
            yield archive
    except UnicodeDecodeError:
        raise _damage_error(file, "the name of a file in it is not UTF-8, although it says so") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, zlib.error, lzma.LZMAError) as error:
        raise _damage_error(file, str(error) or "it is truncated") from None


def _member_blocks(file: InputFile, raw: IO[bytes]) -> Iterator[bytes]:
    with _archive(file, raw) as archive:
        try:
            info = archive.getinfo(file.member)
        except KeyError:
            raise _damage_error(file, "it is missing") from None
        if info.flag_bits & 1:
            raise DataError(f"{file.name} is encrypted. Save it without a password.")
        # zipfile limits the memory for deflate only. Other methods could expand a few bytes to gigabytes.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(
                f"{file.name} is compressed with a method other than deflate. Extract the file and name it."
            )
        _check_expansion(file, info.file_size, info.compress_size)  # zipfile reads no more than file_size
        with archive.open(info) as member:
            while block := member.read(_BLOCK_BYTES):
                yield block
