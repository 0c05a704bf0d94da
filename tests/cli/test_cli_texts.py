"""Plain text on the command line: checked, learnt, evaluated, continued, and refused where pairs belong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import jumok
from digit_lines import TINY, digit_lines
from jumok.look import draw_alignment, draw_text

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call

SMALL = {name: value for name, value in TINY.items() if not name.endswith("_layers")} | {"model.layers": 2}
WORDS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
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
def test_a_text_is_trained_on_and_scored(call: Call, text: Path, tmp_path: Path, family: str) -> None:
    words = ["train", text, "--model", family, "--out", tmp_path / "run", *WORDS]
    ran = call(*words)
    assert ran.code == 0, ran.err
    assert f"en · {family}" in ran.err
    assert "54 sentences, 6 for validation" in ran.err
    assert "this run is already finished" in call(*words).err
    told = call("info", tmp_path / "run" / "model")
    assert told.code == 0
    assert f"{family} tiny: 2 layers" in told.out
    assert "60 pairs" not in told.out
    found = json.loads(call("evaluate", tmp_path / "run" / "model", text, "--json").out)
    assert found["sentences"] == 60
    assert found["loss"] > 0
    shown = call("evaluate", tmp_path / "run" / "model", text)
    assert shown.code == 0
    if family == "decoder-only":
        assert {"perplexity", "word_perplexity", "character_perplexity"} <= set(found)
        assert f"perplexity      {found['perplexity']:8.2f}" in shown.out
        assert "a word" in shown.out
    else:
        assert 0 <= found["accuracy"] <= 1
        assert f"accuracy        {found['accuracy']:8.4f}" in shown.out


def test_lines_are_continued(call: Call, models: dict[str, Path]) -> None:
    ran = call("complete", models["decoder-only"], stdin=b"one two\n\nthree\n")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("one two")
    assert lines[2].startswith("three")
    drawn = call("complete", models["decoder-only"], "--sample", "--seed", "5", stdin=b"one\n")
    assert drawn.code == 0
    assert drawn.out.startswith("one")
    undrawn = call("complete", models["decoder-only"], "--temperature", "2", "--seed", "5", stdin=b"one\n")
    assert "--temperature, --seed would be ignored. Add --sample" in undrawn.paragraph("complete")


def test_lines_longer_than_all_in_training_are_told_of(
    call: Call, models: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    long = tmp_path / "long.txt"
    long.write_text(text.read_text(encoding="utf-8") + "one two " * 500 + "\n", encoding="utf-8")
    for family in FAMILIES:
        ran = call("evaluate", models[family], long, "--json")
        assert json.loads(ran.out) == json.loads(call("evaluate", models[family], text, "--json").out) | {
            "left_out": 1
        }
        assert "left out: 1 lines of more than the 200 pieces" in ran.err
    said = call("complete", models["decoder-only"], long).paragraph("complete")
    assert "Line 61 is too long" in said


def test_what_a_model_of_text_cannot_do_is_said_with_what_it_can(
    call: Call, models: dict[str, Path], model: Path, pairs: Path, text: Path
) -> None:
    folder = models["decoder-only"]
    assert f"`jumok complete {folder}`" in call("translate", folder, stdin=b"one\n").paragraph("translate")
    live = call("look", folder, "--live")
    assert "does not translate" in live.paragraph("look")
    assert "cannot go on with a text" in call("complete", models["encoder-only"]).paragraph("complete")
    assert "`jumok translate`" in call("complete", model).paragraph("complete")
    assert "plain text is wanted" in call("evaluate", folder, pairs).paragraph("evaluate")
    assert "--beam would be ignored" in call("evaluate", folder, text, "--beam", "2").paragraph("evaluate")
    engine = call("evaluate", folder, text, "--engine", "nonsense")
    assert "--engine would be ignored" in engine.paragraph("evaluate")
    assert "other half" in call("evaluate", model, text).paragraph("evaluate")


@pytest.mark.parametrize(("family", "site"), [("decoder-only", "decoder"), ("encoder-only", "encoder")])
def test_a_model_of_text_is_looked_at(
    family: str, site: str, call: Call, models: dict[str, Path], tmp_path: Path
) -> None:
    picture = tmp_path / "map.svg"
    ran = call("look", models[family], "one two", "--out", picture)
    assert (ran.code, ran.err) == (0, f"wrote {picture}\n")
    attention = jumok.load_text_model(models[family]).attention("one two")[site]
    assert ran.out == f"one two\n{draw_text(attention)}\n"
    assert picture.read_text(encoding="utf-8") == draw_alignment(attention, title="one two")
    assert f"{site} attention" in picture.read_text(encoding="utf-8")
    for words in (["--out", tmp_path / "x.html"], ["--target", "eins"]):
        said = call("look", models[family], "one two", *words).paragraph("look")
        assert ".png or .svg" in said
        assert "load_text_model(folder).attention(text)" in said
    assert "too long to be looked at" in call("look", models[family], "one two " * 300).paragraph("look")
    assert list(tmp_path.iterdir()) == [picture]


def test_a_text_is_checked(call: Call, text: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.txt"
    test.write_text(text.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    ran = call("check", text, "--valid", test)
    assert ran.code == 0, ran.err
    assert "60 sentences" in ran.out
    assert "training will use 59 of 60 sentences" in ran.out
    assert "1 of 1 sentences of" in ran.out
    assert "source" not in ran.out.replace("its source also stands", "")
    assert json.loads(call("check", text, "--json").out)["kept"] == 60


def test_a_translator_begins_with_an_encoder(
    call: Call, models: dict[str, Path], pairs: Path, tmp_path: Path
) -> None:
    encoder = ["--encoder-from", models["encoder-only"]]
    ran = call("train", pairs, *encoder, "--out", tmp_path / "run", "--steps", "3")
    assert ran.code == 0, ran.err
    assert "model.width" in ran.err
    assert "as in" in ran.err
    assert len(call("translate", tmp_path / "run" / "model", stdin=b"one\ntwo\n").out.splitlines()) == 2
    said = call("train", pairs, *encoder, "--out", tmp_path / "x", "--model", "recurrent").paragraph("train")
    assert "Received: --model recurrent" in said
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("words", [["--model", "transformer"], ["--model", "recurrent"], []])
def test_a_translator_is_not_trained_on_a_text(
    call: Call, text: Path, tmp_path: Path, words: list[str]
) -> None:
    said = call("train", text, *words, "--out", tmp_path / "run").paragraph("train")
    assert "a text needs its other half" in said
    assert "--model decoder-only" in said


def test_an_encoder_alone_takes_no_part_in_a_comparison_of_translators(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    words = ["--contender", "encoder-only", "--contender", "transformer", "--steps", "2"]
    said = call("compare", pairs, *words, "--out", tmp_path / "run").paragraph("compare")
    assert "learns from plain text" in said
