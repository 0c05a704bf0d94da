"""Workbooks: cells on which formulas depend are not translated, and notes name these cells."""

from __future__ import annotations

import time

import pytest

from jumok.documents.document import SegmentTranslation
from jumok.documents.registry import read_document
from support.office_files import identity, make_xlsx, make_zip, parts_of, shout

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRINGS = "".join(f"<si><t>{text}</t></si>" for text in ("Open", "Closed", "Status", "It is urgent, open it"))
COMPARES = "These cells are not translated, because formulas compare with them: "
SEARCHES = "Formulas look for these words in cells that are translated, check them: "


def sheet(content: str) -> str:
    return f'<worksheet xmlns="{MAIN}">{content}</worksheet>'


def sheet_with_formula(formula: str) -> str:
    return sheet(f'<row><c r="C3" s="1"><f>{formula}</f><v>1</v></c></row>')


@pytest.mark.parametrize(
    "formula",
    [
        'IF(A1="Open",1,0)',
        "IF(A1=&quot;Open&quot;,1,0)",
        'IF("open"&lt;&gt;A1,"Closed","Status")',
        'COUNTIF(B:B,"Open")',
        'COUNTIFS(B:B,"&lt;&gt;Open",C:C,"&gt;5")',
        'SUM(COUNTIF(B:B,{"Open","none"}))',
        'SUMPRODUCT((A1:A9=("Open"))*1)',
        'OR(A1={"Open","none"})',
        '_xlfn.XLOOKUP("Open",A:A,B:B)',
        'IF(A1="Open","Closed ("&amp;B1&amp;")","")',
    ],
)
def test_a_cell_with_which_a_formula_compares_stays(formula: str) -> None:
    data = make_xlsx(STRINGS, **{"worksheets/sheet1": sheet_with_formula(formula)})
    _, document = read_document("a.xlsx", data)
    assert document.segments == ["Closed", "Status", "It is urgent, open it"]
    assert document.notes == [f'{COMPARES}"Open" (sheet1!C3).']
    assert identity(document) == data
    written = parts_of(shout(document))
    assert b"<si><t>Open</t></si><si><t>CLOSED</t></si>" in written["xl/sharedStrings.xml"]
    assert written["xl/worksheets/sheet1.xml"].decode() == sheet_with_formula(formula)


@pytest.mark.parametrize(
    "formula",
    [
        'IF(A1&gt;5,"Open","Closed")',
        'A1&amp;"Open"',
        '"Status: "&amp;TEXT(A1,"0")',
        'IF(A1="","Open","")',
        "IF('Open'!A1=2,1,0)",  # the name of a sheet
    ],
)
def test_a_cell_with_which_no_formula_compares_is_translated(formula: str) -> None:
    _, document = read_document(
        "a.xlsx", make_xlsx(STRINGS, **{"worksheets/sheet1": sheet_with_formula(formula)})
    )
    assert document.segments[:3] == ["Open", "Closed", "Status"]
    assert document.notes == []


@pytest.mark.parametrize(
    ("formula", "word"),
    [
        ('ISNUMBER(SEARCH("urgent",A2))', "urgent"),
        ('COUNTIF(A:A,"*Urgent*")', "*Urgent*"),
        ('IF(LEFT(A1,5)="It is","Open","x")', "It is"),
    ],
)
def test_a_note_names_a_formula_that_looks_for_a_word_in_longer_texts(formula: str, word: str) -> None:
    _, document = read_document(
        "a.xlsx", make_xlsx(STRINGS, **{"worksheets/sheet1": sheet_with_formula(formula)})
    )
    assert "It is urgent, open it" in document.segments
    assert document.notes == [f'{SEARCHES}"{word}" (sheet1!C3).']
    without_word = make_xlsx("<si><t>Open</t></si>", **{"worksheets/sheet1": sheet_with_formula(formula)})
    assert read_document("a.xlsx", without_word)[1].notes == []


