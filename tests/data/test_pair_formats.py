"""Pairs from the files that people have: TMX, XLIFF, PO, spreadsheets, tables of any kind, downloads."""

from __future__ import annotations

import io
import random
import re
import time
import tracemalloc
import zipfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jumok.data.corpora import open_corpora, open_corpus
from jumok.data.formats.inline_codes import SegmentText
from jumok.errors import DataError
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from jumok.data.corpora import Corpus

SAVE = Pair("Save now.", "지금 저장하세요.")
OPEN = Pair("Open it.", "여세요.")


def corpus_at(path: Path, content: str | bytes, **options: str) -> Corpus:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_corpus(path, **options)


def read(corpus: Corpus) -> tuple[list[Pair], Counter[str]]:
    dropped: Counter[str] = Counter()
    return [pair for _, pair in corpus.numbered_pairs(dropped)], dropped


def zipped(**members: str | bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return archive.getvalue()


# --- TMX ---


def tmx(*units: str, declaration: str = '<?xml version="1.0"?>', source: str = "en") -> str:
    body = "\n".join(f"<tu>{unit}</tu>" for unit in units)
    return f'{declaration}\n<tmx version="1.4"><header srclang="{source}"/><body>\n{body}\n</body></tmx>\n'


def tuv(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


def test_the_units_of_a_tmx_are_pairs_in_either_direction(tmp_path: Path) -> None:
    content = tmx(
        tuv("ko-KR", "지금 저장하세요.") + tuv("EN-us", "Save now."),
        tuv("en", "Open it.") + tuv("ko", "여세요."),
        tuv("en", "Only English."),
    )
    corpus = corpus_at(tmp_path / "memory.tmx", content)
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    assert list(corpus.numbered_pairs()) == [(3, SAVE), (4, OPEN)]
    pairs, dropped = read(corpus)
    assert dropped == {"unit without one of the two languages": 1}
    swapped = open_corpus(tmp_path / "memory.tmx", source="ko")
    assert next(swapped.pairs()) == Pair(SAVE.target, SAVE.source)
    [as_argument] = open_corpora([str(tmp_path / "memory.tmx")], source="en", target="ko")
    assert list(as_argument.pairs()) == pairs


@pytest.mark.parametrize(
    ("encoding", "declared_encoding"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-8-sig", "UTF-8"),
        ("cp949", "EUC-KR"),
        ("utf-8", "UTF-16"),  # a wrong declaration, which is recognised
    ],
)
def test_a_tmx_is_read_in_the_encoding_that_it_declares(
    tmp_path: Path, encoding: str, declared_encoding: str
) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared_encoding}"?>'
    content = tmx(tuv("en", "Save now.") + tuv("ko", "지금 저장하세요."), declaration=declaration)
    assert list(corpus_at(tmp_path / "m.tmx", content.encode(encoding)).pairs()) == [SAVE]


@pytest.mark.parametrize("name", ["no-such", "hex", "base64", "rot13", "bz2"])
def test_an_xml_encoding_that_is_no_text_encoding_is_refused(tmp_path: Path, name: str) -> None:
    """Some codecs of Python are not encodings of text: hex, for example, converts bytes to bytes."""
    content = tmx(tuv("en", "a"), declaration=f'<?xml version="1.0" encoding="{name}"?>')
    with pytest.raises(DataError, match=rf"m\.tmx declares the encoding '{name}', which jumok does not"):
        corpus_at(tmp_path / "m.tmx", content)


@pytest.mark.parametrize(("declared_encoding", "option"), [("utf-8", ""), ("euc-kr", "utf-8")])
def test_xml_that_cannot_be_decoded_is_refused_with_the_encoding(
    tmp_path: Path, declared_encoding: str, option: str
) -> None:
    """The XML is CP949. The option `encoding` takes precedence over the encoding that the XML declares."""
    content = tmx(tuv("ko", "저장"), declaration=f'<?xml version="1.0" encoding="{declared_encoding}"?>')
    with pytest.raises(DataError, match=r"m\.tmx is not utf-8 text: invalid start byte near byte \d+\. Give"):
        corpus_at(tmp_path / "m.tmx", content.encode("cp949"), encoding=option)


def test_forbidden_characters_are_dropped_and_counted_even_at_the_end(tmp_path: Path) -> None:
    content = tmx(tuv("en", "Save&#1; now.\x02") + tuv("ko", SAVE.target)).rstrip() + "&#0;"
    assert read(corpus_at(tmp_path / "m.tmx", content)) == ([SAVE], {"character that XML forbids": 3})


def test_every_variant_of_a_language_makes_a_pair(tmp_path: Path) -> None:
    unit = tuv("en-US", "The color.") + tuv("en-GB", "The colour.") + tuv("ko", "색.") + tuv("ko-KP", "색.")
    corpus = corpus_at(tmp_path / "m.tmx", tmx(unit))
    assert list(corpus.pairs()) == [Pair("The color.", "색."), Pair("The colour.", "색.")]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('<bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> now.', "Save now."),
        ('Save <ph x="1">{\\b <sub>a note</sub>}</ph> now<it pos="end">&lt;/i&gt;</it>.', "Save now."),
        ('<hi type="bold">Save</hi> now<ut>\\par</ut>.', "Save now."),
        ('Save<ph type="lb"/>now <ph/>.', "Save now."),
        ("Save\n      now.", "Save now."),
        ("Save &amp; n&#111;w.<![CDATA[ <b>]]>", "Save & now. <b>"),
        ("Sa<ph/>ve now.&#x1F;", "Save now."),
    ],
)
def test_inline_codes_are_removed_from_segments(tmp_path: Path, segment: str, text: str) -> None:
    corpus = corpus_at(tmp_path / "m.tmx", tmx(tuv("en", segment) + tuv("ko", "저장")))
    assert [pair.source for pair in corpus.pairs()] == [text]


