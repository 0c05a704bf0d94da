"""/translate_file translates Word documents, workbooks, HTML and message files, and refuses a zip bomb."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from support.office_files import make_xlsx

if TYPE_CHECKING:
    from support.serve_process import RunningServer

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _translate_file(server: RunningServer, name: str, data: bytes) -> bytes:
    answer = server.post_file(name, data, source="en", target="de")
    assert answer.status == 200, answer.text
    return server.get(answer.json["translatedFileUrl"].partition(str(server.port))[2]).body


def test_a_word_document_is_translated(shared_server: RunningServer) -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        run = "<w:r><w:t>one two three</w:t></w:r>"
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:p>{run}</w:p></w:document>')
    with zipfile.ZipFile(io.BytesIO(_translate_file(shared_server, "a.docx", output.getvalue()))) as archive:
        document = archive.read("word/document.xml").decode()
    expected = shared_server.post("/translate", {"q": "one two three", "source": "en", "target": "de"}).json
    # The untrained model may produce control characters, which XML cannot contain.
    assert f"<w:t>{''.join(filter(str.isprintable, expected['translatedText']))}</w:t>" in document
    assert "one two three" not in document


def test_a_note_names_the_texts_that_a_formula_compares_with_cells(shared_server: RunningServer) -> None:
    formula = '<worksheet><c r="B1"><f>COUNTIF(A:A,"one")</f></c></worksheet>'
    data = make_xlsx("<si><t>one</t></si><si><t>two</t></si>", **{"worksheets/sheet1": formula})
    [note] = shared_server.post_file("a.xlsx", data, source="en", target="de").json["notes"]
    assert note.endswith('compare with them: "one" (sheet1!B1).')


def test_a_translated_html_page_declares_the_target_language(shared_server: RunningServer) -> None:
    assert _translate_file(shared_server, "a.html", b'<html lang="en"><p>one two</p></html>').startswith(
        b'<html lang="de"><p>'
    )


def test_messages_keep_their_placeholders(shared_server: RunningServer) -> None:
    assert b"{name}" in _translate_file(shared_server, "a.json", b'{"a": "one {name} two"}')


def test_the_source_language_of_a_rails_file_becomes_the_target_language(
    shared_server: RunningServer,
) -> None:
    assert _translate_file(shared_server, "en.yml", b"en:\n  a: one two\n").startswith(b"de:\n  a: ")
    assert _translate_file(shared_server, "app.yml", b"app:\n  a: one two\n").startswith(b"app:\n  a: ")


def test_a_zip_bomb_is_refused(shared_server: RunningServer) -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(32 * 2**20))  # zeros: compressed about 1,000 times
    answer = shared_server.post_file("a.docx", output.getvalue(), source="en", target="de")
    assert answer.status == 400
    assert "No real document does" in answer.json["error"]