def test_texts_in_choices_rules_and_names_are_compared_with_cells() -> None:
    rules = sheet(
        '<conditionalFormatting sqref="B2:B9"><cfRule type="cellIs"><formula>"Closed"</formula></cfRule>'
        '</conditionalFormatting><dataValidations><dataValidation type="list" sqref="B2">'
        '<formula1>"Open,Later"</formula1></dataValidation></dataValidations>'
    )
    workbook = (
        f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets><sheet name="To do" r:id="rId7"/></sheets>'
        '<definedNames><definedName name="first">"Status"</definedName></definedNames></workbook>'
    )
    relations = '<Relationships><Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>'
    parts = parts_of(make_xlsx(STRINGS, **{"worksheets/sheet1": rules, "workbook": workbook}))
    data = make_zip(parts | {"xl/_rels/workbook.xml.rels": relations.encode()})
    _, document = read_document("a.xlsx", data)
    assert document.segments == ["It is urgent, open it"]
    expected = '"Open" (To do!B2), "Closed" (To do!B2:B9), "Status" (first).'
    assert document.notes == [COMPARES + expected]


def test_the_fields_of_a_pivot_table_stay() -> None:
    cache = f'<pivotCacheDefinition xmlns="{MAIN}"><cacheField name="Status"/></pivotCacheDefinition>'
    data = make_xlsx(STRINGS, **{"pivotCache/pivotCacheDefinition1": cache})
    _, document = read_document("a.xlsx", data)
    assert document.segments == ["Open", "Closed", "It is urgent, open it"]


def test_filters_and_totals_follow_their_cells() -> None:
    filters = '<filters><filter val="Closed"/><filter val="Jan-24"/><filter val="Open"/></filters>'
    content = '<c r="A1"><f>COUNTIF(B:B,"Open")</f></c><autoFilter>' + filters + "</autoFilter>"
    table = f'<table xmlns="{MAIN}">{filters}<tableColumn name="a" totalsRowLabel="Status"/></table>'
    parts = {"worksheets/sheet1": sheet(content), "tables/table1": table}
    data = make_xlsx(STRINGS, **parts)
    _, document = read_document("a.xlsx", data)
    assert identity(document) == data
    written = parts_of(shout(document))
    for name, text in parts.items():
        expected = text.replace('"Closed"', '"CLOSED"').replace('"Status"', '"STATUS"')
        assert written[f"xl/{name}.xml"].decode() == expected


@pytest.mark.parametrize("setting", ["", ' fullCalcOnLoad="0"', ' fullCalcOnLoad="1"'])
def test_excel_recomputes_formulas_on_opening_if_their_results_are_texts(setting: str) -> None:
    workbook = f'<workbook xmlns="{MAIN}"><calcPr{setting} calcId="191029"/></workbook>'
    result = sheet('<c r="A1" t="{}"><f>B1</f><v>Open</v></c>')
    parts = {"workbook": workbook, "worksheets/sheet1": result.format("str")}
    _, document = read_document("a.xlsx", make_xlsx(STRINGS, **parts))
    assert identity(document) == make_xlsx(STRINGS, **parts)
    written = parts_of(shout(document, "ko"))["xl/workbook.xml"].decode()
    assert written == workbook.replace(f"<calcPr{setting}", '<calcPr fullCalcOnLoad="1"')
    parts["worksheets/sheet1"] = result.format("n")
    _, document = read_document("a.xlsx", make_xlsx(STRINGS, **parts))
    assert parts_of(shout(document, "ko"))["xl/workbook.xml"].decode() == workbook


@pytest.mark.parametrize(
    "content",
    [
        "<c " + ' r="A1"' * 100_000,
        "<c r=" * 100_000,
        "<f>" + '"a' * 200_000 + "</f>",
        "<f>" + '("*a*"=' * 50_000 + "</f>",
        "<f>" + "A1=" + '"' * 200_001 + "</f>",
        "<definedName name='x'>" + "IF(" * 100_000 + '"a"</definedName>',
    ],
)
def test_formulas_are_read_in_linear_time(content: str) -> None:
    started = time.perf_counter()
    read_document("a.xlsx", make_xlsx(STRINGS, **{"worksheets/sheet1": content}))
    assert time.perf_counter() - started < 5


def test_strings_that_are_written_as_results_are_translated() -> None:
    """SheetJS and some databases write strings as t="str", the type of results, without a formula."""
    cells = (
        '<c r="A1" t="str"><v>one &amp; two</v></c><c r="A2" t="str"><f>A1</f><v>one</v></c>'
        '<c r="A3" t="str"><v>Open</v></c><c r="A4"><f>COUNTIF(A:A,"open")</f><v>1</v></c>'
    )
    data = make_xlsx("", **{"worksheets/sheet1": sheet(cells)})
    _, document = read_document("a.xlsx", data)
    assert document.segments == ["one & two"]
    assert document.notes == [f'{COMPARES}"Open" (sheet1!A4).']
    assert identity(document) == data
    written = parts_of(shout(document))["xl/worksheets/sheet1.xml"].decode()
    assert written == sheet(cells.replace("one &amp; two", "ONE &amp; TWO"))


