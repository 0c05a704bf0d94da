"""`jumok translate MODEL FILE --out FILE` translates documents and folders.

The command can use a translation memory, write one, and continue after an interruption.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

import jumok
from jumok.cli import segment_translator
from jumok.cli.language import choose_language
from jumok.cli.segment_translator import SegmentTranslator
from jumok.data import corpora
from jumok.data.formats.tmx_writer import write_tmx
from jumok.documents.part_file import PartFile
from jumok.storage import folders
from support.cli_calls import environment, program, spawn
from support.office_files import make_xlsx, parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.server.pipeline import SentenceTranslation
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


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_note_names_the_cells_that_a_formula_compares(
    language: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_LANG", language)
    source, out = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    formula = '<worksheet><c r="B1"><f>COUNTIF(A:A,"two")</f></c></worksheet>'
    source.write_bytes(
        make_xlsx("<si><t>two</t></si><si><t>four nine.</t></si>", **{"worksheets/sheet1": formula})
    )
    result = call("translate", MODEL, source, "--out", out)
    choose_language({})
    notes = {
        "en": "note: a.xlsx: These cells are not translated, because formulas compare with them: ",
        "ko": "알림: a.xlsx: 수식에서 비교에 쓰는 값이므로 다음 셀은 번역하지 않았습니다: ",
    }
    assert (result.code, result.err) == (0, f'{notes[language]}"two" (sheet1!B1).\n')
    strings = parts_of(out.read_bytes())["xl/sharedStrings.xml"].decode()
    assert "<si><t>two</t></si><si><t>사 구.</t></si>" in strings


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
    start = time.process_time()
    assert call("translate", MODEL, source, "--out", out).code == 0
    assert time.process_time() - start < 60
    with zipfile.ZipFile(out) as archive:
        document = archive.read("word/document.xml").decode()
    assert document.count("<w:p>") == document.count("<w:drawing/>") == 5_000


def test_a_file_that_exists_is_overwritten_only_with_overwrite(
    call: Call, page: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.html"
    out.write_text("mine", encoding="utf-8")
    message = call("translate", MODEL, page, "--out", out).error_of("translate")
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
    (folder / ".git" / "other.json").write_text("{}", encoding="utf-8")
    (folder / "deep" / ".draft.md").write_text("two", encoding="utf-8")
    (folder / "deep" / "~$report.docx").write_bytes(b"lock")
    result = call("translate", MODEL, folder, "--out", tmp_path / "out")
    assert result.code == 0
    assert "2 documents were translated" in result.err
    assert "their type is not known: picture.png." in result.err
    assert "Left out, because hidden: .git, .draft.md, ~$report.docx." in " ".join(result.err.split())
    assert (tmp_path / "out" / "deep" / "page.html").read_text(encoding="utf-8") == TRANSLATED
    assert "이 사." in (tmp_path / "out" / "a.srt").read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.srt", "deep"]


def test_a_folder_with_hidden_documents_only_is_refused_with_a_hint(call: Call, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / ".draft.md").write_text("two", encoding="utf-8")
    message = call("translate", MODEL, tmp_path / "in", "--out", tmp_path / "out").error_of("translate")
    assert "no document of a known type" in message
    assert "Hidden files and folders are left out, such as .draft.md" in message


def test_a_damaged_file_of_a_folder_does_not_stop_the_others(call: Call, page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    page.rename(folder / "page.html")
    (folder / "damaged.docx").write_bytes(b"nothing")
    memory = tmp_path / "memory.tmx"
    message = call("translate", MODEL, folder, "--out", tmp_path / "out", "--save-memory", memory).err
    assert "1 document could not be translated." in message
    assert "1 document was translated." in message
    assert "damaged.docx" in message
    assert (tmp_path / "out" / "page.html").read_text(encoding="utf-8") == TRANSLATED
    assert "memory.tmx is not written yet" in " ".join(message.split())
    assert not memory.exists()
    (folder / "damaged.docx").unlink()
    assert call("translate", MODEL, folder, "--out", tmp_path / "out", "--save-memory", memory).code == 0
    assert memory.read_bytes().count(b"<tu ") == 2


def test_exact_matches_of_a_memory_are_taken_over(call: Call, page: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.en-ko.tsv"
    memory.write_text("two four nine.\t둘 넷 아홉.\n", encoding="utf-8")
    out = tmp_path / "out.html"
    result = call("translate", MODEL, page, "--out", out, "--memory", memory)
    assert "were taken from the translation memory: 1." in result.err
    written = out.read_text(encoding="utf-8")
    assert "<p>구 영 구.</p>" in written
    assert "<b>" in written
    assert written.replace("<b>", "").replace("</b>", "").count("둘 넷 아홉.") == 1


MESSAGES = {
    "Hello, %1$s! You have %2$d files.": "%2$d개의 파일이 있습니다, %1$s 님!",
    "{name} sent {count} photos": "{count}장의 사진을 {name} 님이 보냈습니다",
    "Welcome back, {{user}}.": "{{user}} 님, 다시 오셨군요.",
    "Press <b>{key}</b> or <b>Esc</b>": "<b>Esc</b> 또는 <b>{key}</b> 누르기",
    "%d of %d": "%d / %d",
    "${price} a month": "매월 ${price}",
}


def test_placeholders_have_the_order_of_the_memory(call: Call, tmp_path: Path) -> None:
    """The memory has translations of all texts, so the model translates nothing."""
    memory, source, out = tmp_path / "memory.tmx", tmp_path / "a.json", tmp_path / "b.json"
    memory.write_bytes(write_tmx(MESSAGES.items(), "en", "ko"))
    source.write_text(json.dumps(list(MESSAGES)), encoding="utf-8")
    saved = tmp_path / "saved.tmx"
    result = call("translate", MODEL, source, "--out", out, "--memory", memory, "--save-memory", saved)
    assert result.code == 0, result.err
    assert json.loads(out.read_text(encoding="utf-8")) == list(MESSAGES.values())
    assert f"were taken from the translation memory: {len(MESSAGES)}." in result.err
    for text in ("Hello, %1$s! You have %2$d files.", "%2$d개의 파일이 있습니다, %1$s 님!"):
        assert text in saved.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.po", 'msgid "two %s nine"\nmsgstr ""\n', 'msgid "two %s nine"\nmsgstr "아홉 %s 둘"\n'),
        ("a.strings", '"k" = "two %s nine";', '"k" = "아홉 %s 둘";'),
        ("a.arb", '{"k": " two %s nine "}', '{"k": " 아홉 %s 둘 "}'),
        (
            "a.xml",
            '<resources><string name="k">two %s nine</string></resources>',
            '<resources><string name="k">아홉 %s 둘</string></resources>',
        ),
        ("a.html", "<p>two&nbsp;<b>%s</b> nine</p>", "<p>아홉 <b>%s</b> 둘</p>"),
        ("a.md", "two **%s** nine\n", "아홉 **%s** 둘\n"),
    ],
)
def test_several_formats_take_placeholders_from_a_memory(
    call: Call, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    memory, source, out = tmp_path / "m.en-ko.tsv", tmp_path / name, tmp_path / f"out.{name}"
    codes = ["%s", "<b>%s</b>", "**%s**"]
    lines = [f"two {code} nine\t아홉 {code} 둘\n" for code in codes]
    memory.write_text("".join(lines), encoding="utf-8")
    source.write_text(text, encoding="utf-8")
    assert call("translate", MODEL, source, "--out", out, "--memory", memory).code == 0
    assert out.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("target", ["이 사", "이 {name} 사", "이 {count} {count} 사"])
def test_a_memory_entry_with_other_placeholders_than_its_source_is_not_taken_over(
    call: Call, tmp_path: Path, target: str
) -> None:
    memory, source, out = tmp_path / "m.en-ko.tsv", tmp_path / "a.json", tmp_path / "b.json"
    memory.write_text(f"seven {{count}} nine.\t{target}\nzero\t영\n", encoding="utf-8")
    source.write_text('{"x": "seven {count} nine."}', encoding="utf-8")
    result = call("translate", MODEL, source, "--out", out, "--memory", memory)
    assert "were taken from the translation memory: 0." in result.err
    written = json.loads(out.read_text(encoding="utf-8"))["x"]
    assert written.replace("{count}", "").split() == ["칠", "구."]
    assert written.count("{count}") == 1
    lacks_placeholder = "{count}" not in target
    assert ("translations that lack a placeholder" in " ".join(result.err.split())) == lacks_placeholder
    text, plain = tmp_path / "a.txt", tmp_path / "b.txt"
    text.write_text("seven {count} nine.\n", encoding="utf-8")
    assert call("translate", MODEL, text, "--out", plain, "--memory", memory).code == 0
    assert "{count}" in plain.read_text(encoding="utf-8")


def test_a_memory_entry_matches_even_if_its_kinds_of_spaces_differ(call: Call, tmp_path: Path) -> None:
    memory, source, out = tmp_path / "m.en-ko.tsv", tmp_path / "a.txt", tmp_path / "b.txt"
    memory.write_text("two four\u00a0nine.\t둘\u00a0넷 아홉.\n", encoding="utf-8")
    source.write_text("two\u202ffour nine.\n", encoding="utf-8")
    assert call("translate", MODEL, source, "--out", out, "--memory", memory).code == 0
    assert out.read_text(encoding="utf-8") == "둘\u00a0넷 아홉.\n"


def test_a_memory_entry_without_a_translation_is_ignored(call: Call, page: Path, tmp_path: Path) -> None:
    memory, out = tmp_path / "memory.en-ko.tsv", tmp_path / "out.html"
    memory.write_text("two four nine.\t\nseven\t칠\n", encoding="utf-8")
    assert call("translate", MODEL, page, "--out", out, "--memory", memory).code == 0
    assert out.read_text(encoding="utf-8") == TRANSLATED


@pytest.mark.parametrize("to_file", [True, False])
def test_utf_16_without_a_byte_order_mark_is_refused_with_advice(
    call: Call, tmp_path: Path, to_file: bool
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(("one two three.\n" * 20).encode("utf-16-le"))
    result = call("translate", MODEL, text, *(["--out", tmp_path / "out.txt"] if to_file else []))
    assert result.code == 2
    assert "looks like UTF-16 without a byte order mark" in " ".join(result.err.split())
    assert "--encoding utf-16-le" in result.err
    assert not (tmp_path / "out.txt").exists()


def test_the_same_command_continues_after_a_damaged_file_was_repaired(
    call: Call, page: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    page.rename(folder / "a.html")
    (folder / "b.json").write_text("{", encoding="utf-8")
    assert call("translate", MODEL, folder, "--out", out).code == 2
    (folder / "b.json").write_text('{"x": "two four nine."}', encoding="utf-8")
    assert call("translate", MODEL, folder, "--out", out).code == 0
    assert (out / "b.json").read_text(encoding="utf-8") == '{"x": "이 사 구."}'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_a_document_that_changed_since_the_first_command_does_not_stop_the_others(
    call: Call, page: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    page.rename(folder / "a.html")
    (folder / "b.json").write_text("{", encoding="utf-8")
    assert call("translate", MODEL, folder, "--out", out).code == 2
    (folder / "a.html").write_text("<p>seven.</p>", encoding="utf-8")
    (folder / "b.json").write_text('{"x": "two four nine."}', encoding="utf-8")
    result = call("translate", MODEL, folder, "--out", out)
    assert result.code == 2
    assert "1 document could not be translated." in result.err
    assert "a.html exists and is not overwritten" in " ".join(result.err.split())
    assert (out / "a.html").read_text(encoding="utf-8") == TRANSLATED
    assert (out / "b.json").read_text(encoding="utf-8") == '{"x": "이 사 구."}'
    assert call("translate", MODEL, folder, "--out", out, "--overwrite").code == 0
    assert (out / "a.html").read_text(encoding="utf-8") == "<p>칠.</p>"


def test_a_source_language_that_a_file_declares_becomes_the_target_language(
    call: Call, tmp_path: Path
) -> None:
    header = 'msgid ""\nmsgstr "Language: {}\\n"\n\nmsgid "two four."\nmsgstr "{}"\n'
    texts = {
        "a.yml": ("en:\n  x: two four.\n", "ko:\n  x: 이 사.\n"),
        "b.yml": ("app:\n  x: two four.\n", "app:\n  x: 이 사.\n"),
        "c.po": (header.format("en", ""), header.format("ko", "이 사.")),
    }
    (tmp_path / "in").mkdir()
    for name, (text, _) in texts.items():
        (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    assert call("translate", MODEL, tmp_path / "in", "--out", tmp_path / "out").code == 0
    for name, (_, expected) in texts.items():
        assert (tmp_path / "out" / name).read_text(encoding="utf-8") == expected


TMX = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body><tu>
<tuv xml:lang="en"><seg>two four nine.</seg></tuv>
<tuv xml:lang="ko"><seg>둘 넷 아홉.</seg></tuv></tu></body></tmx>"""