def test_a_tmx_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    three = tmx(tuv("en", "a") + tuv("ko", "b") + tuv("de", "c"))
    with pytest.raises(DataError, match=r"several languages: en \(1\), ko \(1\), de \(1\).*--from and --to"):
        corpus_at(tmp_path / "m.tmx", three)
    assert list(open_corpus(tmp_path / "m.tmx", source="de", target="en").pairs()) == [Pair("c", "a")]
    with pytest.raises(DataError, match=r"no units in fr\. Its languages: en \(1\)"):
        open_corpus(tmp_path / "m.tmx", source="en", target="fr")
    with pytest.raises(DataError, match="no columns to choose from"):
        open_corpus(tmp_path / "m.tmx", source="de", target="en", columns="1,2")
    with pytest.raises(DataError, match=r"units are in en \(1\).*en-US and en-GB count as one"):
        corpus_at(tmp_path / "n.tmx", tmx(tuv("en-US", "a") + tuv("en-GB", "b")))
    with pytest.raises(DataError, match="XML, but not TMX"):
        corpus_at(tmp_path / "o.tmx", "<html><body/></html>")
    with pytest.raises(DataError, match=r"not well-formed XML: .* on line 4"):
        corpus_at(tmp_path / "p.tmx", tmx(tuv("en", "a") + tuv("ko", "b"), "<seg>")[:-20])


def test_a_requested_language_may_first_occur_far_into_a_tmx(tmp_path: Path) -> None:
    # The reader looks for languages in the first 1,000 units, and further if a requested language is missing.
    korean_after_1200_units = tmx(*[tuv("en", "a") + tuv("de", "b")] * 1200, tuv("en", "a") + tuv("ko", "c"))
    assert list(corpus_at(tmp_path / "q.tmx", korean_after_1200_units, source="en", target="ko").pairs()) == [
        Pair("a", "c")
    ]


@pytest.mark.medium
def test_100_000_units_are_read_in_little_memory(tmp_path: Path) -> None:
    """This test takes about 2 s and 4 MB. The limits are higher because the machine may be busy."""
    path = tmp_path / "large.tmx"
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>\n')
        for number in range(100_000):
            source = f"Sentence {number} of a translation memory, with <ph>{number}</ph>some words in it."
            file.write(f"<tu>{tuv('en', source)}{tuv('ko', f'번역 메모리의 {number}번째 문장이다.')}</tu>\n")
        file.write("</body></tmx>\n")
    started = time.process_time()
    corpus = open_corpus(path)
    assert sum(1 for _ in corpus.pairs()) == 100_000
    assert time.process_time() - started < 20
    tracemalloc.start()
    try:
        assert sum(1 for _ in zip(corpus.pairs(), range(5_000), strict=False)) == 5_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # the file is read as a stream, so its size does not matter


# --- XLIFF ---

XLIFF_12 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-US" target-language="ko-KR" original="a" datatype="plaintext">
<header><note>x</note></header>
<body><group>
<trans-unit id="1"><source>Save <g id="1">now</g><x id="2"/>.</source>
<target>지금 <g id="1">저장하세요</g>.</target>
<alt-trans><source>Keep.</source><target>보관.</target></alt-trans><note>Verb.</note></trans-unit>
<trans-unit id="2"><source>Not done.</source></trans-unit>
<trans-unit id="3"><source>Not done.</source><target state="needs-translation">Not done.</target></trans-unit>
<trans-unit id="4" translate="no"><source>jumok</source><target>jumok</target></trans-unit>
<trans-unit id="5"><source>One. Two.</source>
<seg-source><mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk></seg-source>
<target><mrk mtype="seg" mid="0">하나.</mrk> <mrk mtype="seg" mid="1">둘.</mrk></target></trans-unit>
</group></body></file></xliff>
"""
XLIFF_20 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="ko"><file id="f">
<unit id="1"><originalData><data id="d">&lt;b></data></originalData>
<mtc:matches xmlns:mtc="urn:x"><mtc:match><source>No.</source><target>아니.</target></mtc:match></mtc:matches>
<segment state="final"><source>Save <pc id="1">now</pc>.</source>
<target>지금 <pc id="1">저장하세요</pc>.</target></segment>
<ignorable><source> </source></ignorable>
<segment><source>Open it<ph id="2"/>.</source><target>여세요.</target></segment></unit>
<unit id="2" translate="no"><segment><source>jumok</source><target>jumok</target></segment></unit>
<unit id="3"><segment state="initial"><source>New.</source><target>New.</target></segment></unit>
</file></xliff>
"""


