"""`jumok evaluate` prints scores with signatures, scores gold alignments, and compares two models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.evaluation.translator_scores import looks_swapped
from jumok.types import Pair
from support.digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

SCORES = {"bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature", "sentences"}
ALIGNMENT = {"alignment_error", "alignment_precision", "alignment_recall", "alignment_sentences"}


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """A test set as two texts, without alignments."""
    files = [tmp_path / "test.en", tmp_path / "test.de"]
    for side, file in enumerate(files):
        file.write_text("".join(f"{line[side]}\n" for line in digit_lines(6, seed=2)), encoding="utf-8")
    return files


def test_scores_are_printed_with_their_signatures(call: Call, model: Path, texts: list[Path]) -> None:
    result = call("evaluate", model, *texts)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["bleu", "chrf", "ter"]
    assert all("version:" in line for line in lines)
    assert "tok:13a" in lines[0]


def test_scores_as_json_equal_those_of_the_library(call: Call, model: Path, texts: list[Path]) -> None:
    scores = json.loads(call("evaluate", model, *texts, "--json").out)
    assert set(scores) == SCORES
    assert scores["sentences"] == 6
    translations = jumok.load(model).translate([line[0] for line in digit_lines(6, seed=2)])
    expected = jumok.score(
        [translation.text for translation in translations],
        [line[1] for line in digit_lines(6, seed=2)],
        language="de",
    )
    assert {name: scores[name] for name in SCORES} == expected.as_dict()


def test_gold_alignments_are_scored(call: Call, model: Path, gold_pairs: Path) -> None:
    scores = json.loads(call("evaluate", model, gold_pairs, "--json").out)
    assert set(scores) == SCORES | ALIGNMENT
    assert scores["alignment_sentences"] == 6
    assert 0 <= scores["alignment_error"] <= 1
    text = call("evaluate", model, gold_pairs).out
    assert f"alignment error {scores['alignment_error']:.3f} (precision " in text


def test_scoring_options_reach_the_signatures(call: Call, model: Path, texts: list[Path]) -> None:
    # The signatures do not name the options of the search, which need only be accepted.
    options = ["--tokenize", "none", "--lowercase", "--beam", "1", "--length-penalty", "0.5"]
    scores = json.loads(call("evaluate", model, *texts, "--json", *options).out)
    assert "tok:none" in scores["bleu_signature"]
    assert all("case:lc" in scores[f"{name}_signature"] for name in ("bleu", "chrf", "ter"))


def test_lowercase_ignores_case(call: Call, model: Path, tmp_path: Path) -> None:
    sources = [line[0] for line in digit_lines(4, seed=3)]
    translations = [translation.text or "x" for translation in jumok.load(model).translate(sources)]
    uppercase = write_tsv(
        tmp_path / "uppercase.en-de.tsv", list(zip(sources, map(str.upper, translations), strict=True))
    )
    cased, lowercased = (
        json.loads(call("evaluate", model, uppercase, "--json", *options).out)
        for options in ([], ["--lowercase"])
    )
    assert lowercased["chrf"] == pytest.approx(100)
    assert cased["chrf"] < 100


def test_an_unknown_tokenizer_is_refused_with_a_suggestion(
    call: Call, model: Path, texts: list[Path]
) -> None:
    assert 'Did you mean "13a"?' in call("evaluate", model, *texts, "--tokenize", "13b").error_of("evaluate")


def test_a_model_against_itself_is_no_better(call: Call, model: Path, texts: list[Path]) -> None:
    against = json.loads(call("evaluate", model, *texts, "--against", model, "--json").out)["against"]
    assert set(against) == {"bleu", "chrf"}
    for comparison in against.values():
        assert comparison["delta"] == 0
        assert comparison["p_value"] == 1
        assert comparison["baseline"] == comparison["system"]
    text = call("evaluate", model, *texts, "--against", model).out
    assert text.count(f"+0.00 against {model} ") == 2
    assert text.count("not significant") == 2


def test_translations_can_be_written_to_a_file(
    call: Call, model: Path, texts: list[Path], tmp_path: Path
) -> None:
    translations = tmp_path / "out.de"
    assert call("evaluate", model, *texts, "--out", translations).code == 0
    assert translations.read_text(encoding="utf-8") == call("translate", model, texts[0]).out


def test_a_full_disk_is_reported_when_translations_are_written(
    call: Call, model: Path, texts: list[Path]
) -> None:
    message = call("evaluate", model, *texts, "--out", "/dev/full").error_of("evaluate")
    assert "/dev/full could not be written: the disk is full." in message


def test_swapped_files_whose_names_have_languages_are_swapped_back(
    call: Call, model: Path, texts: list[Path]
) -> None:
    straight = json.loads(call("evaluate", model, *texts, "--json").out)
    assert json.loads(call("evaluate", model, *reversed(texts), "--json").out) == straight


def test_a_test_set_in_other_languages_is_refused(call: Call, model: Path, tmp_path: Path) -> None:
    korean = write_tsv(tmp_path / "test.en-ko.tsv", [("I go home.", "나는 집에 간다.")])
    message = call("evaluate", model, korean).error_of("evaluate")
    assert "English and Korean" in message
    assert "English → German" in message


# --- the wrong direction ---


@pytest.fixture(scope="module")
def directions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models that have learnt to translate digits, from English to German and back."""
    folder = tmp_path_factory.mktemp("directions")
    lines = digit_lines(400)
    models = {}
    for name, order in (("en-de", 1), ("de-en", -1)):
        pairs = write_tsv(folder / f"pairs.{name}.tsv", [tuple(line[:2][::order]) for line in lines])
        settings = {
            **TINY,
            "training.learning_rate": 0.01,
            "training.steps": 150,
            "training.validate_every": 150,
            "training.batch_tokens": 512,
        }
        models[name] = jumok.train(pairs, out=folder / name, **settings)
    return models


@pytest.mark.medium
def test_a_baseline_of_another_direction_is_refused(
    call: Call, directions: dict[str, Path], texts: list[Path]
) -> None:
    message = call("evaluate", directions["en-de"], *texts, "--against", directions["de-en"]).error_of(
        "evaluate"
    )
    assert "this model translates English → German" in message
    assert f"{directions['de-en']} translates German → English" in message
    assert call("evaluate", directions["en-de"], *texts, "--against", directions["en-de"]).code == 0


@pytest.mark.medium
def test_swapped_sides_are_refused_if_no_file_name_has_a_language(
    call: Call, directions: dict[str, Path], texts: list[Path], tmp_path: Path
) -> None:
    files = [path.rename(tmp_path / name) for path, name in zip(texts, ("a.txt", "b.txt"), strict=True)]
    assert call("evaluate", directions["en-de"], *files).code == 0
    message = call("evaluate", directions["en-de"], *reversed(files)).error_of("evaluate")
    assert "seem to be swapped" in message


@pytest.mark.medium
def test_swapped_sides_are_detected_by_the_loss_of_both_directions(directions: dict[str, Path]) -> None:
    """Scripts cannot tell the sides apart here, because German and English have the same script."""
    pairs = [Pair(*line[:2]) for line in digit_lines(60, seed=4)]
    swapped = [Pair(pair.target, pair.source) for pair in pairs]
    translator = jumok.load(directions["en-de"], engine="torch")
    assert not looks_swapped(translator, pairs)
    assert looks_swapped(translator, swapped)
    assert not looks_swapped(jumok.load(directions["de-en"], engine="torch"), swapped)
