"""DOCX, PPTX and XLSX: text is translated, its formatting moves with the words, and the rest is copied."""

from __future__ import annotations

import random
import re
from xml.etree import ElementTree

import pytest

from jumok.documents.document import SegmentTranslation
from jumok.documents.registry import read_document
from jumok.text.sentences import split_sentences
from jumok.text.words import word_spans
from support.office_files import (
    PICTURE,
    identity,
    make_docx,
    make_pptx,
    make_xlsx,
    make_zip,
    parts_of,
    reverse,
    run,
    shout,
    word_part,
)

BOLD = "<w:b/>"
TEXT_BOX = (
    "<w:r><mc:AlternateContent><mc:Choice><w:drawing><w:txbxContent>"
    f"<w:p>{run('inside a box')}</w:p></w:txbxContent></w:drawing></mc:Choice><mc:Fallback><w:pict>"
    f"<v:textbox><w:txbxContent><w:p>{run('inside a box')}</w:p></w:txbxContent></v:textbox>"
    "</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
)
FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>{code}</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
PAGE = FIELD.format(code=" PAGE ", result=run("five"))
EVERYTHING = (
    f"<w:p><w:pPr><w:jc/></w:pPr>{run('My name ')}{run('is', BOLD)}{run(' Michael')}</w:p>\n"
    f"<w:tbl><w:tr><w:tc><w:p>{run('a cell')}</w:p></w:tc></w:tr></w:tbl>"
    f"<w:p>{run('before ')}{TEXT_BOX}{run('after')}</w:p>"
    f"<w:p>{run('page ')}{PAGE}{run(' of')}</w:p>"
    f'<w:p><w:del w:id="1"><w:r><w:delText>gone</w:delText></w:r></w:del>'
    f'<w:ins w:id="2">{run("new")}</w:ins>{run(" text")}</w:p>'
    f"<w:p>{run('shown ')}{run('hidden', '<w:vanish/>')}</w:p>"
    f'<w:p>{run("note")}<w:r><w:footnoteReference w:id="1"/></w:r></w:p>'
    f"<w:p><w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{run('a control')}</w:sdtContent></w:sdt></w:p>"
    f"<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three &amp; four</w:t></w:r></w:p>"
    f'<w:p><w:hyperlink r:id="rId1">{run("a link")}</w:hyperlink>{run(" here")}</w:p>'
    "<w:p><w:r><w:t>2024</w:t></w:r></w:p><w:p/>"
)
PARTS = {
    "header1": word_part("hdr", f"<w:p>{run('the header')}</w:p>"),
    "footer1": word_part("ftr", f"<w:p>{run('the footer')}</w:p>"),
    "footnotes": word_part("footnotes", f'<w:footnote w:id="1"><w:p>{run("a footnote")}</w:p></w:footnote>'),
    "comments": word_part("comments", f'<w:comment w:id="1"><w:p>{run("a comment")}</w:p></w:comment>'),
    "styles": word_part("styles", f"<w:p>{run('a style')}</w:p>"),
}
DOCUMENT = make_docx(EVERYTHING, **PARTS)


def document_of(data: bytes) -> str:
    return parts_of(data)["word/document.xml"].decode()


def body(data: bytes) -> str:
    match = re.search(r"<w:body>(.*)</w:body>", document_of(data), re.DOTALL)
    assert match
    return match[1]


def canonical(data: bytes) -> str:
    return ElementTree.canonicalize(data.decode())


def test_every_place_with_text_is_translated_and_nothing_else() -> None:
    _, document = read_document("a.docx", DOCUMENT)
    assert sorted(document.segments) == [
        "My name is Michael",
        "a cell",
        "a comment",
        "a control",
        "a footnote",
        "a link here",
        "before after",
        "inside a box",
        "inside a box",
        "new text",
        "note",
        "one\vtwo\nthree & four",
        "page of",
        "shown ",
        "the footer",
        "the header",
    ]


def test_a_document_translated_into_itself_is_the_same_file() -> None:
    assert identity(read_document("a.docx", DOCUMENT)[1]) == DOCUMENT