def test_the_translated_units_and_segments_of_xliff_1_are_pairs(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "a.xlf", XLIFF_12)
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    pairs, dropped = read(corpus)
    assert pairs == [SAVE, Pair("One.", "하나."), Pair("Two.", "둘.")]
    assert dropped == {
        "inline code": 1,
        "unit without a translation": 2,
        "unit that is not to be translated": 1,
    }


def test_the_translated_segments_of_xliff_2_are_pairs(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "a.xliff", XLIFF_20)
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    pairs, dropped = read(corpus)
    assert pairs == [SAVE, OPEN]
    assert dropped["unit without a translation"] == dropped["unit that is not to be translated"] == 1


def test_only_the_translated_segments_of_an_xliff_unit_are_pairs(tmp_path: Path) -> None:
    """If one of two segments is translated, its translation is not paired with the source of both."""
    second = '<mrk mtype="seg" mid="1">둘.</mrk>'
    for rest in ("", '<mrk mtype="seg" mid="1"/>', '<mrk mtype="seg" mid="9">아홉.</mrk>'):
        pairs, _ = read(corpus_at(tmp_path / "a.xlf", XLIFF_12.replace(second, rest)))
        assert pairs == [SAVE, Pair("One.", "하나.")]


def test_an_xliff_unit_whose_segments_are_all_untranslated_is_counted(tmp_path: Path) -> None:
    content = XLIFF_12.replace(">하나.<", "><").replace(">둘.</mrk>", "></mrk> text outside the segments")
    pairs, dropped = read(corpus_at(tmp_path / "a.xlf", content))
    assert (pairs, dropped["unit without a translation"]) == ([SAVE], 3)


def test_an_xliff_segment_without_an_id_belongs_to_the_whole_unit(tmp_path: Path) -> None:
    marked = re.sub(r' mid="\d"', "", XLIFF_12).replace(">하나.<", "><g>하나.</g><")
    pairs, _ = read(corpus_at(tmp_path / "a.xlf", marked))
    assert pairs == [SAVE, Pair("One. Two.", "하나. 둘.")]


def test_xliff_units_inherit_translate_from_groups_and_files(tmp_path: Path) -> None:
    """The `translate` of a unit takes precedence over the `translate` of its parents."""
    group = XLIFF_12.replace("<group>", '<group translate="no">').replace(
        'id="1"', 'id="1" translate="yes"', 1
    )
    pairs, dropped = read(corpus_at(tmp_path / "a.xlf", group))
    assert (pairs, dropped["unit that is not to be translated"]) == ([SAVE], 4)
    file = XLIFF_20.replace('id="f"', 'id="f" translate="no"').replace('id="1"', 'id="1" translate="yes"', 1)
    pairs, dropped = read(corpus_at(tmp_path / "a.xliff", file))
    assert (pairs, dropped["unit that is not to be translated"]) == ([SAVE, OPEN], 2)


def test_an_element_named_source_inside_a_source_does_not_end_the_source(tmp_path: Path) -> None:
    nested = XLIFF_12.replace("<x id=", "<g><source/></g><x id=")
    pairs, _ = read(corpus_at(tmp_path / "a.xlf", nested))
    assert pairs[0] == SAVE


def test_the_error_for_an_xliff_without_translations_counts_the_dropped_units(tmp_path: Path) -> None:
    untranslated = XLIFF_20.replace("<target>여세요.</target>", "").replace('"final"', '"initial"')
    with pytest.raises(DataError, match=r"no sentence pairs\. Received: 3 unit without a translation"):
        corpus_at(tmp_path / "a.xliff", untranslated)


# --- PO ---

PO = """# Korean.
msgid ""
msgstr ""
"Language: ko\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#: main.c:1
#, c-format
msgctxt "menu"
msgid "Save "
"now."
msgstr "지금 저장하세요."

#, fuzzy
msgid "Fuzzy."
msgstr "흐림."

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "파일 %d개"
msgid "A \\"quote\\"\\nand a line."
msgstr "따옴표 \\"와\\" 줄."

msgid "Untranslated."
msgstr ""
#~ msgid "Old."
#~ msgstr "옛."
"""