def test_headers_and_footers_of_a_sheet_keep_their_codes() -> None:
    header = '&amp;L&amp;"Arial,Bold"&amp;12Research &amp;&amp; plans&amp;CPage &amp;P of &amp;N&amp;R&amp;D'
    footer = (
        "&amp;KFF0000Internal use&amp;R&amp;&quot;Times New Roman,Regular&quot;&amp;12&amp;A&amp;&amp;Left"
    )
    content = (
        f"<headerFooter><oddHeader>{header}</oddHeader><oddFooter>{footer}</oddFooter>"
        "<firstFooter>&amp;P</firstFooter></headerFooter>"
    )
    data = make_xlsx("", **{"worksheets/sheet1": sheet(content)})
    _, document = read_document("a.xlsx", data)
    assert document.segments == ["Research & plans", "Page of ", "Internal use", "&Left"]
    assert identity(document) == data
    written = parts_of(shout(document))["xl/worksheets/sheet1.xml"].decode()
    expected = content.replace("Research", "RESEARCH").replace("plans", "PLANS").replace("Page", "PAGE")
    expected = (
        expected.replace(" of ", " OF ").replace("Internal use", "INTERNAL USE").replace("Left", "LEFT")
    )
    assert written == sheet(expected)


@pytest.mark.parametrize("header", ["<![CDATA[&LResearch]]>", "&amp;<b>Research</b>"])
def test_a_header_of_a_sheet_with_markup_stays(header: str) -> None:
    content = f"<headerFooter><oddHeader>{header}</oddHeader></headerFooter>"
    data = make_xlsx("<si><t>one</t></si>", **{"worksheets/sheet1": sheet(content)})
    _, document = read_document("a.xlsx", data)
    assert document.segments == ["one"]
    assert parts_of(shout(document))["xl/worksheets/sheet1.xml"].decode() == sheet(content)


def test_parts_are_found_under_the_names_that_programs_other_than_excel_use() -> None:
    cell = sheet("<c t='inlineStr'><is><t>one</t></is></c>")
    parts = {"[Content_Types].xml": "<Types/>", "xl/worksheets/Sheet.xml": cell}
    parts |= {"xl/SharedStrings.xml": f'<sst xmlns="{MAIN}"><si><t>two</t></si></sst>'}
    assert sorted(read_document("a.xlsx", make_zip(parts))[1].segments) == ["one", "two"]


# --- Charts -------------------------------------------------------------------------------------------------


LABELS = "".join(f"<si><t>{text}</t></si>" for text in ("Spring", "The books", "The pens"))
# In PowerPoint, the name of the first column, which contains the labels of the rows, is a space.
TABLE = f'<table xmlns="{MAIN}"><tableColumn name=" "/><tableColumn name="The books"/></table>'
CHART = (
    '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart">'
    "<c:strCache><c:pt><c:v>The books</c:v></c:pt><c:pt><c:v>Spring</c:v></c:pt></c:strCache></c:chartSpace>"
)
EMBEDDED = "embeddings/Microsoft Excel Sheet.xlsx"


def document_with_chart(workbook: bytes, folder: str = "ppt") -> bytes:
    relation = f'<Relationship Id="rId1" Target="../{EMBEDDED.replace(" ", "%20")}"/>'
    linked = '<Relationship Id="rId2" Target="file:///c:/other.xlsx" TargetMode="External"/>'
    return make_zip(
        {
            "[Content_Types].xml": "<Types/>",
            f"{folder}/charts/chart1.xml": CHART,
            f"{folder}/charts/_rels/chart1.xml.rels": f"<Relationships>{relation}{linked}</Relationships>",
            f"{folder}/{EMBEDDED}": workbook,
            f"{folder}/embeddings/an_object.xlsx": workbook,  # no chart refers to this workbook
        }
    )


