"""`jumok translate MODEL FILE --out FILE`: documents, folders, memories, and what is refused."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.cli.document_files import SegmentTranslator
from jumok.documents import files as document_files
from support.cli_calls import spawn

if TYPE_CHECKING:
    from support.cli_calls import Call

MODEL = Path(__file__).parents[1] / "stored" / "models" / "transformer"  # digits, English to Korean
PAGE = '<html lang="en"><body><p>two <b>four</b> nine.</p>\n<p>nine   zero nine.</p></body></html>'
TRANSLATED = '<html lang="ko"><body><p>이 <b>사</b> 구.</p>\n<p>구 영 구.</p></body></html>'
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_a_document_is_translated_with_its_markup(call: Call, page: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "page.ko.html"
    result = call("translate", MODEL, page, "--out", out)
    assert (result.code, result.out) == (0, "")
    assert out.read_text(encoding="utf-8") == TRANSLATED
    assert [path.name for path in out.parent.iterdir()] == ["page.ko.html"]


@pytest.mark.medium
def test_without_out_a_document_goes_to_standard_output(page: Path) -> None:
    result = spawn("translate", MODEL, page)
    assert (result.returncode, result.stdout.decode()) == (0, TRANSLATED)


def test_a_word_document_is_translated_and_declares_its_language(call: Call, tmp_path: Path) -> None:
    source, out = tmp_path / "a.docx", tmp_path / "b.docx"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        bold = "<w:r><w:rPr><w:b/></w:rPr><w:t>four</w:t></w:r>"
        body = f"<w:p><w:r><w:t>two </w:t></w:r>{bold}<w:r><w:t> nine.</w:t></w:r></w:p>"
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        )
        styles = "<w:docDefaults><w:rPrDefault><w:rPr></w:rPr></w:rPrDefault></w:docDefaults>"
        archive.writestr("word/styles.xml", f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>')
    assert call("translate", MODEL, source, "--out", out).code == 0
    with zipfile.ZipFile(out) as archive:
        document, styles = (archive.read(f"word/{name}.xml").decode() for name in ("document", "styles"))
    assert "<w:r><w:rPr><w:b/></w:rPr><w:t>사</w:t></w:r>" in document
    assert 'w:eastAsia="ko-KR"' in styles


@pytest.mark.slow
@pytest.mark.no_cover
def test_five_thousand_paragraphs_with_pictures_take_less_than_a_minute(call: Call, tmp_path: Path) -> None:
    source, out = tmp_path / "a.docx", tmp_path / "b.docx"
    generator = random.Random(1)
    digits = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    paragraphs = []
    for _ in range(5_000):
        first, bold, last = (" ".join(generator.choices(digits, k=3)) for _ in range(3))
        runs = f"<w:r><w:t>{first} </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>{bold}</w:t></w:r>"
        paragraphs.append(f"<w:p>{runs}<w:r><w:t> {last}.</w:t></w:r><w:r><w:drawing/></w:r></w:p>")
    body = f"<w:body>{''.join(paragraphs)}</w:body>"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}">{body}</w:document>')
        for number in range(100):
            archive.writestr(f"word/media/image{number}.png", generator.randbytes(100_000))
    started = time.process_time()
    assert call("translate", MODEL, source, "--out", out).code == 0
    assert time.process_time() - started < 60
    with zipfile.ZipFile(out) as archive:
        document = archive.read("word/document.xml").decode()
    assert document.count("<w:p>") == document.count("<w:drawing/>") == 5_000


def test_a_file_that_exists_is_overwritten_only_with_overwrite(
    call: Call, page: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.html"
    out.write_text("mine", encoding="utf-8")
    message = call("translate", MODEL, page, "--out", out).paragraph("translate")
    assert "exists and is not overwritten" in message
    assert out.read_text(encoding="utf-8") == "mine"
    assert call("translate", MODEL, page, "--out", out, "--overwrite").code == 0
    assert out.read_text(encoding="utf-8") == TRANSLATED


def test_a_folder_is_translated_file_by_file(call: Call, page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    page.rename(folder / "deep" / "page.html")
    (folder / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\ntwo four.\n", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.json").write_text("{}", encoding="utf-8")
    result = call("translate", MODEL, folder, "--out", tmp_path / "out")
    assert result.code == 0
    assert "2 documents were translated" in result.err
    assert "picture.png" in result.err
    assert (tmp_path / "out" / "deep" / "page.html").read_text(encoding="utf-8") == TRANSLATED
    assert "이 사." in (tmp_path / "out" / "a.srt").read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.srt", "deep"]


def test_a_damaged_file_of_a_folder_does_not_stop_the_others(call: Call, page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    page.rename(folder / "page.html")
    (folder / "damaged.docx").write_bytes(b"nothing")
    message = call("translate", MODEL, folder, "--out", tmp_path / "out").err
    assert "1 documents could not be translated" in message
    assert "damaged.docx" in message
    assert (tmp_path / "out" / "page.html").read_text(encoding="utf-8") == TRANSLATED


def test_exact_matches_of_a_memory_are_taken_over(call: Call, page: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.en-ko.tsv"
    memory.write_text("two four nine.\t둘 넷 아홉.\n", encoding="utf-8")
    out = tmp_path / "out.html"
    result = call("translate", MODEL, page, "--out", out, "--memory", memory)
    assert "1 segments and sentences were taken from the translation memory" in result.err
    written = out.read_text(encoding="utf-8")
    assert "<p>구 영 구.</p>" in written
    assert "<b>" in written
    assert written.replace("<b>", "").replace("</b>", "").count("둘 넷 아홉.") == 1


TMX = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body><tu>
<tuv xml:lang="en"><seg>two four nine.</seg></tuv>
<tuv xml:lang="ko"><seg>둘 넷 아홉.</seg></tuv></tu></body></tmx>"""


