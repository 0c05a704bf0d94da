"""ODT, ODP and EPUB: text is translated, its formatting moves with the words, and the rest is copied."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from jumok.documents.registry import read_document
from jumok.errors import DataError
from support.office_files import (
    PICTURE,
    XML,
    identity,
    make_opendocument,
    make_zip,
    opendocument_part,
    parts_of,
    reverse,
    shout,
)

BOX = "<draw:frame><draw:text-box><text:p>inside a box</text:p></draw:text-box></draw:frame>"
NOTE = (
    "<text:note><text:note-citation>1</text:note-citation>"
    "<text:note-body><text:p>a footnote</text:p></text:note-body></text:note>"
)
BODY = (
    "<text:tracked-changes><text:deletion><text:p>deleted</text:p></text:deletion></text:tracked-changes>"
    "<text:h>A heading</text:h>\n"
    '<text:p>My name <text:span text:style-name="T1">is</text:span> Michael</text:p>'
    "<table:table><table:table-cell><text:p>a cell</text:p></table:table-cell></table:table>"
    f"<text:p>before {BOX}after</text:p><text:p>word{NOTE} end</text:p>"
    "<text:p>one<text:tab/>two<text:line-break/>three <text:s/>four &amp; five</text:p>"
    "<text:p>12.5</text:p><text:p/>"
    '<text:p>edi<text:span text:style-name="T2">ted</text:span> '
    '<text:a xlink:href="x">link</text:a></text:p>'
)
AUTOMATIC = "".join(
    f'<style:style style:name="{name}" style:family="text"><style:text-properties {attribute}/></style:style>'
    for name, attribute in (("T1", 'fo:font-weight="bold"'), ("T2", 'officeooo:rsid="0012"'))
)
STYLES = (
    '<style:default-style style:family="paragraph"><style:paragraph-properties/>'
    '<style:text-properties fo:language="en" fo:country="US" style:font-name-asian="X" '
    'style:language-asian="zh"/>'
    "</style:default-style><style:header><text:p>the header</text:p></style:header>"
)
ODT_FILE = make_opendocument(BODY, styles=STYLES, automatic=AUTOMATIC)
SEGMENTS = [
    "A heading",
    "My name is Michael",
    "a cell",
    "inside a box",
    "before after",
    "a footnote",
    "word end",
    "one\vtwo\nthree  four & five",
    "edited link",
    "the header",
]


def content_of(data: bytes) -> str:
    return parts_of(data)["content.xml"].decode()


def test_every_place_with_text_is_translated_and_nothing_else() -> None:
    _, document = read_document("a.odt", ODT_FILE)
    assert document.segments == SEGMENTS
    assert identity(document) == ODT_FILE


def test_capitals_change_only_the_text() -> None:
    written, parts = parts_of(shout(read_document("a.odt", ODT_FILE)[1])), parts_of(ODT_FILE)
    assert list(written) == list(parts)
    assert (written["mimetype"], written["Pictures/image1.png"]) == (parts["mimetype"], PICTURE)
    expected = parts["content.xml"].decode()
    for text in ("A heading", "My name ", ">is<", " Michael", "a cell", "inside a box", "before ", "after<"):
        expected = expected.replace(text, text.upper())
    for text in ("a footnote", ">word<", "> end<", ">one<", ">two<", ">three ", ">link<"):
        expected = expected.replace(text, text.upper())
    expected = expected.replace("four &amp; five", "FOUR &amp; FIVE")
    expected = expected.replace('edi<text:span text:style-name="T2">ted</text:span>', "EDITED")
    expected = expected.replace("<text:s/>", '<text:s text:c="1"/>')
    assert ElementTree.canonicalize(written["content.xml"]) == ElementTree.canonicalize(expected)


def test_formatting_links_and_notes_move_with_their_words() -> None:
    content = content_of(reverse(read_document("a.odt", ODT_FILE)[1]))
    assert '<text:p>MICHAEL <text:span text:style-name="T1">IS</text:span> NAME MY</text:p>' in content
    assert f"<text:p>END WORD{NOTE.replace('a footnote', 'FOOTNOTE A')}</text:p>" in content
    assert '<text:p><text:a xlink:href="x">LINK</text:a> EDITED</text:p>' in content


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "ko",
            [
                'style:language-asian="ko"',
                'style:country-asian="KR"',
                'style:font-family-asian="Malgun Gothic"',
            ],
        ),
        ("de", ['fo:language="de"', 'fo:country="DE"']),
        ("he", ['style:language-complex="he"', 'style:writing-mode="rl-tb"']),
    ],
)
def test_the_language_is_declared(language: str, expected: list[str]) -> None:
    styles = parts_of(shout(read_document("a.odt", ODT_FILE)[1], language))["styles.xml"].decode()
    assert all(attribute in styles for attribute in expected)
    ElementTree.fromstring(styles)  # fails if an attribute occurs twice


def test_a_declared_text_direction_of_open_document_becomes_that_of_the_new_language() -> None:
    styles = STYLES.replace("paragraph-properties", 'paragraph-properties style:writing-mode="rl-tb"')
    data = make_opendocument("<text:p>one</text:p>", styles=styles)
    written = parts_of(shout(read_document("a.odt", data)[1], "de"))["styles.xml"]
    assert b'style:writing-mode="lr-tb"' in written
    assert b"rl-tb" not in written


def test_the_language_is_declared_in_utf_16() -> None:
    parts = parts_of(ODT_FILE)
    styles = parts["styles.xml"].decode().replace("UTF-8", "UTF-16").encode("utf-16")
    written = parts_of(shout(read_document("a.odt", make_zip(parts | {"styles.xml": styles}))[1], "de"))
    assert 'fo:language="de"' in written["styles.xml"].decode("utf-16")


@pytest.mark.parametrize(("suffix", "kind"), [("odt", "text"), ("odp", "presentation")])
def test_alternative_texts_and_tooltips_of_open_document_are_translated(suffix: str, kind: str) -> None:
    svg = 'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    body = (
        f"<text:p>one <draw:frame {svg}><draw:image/><svg:title>The animals</svg:title>"
        "<svg:desc>a dog &amp; a cat</svg:desc></draw:frame>two "
        '<text:a xlink:href="x" office:name="n" office:title="go there">link</text:a></text:p>'
    )
    data = make_opendocument(body, kind=kind)
    _, document = read_document(f"a.{suffix}", data)
    assert sorted(document.segments) == ["The animals", "a dog & a cat", "go there", "one two link"]
    assert identity(document) == data
    written = parts_of(shout(document))["content.xml"].decode()
    assert "<svg:title>THE ANIMALS</svg:title><svg:desc>A DOG &amp; A CAT</svg:desc>" in written
    assert 'office:name="n" office:title="GO THERE">LINK</text:a>' in written


def test_slides_and_their_notes_are_translated() -> None:
    page = (
        "<draw:page><draw:frame><draw:text-box><text:p>a slide</text:p></draw:text-box></draw:frame>"
        "<presentation:notes><draw:text-box><text:p>say this</text:p></draw:text-box></presentation:notes>"
        "</draw:page>"
    )
    data = make_opendocument(page, kind="presentation")
    _, document = read_document("a.odp", data)
    assert document.segments == ["a slide", "say this"]
    assert identity(document) == data
    assert ">SAY THIS<" in content_of(shout(document))


def test_charts_of_open_document_are_translated() -> None:
    chart = opendocument_part(
        "document-content",
        "<office:body><office:chart><c:title xmlns:c='urn:chart'><text:p>The books</text:p></c:title>"
        "<table:table><table:table-cell><text:p>Spring</text:p></table:table-cell></table:table>"
        "</office:chart></office:body>",
    )
    formula = "<math xmlns='http://www.w3.org/1998/Math/MathML'><mi>alpha</mi></math>"
    cells = opendocument_part(
        "document-content", "<office:spreadsheet><text:p>Open</text:p></office:spreadsheet>"
    )
    objects = {"Object 1/content.xml": chart, "Object 2/content.xml": formula, "Object 3/content.xml": cells}
    data = make_zip(parts_of(make_opendocument("<text:p>one</text:p>")) | objects)
    document_format, document = read_document("a.odt", data)
    assert sorted(document.segments) == ["Spring", "The books", "one"]
    assert identity(document) == data
    written = parts_of(shout(document))["Object 1/content.xml"].decode()
    assert written == chart.replace("The books", "THE BOOKS").replace("Spring", "SPRING")
    # The tags of the chart are counted before it is parsed, like those of the document.
    assert sum(
        map(document_format.count_syntax_characters, document_format.parsed_parts(data))
    ) > chart.count("<")


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match="mimetype says something else"):
        read_document("a.odp", ODT_FILE)


PAGE = (
    f'{XML}<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en"><head>'
    '<title>One</title><script src="x"/></head>\n<body><p><a id="p1"/>My name <b>is</b>  Michael</p>'
    "<p>caf&#233;&#160;here<br/>next</p><pre>code here</pre><p/><div>last</div></body></html>\n"
)
BOOK = make_zip(
    {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>A book</dc:title>'
        '<dc:language>en</dc:language></metadata><manifest><item href="text/one%20page.xhtml" '
        'media-type="application/xhtml+xml"/><item href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '<item href="a.png" media-type="image/png"/></manifest><spine/></package>',
        "OEBPS/text/one page.xhtml": PAGE,
        "OEBPS/toc.ncx": '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><text>Chapter one</text></ncx>',
        "OEBPS/a.png": PICTURE,
    },
    stored=("mimetype",),
)


def test_the_pages_and_contents_of_a_book_are_translated() -> None:
    _, document = read_document("a.epub", BOOK)
    assert document.segments == [
        "A book",
        "One",
        "My name is Michael",
        "café\xa0here",
        "next",
        "last",
        "Chapter one",
    ]
    assert identity(document) == BOOK
    written = parts_of(reverse(document, "ko"))
    page = written["OEBPS/text/one page.xhtml"].decode()
    assert '<p><a id="p1"/>MICHAEL <b>IS</b> NAME MY</p>' in page
    assert '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="ko" lang="ko">' in page
    assert "<pre>code here</pre><p/><div>LAST</div>" in page
    ElementTree.fromstring(re.sub("<!DOCTYPE[^>]*>", "", page))
    assert b"<dc:title>BOOK A</dc:title><dc:language>ko</dc:language>" in written["OEBPS/book.opf"]
    assert b"<text>ONE CHAPTER</text>" in written["OEBPS/toc.ncx"]
    assert written["OEBPS/a.png"] == PICTURE


@pytest.mark.parametrize(
    ("old", "new", "spine", "expected"),
    [
        ("en", "ar", "<spine/>", '<spine page-progression-direction="rtl"/>'),
        (
            "en",
            "ar",
            '<spine toc="a" page-progression-direction="ltr"/>',
            '<spine toc="a" page-progression-direction="rtl"/>',
        ),
        (
            "ar",
            "en",
            '<spine page-progression-direction="rtl"/>',
            '<spine page-progression-direction="ltr"/>',
        ),
        ("ar", "en", "<spine/>", "<spine/>"),
        ("ar", "he", "<spine/>", '<spine page-progression-direction="rtl"/>'),
        (
            "ar",
            "he",
            '<spine page-progression-direction="rtl"/>',
            '<spine page-progression-direction="rtl"/>',
        ),
        # Books in vertical Japanese also turn their pages from right to left, and their style stays.
        (
            "ja",
            "ko",
            '<spine page-progression-direction="rtl"/>',
            '<spine page-progression-direction="rtl"/>',
        ),
    ],
)
def test_the_pages_of_a_book_turn_in_the_direction_of_the_new_language(
    old: str, new: str, spine: str, expected: str
) -> None:
    parts = parts_of(BOOK)
    package = parts["OEBPS/book.opf"].decode().replace(">en<", f">{old}<").replace("<spine/>", spine)
    book = make_zip(parts | {"OEBPS/book.opf": package}, stored=("mimetype",))
    written = parts_of(shout(read_document("a.epub", book)[1], new))["OEBPS/book.opf"].decode()
    assert f"<dc:language>{new}</dc:language>" in written
    assert f"</manifest>{expected}</package>" in written
