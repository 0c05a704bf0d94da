"""`jumok look` and `jumok info`: what a model attends to, and what its folder holds."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.explain import open_explanation

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call


def test_look_in_the_terminal(call: Call, model: Path) -> None:
    ran = call("look", model, "one two", "--target", "eins zwei")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("eins zwei\n")
    for word in ("one", "two", "eins", "zwei"):
        assert word in ran.out.split("\n", 1)[1]


def test_look_at_the_models_own_translation(call: Call, model: Path) -> None:
    translation = jumok.load(model).translate(["one two"])[0].text
    assert call("look", model, "one two").out.startswith(translation + "\n")


def test_look_as_a_picture(call: Call, model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "map.svg"
    ran = call("look", model, "one <two> &", "--target", "eins zwei", "--out", picture)
    assert ran.code == 0
    assert ran.err == f"wrote {picture}\n"
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = "".join(root.itertext())
    assert all(word in words for word in ("one", "two", "eins", "zwei"))


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_look_at_all_there_is(suffix: str, call: Call, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"one{suffix}"
    ran = call("look", model, "one two", "--target", "eins zwei drei", "--out", file)
    assert (ran.code, ran.err) == (0, f"wrote {file}\n")
    assert ran.out.startswith("eins zwei drei\n")
    found = open_explanation(file)
    words = found.words("cross")
    assert words.keys == ("one", "two", "</s>")
    assert words.queries == ("eins", "zwei", "drei", "</s>")
    assert words.weights.sum(axis=-1) == pytest.approx(1, abs=0.05)
    assert [steps.cell.site for steps in found.cells] == ["encoder", "decoder", "cross"]
    assert found.statistics["cross"].effect is not None


def test_look_writes_what_explain_gives(call: Call, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    assert call("look", model, "one two", "--out", file).code == 0
    explanation = jumok.load(model).explain("one two").with_effects().with_steps()
    assert file.read_text(encoding="utf-8") == explanation.to_json()
    assert json.loads(explanation.to_json())["version"] == 1


@pytest.mark.parametrize("sentence", ["", "   ", "\u2028", "[bold]:heart:"])
def test_look_at_odd_sentences(sentence: str, call: Call, model: Path, tmp_path: Path) -> None:
    ran = call("look", model, sentence, "--out", tmp_path / "map.svg")
    assert ran.code == 0
    ElementTree.fromstring((tmp_path / "map.svg").read_text(encoding="utf-8"))


def test_look_refuses_other_pictures(call: Call, model: Path, tmp_path: Path) -> None:
    said = call("look", model, "one", "--out", tmp_path / "map.bmp").paragraph("look")
    assert ".json, .npz, .png or .svg" in said
    assert "map.bmp" in said
    assert list(tmp_path.iterdir()) == []


def test_look_into_a_folder_that_is_not_there(call: Call, model: Path, tmp_path: Path) -> None:
    said = call("look", model, "one", "--out", tmp_path / "no" / "map.svg").paragraph("look")
    assert str(tmp_path / "no" / "map.svg") in said


def test_info(call: Call, model: Path) -> None:
    ran = call("info", model)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{model}\n")
    assert "en → de" in ran.out
    assert "width 16, 2 heads" in ran.out
    assert "digits.en-de.tsv" in ran.out
    assert f"jumok {jumok.__version__}" in ran.out


def test_info_as_json(call: Call, model: Path) -> None:
    found = json.loads(call("info", model, "--json").out)
    translator = jumok.load(model)
    assert found["languages"] == "en → de"
    assert found["parameters"] == sum(weight.numel() for weight in translator.model.parameters())
    assert found["facts"]["steps"] == 3
    assert set(found["scores"]) >= {"bleu", "chrf"}
    assert "version:" in found["scores"]["bleu"]["signature"]