@pytest.mark.parametrize(("name", "folder"), [("a.pptx", "ppt"), ("a.docx", "word")])
def test_the_workbook_behind_a_chart_has_the_labels_of_the_chart(name: str, folder: str) -> None:
    workbook = make_xlsx(LABELS, **{"tables/table1": TABLE})
    data = document_with_chart(workbook, folder)
    document_format, document = read_document(name, data)
    assert identity(document) == data
    written = parts_of(shout(document))
    assert b"<c:v>THE BOOKS</c:v>" in written[f"{folder}/charts/chart1.xml"]
    inside = parts_of(written[f"{folder}/{EMBEDDED}"])
    assert b"<t>SPRING</t></si><si><t>THE BOOKS</t>" in inside["xl/sharedStrings.xml"]
    assert inside["xl/tables/table1.xml"].decode() == TABLE.replace("The books", "THE BOOKS")
    assert written[f"{folder}/embeddings/an_object.xlsx"] == workbook
    parsed = [CHART, LABELS, TABLE]
    assert sum(map(document_format.count_syntax_characters, document_format.parsed_parts(data))) >= sum(
        text.count("<") for text in parsed
    )


@pytest.mark.parametrize(
    "table", [TABLE.replace("</", '<tableColumn name="The pens"/></'), TABLE.replace("The b", "The_x000a_b")]
)
def test_columns_keep_their_names_if_new_names_are_equal_or_a_name_is_not_in_a_cell(table: str) -> None:
    """In the first table, both new names would be 하나. In the second, a name is not the text of a cell."""
    data = document_with_chart(make_xlsx(LABELS, **{"tables/table1": table}))
    _, document = read_document("a.pptx", data)
    written = document.write([SegmentTranslation("하나") for _ in document.segments])
    inside = parts_of(parts_of(written)[f"ppt/{EMBEDDED}"])
    assert inside["xl/tables/table1.xml"].decode() == table
    cells = inside["xl/sharedStrings.xml"].decode()
    assert "<t>하나</t>" in cells
    # A cell with the name of a column must keep its text if the column keeps its name.
    assert ("<t>The books</t>" in cells) == ("The books" in table)


def test_a_label_of_a_chart_workbook_stays_with_the_column_name_that_it_repeats() -> None:
    """No cell has the name "The cars", so the columns keep their names, and the cell "The books" stays."""
    table = TABLE.replace("</", '<tableColumn name="The cars" totalsRowLabel="The books"/></')
    _, document = read_document("a.pptx", document_with_chart(make_xlsx(LABELS, **{"tables/table1": table})))
    inside = parts_of(parts_of(shout(document))[f"ppt/{EMBEDDED}"])
    assert b"<t>SPRING</t></si><si><t>The books</t>" in inside["xl/sharedStrings.xml"]
    assert inside["xl/tables/table1.xml"].decode() == table


def test_columns_that_formulas_use_keep_their_names() -> None:
    parts = {
        "tables/table1": TABLE,
        "worksheets/sheet1": sheet("<c r='A1'><f>SUM(Table1[The books])</f></c>"),
    }
    _, document = read_document("a.pptx", document_with_chart(make_xlsx(LABELS, **parts)))
    inside = parts_of(parts_of(shout(document))[f"ppt/{EMBEDDED}"])
    assert b"<t>SPRING</t></si><si><t>The books</t>" in inside["xl/sharedStrings.xml"]
    assert inside["xl/tables/table1.xml"].decode() == TABLE


def test_a_note_names_a_damaged_workbook_behind_a_chart() -> None:
    data = document_with_chart(b"PK no archive")
    document_format, document = read_document("a.pptx", data)
    assert sum(map(document_format.count_syntax_characters, document_format.parsed_parts(data))) > 0
    assert document.segments == ["The books", "Spring"]
    assert document.notes == [
        f"The workbook behind a chart is damaged and is not translated: ppt/{EMBEDDED}."
    ]
    assert identity(document) == data


def test_newer_charts_are_translated() -> None:
    chart = (
        '<cx:chartSpace xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"><cx:strDim><cx:lvl>'
        '<cx:pt idx="0">Spring</cx:pt></cx:lvl></cx:strDim><cx:numDim><cx:pt idx="0">NaN</cx:pt></cx:numDim>'
        "<cx:tx><cx:txData><cx:f>Sheet1!$B$1</cx:f><cx:v>The books</cx:v></cx:txData></cx:tx></cx:chartSpace>"
    )
    data = make_zip({"[Content_Types].xml": "<Types/>", "ppt/charts/chartEx1.xml": chart})
    _, document = read_document("a.pptx", data)
    assert document.segments == ["Spring", "The books"]
    assert identity(document) == data