def test_the_entries_of_a_po_are_pairs_and_dropped_entries_are_counted(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "ko.po", PO)
    assert (corpus.source_language, corpus.target_language) == ("", "ko")
    pairs, dropped = read(corpus)
    assert pairs == [
        SAVE,
        Pair("%d files", "파일 %d개"),
        Pair('A "quote" and a line.', '따옴표 "와" 줄.'),
    ]
    assert dropped == {"fuzzy entry": 1, "entry without a translation": 1, "obsolete entry": 1}
    in_cp949 = PO.replace("UTF-8", "EUC-KR").encode("cp949")
    assert list(corpus_at(tmp_path / "old.po", in_cp949).pairs()) == pairs


def test_the_fuzzy_flag_of_an_obsolete_po_entry_does_not_drop_the_next_entry(tmp_path: Path) -> None:
    content = '#, fuzzy\n#~ msgid "Old."\n#~ msgstr "옛."\n\nmsgid "Open it."\nmsgstr "여세요."\n'
    assert read(corpus_at(tmp_path / "ko.po", content)) == ([OPEN], {"obsolete entry": 1})


def test_every_plural_form_of_a_po_entry_is_a_pair(tmp_path: Path) -> None:
    content = (
        'msgid "file"\nmsgid_plural "files"\nmsgstr[0] "soubor"\nmsgstr[1] "soubory"\nmsgstr[2] "souborů"\n'
    )
    pairs = list(corpus_at(tmp_path / "cs.po", content).pairs())
    assert pairs == [Pair("file", "soubor"), Pair("files", "soubory"), Pair("files", "souborů")]
    with pytest.raises(DataError, match=r"Line 1 of .* is not part of a gettext catalogue"):
        corpus_at(tmp_path / "no.po", "Hello.\n")


# --- spreadsheets ---

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def xlsx(sheet: str, *, strings: str = "", others: str = "") -> bytes:
    return zipped(
        **{
            "[Content_Types].xml": "<Types/>",
            "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="r"><sheets>'
            f'<sheet name="Notes" r:id="r2" state="hidden"/><sheet name="Sheet1" r:id="r1"/>{others}'
            "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": "<Relationships>"
            '<Relationship Id="r1" Target="worksheets/sheet1.xml"/>'
            '<Relationship Id="r2" Target="/xl/worksheets/sheet2.xml"/></Relationships>',
            "xl/sharedStrings.xml": f"<sst {_MAIN}>{strings}</sst>",
            "xl/worksheets/sheet1.xml": f"<worksheet {_MAIN}><sheetData>{sheet}</sheetData></worksheet>",
            "xl/worksheets/sheet2.xml": f"<worksheet {_MAIN}><sheetData/></worksheet>",
        }
    )


STRINGS = (
    "<si><t>id</t></si><si><t>English</t></si><si><t>Korean</t></si>"
    "<si><r><t>Save </t></r><r><rPr/><t>now.</t></r><rPh><t>x</t></rPh></si>"
    "<si><t>지금 저장하세요.</t></si>"
)
ROWS = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="D1" t="s"><v>2</v></c></row>'
    '<row r="2"><c r="A2"><v>1</v></c><c r="B2" t="s"><v>3</v></c><c r="D2" t="s"><v>4</v></c></row>'
    '<row r="4"><c r="B4" t="inlineStr"><is><t>Open it._x000D_</t></is></c>'
    '<c r="D4" t="str"><f>A1</f><v>여세요.</v></c></row>'
    '<row r="5"><c r="B5" t="inlineStr"><is><t>No translation</t></is></c></row>'
)


def test_the_first_visible_sheet_of_an_xlsx_is_read(tmp_path: Path) -> None:
    others = '<sheet name="Other" r:id="r2"/>'
    corpus = corpus_at(tmp_path / "table.xlsx", xlsx(ROWS, strings=STRINGS, others=others))
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    assert list(corpus.numbered_pairs()) == [(2, SAVE), (4, OPEN), (5, Pair("No translation", ""))]
    assert corpus.note == "columns 'English' and 'Korean' of 4; sheet 'Sheet1'; not read: 'Other'"
    by_number = open_corpus(tmp_path / "table.xlsx", columns="4,2")
    assert (by_number.source_language, by_number.target_language) == ("ko", "en")
    assert next(by_number.pairs()) == Pair(SAVE.target, SAVE.source)


@pytest.mark.parametrize("columns", ["English,3", "3,English", "1,3", "3,1"])
def test_a_column_without_a_name_in_the_header_can_be_chosen_by_number(tmp_path: Path, columns: str) -> None:
    """In a spreadsheet, rows may have more cells than the header."""
    table = (["English", "Notes"], [SAVE.source, "a verb", SAVE.target])
    rows = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>"
        for row in table
    )
    pair = list(corpus_at(tmp_path / "table.xlsx", xlsx(rows), columns=columns).pairs())[-1]
    assert (pair.source, pair.target) == (
        (SAVE.target, SAVE.source) if columns[0] == "3" else (SAVE.source, SAVE.target)
    )