def test_capitals_change_only_the_text() -> None:
    """Paragraphs are written with the same elements in the same order. Other parts are unchanged."""
    written = parts_of(shout(read_document("a.docx", DOCUMENT)[1]))
    parts = parts_of(DOCUMENT)
    assert written.keys() == parts.keys()
    for name in ("[Content_Types].xml", "word/media/image1.png", "word/styles.xml"):
        assert written[name] == parts[name]
    assert written["word/media/image1.png"] == PICTURE

    def shouted(match: re.Match[str]) -> str:
        is_kept = match[2] in ("five", "hidden")  # the result of a field, hidden text
        return match[0] if is_kept else match[1] + match[2].upper().replace("&AMP;", "&amp;") + match[3]

    for name in ("document", "header1", "footer1", "footnotes", "comments"):
        expected = re.sub(
            r"(<w:t(?: xml:space=\"preserve\")?>)([^<]*)(</w:t>)", shouted, parts[f"word/{name}.xml"].decode()
        )
        assert canonical(written[f"word/{name}.xml"]) == canonical(expected.encode())


def test_bold_lands_on_the_aligned_word() -> None:
    data = make_docx(f"<w:p>{run('My name ')}{run('is', BOLD)}{run(' Michael')}</w:p>")
    _, document = read_document("a.docx", data)
    assert document.segments == ["My name is Michael"]
    source, target = word_spans("My name is Michael"), word_spans("제 이름은 마이클 입니다")
    links = [(source[0], target[0]), (source[1], target[1]), (source[2], target[3]), (source[3], target[2])]
    written = document.write([SegmentTranslation("제 이름은 마이클 입니다", links)])
    assert body(written) == f"<w:p>{run('제 이름은 마이클 ')}{run('입니다', BOLD)}</w:p>"


def test_runs_that_microsoft_word_has_split_are_joined() -> None:
    pieces = (
        '<w:r w:rsidR="001"><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>Hel</w:t></w:r>'
        '<w:proofErr w:type="spellStart"/><w:r w:rsidR="002"><w:t>lo </w:t></w:r>'
        "<w:r><w:rPr><w:noProof/></w:rPr><w:t>wor</w:t></w:r><w:r><w:t>ld</w:t></w:r>"
    )
    _, document = read_document("a.docx", make_docx(f"<w:p>{pieces}</w:p>"))
    assert document.segments == ["Hello world"]
    assert body(shout(document)) == f"<w:p>{run('HELLO WORLD')}</w:p>"


@pytest.mark.parametrize("properties", ["", BOLD])
@pytest.mark.parametrize("kind", ["page", "column", "textWrapping"])
def test_a_break_of_any_type_ends_a_sentence(kind: str, properties: str) -> None:
    """The break stays between the sentences, even if the run that contains the break is bold."""
    mark = f'<w:br w:type="{kind}"/>'
    run_of_mark = f"<w:r>{f'<w:rPr>{properties}</w:rPr>' if properties else ''}{mark}</w:r>"
    data = make_docx(f"<w:p>{run('I go home.')}{run_of_mark}{run('He reads.')}</w:p>")
    _, document = read_document("a.docx", data)
    [segment] = document.segments
    assert split_sentences(segment) == ["I go home.", "He reads."]
    assert identity(document) == data
    written = "<w:br/>" if kind == "textWrapping" else mark  # textWrapping is the default
    assert f"I GO HOME.</w:t>{written}<w:t>HE READS." in re.sub(
        "</w:r><w:r>(?:<w:rPr>.*?</w:rPr>)?", "", body(shout(document))
    )


def test_a_break_with_other_attributes_is_written_as_it_is() -> None:
    mark = '<w:br w:type="textWrapping" w:clear="all"/>'
    data = make_docx(f"<w:p>{run('one')}<w:r>{mark}</w:r>{run('two')}</w:p>")
    assert body(shout(read_document("a.docx", data)[1])).count(mark) == 1


