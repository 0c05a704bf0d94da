"""`jumok translate` and `jumok look` split a line into sentences. `translate` also uses glossaries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import jumok

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call


def test_every_sentence_of_a_line_is_translated(call: Call, model: Path) -> None:
    text = "One two three. Four five! Six?"
    translated_alone = [
        call("translate", model, stdin=part.encode()).out.strip() for part in jumok.split_sentences(text)
    ]
    assert len(translated_alone) == 3
    translation = call("translate", model, stdin=text.encode()).out
    assert translation == " ".join(translated_alone).strip() + "\n"
    not_split = call("translate", model, "--sentences", "keep", stdin=text.encode())
    [expected] = jumok.load(model).translate([text], sentences="keep")
    assert not_split.out == expected.text + "\n"
    assert len(expected.parts) == 1
    message = call("translate", model, "--sentences", "join", stdin=b"one").error_of("translate")
    assert "sentences is split or keep. Received: 'join'" in message


def test_a_glossary_is_used_and_terms_that_could_not_be_placed_are_reported(
    call: Call, model: Path, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("en\tde\nseven\tSIEBEN\n", encoding="utf-8")
    result = call("translate", model, "--json", "--glossary", terms, stdin=b"one seven two\none two\n")
    assert result.code == 0, result.err
    with_term, without_term = map(json.loads, result.out.splitlines())
    # The model has learnt next to nothing. It depends on its attention whether the term can be placed.
    has_note = any("could not be placed" in note for note in with_term.get("notes", ()))
    assert ("SIEBEN" in with_term["text"]) != has_note
    assert without_term == json.loads(call("translate", model, "--json", stdin=b"one two\n").out)
    assert "There is no glossary" in call("translate", model, "--glossary", "no.tsv").error_of("translate")


def test_web_addresses_and_placeholders_are_not_changed(call: Call, model: Path) -> None:
    lines = ["one two https://a.example/b?c=1 three", "mail a.b@c.example, four {name}"]
    out = call("translate", model, stdin="\n".join(lines).encode()).out.splitlines()
    assert "https://a.example/b?c=1" in out[0]
    assert "a.b@c.example" in out[1]
    assert "{name}" in out[1]


def test_the_first_ten_notes_are_printed_with_the_numbers_of_their_lines(call: Call, model: Path) -> None:
    result = call("translate", model, stdin=b"one\n" + "하나 둘\n".encode() * 15)
    notes = [line for line in result.err.splitlines() if "not written in the script of English" in line]
    assert notes
    assert notes[0].startswith("note: line 2: ")
    assert len(result.err.splitlines()) == 11
    assert result.err.splitlines()[-1].endswith(" more")


def test_a_document_uses_the_glossary(call: Call, model: Path, tmp_path: Path) -> None:
    terms, page = tmp_path / "terms.csv", tmp_path / "page.html"
    terms.write_text("one,EINS\n", encoding="utf-8")
    page.write_text('<p>one two</p><p translate="no">one</p><p>see http://a.example</p>', encoding="utf-8")
    result = call("translate", model, page, "--glossary", terms, "--out", tmp_path / "out.html")
    assert result.code == 0, result.err
    written = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert ("EINS" in written) != ("could not be placed" in result.err)
    assert '<p translate="no">one</p>' in written
    assert "http://a.example" in written


def test_look_draws_each_sentence_of_a_text(call: Call, model: Path, tmp_path: Path) -> None:
    text = "One two. Three four."
    result = call("look", model, text)
    assert result.code == 0, result.err
    [translation] = jumok.load(model, engine="torch").translate([text])
    assert result.out.splitlines()[0] == translation.text
    refused = call("look", model, text, "--out", tmp_path / "x.html").error_of("look")
    assert "A file shows one short sentence. Received: a text that is translated in 2 parts" in refused
    assert call("look", model, text, "--sentences", "keep", "--out", tmp_path / "x.svg").code == 0
    with pytest.raises(jumok.DataError, match="One short sentence is explained at a time"):
        jumok.explain(jumok.load(model, engine="torch"), text)
