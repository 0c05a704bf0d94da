"""EPUB books: the title, the pages and the table of contents are translated.

The package file (.opf) lists the pages. Pages are XHTML and are translated like HTML (`html_markup`), except
that a self-closing tag such as `<a id="p1"/>` is an empty element.
"""

from __future__ import annotations

import posixpath
import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jumok.documents.document import DocumentFormat
from jumok.documents.html import HtmlFile, set_html_language
from jumok.documents.html_markup import INLINE, VOID, HtmlMarkup, read_tokens
from jumok.documents.html_tokenizer import HtmlToken, TokenKind
from jumok.documents.languages import is_right_to_left
from jumok.documents.xml_reader import TextElementReader
from jumok.documents.xml_tree import decode_xml, read_xml
from jumok.documents.zip_document import ArchivePart, ZipDocument, open_archive, read_part, unpack_parts
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zipfile import ZipFile

    from jumok.documents.xml_tree import XmlNode, XmlSource
    from jumok.documents.zip_document import LanguageSetter

_PREFIXES = {
    "urn:oasis:names:tc:opendocument:xmlns:container": "",
    "http://www.idpf.org/2007/opf": "opf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.daisy.org/z3986/2005/ncx/": "ncx",
    "http://www.w3.org/1999/xhtml": "",
}
_PAGE, _CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"


def _read(data: bytes) -> ZipDocument:
    parts = {}
    with open_archive(data) as archive:
        package = _package_name(archive)
        source, encoding = _read_xml(archive, package)
        template = TextElementReader(source, ["dc:title"]).read()
        parts[package] = ArchivePart(template, encoding)
        pages = []
        names = set(archive.namelist())
        for name, media_type in _manifest_items(source, package):
            if name not in names or name in parts:
                continue
            if media_type == _PAGE:
                page, encoding = _read_xml(archive, name)
                parts[name] = ArchivePart(HtmlFile(_read_page(page)), encoding)
                pages.append(name)
            elif media_type == _CONTENTS:
                contents, encoding = _read_xml(archive, name)
                parts[name] = ArchivePart(TextElementReader(contents, ["ncx:text"]).read(), encoding)
    return ZipDocument(data, parts, partial(_language_setter, package=package, pages=frozenset(pages)))


def _package_name(archive: ZipFile) -> str:
    container, _ = _read_xml(archive, "META-INF/container.xml")
    for node in container.root.walk():
        if node.name.endswith("rootfile") and "full-path" in node.attributes:
            return node.attributes["full-path"]
    raise DataError("The book is damaged: META-INF/container.xml names no package.")


def _read_xml(archive: ZipFile, name: str) -> tuple[XmlSource, str]:
    text, encoding = decode_xml(read_part(archive, name))
    try:
        return read_xml(text, _PREFIXES, allow_doctype=True), encoding
    except DataError as error:
        raise DataError(f"{name[:60]}: {error}") from None


def _manifest_items(package: XmlSource, package_name: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the media type of each part that the package lists."""
    folder = posixpath.dirname(package_name)
    for node in package.root.walk():
        if node.name == "opf:item":
            path = posixpath.normpath(posixpath.join(folder, unquote(node.attributes.get("href", ""))))
            yield path, node.attributes.get("media-type", "")


def _read_page(source: XmlSource) -> HtmlMarkup:
    root = source.root
    markup = read_tokens(_to_tokens(root, source), with_attributes=True)
    before, after = source.raw(0, root.start), source.data[root.end :].decode()
    return HtmlMarkup([before, *markup.parts, after], markup.attributes)


def _to_tokens(node: XmlNode, source: XmlSource) -> Iterator[HtmlToken]:
    if not node.name:
        raw = source.raw_node(node)
        yield HtmlToken(TokenKind.OTHER if "<![CDATA[" in raw else TokenKind.TEXT, raw)
    elif node.name == "?" or (node.is_empty_tag and node.name in INLINE):
        yield HtmlToken(TokenKind.OTHER, source.raw_node(node))
    elif node.is_empty_tag:
        yield HtmlToken(TokenKind.OPENING, source.raw_node(node), node.name)
        if node.name not in VOID:
            yield HtmlToken(TokenKind.CLOSING, "", node.name)
    else:
        closing = source.raw(node.content_end, node.end)
        yield HtmlToken(TokenKind.OPENING, source.raw(node.start, node.content_start), node.name, closing)
        for child in node.children:
            yield from _to_tokens(child, source)
        yield HtmlToken(TokenKind.CLOSING, closing, node.name)


def _language_setter(name: str, *, package: str, pages: frozenset[str]) -> LanguageSetter | None:
    if name in pages:
        return _set_page_language
    return _set_package_language if name == package else None


def _set_page_language(data: bytes, language: str) -> bytes:
    text, encoding = decode_xml(data)
    return set_html_language(text, language).encode(encoding)


def _set_package_language(data: bytes, language: str) -> bytes:
    """Set the language of the book, and the direction in which its pages turn.

    A declared direction changes only if the direction of the text changes, because it may have another
    reason. For example, vertical Japanese also turns pages from right to left.
    """
    text, encoding = decode_xml(data)
    declared = re.search(r"<dc:language\b[^<>]*>([^<>]*)</dc:language>", text)
    old_language = declared[1].strip() if declared else ""
    if declared is not None:
        text = text[: declared.start(1)] + language + text[declared.end(1) :]
    is_rtl = is_right_to_left(language)
    if is_rtl != is_right_to_left(old_language):
        attribute = r"""(<spine\b[^<>]*?\spage-progression-direction\s*=\s*)(?:"[^"]*"|'[^']*')"""
        text = re.sub(attribute, rf'\g<1>"{"rtl" if is_rtl else "ltr"}"', text, count=1)
    if is_rtl and "page-progression-direction" not in text:
        text = re.sub(r"<spine\b", '<spine page-progression-direction="rtl"', text, count=1)
    return text.encode(encoding)


def _may_be_parsed(name: str) -> bool:
    return name.lower().endswith((".xhtml", ".html", ".htm", ".opf", ".ncx", ".xml"))


EPUB = DocumentFormat(
    (".epub",),
    "application/epub+zip",
    _read,
    syntax_characters=b"<&",
    unpack=partial(unpack_parts, is_parsed=_may_be_parsed),
)