def test_links_and_notes_move_with_their_words() -> None:
    note = '<w:r><w:footnoteReference w:id="1"/></w:r>'
    link = '<w:hyperlink r:id="rId1">{}</w:hyperlink>'
    data = make_docx(f"<w:p>{link.format(run('one'))}{run(' two')}{note}{run(' three')}</w:p>")
    written = body(reverse(read_document("a.docx", data)[1]))
    assert written == f"<w:p>{run('THREE TWO')}{note}{run(' ')}{link.format(run('ONE'))}</w:p>"


def test_fields_stay_whole_and_fields_over_several_paragraphs_stay_in_place() -> None:
    link = FIELD.format(code=' HYPERLINK "x" ', result=run("a link"))
    begin, _, end = FIELD.format(code=" TOC ", result="|").partition("|")
    data = make_docx(
        f"<w:p>{run('page ')}{PAGE}</w:p><w:p>{link}{run(' now')}</w:p>"
        f"<w:p>{begin}{run('chapter one')}</w:p><w:p>{run('chapter two')}{end}</w:p>"
    )
    _, document = read_document("a.docx", data)
    assert document.segments == ["page ", "a link now", "chapter one", "chapter two"]
    first, second, third, fourth = body(reverse(document)).split("</w:p>")[:4]
    assert PAGE in first
    assert second == "<w:p>" + run("NOW ") + FIELD.format(code=' HYPERLINK "x" ', result=run("LINK A"))
    assert third == f"<w:p>{begin}{run('ONE CHAPTER')}"
    assert fourth == f"<w:p>{run('TWO CHAPTER')}{end}"


def test_the_end_of_a_field_does_not_swallow_the_words_after_it() -> None:
    begin, _, end = FIELD.format(code=" TOC ", result="|").partition("|")
    data = make_docx(f"<w:p>{begin}{run('chapter')}</w:p><w:p>{end}{run('text')}</w:p>")
    assert body(shout(read_document("a.docx", data)[1])).endswith(f"<w:p>{end}{run('TEXT')}</w:p>")


def test_any_paragraph_keeps_its_elements_and_is_well_formed() -> None:
    """The links, insertions, formatting, notes and pictures are random, and the words are reversed."""
    generator = random.Random(3)

    def content(depth: int) -> str:
        pieces = []
        for _ in range(generator.randint(1, 4)):
            number = generator.randrange(10**6)
            words = " ".join(generator.choices(["one", "two", "three."], k=generator.randint(1, 3)))
            pieces.append(
                generator.choice(
                    [
                        run(f"{words} "),
                        run(words, generator.choice([BOLD, "<w:i/>"])),
                        f'<w:r><w:footnoteReference w:id="{number}"/></w:r>',
                        f'<w:r><w:drawing id="{number}"/></w:r>',
                        f'<w:del w:id="{number}"><w:r><w:delText>x</w:delText></w:r></w:del>',
                        f'<w:hyperlink r:id="{number}">{content(depth + 1)}</w:hyperlink>'
                        if depth < 3
                        else "",
                        f'<w:ins w:id="{number}">{content(depth + 1)}</w:ins>' if depth < 3 else "",
                    ]
                )
            )
        return "".join(pieces)

    atomic = re.compile(r'<w:(?:footnoteReference w:id|drawing id|del w:id)="\d+"')
    moving = re.compile(r'<w:(?:hyperlink r:id|ins w:id)="\d+"')
    for _ in range(200):
        text = f"<w:p>{content(0)}</w:p>"
        document = read_document("a.docx", make_docx(text))[1]
        written = document_of(reverse(document))
        ElementTree.fromstring(written)  # raises an error if it is not well-formed
        assert sorted(atomic.findall(written)) == sorted(atomic.findall(text))
        assert set(moving.findall(written)) == set(moving.findall(text))
        words = "".join(re.findall(r"<w:t[^>]*>([^<]*)</w:t>", written))
        assert sorted(words.replace(" ", "")) == sorted("".join(document.segments).upper().replace(" ", ""))