def test_a_memory_may_be_tmx(call: Call, page: Path, tmp_path: Path) -> None:
    memory, out = tmp_path / "memory.tmx", tmp_path / "out.html"
    memory.write_text(TMX, encoding="utf-8")
    result = call("translate", MODEL, page, "--out", out, "--memory", memory)
    assert "were taken from the translation memory: 1." in result.err


def test_a_memory_may_be_utf_8_beside_a_document_in_another_encoding(call: Call, tmp_path: Path) -> None:
    source, memory, out = tmp_path / "a.txt", tmp_path / "m.en-ko.tsv", tmp_path / "b.txt"
    source.write_bytes("two four nine. 구\n".encode("cp949"))
    memory.write_text("two four nine.\t이백\n", encoding="utf-8")
    options = ("--memory", memory, "--encoding", "cp949")
    result = call("translate", MODEL, source, "--out", out, *options)
    assert result.code == 0, result.err
    assert out.read_text(encoding="utf-8").startswith("이백")


def test_the_last_of_several_translations_in_a_memory_is_used(call: Call, page: Path, tmp_path: Path) -> None:
    memory, out = tmp_path / "memory.en-ko.tsv", tmp_path / "out.html"
    lines = ["two four nine.\t이사구", "nine.\t구", "two four nine.\t이백사십구", "nine.\t구"]
    memory.write_text("\n".join(lines), encoding="utf-8")
    result = call("translate", MODEL, page, "--out", out, "--memory", memory)
    message = " ".join(result.err.split())
    assert "several translations of 1 of its 2 texts. The last in the file counts" in message
    assert "'two four nine.' becomes '이백사십구', not '이사구'" in message
    assert "이백사십구" in out.read_text(encoding="utf-8")


