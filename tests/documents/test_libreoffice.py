"""Files that LibreOffice writes are translated, and LibreOffice opens the translations."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from jumok.documents.registry import read_document
from support.office_files import identity, opendocument_part, parts_of, shout

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = shutil.which("soffice") or shutil.which("libreoffice")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="needs LibreOffice (apt-get install libreoffice-writer …)"),
]
PAGE = """<html lang="en"><body><h1>A heading here</h1>
<p>My name <b>is</b> Michael and <a href="http://example.org">this link</a> works.</p>
<table border=1><tr><td>a cell</td><td>other cell</td></tr></table>
<ul><li>first point</li><li>second <i>point</i></li></ul><p>one<br>two</p></body></html>"""
WORDS = ["A heading here", "My name is Michael", "this link", "a cell", "second point"]
SLIDES = (
    '<office:automatic-styles><style:style style:name="T1" style:family="text">'
    '<style:text-properties fo:font-weight="bold"/></style:style></office:automatic-styles>'
    '<office:body><office:presentation><draw:page draw:name="p1">'
    '<draw:frame svg:width="20cm" svg:height="3cm" svg:x="1cm" svg:y="1cm"><draw:text-box>'
    '<text:p>My name <text:span text:style-name="T1">is</text:span> Michael</text:p>'
    "</draw:text-box></draw:frame>"
    '<presentation:notes><draw:frame svg:width="10cm" svg:height="3cm" svg:x="1cm" svg:y="10cm" '
    'presentation:class="notes"><draw:text-box><text:p>say this</text:p></draw:text-box></draw:frame>'
    "</presentation:notes></draw:page></office:presentation></office:body>"
)


def convert(path: Path, suffix: str) -> Path:
    """Convert a file with LibreOffice. An export filter may follow the suffix, as in `odt:writer8`."""
    out = path.parent / "converted"
    profile = path.parent / "profile"
    subprocess.run(
        [
            str(PROGRAM),
            f"-env:UserInstallation={profile.as_uri()}",
            "--headless",
            "--convert-to",
            suffix,
            "--outdir",
            str(out),
            str(path),
        ],
        check=True,
        capture_output=True,
        timeout=180,
    )
    return out / f"{path.stem}.{suffix.partition(':')[0]}"


def translate(path: Path) -> Path:
    """Check that a file translated into itself is unchanged. Return the path of a copy in capitals."""
    data = path.read_bytes()
    _, document = read_document(path.name, data)
    assert identity(document) == data
    translated = path.parent.parent / f"translated{path.suffix}"
    translated.write_bytes(shout(document, "ko"))
    return translated


@pytest.mark.parametrize("kind", ["odt:writer8", "docx:MS Word 2007 XML"])
def test_libreoffice_writer_opens_a_translated_text(kind: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE, encoding="utf-8")
    text = convert(page, "odt:writer8")
    if not kind.startswith("odt"):
        text.rename(tmp_path / "page.odt")
        text = convert(tmp_path / "page.odt", kind)
    segments = read_document(text.name, text.read_bytes())[1].segments
    assert any("My name is Michael and this link works." in segment for segment in segments)
    plain_text = convert(translate(text), "txt:Text").read_text(encoding="utf-8-sig")
    for words in WORDS:
        assert words.upper() in re.sub(r"\s+", " ", plain_text)
        assert words not in plain_text


def test_libreoffice_impress_opens_translated_slides(tmp_path: Path) -> None:
    flat = tmp_path / "slides.fodp"
    part = opendocument_part("document", SLIDES)
    declarations = (
        ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" office:version="1.3" '
        'office:mimetype="application/vnd.oasis.opendocument.presentation"'
    )
    flat.write_text(part.replace("<office:document", f"<office:document{declarations}", 1), encoding="utf-8")
    odp = convert(flat, "odp")
    translated_pptx = convert(translate(odp), "pptx")
    assert "MY NAME " in parts_of(translated_pptx.read_bytes())["ppt/slides/slide1.xml"].decode()
    (tmp_path / "second").mkdir()
    pptx = tmp_path / "second" / "slides.pptx"
    translated_pptx.rename(pptx)
    segments = read_document(pptx.name, pptx.read_bytes())[1].segments
    assert "MY NAME IS MICHAEL" in segments
    assert "SAY THIS" in segments
    translated_odp = convert(translate(pptx), "odp")
    assert b"MICHAEL" in parts_of(translated_odp.read_bytes())["content.xml"]


def test_libreoffice_calc_opens_a_translated_table(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("name,value\nhello world,12\nmore text,=B2*2\n", encoding="utf-8")
    workbook = convert(table, "xlsx:Calc MS Excel 2007 XML")
    csv = convert(translate(workbook), "csv").read_text(encoding="utf-8")
    assert csv == "NAME,VALUE\nHELLO WORLD,12\nMORE TEXT,24\n"
