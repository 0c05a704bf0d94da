"""Make small office files, and translate documents without a model.

The files have only the necessary parts of files that Word and other programs write.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from jumok.documents.document import SegmentTranslation
from jumok.text.words import word_spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.documents.document import Document

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_X = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
PICTURE = bytes(range(256)) * 8


def make_zip(parts: Mapping[str, str | bytes], *, stored: tuple[str, ...] = ()) -> bytes:
    """Return a ZIP file with these parts. Parts whose names are in `stored` are not compressed."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name, (2024, 1, 2, 3, 4, 6))
            archive.writestr(info, data, zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED)
    return output.getvalue()


def parts_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def word_part(root: str, content: str) -> str:
    namespaces = f'xmlns:w="{_W}" xmlns:r="urn:r" xmlns:mc="urn:mc" xmlns:v="urn:v"'
    return f"{XML}<w:{root} {namespaces}>{content}</w:{root}>"


def run(text: str, properties: str = "") -> str:
    """Return a run: a stretch of a Word paragraph with one format."""
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    space = ' xml:space="preserve"' if text != text.strip() else ""
    return f"<w:r>{properties}<w:t{space}>{text}</w:t></w:r>"


def make_docx(body: str, **more: str | bytes) -> bytes:
    """Return a Word document whose body has the XML `body`.

    Each keyword adds a part: `header1="…"` adds word/header1.xml.
    """
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f"{XML}<Types/>",
        "word/document.xml": word_part("document", f"<w:body>{body}</w:body>"),
        "word/media/image1.png": PICTURE,
    }
    for name, content in more.items():
        parts[f"word/{name}.xml"] = content
    return make_zip(parts)


def make_pptx(slide: str, notes: str = "") -> bytes:
    """Return a presentation of one slide with notes. The arguments are the paragraphs in them, as XML."""

    def part(content: str) -> str:
        return f'{XML}<p:sld xmlns:a="{_A}" xmlns:p="urn:p"><p:txBody>{content}</p:txBody></p:sld>'

    return make_zip(
        {
            "[Content_Types].xml": f"{XML}<Types/>",
            "ppt/slides/slide1.xml": part(slide),
            "ppt/notesSlides/notesSlide1.xml": part(notes),
            "ppt/media/image1.png": PICTURE,
        }
    )


def make_epub(page: str) -> bytes:
    """Return a book of one page. `page` is the XHTML of the page."""
    return make_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="book.opf"/></rootfiles></container>',
            "book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item href="page.xhtml" '
            'media-type="application/xhtml+xml"/></manifest></package>',
            "page.xhtml": page,
        },
        stored=("mimetype",),
    )


def make_xlsx(strings: str, **more: str) -> bytes:
    """Return a workbook whose table of shared strings has the XML `strings`.

    Each keyword adds a part: `workbook="…"` adds xl/workbook.xml.
    """
    return make_zip(
        {
            "[Content_Types].xml": f"{XML}<Types/>",
            "xl/sharedStrings.xml": f'{XML}<sst xmlns="{_X}">{strings}</sst>',
            **{f"xl/{name}.xml": content for name, content in more.items()},
        }
    )


_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def opendocument_part(root: str, content: str) -> str:
    names = {"office": "office", "text": "text", "style": "style", "draw": "drawing", "table": "table"}
    names |= {"presentation": "presentation", "fo": "xsl-fo-compatible"}
    namespaces = "".join(f' xmlns:{prefix}="{_OFFICE}{name}:1.0"' for prefix, name in names.items())
    namespaces += ' xmlns:officeooo="http://openoffice.org/2009/office" xmlns:xlink="urn:xlink"'
    return f"{XML}<office:{root}{namespaces}>{content}</office:{root}>"


def make_opendocument(body: str, *, styles: str = "", automatic: str = "", kind: str = "text") -> bytes:
    """Return an ODT file, or an ODP file if the kind is "presentation"."""
    content = (
        f"<office:automatic-styles>{automatic}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    )
    return make_zip(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": opendocument_part("document-content", content),
            "styles.xml": opendocument_part("document-styles", styles),
            "Pictures/image1.png": PICTURE,
        },
        stored=("mimetype",),
    )


def identity(document: Document) -> bytes:
    """Return the document with every segment translated as itself."""
    return document.write([_translation(text, text) for text in document.segments])


def shout(document: Document, language: str = "") -> bytes:
    """Return an English document with every segment in capitals, aligned word for word."""
    return document.write([_translation(text, text.upper()) for text in document.segments], language, "en")


def _translation(source: str, target: str) -> SegmentTranslation:
    return SegmentTranslation(target, [(span, span) for span in word_spans(source)])


def reverse(document: Document, language: str = "") -> bytes:
    """Return an English document with the words of every segment in capitals and in reverse order."""
    translations = []
    for text in document.segments:
        words, links, position = [], [], 0
        for start, end in reversed(word_spans(text)):
            words.append(text[start:end].upper())
            links.append(((start, end), (position, position + end - start)))
            position += end - start + 1  # a space follows
        translations.append(SegmentTranslation(" ".join(words), links))
    return document.write(translations, language, "en")