def test_a_bookmark_in_a_paragraph_is_widened_to_its_whole_text() -> None:
    start, end = '<w:bookmarkStart w:id="0" w:name="x"/>', '<w:bookmarkEnd w:id="0"/>'
    data = make_docx(f"<w:p>{run('one ')}{start}{run('two')}{end}{run(' three')}</w:p>")
    assert body(reverse(read_document("a.docx", data)[1])) == f"<w:p>{start}{run('THREE TWO ONE')}{end}</w:p>"


def test_only_the_translated_paragraph_changes() -> None:
    data = make_docx(f"<w:p>{run('one')}</w:p>\n <!-- kept --><w:p >{run('two')}</w:p  >\n")
    _, document = read_document("a.docx", data)
    written = document.write([SegmentTranslation("하나"), SegmentTranslation("two")])
    assert document_of(written) == document_of(data).replace(">one<", ">하나<")


@pytest.mark.parametrize(
    ("language", "defaults", "expected"),
    [
        (
            "ko",
            '<w:rFonts w:ascii="Arial" w:eastAsia="SimSun"/><w:lang w:val="en-US"/>',
            '<w:rFonts w:eastAsia="Malgun Gothic" w:ascii="Arial"/>'
            '<w:lang w:eastAsia="ko-KR" w:val="en-US"/>',
        ),
        ("de", "", '<w:lang w:val="de-DE"/>'),
        ("ar", '<w:lang w:val="en-US"/>', '<w:rtl/><w:lang w:bidi="ar-SA" w:val="en-US"/>'),
    ],
)
def test_the_language_is_declared_for_word(language: str, defaults: str, expected: str) -> None:
    block = "<w:docDefaults><w:rPrDefault><w:rPr>{}</w:rPr></w:rPrDefault></w:docDefaults>"
    data = make_docx(f"<w:p>{run('one')}</w:p>", styles=word_part("styles", block.format(defaults)))
    written = parts_of(shout(read_document("a.docx", data)[1], language))["word/styles.xml"].decode()
    assert f"<w:rPr>{expected}</w:rPr>" in written
    assert ("<w:bidi/>" in written) == (language == "ar")


SLIDE = (
    '<a:p><a:pPr lvl="1"/><a:r><a:rPr lang="en-US"/><a:t>My name </a:t></a:r>'
    '<a:r><a:rPr lang="en-US" b="1"/><a:t>is</a:t></a:r><a:r><a:rPr lang="en-US"/><a:t> Michael</a:t></a:r>'
    '<a:endParaRPr lang="en-US"/></a:p>'
    "<a:p><a:r><a:t>first</a:t></a:r><a:br/><a:r><a:t>second</a:t></a:r></a:p>"
    '<a:p><a:fld type="slidenum"><a:t>three</a:t></a:fld></a:p>'
)
PRESENTATION = make_pptx(SLIDE, "<a:p><a:r><a:t>say this</a:t></a:r></a:p>")


def test_slides_and_notes_are_translated() -> None:
    _, document = read_document("a.pptx", PRESENTATION)
    assert document.segments == ["say this", "My name is Michael", "first\nsecond"]
    assert identity(document) == PRESENTATION
    slide = parts_of(shout(document))["ppt/slides/slide1.xml"].decode()
    assert re.findall("<a:t>([^<]*)</a:t>", slide) == [
        "MY NAME ",
        "IS",
        " MICHAEL",
        "FIRST",
        "SECOND",
        "three",
    ]
    assert re.sub("<a:t>[^<]*</a:t>", "", slide) == re.sub(
        "<a:t>[^<]*</a:t>", "", parts_of(PRESENTATION)["ppt/slides/slide1.xml"].decode()
    )
    assert (
        '<a:rPr lang="en-US" b="1"/><a:t>IS</a:t>'
        in parts_of(reverse(document))["ppt/slides/slide1.xml"].decode()
    )


def test_the_language_is_declared_in_slides() -> None:
    slide = parts_of(shout(read_document("a.pptx", PRESENTATION)[1], "ko"))["ppt/slides/slide1.xml"].decode()
    assert slide.count('lang="ko-KR"') == 4  # three runs, and the end of their paragraph
    assert "en-US" not in slide


