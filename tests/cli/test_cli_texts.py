"""Plain text with `check`, `train`, `evaluate` and `complete`. Commands that need pairs refuse plain text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.plots.heat_map import draw_alignment
from jumok.plots.terminal import draw_text
from support.digit_lines import TINY, digit_lines

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

SMALL = {name: value for name, value in TINY.items() if not name.endswith("_layers")} | {"model.layers": 2}
SMALL_OPTIONS = [option for name, value in SMALL.items() for option in ("--set", f"{name}={value}")]
FAMILIES = ["decoder-only", "encoder-only"]


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "digits.en.txt"
    path.write_text("".join(f"{english}\n" for english, _, _ in digit_lines(60)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def models(text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        family: jumok.train(text, out=folder / family, **SMALL, **{"model.family": family})
        for family in FAMILIES
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_plain_text_is_trained_and_scored(
    call: Call, text: Path, tmp_path: Path, family: str
) -> None:
    arguments = ["train", text, "--model", family, "--out", tmp_path / "run", *SMALL_OPTIONS]
    result = call(*arguments)
    assert result.code == 0, result.err
    assert f"en · {family}" in result.err
    assert "54 sentences, 6 for validation" in result.err
    assert "this run is already finished" in call(*arguments).err
    info = call("info", tmp_path / "run" / "model")
    assert info.code == 0
    assert f"{family} tiny: 2 layers" in info.out
    assert "60 pairs" not in info.out
    scores = json.loads(call("evaluate", tmp_path / "run" / "model", text, "--json").out)
    assert scores["sentences"] == 60
    assert scores["loss"] > 0
    evaluation = call("evaluate", tmp_path / "run" / "model", text)
    assert evaluation.code == 0
    if family == "decoder-only":
        assert {"perplexity", "word_perplexity", "character_perplexity"} <= set(scores)
        assert f"perplexity      {scores['perplexity']:8.2f}" in evaluation.out
        assert "per word" in evaluation.out
    else:
        assert 0 <= scores["accuracy"] <= 1
        assert f"accuracy        {scores['accuracy']:8.4f}" in evaluation.out


def test_lines_are_completed(call: Call, models: dict[str, Path]) -> None:
    result = call("complete", models["decoder-only"], stdin=b"one two\n\nthree\n")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("one two")
    assert lines[2].startswith("three")
    sample = call("complete", models["decoder-only"], "--sample", "--seed", "5", stdin=b"one\n")
    assert sample.code == 0
    assert sample.out.startswith("one")
    options = ["--temperature", "2", "--seed", "5"]
    sentence = call("complete", models["decoder-only"], "one two").error_of("complete")
    assert 'echo "one two" | jumok complete MODEL' in sentence
    error = call("complete", models["decoder-only"], *options, stdin=b"one\n").error_of("complete")
    assert "--temperature, --seed would be ignored: only --sample draws at random" in error


def test_lines_that_are_too_long_are_left_out_by_evaluate_and_refused_by_complete(
    call: Call, models: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    long = tmp_path / "long.txt"
    long.write_text(text.read_text(encoding="utf-8") + "one two " * 500 + "\n", encoding="utf-8")
    for family in FAMILIES:
        result = call("evaluate", models[family], long, "--json")
        assert json.loads(result.out) == json.loads(call("evaluate", models[family], text, "--json").out) | {
            "left_out": 1
        }
        assert "left out: 1 line of more than 200 tokens; training" in result.err
    message = call("complete", models["decoder-only"], long).error_of("complete")
    assert "Line 61 is too long" in message


def test_commands_for_translators_refuse_a_text_model(
    call: Call, models: dict[str, Path], model: Path, pairs: Path, text: Path
) -> None:
    folder = models["decoder-only"]
    assert f"`jumok complete {folder}`" in call("translate", folder, stdin=b"one\n").error_of("translate")
    live = call("look", folder, "--live")
    assert "does not translate" in live.error_of("look")
    assert "cannot continue a text" in call("complete", models["encoder-only"]).error_of("complete")
    assert "`jumok translate`" in call("complete", model).error_of("complete")
    assert "plain text is needed" in call("evaluate", folder, pairs).error_of("evaluate")
    assert "--beam would be ignored" in call("evaluate", folder, text, "--beam", "2").error_of("evaluate")
    engine = call("evaluate", folder, text, "--engine", "nonsense")
    assert "--engine would be ignored" in engine.error_of("evaluate")
    assert f"Received: only {text}." in call("evaluate", model, text).error_of("evaluate")


@pytest.mark.parametrize(("family", "site"), [("decoder-only", "decoder"), ("encoder-only", "encoder")])
def test_look_draws_a_text_model(
    family: str, site: str, call: Call, models: dict[str, Path], tmp_path: Path
) -> None:
    picture = tmp_path / "map.svg"
    result = call("look", models[family], "one two", "--out", picture)
    assert (result.code, result.err) == (0, f"wrote {picture}\n")
    attention = jumok.load_text_model(models[family]).attention("one two")[site]
    assert result.out == f"one two\n{draw_text(attention)}\n"
    assert picture.read_text(encoding="utf-8") == draw_alignment(attention, title="one two")
    assert f"{site} attention" in picture.read_text(encoding="utf-8")
    for options in (["--out", tmp_path / "x.html"], ["--target", "eins"]):
        message = call("look", models[family], "one two", *options).error_of("look")
        assert ".png or .svg" in message
        assert "load_text_model(folder).attention(text)" in message
    assert "too long for its attention to be shown" in call(
        "look", models[family], "one two " * 300
    ).error_of("look")
    assert list(tmp_path.iterdir()) == [picture]


def test_check_reports_the_sentences_of_a_text(call: Call, text: Path, tmp_path: Path) -> None:
    valid = tmp_path / "valid.txt"
    valid.write_text(text.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    result = call("check", text, "--valid", valid)
    assert result.code == 0, result.err
    assert "60 sentences" in result.out
    assert "training will use 59 of 60 sentences" in result.out
    assert "1 of 1 sentences of" in result.out
    assert "source" not in result.out  # a text has no source side
    assert json.loads(call("check", text, "--json").out)["kept"] == 60


def test_a_translator_can_start_from_an_encoder_only_model(
    call: Call, models: dict[str, Path], pairs: Path, tmp_path: Path
) -> None:
    encoder = ["--encoder-from", models["encoder-only"]]
    result = call("train", pairs, *encoder, "--out", tmp_path / "run", "--steps", "3")
    assert result.code == 0, result.err
    assert "model.width" in result.err
    assert "as in" in result.err
    assert len(call("translate", tmp_path / "run" / "model", stdin=b"one\ntwo\n").out.splitlines()) == 2
    message = call("train", pairs, *encoder, "--out", tmp_path / "x", "--model", "recurrent").error_of(
        "train"
    )
    assert "Received: the family recurrent" in message
    assert not (tmp_path / "x").exists()


def test_a_family_that_cannot_start_from_an_encoder_is_named_whatever_sets_it(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    """The message names no option, because a recipe may set the family."""
    arguments = ["train", pairs, "--encoder-from", tmp_path / "m", "--out", tmp_path / "x"]
    message = call(*arguments, "--recipe", "rnnsearch-50").error_of("train")
    assert "Received: the family recurrent" in message
    assert "Received: --model" not in message


@pytest.mark.parametrize("options", [["--model", "transformer"], ["--model", "recurrent"], []])
def test_a_translator_is_not_trained_on_a_text(
    call: Call, text: Path, tmp_path: Path, options: list[str]
) -> None:
    message = call("train", text, *options, "--out", tmp_path / "run").error_of("train")
    assert "A text needs its translation" in message
    assert "--model decoder-only" in message


def test_compare_refuses_an_encoder_only_model(call: Call, pairs: Path, tmp_path: Path) -> None:
    options = ["--system", "encoder-only", "--system", "transformer", "--steps", "2"]
    message = call("compare", pairs, *options, "--out", tmp_path / "run").error_of("compare")
    assert "learns from plain text" in message