ODS_ROWS = """
<table:table-row><table:table-cell/><table:table-cell><text:p>en</text:p></table:table-cell>
<table:table-cell><text:p>ko</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell table:number-columns-repeated="1"/>
<table:table-cell office:value-type="string">
<office:annotation><text:p>A comment.</text:p></office:annotation>
<text:p>Save<text:s/><text:span>now</text:span>.</text:p></table:table-cell>
<table:table-cell><text:p>지금 저장하세요.</text:p></table:table-cell>
<table:table-cell table:number-columns-repeated="16380"/></table:table-row>
<table:table-row table:number-rows-repeated="3"><table:table-cell/></table:table-row>
<table:table-row><table:table-cell/><table:table-cell><text:p>Open it.</text:p></table:table-cell>
<table:table-cell><text:p>여세요.</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="1048570"><table:table-cell/></table:table-row>
"""


def ods(rows: str) -> bytes:
    names = " ".join(f'xmlns:{name}="urn:{name}"' for name in ("office", "table", "text"))
    body = f'<table:table table:name="T">{rows}</table:table>'
    content = f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>"
    return zipped(mimetype="application/vnd.oasis.opendocument.spreadsheet", **{"content.xml": content})


def test_the_rows_of_an_ods_are_pairs(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "table.ods", ods(ODS_ROWS))
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    assert list(corpus.numbered_pairs()) == [(2, SAVE), (6, OPEN)]


@pytest.mark.parametrize("space", ["", "\n", "\n    "])
def test_white_space_between_the_paragraphs_of_an_ods_cell_is_not_text(tmp_path: Path, space: str) -> None:
    """The paragraphs of a cell are joined by one newline, however the XML is indented."""
    source, target = (
        f"<table:table-cell>{space}<text:p>{first}</text:p>{space}<text:p>{second}</text:p>{space}"
        "</table:table-cell>"
        for first, second in (("one", "two"), ("하나", "둘"))
    )
    content = ods(f"<table:table-row>{space}{source}{space}{target}{space}</table:table-row>")
    assert list(corpus_at(tmp_path / "table.ods", content).pairs()) == [Pair("one\ntwo", "하나\n둘")]


@pytest.mark.parametrize("header", [("en", "ko"), ("source", "target"), ("target", "source")])
def test_a_spreadsheet_whose_header_names_an_alignment_keeps_its_alignments(
    tmp_path: Path, header: tuple[str, str]
) -> None:
    aligned = Pair("I go.", "나는 가요.", Alignment(frozenset({(0, 0), (1, 1)})))
    sides = (aligned.source, aligned.target)
    cells = [*header, "alignment"], [*(sides if header[1] != "source" else sides[::-1]), "0-0 1-1"]
    rows = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>"
        for row in (*cells, ["x", "y"])
    )
    pairs = list(corpus_at(tmp_path / "table.xlsx", xlsx(rows)).pairs())
    assert pairs[0] == aligned
    assert pairs[1].alignment is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "before 2007, or one with a password"),
        ("t.xlsx", zipped(**{"word/document.xml": "<a/>"}), "not an Excel workbook"),
        ("t.ods", zipped(a="b"), "not an OpenDocument file"),
        ("t.xlsx", b"PK\3\4 no archive at all", "cannot be decompressed"),
        ("t.xlsx", xlsx('<row r="1"><c r="A1"><v>1</v></c></row>'), "holds no sentence pairs"),
        ("t.zip", zipped(**{"word/document.xml": "<a/>"}), "is a Word document"),
        ("t.zip", zipped(a="b", **{"c.en": "x"}), "no two texts such as x.en and x.ko.*Received: a, c.en"),
        ("t.zip", zipped(**{"a.tsv": "x\ty\n", "b.tsv": "x\ty\n"}), "several corpora"),
        (
            "t.zip",
            zipped(**{"x.en": "a\n", "x.ko": "b\n", "x.de": "c\n"}),
            "one text in more than two languages",
        ),
    ],
)
def test_unusable_archives_are_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=f"(?s){message}"):
        corpus_at(tmp_path / name, content)


# --- tables ---

TWO_CELLS = f"{SAVE.source}\t{SAVE.target}"
OTHERS = ": the others are not text"


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("a.csv", "Save now.;지금 저장하세요.\n", "separated by a semicolon"),
        ("a.csv", "en|ko\nSave now.|지금 저장하세요.\n", "separated by a bar"),
        ("a.csv", "sep=;\nSave now.;지금 저장하세요.\n", "separated by a semicolon"),
        ("a.csv", '"Save now.",지금 저장하세요.\n', ""),
        ("a.csv", "Save now.\t지금 저장하세요.\n", "separated by a tab"),
        ("a.csv", "en;ko\nSave now.;지금 저장하세요.\nHi, you.;안녕, 너.\n", "separated by a semicolon"),
        ("a.csv", "id,en,ko,by\n1,Save now.,지금 저장하세요.,Kim\n", "columns 'en' and 'ko' of 4"),
        ("a.tsv", f"no\tSource\tTarget\n1\t{TWO_CELLS}\n", "columns 'Source' and 'Target' of 3"),
        ("a.tsv", f"\ufeff1\t{SAVE.source}\t23\t{SAVE.target}\n4\ta\t5\tb", f"columns 2 and 4 of 4{OTHERS}"),
        ("a.tsv", f"0.91\t{TWO_CELLS}\n1.0\tHi.\t안녕.\n", f"columns 2 and 3 of 3{OTHERS}"),
        ("a.txt", f"{TWO_CELLS}\tCC-BY 2.0 (France) Attribution: #1 (A)\n", f"columns 1 and 2 of 3{OTHERS}"),
        ("a.tsv", f"{TWO_CELLS}\t0-1\n", ""),
    ],
)  # fmt: skip
def test_the_columns_with_sentences_are_found(tmp_path: Path, name: str, content: str, note: str) -> None:
    corpus = corpus_at(tmp_path / name, content)
    pair = next(corpus.pairs())
    assert (pair.source, pair.target) == (SAVE.source, SAVE.target)
    assert corpus.note == note