def test_a_declared_text_direction_becomes_that_of_the_new_language() -> None:
    defaults = (
        '<w:docDefaults><w:rPrDefault><w:rPr><w:rtl/><w:lang w:val="en-US"/></w:rPr></w:rPrDefault>'
        "<w:pPrDefault><w:pPr><w:bidi/></w:pPr></w:pPrDefault></w:docDefaults>"
    )
    data = make_docx(f"<w:p>{run('one')}</w:p>", styles=word_part("styles", defaults))
    styles = parts_of(shout(read_document("a.docx", data)[1], "de"))["word/styles.xml"].decode()
    assert "<w:rtl" not in styles
    assert "<w:bidi" not in styles
    for old, new, language in (("1", "0", "de"), ("0", "1", "he")):
        slides = make_pptx(f'<a:p><a:pPr lvl="1" rtl="{old}"/><a:r><a:t>one</a:t></a:r></a:p>')
        slide = parts_of(shout(read_document("a.pptx", slides)[1], language))["ppt/slides/slide1.xml"]
        assert f'<a:pPr lvl="1" rtl="{new}"/>'.encode() in slide


WORKBOOK = make_xlsx(
    "<si><t>plain text</t></si><si><r><t>My name </t></r><r><rPr><b/></rPr><t>is</t></r>"
    '<r><t xml:space="preserve"> Michael</t></r></si><si><t>Header</t></si><si><t>12.5</t></si>',
    **{
        "worksheets/sheet1": '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<c t="inlineStr"><is><t>in the cell</t></is></c><c><f>A1&amp;"text"</f><v>1</v></c></worksheet>',
        "tables/table1": '<table xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<tableColumn name="Header"/></table>',
    },
)


def test_strings_of_a_workbook_are_translated_but_no_formula_and_no_table_header() -> None:
    _, document = read_document("a.xlsx", WORKBOOK)
    assert sorted(document.segments) == ["My name is Michael", "in the cell", "plain text"]
    assert identity(document) == WORKBOOK
    written = parts_of(shout(document))
    assert b"<si><t>PLAIN TEXT</t></si>" in written["xl/sharedStrings.xml"]
    assert b"<r><rPr><b/></rPr><t>IS</t></r>" in written["xl/sharedStrings.xml"]
    assert b"<si><t>Header</t></si><si><t>12.5</t></si>" in written["xl/sharedStrings.xml"]
    assert b'<f>A1&amp;"text"</f>' in written["xl/worksheets/sheet1.xml"]
    assert b"<is><t>IN THE CELL</t></is>" in written["xl/worksheets/sheet1.xml"]


def test_a_field_in_one_run_is_atomic() -> None:
    """A common recipe for python-docx writes page numbers in this form."""
    page = (
        '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>PAGE</w:instrText>'
        '<w:fldChar w:fldCharType="end"/></w:r>'
    )
    data = make_docx(f"<w:p>{run('page ')}{page}{run(' of many')}</w:p>")
    _, document = read_document("a.docx", data)
    assert document.segments == ["page of many"]
    assert f"PAGE </w:t></w:r>{page}" in body(shout(document))
    assert identity(document) == data


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('<w:smartTag w:element="place"><w:smartTagPr><w:attr w:name="a"/></w:smartTagPr>', "</w:smartTag>"),
        ('<w:customXml w:element="name"><w:customXmlPr/>', "</w:customXml>"),
        ("<w:fldSimple w:instr=' HYPERLINK \"https://example.org\" '>", "</w:fldSimple>"),
    ],
)
def test_smart_tags_custom_xml_and_simple_links_move_with_their_words(opening: str, closing: str) -> None:
    paragraph = f"<w:p>{run('See ')}{opening}{run('Seoul')}{closing}{run(' now')}</w:p>"
    _, document = read_document("a.docx", make_docx(paragraph))
    assert document.segments == ["See Seoul now"]
    written = parts_of(reverse(document))["word/document.xml"].decode()
    assert f"{opening}<w:r><w:t>SEOUL</w:t></w:r>{closing}" in written