def test_a_memory_may_be_tmx(call: Call, page: Path, tmp_path: Path) -> None:
    memory, out = tmp_path / "memory.tmx", tmp_path / "out.html"
    memory.write_text(TMX, encoding="utf-8")
    result = call("translate", MODEL, page, "--out", out, "--memory", memory)
    assert "1 segments and sentences were taken from the translation memory" in result.err


def test_the_progress_counts_translating_and_aligning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.cli.document_files._ALIGNED_AT_ONCE", 2)
    seen: list[tuple[int, int]] = []
    translate = SegmentTranslator(
        jumok.load(MODEL), {}, on_progress=lambda done, total: seen.append((done, total))
    )
    texts = [f"two {digit} nine." for digit in ("one", "four", "five")]
    assert [translation.text for translation in translate(texts)] == ["이 일 구.", "이 사 구.", "이 오 구."]
    assert seen[-2:] == [(5, 6), (6, 6)]
    assert seen == sorted(seen)


def test_nothing_is_half_written(
    call: Call, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out" / "page.html"
    out.parent.mkdir()

    def fail(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(document_files, "write_file", fail)
    result = call("translate", MODEL, page, "--out", out)
    assert result.code != 0
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report.pdf"], "save it as .docx"),
        (["report.doc", "--out", "x.doc"], "There is no file"),
        (["missing.docx", "--out", "x.docx"], "There is no file"),
        (["page.html", "--out", "page.txt"], "keeps its format"),
        (["page.html", "--out", "page.html", "--overwrite"], "would replace its own source"),
        (["page.html", "--out", "x.html", "--json"], "are for lines"),
        (["page.html", "--overwrite"], "Add --out"),
        (["--out", "x.html"], "Name the document"),
        (["."], "--out FOLDER"),
        (["lines.log", "--memory", "m.tsv"], "--memory is for documents"),
        (["empty", "--out", "x"], "no document of a known type"),
    ],
)
def test_what_cannot_be_done_is_refused_with_advice(
    arguments: list[str], words: str, call: Call, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "lines.log").write_text("one\n", encoding="utf-8")
    assert words in " ".join(call("translate", MODEL, *arguments).paragraph("translate").split())
    assert page.read_text(encoding="utf-8") == PAGE


def test_other_files_are_translated_line_by_line(call: Call, tmp_path: Path) -> None:
    for name in ("in.txt", "in.log", "in"):
        path = tmp_path / name
        path.write_text("two four.\n\nnine.\n", encoding="utf-8")
        result = call("translate", MODEL, path)
        assert result.out == "이 사.\n\n구.\n"


def test_documents_are_not_imported_to_translate_lines() -> None:
    code = "import sys, jumok.cli.translate; sys.exit('jumok.documents' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], check=False)
    assert result.returncode == 0