WIDE = "key,Text EN,Text KO,note\nk1,Save now.,지금 저장하세요.,a verb\nk2,Open it.,여세요.,a verb too\n"


@pytest.mark.parametrize("columns", ["Text EN,Text KO", "text en,TEXT KO", "2,3", "2, Text KO"])
def test_columns_are_chosen_by_name_or_number(tmp_path: Path, columns: str) -> None:
    pairs = list(corpus_at(tmp_path / "wide.csv", WIDE, columns=columns).pairs())
    assert pairs[-2:] == [SAVE, OPEN]


def test_columns_are_chosen_by_language(tmp_path: Path) -> None:
    content = "id,de,en-US,Korean\n1,Speichern.,Save now.,지금 저장하세요.\n"
    with pytest.raises(
        DataError, match=r"several languages: de, en-US, Korean.*--from and --to.*--columns de,en-US"
    ):
        corpus_at(tmp_path / "wide.csv", content)
    for options in ({"columns": "en,ko"}, {"source": "en", "target": "ko"}):
        corpus = open_corpus(tmp_path / "wide.csv", **options)
        assert list(corpus.pairs()) == [SAVE]
        assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    backwards = open_corpus(tmp_path / "wide.csv", source="ko", target="en")
    assert list(backwards.pairs()) == [Pair(SAVE.target, SAVE.source)]


def test_columns_are_chosen_by_number_in_a_table_of_several_languages(tmp_path: Path) -> None:
    content = "Original text,Korean,de,fr\nSave now.,지금 저장하세요.,Speichern.,Enregistrez.\n"
    assert list(corpus_at(tmp_path / "wide.csv", content, columns="1,2").pairs()) == [SAVE]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"has 4 columns, separated by a comma.*\n  1 key\n  2 Text EN\n.*--columns 1,2"),
        ({"columns": "en"}, r"two columns, by name or number.*Received: en"),
        ({"columns": "2,2"}, "two columns"),
        ({"columns": "2,9"}, r"has 4 columns\. Received: --columns with 9"),
        ({"columns": "Text EN,Text K"}, r"names no column 'Text K'\. Did you mean .*It has: key, Text EN"),
    ],
)
def test_a_wrong_choice_of_columns_is_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=f"(?s){message}"):
        corpus_at(tmp_path / "wide.csv", WIDE, **options)


def test_a_name_of_two_columns_is_refused_with_their_numbers(tmp_path: Path) -> None:
    content = "en,en,ko\nSave.,Save now.,지금 저장하세요.\n"
    with pytest.raises(DataError, match=r"has 2 columns for 'en': 1 and 2\. Choose by number: --columns 1,2"):
        corpus_at(tmp_path / "wide.csv", content, columns="en,ko")
    assert list(open_corpus(tmp_path / "wide.csv", columns="2,3").pairs()) == [SAVE]


def test_a_row_of_another_width_is_refused(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "wide.csv", WIDE + "k3,Hi, you.,안녕.,\n", columns="2,3")
    with pytest.raises(DataError, match=r"Line 4 of .* has 5 columns\. The first line has 4\."):
        list(corpus.pairs())


def test_the_error_for_a_json_line_without_text_shows_its_values(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"Line 1 .* has no text under its language codes\. Received: en: 1, ko: 2"
    ):
        corpus_at(tmp_path / "n.jsonl", '{"en": 1, "ko": 2}\n')
    with pytest.raises(DataError, match=r"no text under its language codes\. Received: en: null"):
        corpus_at(tmp_path / "n.jsonl", '{"en": null, "ko": "b"}\n')
    other = '{"q": "Save now.", "a": "지금 저장하세요."}\n'
    assert list(corpus_at(tmp_path / "k.jsonl", other, columns="q,a").pairs()) == [SAVE]


def test_old_mac_line_ends_are_read_and_counted(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "mac.tsv", "Save now.\t지금 저장하세요.\rOpen it.\t여세요.\r")
    assert list(corpus.numbered_pairs()) == [(1, SAVE), (2, OPEN)]
    assert read(corpus)[1] == {"old Mac line end": 2}
    unfinished = corpus_at(tmp_path / "mac.tsv", "Save now.\t지금 저장하세요.\rOpen it.\t여세요.")
    assert read(unfinished) == ([SAVE, OPEN], {"old Mac line end": 1, "no final newline": 1})