CHART = (
    '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:ser>'
    "<c:tx><c:strRef><c:f>Sheet1!$B$1</c:f>"
    "<c:strCache><c:pt><c:v>The books</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:strLit><c:pt><c:v>one &amp; two</c:v></c:pt><c:pt><c:v>2024</c:v></c:pt></c:strLit></c:cat>"
    "<c:val><c:numCache><c:formatCode>General</c:formatCode><c:pt><c:v>#N/A</c:v></c:pt></c:numCache></c:val>"
    "</c:ser></c:chartSpace>"
)


def test_the_labels_of_the_data_of_a_chart_are_translated() -> None:
    data = make_zip({"[Content_Types].xml": "<Types/>", "ppt/charts/chart1.xml": CHART})
    _, document = read_document("a.pptx", data)
    assert document.segments == ["The books", "one & two"]
    written = parts_of(shout(document))["ppt/charts/chart1.xml"].decode()
    assert written == CHART.replace("The books", "THE BOOKS").replace("one &amp; two", "ONE &amp; TWO")


def test_the_labels_of_a_chart_in_a_workbook_are_not_translated() -> None:
    """The labels are copies of the workbook's cells."""
    _, document = read_document("a.xlsx", make_xlsx("<si><t>one</t></si>", **{"charts/chart1": CHART}))
    assert document.segments == ["one"]


def test_comments_of_a_workbook_are_found_where_programs_put_them() -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    threaded = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
    note = f'<comments xmlns="{main}"><comment><text><t>{{}}</t></text></comment></comments>'
    thread = (
        f'<ThreadedComments xmlns="{threaded}"><threadedComment><text>a &lt; b</text></threadedComment>'
        '<threadedComment><text>@Kim look</text><mentions><mention startIndex="0"/></mentions>'
        "</threadedComment>"
        "</ThreadedComments>"
    )
    parts = {
        "comments1": note.format("of Excel"),
        "comments/comment1": note.format("of openpyxl"),
        "threadedComments/threadedComment1": thread,
    }
    _, document = read_document("a.xlsx", make_xlsx("<si><t>one</t></si>", **parts))
    assert sorted(document.segments) == ["a < b", "of Excel", "of openpyxl", "one"]
    written = parts_of(shout(document))["xl/threadedComments/threadedComment1.xml"].decode()
    assert written == thread.replace("a &lt; b", "A &lt; B")


def test_alternative_texts_and_tooltips_of_word_are_translated() -> None:
    picture = (
        '<w:r><w:drawing><wp:docPr xmlns:wp="urn:wp" id="1" name="Picture 1" descr="A dog &amp; a cat"'
        ' title=\'The animals\'/><pic:cNvPr xmlns:pic="urn:pic" id="0" name="dog.png"'
        ' descr="C:\\my pictures\\dog.png" title="https://example.org"/></w:drawing></w:r>'
    )
    link = f'<w:hyperlink r:id="rId1" w:tooltip="go there">{run("here")}</w:hyperlink>'
    shape = (
        '<w:r><w:pict><v:shape id="s1" alt="a drawing" o:title="image" xmlns:o="urn:o"/>'
        '<v:rect alt="a box"/></w:pict></w:r>'
    )
    table = (
        '<w:tbl><w:tblPr><w:tblCaption w:val="the prices"/></w:tblPr>'
        f"<w:tr><w:tc><w:p>{run('a cell')}</w:p></w:tc></w:tr></w:tbl>"
    )
    data = make_docx(f"<w:p>{run('one ')}{picture}{run('two ')}{link}</w:p><w:p>{shape}</w:p>{table}")
    _, document = read_document("a.docx", data)
    assert sorted(document.segments) == sorted(
        [
            "A dog & a cat",
            "The animals",
            "go there",
            "a drawing",
            "a box",
            "the prices",
            "a cell",
            "one two here",
        ]
    )
    assert identity(document) == data
    written = document_of(reverse(document))
    ElementTree.fromstring(written)
    assert """descr="CAT A &amp; DOG A" title='ANIMALS THE'/>""" in written
    assert 'descr="C:\\my pictures\\dog.png" title="https://example.org"' in written
    assert f'<w:hyperlink r:id="rId1" w:tooltip="THERE GO">{run("HERE")}</w:hyperlink>' in written
    assert 'alt="DRAWING A" o:title="image"' in written
    assert '<w:tblCaption w:val="PRICES THE"/>' in written
    quoted = document.write([SegmentTranslation('"<\n>"') for _ in document.segments])
    assert 'descr="&quot;&lt;&#10;&gt;&quot;"' in document_of(quoted)
    ElementTree.fromstring(document_of(quoted))


