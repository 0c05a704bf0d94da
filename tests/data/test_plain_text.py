"""Plain text is opened, cleaned and held out as pairs without a source."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from jumok.data.cleaning import clean_pairs
from jumok.data.corpora import open_corpora, open_pairs_or_text, open_texts
from jumok.data.corpus_report import check_corpora
from jumok.data.faults import Fault
from jumok.data.hold_out import choose_hold_out
from jumok.errors import DataError
from jumok.types import Pair

if TYPE_CHECKING:
    from pathlib import Path

LINES = ["I go home.", "You go.", "", "I go home.", "We  stay\there .", "Ã©tÃ© is broken"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.en"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def test_a_line_is_a_pair_without_a_source(text: Path) -> None:
    [corpus] = open_texts([f"{text}:2"])
    assert list(corpus.pairs())[:2] == [Pair("", "I go home."), Pair("", "You go.")]
    assert (corpus.plain, corpus.weight) == (True, 2.0)
    assert (corpus.source_language, corpus.target_language) == ("", "en")


def test_compressed_text_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "text.ko.gz"
    path.write_bytes(gzip.compress("나는 간다.\n".encode()))
    [corpus] = open_texts([str(path)])
    assert corpus.target_language == "ko"
    assert list(corpus.pairs()) == [Pair("", "나는 간다.")]


def test_faulty_sentences_are_counted_and_skipped(text: Path) -> None:
    report = check_corpora(open_texts([str(text)]))
    assert (report.pairs, report.kept) == (6, 3)
    assert report.skipped == {Fault.EMPTY: 1, Fault.DUPLICATE: 1, Fault.MOJIBAKE: 1}
    assert report.source.words == 0
    assert report.target.words > 0
    assert [pair.target for pair in clean_pairs(open_texts([str(text)]))] == [LINES[0], LINES[1], LINES[4]]


def test_a_sentence_of_the_validation_set_is_not_trained_on(text: Path, tmp_path: Path) -> None:
    path = tmp_path / "valid.txt"
    path.write_text("i go home!\nsomething else\n", encoding="utf-8")
    validation = open_texts([str(path)])
    assert all("home" not in pair.target for pair in clean_pairs(open_texts([str(text)]), exclude=validation))
    report = check_corpora(open_texts([str(text)]), validation=validation)
    assert report.leaked == {str(path): 1}
    [leaked] = [fault for fault in report.faults if fault.fault is Fault.LEAKED]
    assert leaked.meaning == "the sentence is also in the validation or test set"


def test_sentences_that_differ_in_case_and_punctuation_are_held_out_together() -> None:
    pairs = [Pair("", f"sentence {number}") for number in range(200)]
    hold_out = choose_hold_out(pairs, count=15)
    held_out = [pair for pair in pairs if pair in hold_out]
    assert len(held_out) == 15
    assert Pair("", held_out[0].target.upper() + "!") in hold_out


def test_a_single_text_is_plain_text_and_other_arguments_are_pairs(text: Path, tmp_path: Path) -> None:
    assert open_pairs_or_text([str(text)])[0].plain
    other = tmp_path / "text.de"
    other.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    assert not open_pairs_or_text([str(text), str(other)])[0].plain
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("one\teins\n", encoding="utf-8")
    assert not open_pairs_or_text([str(pairs)])[0].plain
    with pytest.raises(DataError, match="a text alone is enough for `jumok train --model decoder-only`"):
        open_corpora([str(text)])


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.txt"])
def test_pairs_are_not_accepted_as_plain_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("one\teins\ntwo\tzwei\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"holds pairs, but plain text is needed.*`cut -f 1`"):
        open_texts([str(path)])


def test_empty_missing_and_foreign_texts_are_refused(tmp_path: Path, text: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no text"):
        open_texts([str(empty)])
    with pytest.raises(DataError, match="seems to hold English, but German was requested"):
        open_texts([str(text)], language="de")
    with pytest.raises(DataError, match="No text was given"):
        open_texts([])
    with pytest.raises(DataError, match="There is no file"):
        open_texts([str(tmp_path / "no.txt")])