# --- files written by other tools ---

WRITTEN_BY_TOOLS = Path(__file__).parent / "written_by_tools"
SENTENCES = [
    SAVE,
    Pair('She said "yes" & left, <b>smiling</b>.', "그녀는 “예” & 하고 <b>웃으며</b> 떠났다."),
    Pair("A cell; with, separators\tand a tab.", "구분자; 와, 탭\t이 있는 칸."),
]


@pytest.mark.parametrize(
    "name",
    [
        "odfpy.ods",
        "openpyxl.xlsx",
        "polib.po",
        "translate-toolkit-1.xlf",
        "translate-toolkit-2.xlf",
        "translate-toolkit.po",
        "translate-toolkit.tmx",
    ],
)
def test_files_written_by_other_tools_give_their_sentences(name: str) -> None:
    corpus = open_corpus(WRITTEN_BY_TOOLS / name)
    assert list(corpus.pairs()) == SENTENCES
    assert corpus.target_language == "ko"


# --- downloads and memory ---


def test_downloads_of_opus_and_tatoeba_are_read(tmp_path: Path) -> None:
    texts = {"x.en-ko.ko": f"{SAVE.target}\n", "x.en-ko.en": f"{SAVE.source}\n", "x.en-ko.ids": "1\n"}
    moses = corpus_at(tmp_path / "en-ko.txt.zip", zipped(README="OPUS", LICENSE="CC", **texts))
    assert (moses.source_language, moses.target_language) == ("en", "ko")
    assert list(moses.pairs()) == [SAVE]
    memory = tmx(tuv("en", SAVE.source) + tuv("ko", SAVE.target))
    assert list(corpus_at(tmp_path / "en-ko.tmx", memory).pairs()) == list(moses.pairs())
    anki = zipped(**{"_about.txt": "a\tb\n", "kor.txt": f"{SAVE.source}\t{SAVE.target}\tCC-BY 2.0\n"})
    assert list(corpus_at(tmp_path / "kor-eng.zip", anki).pairs()) == [SAVE]
    with_licence = zipped(**{"LICENSE.txt": "Lizenz für\n".encode("latin1"), "x.tsv": "a\tb\n"})
    assert list(corpus_at(tmp_path / "l.zip", with_licence).pairs()) == [Pair("a", "b")]
    regional = corpus_at(tmp_path / "r.zip", zipped(**{"x.en-zh_CN.en": "a\n", "x.en-zh_CN.zh_CN": "b\n"}))
    assert (regional.source_language, regional.target_language) == ("en", "zh")
    pairs = f"1\t{SAVE.source}\t2\t{SAVE.target}\n"
    tatoeba = corpus_at(tmp_path / "Sentence pairs in English-Korean - 2026-11-01.tsv", pairs)
    assert (tatoeba.source_language, tatoeba.target_language) == ("en", "ko")


def test_pairs_in_memory_are_opened_as_a_corpus() -> None:
    corpus = open_corpus([("Save now. ", "지금 저장하세요."), ["Open it.", "여세요."], SAVE], source="en")
    assert list(corpus.pairs()) == [SAVE, OPEN, SAVE]
    assert corpus.source_language == "en"
    with pytest.raises(DataError, match=r"Pair 2 is not a sentence and its translation.*\('a', None\)"):
        open_corpus([("a", "b"), ("a", None)])
    with pytest.raises(DataError, match=r"named by a path, or given as pairs of strings\. Received: 3"):
        open_corpus([3])


