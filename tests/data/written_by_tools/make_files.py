"""Write the files of this folder with the tools that people use.

    python -m venv env && env/bin/pip install translate-toolkit polib openpyxl odfpy
    env/bin/python tests/data/written_by_tools/make_files.py

Run this script only to write the files again. jumok does not import or ship the tools: the files test whether
jumok reads the formats as the tools write them. The sentences were written for jumok.
"""

from __future__ import annotations

from pathlib import Path

import openpyxl
import polib
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P
from translate.storage.pypo import pofile
from translate.storage.tmx import tmxfile
from translate.storage.xliff import xlifffile
from translate.storage.xliff2 import Xliff2File

FOLDER = Path(__file__).parent
PAIRS = [
    ("Save now.", "지금 저장하세요."),
    ('She said "yes" & left, <b>smiling</b>.', "그녀는 “예” & 하고 <b>웃으며</b> 떠났다."),
    ("A cell; with, separators\tand a tab.", "구분자; 와, 탭\t이 있는 칸."),
]


def main() -> None:
    memory = tmxfile(sourcelanguage="en", targetlanguage="ko")
    for source, target in PAIRS:
        memory.addtranslation(source, "en", target, "ko")
    (FOLDER / "translate-toolkit.tmx").write_bytes(bytes(memory))

    for kind, name in ((xlifffile, "translate-toolkit-1.xlf"), (Xliff2File, "translate-toolkit-2.xlf")):
        document = kind()
        document.setsourcelanguage("en")
        document.settargetlanguage("ko")
        for source, target in PAIRS:
            document.addsourceunit(source).target = target
        document.addsourceunit("Not translated.")
        (FOLDER / name).write_bytes(bytes(document))

    catalogue = polib.POFile()
    catalogue.metadata = {"Language": "ko", "Content-Type": "text/plain; charset=utf-8"}
    catalogue.extend(polib.POEntry(msgid=source, msgstr=target) for source, target in PAIRS)
    catalogue.append(polib.POEntry(msgid="Not translated.", msgstr=""))
    catalogue.append(polib.POEntry(msgid="Unsure.", msgstr="불확실.", flags=["fuzzy"]))
    catalogue.save(str(FOLDER / "polib.po"))
    other = pofile()
    other.updateheader(add=True, Language="ko", Content_Type="text/plain; charset=UTF-8")
    for source, target in PAIRS:
        other.addsourceunit(source).target = target
    (FOLDER / "translate-toolkit.po").write_bytes(bytes(other))

    book = openpyxl.Workbook()
    sheet = book.active
    for row in (("No.", "English", "Korean"), *((n, *pair) for n, pair in enumerate(PAIRS, start=1))):
        sheet.append(row)
    book.create_sheet("Notes").append(("a", "b"))
    book.save(FOLDER / "openpyxl.xlsx")

    spreadsheet = OpenDocumentSpreadsheet()
    table = Table(name="Pairs")
    for cells in (("en", "ko"), *PAIRS):
        row = TableRow()
        for text in cells:
            cell = TableCell(valuetype="string")
            cell.addElement(P(text=text))
            row.addElement(cell)
        table.addElement(row)
    spreadsheet.spreadsheet.addElement(table)
    spreadsheet.save(str(FOLDER / "odfpy.ods"))


if __name__ == "__main__":
    main()