def test_adjacent_links_of_a_slide_with_the_same_tooltip_are_joined() -> None:
    click = '<a:rPr lang="en-US"><a:hlinkClick r:id="rId1" xmlns:r="urn:r" tooltip="Go there"/></a:rPr>'
    slide = (
        f"<p:cNvPr id='2' name='Title 1' descr='a title'/><a:p><a:r>{click}<a:t>Click </a:t></a:r>"
        f"<a:r>{click}<a:t>here</a:t></a:r><a:r><a:t> now, please, my friend</a:t></a:r></a:p>"
    )
    data = make_pptx(slide)
    _, document = read_document("a.pptx", data)
    assert document.segments == ["a title", "Go there", "Click here now, please, my friend"]
    assert identity(document) == data
    written = parts_of(shout(document))["ppt/slides/slide1.xml"].decode()
    assert f"<a:r>{click.replace('Go there', 'GO THERE')}<a:t>CLICK HERE</a:t></a:r>" in written
    assert "descr='A TITLE'" in written


def test_tooltips_and_input_messages_of_a_workbook_are_translated() -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = (
        f'<worksheet xmlns="{main}"><dataValidations><dataValidation promptTitle="Hint" prompt="a number"'
        ' errorTitle="Wrong" error="not a number" sqref="A1"/></dataValidations>'
        '<hyperlinks><hyperlink ref="A1" tooltip="go there" display="x"/></hyperlinks></worksheet>'
    )
    drawing = '<xdr:wsDr xmlns:xdr="urn:xdr"><xdr:cNvPr id="2" name="P" descr="a picture"/></xdr:wsDr>'
    data = make_xlsx("<si><t>1</t></si>", **{"worksheets/sheet1": sheet, "drawings/drawing1": drawing})
    _, document = read_document("a.xlsx", data)
    texts = ["a picture", "Hint", "a number", "Wrong", "not a number", "go there"]
    assert document.segments == texts
    assert identity(document) == data
    written = parts_of(shout(document))
    for text in texts[1:]:
        sheet = sheet.replace(f'"{text}"', f'"{text.upper()}"')
    assert written["xl/worksheets/sheet1.xml"].decode() == sheet
    assert written["xl/drawings/drawing1.xml"].decode() == drawing.replace("a picture", "A PICTURE")


def test_comments_on_slides_are_translated() -> None:
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    old = f'<p:cmLst xmlns:p="{main}"><p:cm><p:pos x="1"/><p:text>look &amp; see</p:text></p:cm></p:cmLst>'
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
    new = (
        f'<p188:cmLst xmlns:p188="urn:p188" xmlns:a="{drawing}"><p188:txBody><a:p><a:r><a:t>and here</a:t>'
        "</a:r></a:p></p188:txBody></p188:cmLst>"
    )
    parts = {"ppt/comments/comment1.xml": old, "ppt/comments/modernComment_100_0.xml": new}
    data = make_zip({"[Content_Types].xml": "<Types/>", **parts})
    _, document = read_document("a.pptx", data)
    assert sorted(document.segments) == ["and here", "look & see"]
    written = parts_of(shout(document))
    assert written["ppt/comments/comment1.xml"].decode() == old.replace("look &amp; see", "LOOK &amp; SEE")
    assert written["ppt/comments/modernComment_100_0.xml"].decode() == new.replace("and here", "AND HERE")