# --- hostile and damaged files ---

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
HOSTILE = {
    "laughs.tmx": lambda: tmx(
        tuv("en", "&l9;"),
        declaration=f'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY l0 "ha">{LAUGHS}]>',
    ),
    "outside.tmx": lambda: tmx(
        tuv("en", "&x;") + tuv("ko", "a"),
        declaration='<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    ),
    "parameter.xlf": lambda: (
        '<?xml version="1.0"?><!DOCTYPE xliff [<!ENTITY % x SYSTEM "http://localhost/x">%x;]><xliff/>'
    ),
    "deep.tmx": lambda: '<?xml version="1.0"?>' + "<a>" * 100_000,
    "tag.tmx": lambda: '<?xml version="1.0"?><tmx a="' + "x" * 8_000_000,
    "segment.tmx": lambda: tmx(tuv("en", "x" * 3_000_000)),
    "bomb.xlsx": lambda: xlsx("<row>" + "<c/>" * 3_000_000),
    "bomb.ods": lambda: ods(" " * 12_000_000),
    "bomb.zip": lambda: zipped(**{"x.en": "a\n" * 12_000_000, "x.ko": "a\n" * 12_000_000}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_quickly_in_little_memory(tmp_path: Path, name: str) -> None:
    content = HOSTILE[name]()
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(DataError) as refusal:
            list(open_corpus(tmp_path / name).pairs())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "root:" not in str(refusal.value)  # the beginning of /etc/passwd
    assert time.process_time() - started < 1
    assert peak < 100e6


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_is_refused_if_its_method_could_expand_a_few_bytes_to_gigabytes(
    tmp_path: Path, method: int
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("x.tsv", "a\tb\n")
    with pytest.raises(DataError, match=r"x\.tsv in .*a\.zip is compressed with a method other than deflate"):
        open_corpus(tmp_path / "a.zip")


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    """For any damage, the only error that a reader raises is a DataError."""
    generator = random.Random(1)
    originals = [
        path for path in sorted(WRITTEN_BY_TOOLS.iterdir()) if path.is_file() and path.suffix != ".py"
    ]
    for number in range(300):
        original = generator.choice(originals)
        content = bytearray(original.read_bytes())
        for _ in range(generator.choice([1, 3, 9])):
            position = generator.randrange(len(content))
            content[position : position + generator.choice([0, 1, 20])] = generator.choice(
                [b"<", b"</a>", b"&", b'"', b"\0", b"\xff", b"\n", bytes(content[:40])]
            )
        damaged = tmp_path / f"{number}{original.suffix}"
        damaged.write_bytes(content)
        with suppress(DataError):
            list(open_corpus(damaged).pairs())


def test_commas_in_every_row_do_not_hide_the_separator(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "a.csv", "Hello, you.;안녕, 너.\nBye, you.;잘 가, 너.\n")
    assert list(corpus.pairs()) == [Pair("Hello, you.", "안녕, 너."), Pair("Bye, you.", "잘 가, 너.")]


def test_a_document_type_without_entities_is_accepted(tmp_path: Path) -> None:
    declaration = '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">'
    content = tmx(tuv("en", "Save now.") + tuv("ko", "지금 저장하세요."), declaration=declaration)
    assert list(corpus_at(tmp_path / "m.tmx", content).pairs()) == [SAVE]


def test_xlsx_escapes_of_surrogates_are_joined_or_replaced(tmp_path: Path) -> None:
    row = (
        '<row r="1"><c t="inlineStr"><is><t>a _xD83D__xDE00_</t></is></c>'
        '<c t="inlineStr"><is><t>b _xD83D_</t></is></c></row>'
    )
    assert list(corpus_at(tmp_path / "a.xlsx", xlsx(row, strings="")).pairs()) == [
        Pair("a \U0001f600", "b \ufffd")
    ]


def test_the_key_id_is_an_identifier_unless_indonesian_was_requested(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    corpus = corpus_at(path, '{"id": "a1", "en": "Save now.", "ko": "지금 저장하세요."}\n')
    assert list(corpus.pairs()) == [SAVE]
    content = '{"id": "Buka.", "en": "Open it.", "ko": "여세요."}\n'
    assert list(corpus_at(path, content, source="en", target="id").pairs()) == [Pair("Open it.", "Buka.")]
    assert list(corpus_at(path, '{"id": "Buka.", "en": "Open it."}\n').pairs()) == [Pair("Buka.", "Open it.")]
    with pytest.raises(DataError, match="Received: id, en, text"):
        corpus_at(path, '{"id": "a1", "en": "Save now.", "text": "x"}\n')


def test_the_same_key_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"two different keys\. Received: en,en"):
        corpus_at(tmp_path / "a.jsonl", '{"en": "a", "ko": "b"}\n', columns="en,en")


def test_a_huge_number_in_a_workbook_is_refused(tmp_path: Path) -> None:
    digits = "1" * 5_000
    for row in (f'<row r="{digits}"><c><v>1</v></c></row>', f'<row><c t="s"><v>{digits}</v></c></row>'):
        with pytest.raises(DataError, match="5,000 digits"):
            corpus_at(tmp_path / "a.xlsx", xlsx(row))


def test_an_archive_with_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    content = zipped(**{"é.tsv": "a\tb\n"}).replace("é".encode(), b"\xff\xff")
    with pytest.raises(DataError, match="not UTF-8"):
        corpus_at(tmp_path / "a.zip", content)


@pytest.mark.parametrize("gap", [" " * 60_000, " \0" + " " * 60_000])
def test_spaces_in_a_segment_take_linear_time(gap: str) -> None:
    """In an earlier version, 20,000 spaces took 0.3 seconds, and 40,000 spaces four times as long.

    Each part of `gap`, separated by "\\0", is followed by an inline code.
    """
    segment = SegmentText()
    segment.add("a")
    for piece in gap.split("\0"):
        segment.add(piece)
        segment.start("ph", {})
        segment.end("ph")
    segment.add(f"b{gap}c \n d".replace("\0", ""))
    started = time.process_time()
    text = segment.text()
    assert time.process_time() - started < 0.5
    assert text.startswith("a b ")
    assert text.endswith(" c d")
