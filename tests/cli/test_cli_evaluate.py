"""`jumok evaluate`: scores with signatures, alignment error where there is gold, a model against another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import jumok
from digit_lines import digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call

SCORES = {"bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature", "sentences"}
ALIGNMENT = {"alignment_error", "alignment_precision", "alignment_recall", "alignment_sentences"}


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """A test set as two texts, without alignments."""
    files = [tmp_path / "test.en", tmp_path / "test.de"]
    for side, file in enumerate(files):
        file.write_text("".join(f"{line[side]}\n" for line in digit_lines(6, seed=2)), encoding="utf-8")
    return files


def test_scores_for_people(call: Call, model: Path, texts: list[Path]) -> None:
    ran = call("evaluate", model, *texts)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == ["bleu", "chrf", "ter"]
    assert all("version:" in line for line in lines)
    assert "tok:13a" in lines[0]


def test_scores_as_json(call: Call, model: Path, texts: list[Path]) -> None:
    found = json.loads(call("evaluate", model, *texts, "--json").out)
    assert set(found) == SCORES
    assert found["sentences"] == 6
    translations = jumok.load(model).translate([line[0] for line in digit_lines(6, seed=2)])
    expected = jumok.score(
        [t.text for t in translations], [line[1] for line in digit_lines(6, seed=2)], language="de"
    )
    assert {name: found[name] for name in SCORES} == expected.as_dict()


def test_gold_alignments_are_scored(call: Call, model: Path, gold_pairs: Path) -> None:
    found = json.loads(call("evaluate", model, gold_pairs, "--json").out)
    assert set(found) == SCORES | ALIGNMENT
    assert found["alignment_sentences"] == 6
    assert 0 <= found["alignment_error"] <= 1
    told = call("evaluate", model, gold_pairs).out
    assert f"alignment error {found['alignment_error']:.3f} (precision " in told


def test_options_reach_the_scores(call: Call, model: Path, texts: list[Path]) -> None:
    words = ["--tokenize", "none", "--lowercase", "--beam", "1", "--length-penalty", "0.5"]
    found = json.loads(call("evaluate", model, *texts, "--json", *words).out)
    assert "tok:none" in found["bleu_signature"]
    assert all("case:lc" in found[f"{name}_signature"] for name in ("bleu", "chrf", "ter"))


def test_lowercase_ignores_case(call: Call, model: Path, tmp_path: Path) -> None:
    sources = [line[0] for line in digit_lines(4, seed=3)]
    said = [t.text or "x" for t in jumok.load(model).translate(sources)]
    shouted = write_tsv(tmp_path / "shouted.en-de.tsv", list(zip(sources, map(str.upper, said), strict=True)))
    cased, without = (
        json.loads(call("evaluate", model, shouted, "--json", *words).out) for words in ([], ["--lowercase"])
    )
    assert without["chrf"] == pytest.approx(100)
    assert cased["chrf"] < 100


def test_an_unknown_tokeniser(call: Call, model: Path, texts: list[Path]) -> None:
    assert 'Did you mean "13a"?' in call("evaluate", model, *texts, "--tokenize", "13b").paragraph("evaluate")


def test_a_model_against_itself_is_no_better(call: Call, model: Path, texts: list[Path]) -> None:
    against = json.loads(call("evaluate", model, *texts, "--against", model, "--json").out)["against"]
    assert set(against) == {"bleu", "chrf"}
    for comparison in against.values():
        assert comparison["delta"] == 0
        assert comparison["p_value"] == 1
        assert comparison["baseline"] == comparison["system"]
    told = call("evaluate", model, *texts, "--against", model).out
    assert told.count(f"+0.00 against {model} ") == 2
    assert told.count("this may be chance") == 2


def test_translations_can_be_kept(call: Call, model: Path, texts: list[Path], tmp_path: Path) -> None:
    kept = tmp_path / "out.de"
    assert call("evaluate", model, *texts, "--out", kept).code == 0
    assert kept.read_text(encoding="utf-8") == call("translate", model, texts[0]).out


def test_translations_onto_a_full_disk(call: Call, model: Path, texts: list[Path]) -> None:
    said = call("evaluate", model, *texts, "--out", "/dev/full").paragraph("evaluate")
    assert "/dev/full could not be written: the disk is full." in said


def test_the_other_language_is_turned_round(call: Call, model: Path, texts: list[Path]) -> None:
    straight = json.loads(call("evaluate", model, *texts, "--json").out)
    assert json.loads(call("evaluate", model, *reversed(texts), "--json").out) == straight


def test_a_test_set_in_other_languages(call: Call, model: Path, tmp_path: Path) -> None:
    korean = write_tsv(tmp_path / "test.en-ko.tsv", [("I go home.", "나는 집에 간다.")])
    said = call("evaluate", model, korean).paragraph("evaluate")
    assert "English and Korean" in said
    assert "English → German" in said
