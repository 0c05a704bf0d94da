"""XML as a tree with the span of every element in the file, so that untranslated markup is copied verbatim.

Expat parses the file. Entity declarations are refused, and nesting is limited. Offsets count bytes of the
text in UTF-8.
"""

from __future__ import annotations

import codecs
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAX_XML_DEPTH = 200
_DECLARED_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_NOT_IN_XML = frozenset(["idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"])
"""Encodings of Python that XML does not have. Some decode to lone surrogates, and others cannot encode a
translation."""
_CHUNK_BYTES = 2**20


@dataclass(eq=False, slots=True)
class XmlNode:
    """An element, a text, a comment or a processing instruction.

    The name of a text is "". The name of a comment or a processing instruction is "?".
    """

    name: str
    """`prefix:local` with the prefix that the reader of the format defines for the namespace."""
    attributes: Mapping[str, str]
    start: int
    content_start: int = 0
    content_end: int = 0
    end: int = 0
    text: str = ""
    children: list[XmlNode] = field(default_factory=list)

    @property
    def is_empty_tag(self) -> bool:
        """Whether the element is written as `<a/>`."""
        return self.content_start == self.end

    def find(self, name: str) -> XmlNode | None:
        """Return the first child with this name."""
        return next((child for child in self.children if child.name == name), None)

    def walk(self) -> Iterator[XmlNode]:
        """Yield this node and all nodes inside it, in file order."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.children))

    def content(self) -> str:
        """Return the text inside the node, without tags."""
        return "".join(node.text for node in self.walk() if not node.name)


@dataclass(frozen=True, slots=True)
class XmlSource:
    """The text of a file in UTF-8, and its root element."""

    data: bytes
    root: XmlNode

    def raw(self, start: int, end: int) -> str:
        return self.data[start:end].decode()

    def raw_node(self, node: XmlNode) -> str:
        return self.raw(node.start, node.end)

    def opening(self, node: XmlNode) -> str:
        """Return the start tag of an element. For `<a/>`, return `<a>`."""
        raw = self.raw(node.start, node.content_start)
        return f"{raw[:-2].rstrip()}>" if node.is_empty_tag and raw.endswith("/>") else raw

    def closing(self, node: XmlNode) -> str:
        if not node.is_empty_tag:
            return self.raw(node.content_end, node.end)
        name = re.match(r"<([^\s/>]+)", self.raw(node.start, node.end))
        return f"</{name[1]}>" if name else ""


def decode_xml(data: bytes) -> tuple[str, str]:
    """Return the text of an XML file and the name of its encoding.

    The byte order mark or the XML declaration gives the encoding. Without either, it is UTF-8.
    """
    reason = "although it says so"
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = "utf-16-le" if data.startswith(BOM_UTF16_LE) else "utf-16-be"
    elif data.startswith(BOM_UTF8):
        encoding = "utf-8"
    else:
        declared = _DECLARED_ENCODING.match(data[:200])
        encoding = declared[1].decode().lower() if declared else "utf-8"
        if not declared:
            reason = "which XML is unless it declares another encoding"
    try:
        if codecs.lookup(encoding).name in _NOT_IN_XML:
            raise LookupError(encoding)
        return data.decode(encoding), encoding
    except LookupError:
        raise DataError(
            f"The file declares the encoding {encoding[:60]}, which is not read. Convert it to UTF-8 and try "
            "again."
        ) from None
    except UnicodeError:
        raise DataError(f"The file is not {encoding.upper()}, {reason}.") from None


def read_xml(text: str, prefixes: Mapping[str, str], *, allow_doctype: bool = False) -> XmlSource:
    """Parse the text of an XML file. `prefixes` maps namespaces to the prefixes of the names in the tree."""
    data = text.encode()
    parser = expat.ParserCreate("UTF-8", " ")
    builder = _TreeBuilder(prefixes, lambda: parser.CurrentByteIndex)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartCdataSectionHandler = lambda: builder.text("")
    parser.SkippedEntityHandler = lambda name, _: builder.text(f"&{name};")
    parser.CommentHandler = parser.ProcessingInstructionHandler = builder.other
    parser.EntityDeclHandler = _refuse_entities
    if not allow_doctype:
        parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        for begin in range(0, len(data), _CHUNK_BYTES):
            parser.Parse(data[begin : begin + _CHUNK_BYTES], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(
            f"This is not well-formed XML: {reason}, line {error.lineno:,}, column {error.offset + 1:,}."
        ) from None
    return XmlSource(data, builder.finish(data))


def _refuse_entities(*_: object) -> None:
    raise DataError("The XML declares entities, which can hide an attack. They are not read; remove them.")


def _refuse_doctype(*_: object) -> None:
    raise DataError("The XML has a DOCTYPE, which files of this format do not have. Remove it.")


class _TreeBuilder:
    """Builds the tree from the events of expat.

    Expat reports the start of an event. The event ends at the start of the next event.
    """

    def __init__(self, prefixes: Mapping[str, str], position: Callable[[], int]) -> None:
        self._prefixes = prefixes
        self._position = position
        self._names: dict[str, str] = {}
        self._document = XmlNode("", {}, 0)
        self._open = [self._document]
        self._last = self._document  # the node of the last event
        self._last_ended = False  # whether the last event was the end of this node
        self._texts: list[str] = []  # the text of the last node, in pieces

    def finish(self, data: bytes) -> XmlNode:
        root = next(node for node in self._document.children if node.name != "?")
        has_end_tag = data.startswith(b"</", root.content_end)
        root.end = data.index(b">", root.content_end) + 1 if has_end_tag else root.content_end
        return root

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) > MAX_XML_DEPTH:
            raise DataError(f"The XML has more than {MAX_XML_DEPTH} elements inside each other.")
        attributes = {self._name(key): value for key, value in attributes.items()}
        self._open.append(self._begin(XmlNode(self._name(name), attributes, self._position())))

    def end(self, _: str) -> None:
        position = self._position()
        self._complete_last(position)
        self._last = self._open.pop()
        self._last.content_end = position
        self._last_ended = True

    def text(self, text: str) -> None:
        if self._last.name or self._last is self._document or self._last_ended:
            self._begin(XmlNode("", {}, self._position()))
        self._texts.append(text)

    def other(self, *_: str) -> None:
        self._begin(XmlNode("?", {}, self._position()))

    def _begin(self, node: XmlNode) -> XmlNode:
        self._complete_last(node.start)
        self._open[-1].children.append(node)
        self._last, self._last_ended = node, False
        return node

    def _complete_last(self, position: int) -> None:
        """Store `position` as the end of the last event, which is a tag, a text or a comment."""
        if self._last_ended or self._last.name in ("", "?"):
            self._last.end = position
        else:
            self._last.content_start = position
        if self._texts:
            self._last.text = "".join(self._texts)
            self._texts = []

    def _name(self, name: str) -> str:
        if name not in self._names:
            namespace, _, local = name.rpartition(" ")
            prefix = self._prefixes.get(namespace, namespace)
            self._names[name] = f"{prefix}:{local}" if prefix else local
        return self._names[name]
