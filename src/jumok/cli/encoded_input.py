"""How `jumok translate` reads inputs that may not be UTF-8, for example with `--encoding cp949`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.cli.language import localise, localise_text
from jumok.data.encodings import check_encoding, encoding_advice, find_utf16, is_utf8_instead
from jumok.data.input_files import InputFile, read_blocks
from jumok.data.lines import read_transcoded
from jumok.documents.registry import find_format
from jumok.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.data.encodings import Encoding

_HEAD_BYTES = 4096


def read_text_file(path: Path, encoding: str) -> bytes:
    """Return the bytes of a text, decompressed if needed. Transcode them to UTF-8 if `encoding` is given."""
    file = InputFile(path, encoding=check_encoding(encoding))
    data = b"".join(read_blocks(file))
    if not encoding:
        return data
    _refuse_utf8(data, file.name, encoding)
    return b"".join(read_transcoded(file))


def transcode_to_utf8(data: bytes, name: str, encoding: str) -> bytes:
    """Convert a text from `encoding` to UTF-8. `name` is used in error messages."""
    _refuse_utf8(data, name, check_encoding(encoding))
    try:
        return data.decode(encoding).encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise DataError(
            localise("{name} is not {encoding} text: {error}.", name=name, encoding=encoding, error=error)
        ) from None


def read_document_file(path: Path, encoding: str) -> bytes:
    """Return the bytes of a document. Plain text in `encoding` is transcoded to UTF-8.

    Without `encoding`, plain text must be UTF-8, or UTF-16 with a byte order mark, which is not transcoded.
    XML and archives name their own encoding.
    """
    data = path.read_bytes()
    if find_format(path.name).unpack is not None or data.lstrip().startswith(b"<?xml"):
        return data
    if encoding:
        return read_text_file(path, encoding)
    refuse_unmarked_utf16(data[:_HEAD_BYTES], str(path))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if (utf16 := find_utf16(data[:_HEAD_BYTES])) is not None and utf16.codec == "utf-16":
            return data  # UTF-16 by its byte order mark; the translation is UTF-16 too
        lines, number = data.split(b"\n"), data.count(b"\n", 0, error.start)
        others = lines[:number] + lines[number + 1 :]
        advice = encoding_advice(data[:_HEAD_BYTES], lines[number], others, _add_encoding_option)
        raise DataError(
            localise(
                "{file} is not UTF-8 text (line {line:,}). {advice}",
                file=path,
                line=number + 1,
                advice=localise_text(advice),
            )
        ) from None
    return data


def refuse_unmarked_utf16(head: bytes, name: str) -> None:
    """Raise an error if a text looks like UTF-16 without a byte order mark.

    In UTF-16, Latin letters have a zero in every second byte. Zero bytes are also valid UTF-8. If no more
    than a quarter of the bytes are zero, the text is accepted, because it may be UTF-8.
    """
    utf16 = find_utf16(head) if 4 * head.count(0) > len(head) else None
    if utf16 is not None and utf16.codec != "utf-16":
        raise DataError(
            localise(
                "{name} looks like UTF-16 without a byte order mark. If it is UTF-16, {advice}",
                name=name,
                advice=_add_encoding_option(utf16),
            )
        )


def _add_encoding_option(encoding: Encoding) -> str:
    return localise("add --encoding {codec}.", codec=encoding.codec)


def _refuse_utf8(data: bytes, name: str, encoding: str) -> None:
    """Raise an error if a text is UTF-8. In another encoding it would be read as wrong characters."""
    if not is_utf8_instead(data, encoding):
        return
    raise DataError(
        localise(
            "{name} is UTF-8 text. Received: --encoding {encoding}. Leave the option out. If other files "
            "have that encoding, convert those files to UTF-8.",
            name=name,
            encoding=encoding,
        )
    )