def test_progress_counts_each_text_once_when_translated_and_once_when_aligned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segment_translator, "BLOCK_SENTENCES", 2)
    progress: list[tuple[int, int]] = []
    translate = SegmentTranslator(
        jumok.load(MODEL), on_progress=lambda done, total: progress.append((done, total))
    )
    texts = [f"two {digit} nine." for digit in ("one", "four", "five")]
    assert [translation.text for translation in translate(texts)] == ["이 일 구.", "이 사 구.", "이 오 구."]
    assert progress[-2:] == [(5, 6), (6, 6)]  # the third text, which is a block of its own
    assert progress == sorted(progress)


MANY = "".join(f"<p>{digits}.</p>\n" for digits in ("two one", "four nine", "two two", "one", "nine nine"))


class TestResuming:
    """A long document is translated in blocks. Finished blocks are stored until the document is written."""

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(segment_translator, "BLOCK_SENTENCES", 2)

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        path = tmp_path / "many.html"
        path.write_text(MANY, encoding="utf-8")
        return path

    @pytest.fixture
    def block_sizes(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The sizes of the blocks whose translation began. The third block is interrupted as by Ctrl-C."""
        sizes: list[int] = []
        original = SegmentTranslator._translate_block

        def record_size(self: SegmentTranslator, sentences: Sequence[str]) -> dict[str, SentenceTranslation]:
            sizes.append(len(sentences))
            if len(sizes) == 3:
                raise KeyboardInterrupt
            return original(self, sentences)

        monkeypatch.setattr(SegmentTranslator, "_translate_block", record_size)
        return sizes

    def test_the_same_command_continues_an_interrupted_translation(
        self, call: Call, source: Path, tmp_path: Path, block_sizes: list[int]
    ) -> None:
        out, part = tmp_path / "out.html", tmp_path / "out.html.part"
        stopped = call("translate", MODEL, source, "--out", out)
        assert stopped.code == 130
        assert f"{part}. The same command continues" in " ".join(stopped.err.split())
        assert (out.exists(), part.exists()) == (False, True)
        part.write_bytes(part.read_bytes() + b'["4", {"sent')  # as after a kill during a write
        assert call("translate", MODEL, source, "--out", out).code == 0
        assert block_sizes == [2, 2, 1, 1]  # the third block is interrupted, then translated
        assert not part.exists()
        plain = tmp_path / "plain.html"
        assert call("translate", MODEL, source, "--out", plain).code == 0
        assert out.read_bytes() == plain.read_bytes()

    @pytest.mark.parametrize(
        "option", [["--beam", "1"], ["--sentences", "keep"], ["--memory", "m.en-ko.tsv"]]
    )
    def test_with_other_options_a_translation_begins_again_only_with_overwrite(
        self, option: list[str], call: Call, source: Path, tmp_path: Path, block_sizes: list[int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        monkeypatch.chdir(tmp_path)
        (tmp_path / "m.en-ko.tsv").write_text("ten\t십\n", encoding="utf-8")
        call("translate", MODEL, source, "--out", "out.html")
        stored_blocks = Path("out.html.part").read_bytes()
        refused = call("translate", MODEL, source, "--out", "out.html", *option)
        assert "another document, or with another model or other options" in refused.error_of("translate")
        assert Path("out.html.part").read_bytes() == stored_blocks
        assert call("translate", MODEL, source, "--out", "out.html", *option, "--overwrite").code == 0
        assert sum(block_sizes[3:]) == 5  # all sentences again
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.en-ko.tsv", "many.html", "out.html"]

    def test_a_part_file_that_is_not_from_jumok_is_not_replaced(
        self, call: Call, source: Path, tmp_path: Path, block_sizes: list[int]
    ) -> None:
        out, part = tmp_path / "out.html", tmp_path / "out.html.part"
        part.write_text("half a download", encoding="utf-8")
        message = call("translate", MODEL, source, "--out", out).error_of("translate")
        assert "out.html.part exists and is not from jumok" in message
        assert part.read_text(encoding="utf-8") == "half a download"
        part.unlink()
        mine = tmp_path / "mine"
        mine.write_text("mine", encoding="utf-8")
        part.symlink_to(mine)
        message = call("translate", MODEL, source, "--out", out, "--overwrite").error_of("translate")
        assert "symbolic link" in message
        assert mine.read_text(encoding="utf-8") == "mine"
        assert block_sizes == []

    def test_a_changed_block_is_translated_again(
        self, call: Call, source: Path, tmp_path: Path, block_sizes: list[int]
    ) -> None:
        out, part = tmp_path / "out.html", tmp_path / "out.html.part"
        call("translate", MODEL, source, "--out", out)
        stored = part.read_text(encoding="utf-8")
        sentence = json.loads(stored.splitlines()[1])[1]["sentences"][0][0]
        changed = stored.replace(json.dumps(sentence), '"pwned"', 1)
        assert changed != stored
        part.write_text(changed, encoding="utf-8")
        assert call("translate", MODEL, source, "--out", out).code == 0
        assert "pwned" not in out.read_text(encoding="utf-8")
        assert sum(block_sizes[3:]) == 5  # the blocks after the changed one are translated again, too

    def test_a_second_process_with_the_same_target_is_refused(
        self, call: Call, source: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "out.html"
        first = PartFile(out, "key of another process")
        message = call("translate", MODEL, source, "--out", out, "--overwrite").error_of("translate")
        assert f"Another process is translating to {out}" in message
        first.close()
        assert call("translate", MODEL, source, "--out", out).code == 0

    def test_a_file_that_another_process_writes_during_the_translation_is_not_replaced(
        self, call: Call, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "out.html"
        original = SegmentTranslator.__call__

        def write_and_translate(self: SegmentTranslator, segments: Sequence[str]) -> list[SegmentTranslation]:
            out.write_text("from another process", encoding="utf-8")
            return original(self, segments)

        monkeypatch.setattr(SegmentTranslator, "__call__", write_and_translate)
        assert "is not overwritten" in call("translate", MODEL, source, "--out", out).error_of("translate")
        assert out.read_text(encoding="utf-8") == "from another process"

    def test_a_model_that_is_replaced_while_the_memory_is_read_counts_as_another_model(
        self,
        call: Call,
        source: Path,
        tmp_path: Path,
        block_sizes: list[int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A translation that the old model began must not be continued by the new model."""
        model, memory = tmp_path / "model", tmp_path / "m.en-ko.tsv"
        memory.write_text("ten\t십\n", encoding="utf-8")
        shutil.copytree(MODEL, model)
        original = corpora.open_further_corpora

        def replace_model_and_open(*arguments: Any, **options: Any) -> list[Any]:
            if not block_sizes:
                shutil.rmtree(model)
                shutil.copytree(MODEL.with_name("transformer-post-learned"), model)
            return original(*arguments, **options)

        monkeypatch.setattr(corpora, "open_further_corpora", replace_model_and_open)
        command = ("translate", model, source, "--out", tmp_path / "out.html", "--memory", memory)
        assert call(*command).code == 130
        assert "with another model" in call(*command).error_of("translate")

    def test_an_edited_document_is_translated_again_only_with_overwrite(
        self, call: Call, source: Path, tmp_path: Path, block_sizes: list[int]
    ) -> None:
        call("translate", MODEL, source, "--out", tmp_path / "out.html")
        source.write_text(MANY.replace("nine nine", "nine one"), encoding="utf-8")
        refused = call("translate", MODEL, source, "--out", tmp_path / "out.html")
        assert "translation of another document" in refused.error_of("translate")
        again = call("translate", MODEL, source, "--out", tmp_path / "out.html", "--overwrite")
        assert (again.code, block_sizes) == (0, [2, 2, 1, 2, 2, 1])
        assert "구 일." in (tmp_path / "out.html").read_text(encoding="utf-8")

    def test_a_folder_continues_with_the_next_file(
        self, call: Call, tmp_path: Path, block_sizes: list[int]
    ) -> None:
        folder, out = tmp_path / "in", tmp_path / "out"
        folder.mkdir()
        for name, digit in (("a", "one"), ("b", "two"), ("c", "four")):
            (folder / f"{name}.txt").write_text(f"{digit}.\n", encoding="utf-8")
        memory = tmp_path / "m.tmx"
        assert call("translate", MODEL, folder, "--out", out, "--save-memory", memory).code == 130
        assert sorted(path.name for path in out.iterdir()) == ["a.txt", "b.txt"]
        continued = call("translate", MODEL, folder, "--out", out, "--save-memory", memory)
        assert continued.code == 0, continued.err
        assert "3 documents were translated, 2 of them by an earlier command" in continued.err
        assert len(block_sizes) == 4
        assert not (tmp_path / "out.part").exists()
        assert memory.read_text(encoding="utf-8").count("<tu ") == 3

    def test_a_file_that_was_not_made_by_the_interrupted_command_is_not_overwritten(
        self, call: Call, tmp_path: Path, block_sizes: list[int]
    ) -> None:
        folder, out = tmp_path / "in", tmp_path / "out"
        folder.mkdir()
        for name in ("a", "b", "c"):
            (folder / f"{name}.txt").write_text(f"{name} one.\n", encoding="utf-8")
        call("translate", MODEL, folder, "--out", out)
        (out / "c.txt").write_text("mine", encoding="utf-8")
        result = call("translate", MODEL, folder, "--out", out)
        assert result.code == 2
        assert "c.txt exists and is not overwritten" in " ".join(result.err.split())
        assert (out / "c.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_a_killed_translation_of_a_long_document_continues(call: Call, tmp_path: Path) -> None:
    """The process is killed as soon as a block is stored. The same command then completes the document."""
    generator = random.Random(3)
    digits = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    lines = [" ".join(generator.choices(digits, k=5)) + "." for _ in range(1_200)]
    source, out, part = tmp_path / "long.txt", tmp_path / "out.txt", tmp_path / "out.txt.part"
    source.write_text("\n".join(lines), encoding="utf-8")
    command = program(["translate", MODEL, source, "--out", out])
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and not part.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert part.exists(), "the translation ended before the kill"
    assert not out.exists()
    assert spawn("translate", MODEL, source, "--out", out).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.txt", "out.txt"]
    plain = tmp_path / "plain.txt"
    assert call("translate", MODEL, source, "--out", plain).code == 0
    assert out.read_bytes() == plain.read_bytes()


class TestSavedMemory:
    """`--save-memory memory.tmx` stores the translations, for CAT tools and for `--memory`."""

    def test_the_memory_is_read_by_other_tools_and_by_jumok(
        self, call: Call, page: Path, tmp_path: Path
    ) -> None:
        tmx = pytest.importorskip("translate.storage.tmx", reason="needs translate-toolkit")
        out, memory = tmp_path / "out.html", tmp_path / "new" / "memory.tmx"
        result = call("translate", MODEL, page, "--out", out, "--save-memory", memory)
        assert result.code == 0, result.err
        assert "2 sentences with translation" in " ".join(result.err.split())
        store = tmx.tmxfile.parsefile(str(memory))
        units = [(unit.source, unit.target) for unit in store.units]
        assert units == [("two four nine.", "이 사 구."), ("nine zero nine.", "구 영 구.")]
        assert store.getsourcelanguage() == "en"
        again = call("translate", MODEL, page, "--out", tmp_path / "b.html", "--memory", memory)
        assert "were taken from the translation memory: 2." in again.err
        assert (tmp_path / "b.html").read_bytes() == out.read_bytes()
        report = call("check", memory)
        assert "2 pairs" in report.out
        assert "source en" in " ".join(report.out.split())

    def test_characters_that_xml_does_not_allow_are_left_out(self) -> None:
        data = write_tmx([('a < b & "c"\x0b', "]]> \ud800é\ufffe")], "en", "ko").decode()
        assert '<seg>a &lt; b &amp; "c"</seg>' in data
        assert "<seg>]]&gt; é</seg>" in data
        ElementTree.fromstring(data.encode())

    @pytest.mark.parametrize(
        ("name", "words"), [("memory.tsv", "ends in .tmx"), ("old.tmx", "exists and is not overwritten")]
    )
    def test_an_unsuitable_path_is_refused_before_anything_is_translated(
        self, name: str, words: str, call: Call, page: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "old.tmx").write_bytes(b"mine")
        out = tmp_path / "out.html"
        result = call("translate", MODEL, page, "--out", out, "--save-memory", tmp_path / name)
        assert words in " ".join(result.error_of("translate").split())
        assert not out.exists()
        assert (tmp_path / "old.tmx").read_bytes() == b"mine"


def test_an_interrupted_write_leaves_no_file(
    call: Call, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out" / "page.html"
    out.parent.mkdir()

    def write_half(path: Path, data: bytes) -> None:
        path.write_bytes(data[: len(data) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "write_and_sync", write_half)
    result = call("translate", MODEL, page, "--out", out)
    assert result.code == 130
    assert list(out.parent.iterdir()) == []


def test_utf_16_stays_utf_16_and_a_named_encoding_becomes_utf_8(call: Call, tmp_path: Path) -> None:
    """UTF-16 is recognised by its byte order mark. Other encodings must be named with `--encoding`."""
    utf16, html, out = tmp_path / "a.txt", tmp_path / "a.html", tmp_path / "out.html"
    utf16.write_bytes("two four.\r\nnine.\r\n".encode("utf-16"))
    assert call("translate", MODEL, utf16, "--out", tmp_path / "b.txt").code == 0
    written = (tmp_path / "b.txt").read_bytes()
    assert written.startswith((b"\xff\xfe", b"\xfe\xff"))
    assert written.decode("utf-16") == "이 사.\r\n구.\r\n"
    html.write_bytes('<meta charset="euc-kr"><p translate="no">둘</p><p>two four.</p>'.encode("euc-kr"))
    assert call("translate", MODEL, html, "--out", out, "--encoding", "euc-kr").code == 0
    page = out.read_text(encoding="utf-8")
    assert 'charset="UTF-8"' in page
    assert "둘" in page
    assert "<p>이 사.</p>" in page


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
        (["lines.log", "--save-memory", "m.tmx"], "--save-memory is for documents"),
        (["empty", "--out", "x"], "no document of a known type"),
    ],
)
def test_impossible_requests_are_refused_with_advice(
    arguments: list[str], words: str, call: Call, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "lines.log").write_text("one\n", encoding="utf-8")
    assert words in " ".join(call("translate", MODEL, *arguments).error_of("translate").split())
    assert page.read_text(encoding="utf-8") == PAGE


def test_text_files_without_out_are_translated_line_by_line(call: Call, tmp_path: Path) -> None:
    for name in ("in.txt", "in.log", "in"):
        path = tmp_path / name
        path.write_text("two four.\n\nnine.\n", encoding="utf-8")
        result = call("translate", MODEL, path)
        assert result.out == "이 사.\n\n구.\n"


def test_the_command_translate_does_not_import_the_documents_package_at_its_start() -> None:
    code = "import sys, jumok.cli.translate; sys.exit('jumok.documents' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], check=False)
    assert result.returncode == 0
