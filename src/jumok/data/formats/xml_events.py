"""XML as a stream of events, from untrusted files.

expat reads piece by piece, so a file of any size needs little memory. A file that declares entities is
refused, because an entity of a few bytes can expand to gigabytes or to the contents of another file. A DTD is
never fetched. This module decodes the text, because expat knows only four encodings.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Protocol, TypeVar
from xml.parsers import expat

from jumok.data.encodings import check_encoding, find_utf16
from jumok.data.input_files import read_blocks
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from jumok.data.input_files import InputFile

MAX_TEXT = 1 << 20  # characters of one sentence or cell
_MAX_TOKEN_BYTES = 1 << 21  # of a tag or comment, which expat keeps in memory
_MAX_DEPTH = 200
FORBIDDEN_CHARACTER = "character that XML forbids"

_DECLARED_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""")
# XML forbids these characters, also as references; tools write them nevertheless.
_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
    r"|&#(?:x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]));",
    re.IGNORECASE,
)
_MAX_REFERENCE = 12  # characters

T = TypeVar("T")


class XmlHandler(Protocol[T]):
    """Collects the items of a format from events.

    The names of elements are passed without their namespace prefix, the names of attributes with it.
    """

    def start(self, name: str, attributes: dict[str, str], line: int) -> None: ...
    def end(self, name: str) -> None: ...
    def text(self, data: str) -> None: ...
    def take(self) -> list[T]:
        """Return the items that were completed since the last call."""
        ...


def read_xml(file: InputFile, handler: XmlHandler[T], dropped: Counter[str]) -> Iterator[T]:
    """Feed a file to a handler and yield the items that the handler collects."""
    parser = _make_parser(file, handler)
    fed_bytes = 0
    try:
        for text in _without_forbidden(_decoded(file), dropped):
            data = text.encode("utf-8", "surrogatepass")
            fed_bytes += len(data)
            parser.Parse(data, False)
            if fed_bytes - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
                raise DataError(
                    f"{file.name} has a tag or comment of more than {_MAX_TOKEN_BYTES:,} bytes; "
                    "reading stopped."
                )
            yield from handler.take()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        yield from handler.take()
        raise DataError(
            f"{file.name} is not well-formed XML: {expat.ErrorString(error.code)} on line {error.lineno:,}, "
            f"column {error.offset + 1:,}. Export the file again, or repair that place."
        ) from None
    yield from handler.take()


def _make_parser(file: InputFile, handler: XmlHandler[T]) -> expat.XMLParserType:
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise DataError(f"{file.name} nests more than {_MAX_DEPTH} elements; reading stopped.")
        handler.start(name.rpartition(":")[2], attributes, parser.CurrentLineNumber)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(name.rpartition(":")[2])

    def refuse_entity(*declaration: object) -> None:
        raise DataError(
            f"{file.name} declares the entity {str(declaration[0])!r}, which could expand to anything; "
            "reading stopped. Export the file without a document type declaration."
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = refuse_entity
    return parser


def _decoded(file: InputFile) -> Iterator[str]:
    """Yield the text of an XML file.

    The text is decoded with `file.encoding`. If `file.encoding` is "", the beginning of the file decides.
    """
    blocks = read_blocks(file)
    head = next(blocks, b"")
    encoding = file.encoding or _find_encoding(head)
    try:
        decoder = codecs.getincrementaldecoder(check_encoding(encoding))()
    except DataError:
        raise DataError(
            f"{file.name} declares the encoding {encoding!r}, which jumok does not know."
        ) from None
    consumed = 0
    try:
        block = head
        while block:
            consumed += len(block)
            yield decoder.decode(block)
            block = next(blocks, b"")
        yield decoder.decode(b"", final=True)
    except UnicodeError as error:
        offset = consumed - len(error.object) + error.start if isinstance(error, UnicodeDecodeError) else 0
        raise DataError(
            f"{file.name} is not {encoding} text: {getattr(error, 'reason', error)} near byte {offset:,}. "
            "Give its true encoding with --encoding, or export it again."
        ) from None


def _find_encoding(head: bytes) -> str:
    """Return the encoding of a byte order mark, UTF-16 if the bytes look like it, or the declared encoding.

    If there is none of these, the encoding is UTF-8.
    """
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    utf16 = find_utf16(head[:1000])
    if utf16 is not None:
        return utf16.codec
    declared = _DECLARED_ENCODING.match(head)
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    # The file may declare UTF-16. But the pattern of ASCII bytes matched, so the file is not UTF-16.
    return "utf-8" if name.startswith("utf-16") else name


def _without_forbidden(texts: Iterator[str], dropped: Counter[str]) -> Iterator[str]:
    """Drop and count forbidden characters, because expat would refuse the file for one of them."""

    def cleaned(text: str) -> str:
        text, count = _FORBIDDEN.subn("", text)
        if count:
            dropped[FORBIDDEN_CHARACTER] += count
        return text

    rest = ""
    for text in texts:
        text = rest + text
        ampersand = text.rfind("&", -_MAX_REFERENCE)  # a reference may go on in the next block
        cut = ampersand if ampersand >= 0 else len(text)
        rest = text[cut:]
        yield cleaned(text[:cut])
    yield cleaned(rest)
