"""`jumok look` shows the attention of a model, and `jumok info` describes a model folder."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import jumok
from jumok.analysis.explainer import explain
from jumok.analysis.explanation_files import open_explanation
from jumok.analysis.json_format import explanation_to_json
from jumok.analysis.live_explanation import complete_explanation
from jumok.cli.look import _names
from jumok.errors import DataError
from jumok.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call


def test_look_prints_a_map_in_the_terminal(call: Call, model: Path) -> None:
    result = call("look", model, "one two", "--target", "eins zwei")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("eins zwei\n")
    for word in ("one", "two", "eins", "zwei"):
        assert word in result.out.split("\n", 1)[1]


def test_look_without_target_shows_the_models_own_translation(call: Call, model: Path) -> None:
    translation = jumok.load(model).translate(["one two"])[0].text
    assert call("look", model, "one two").out.startswith(translation + "\n")


def test_look_writes_the_map_as_an_svg_file(call: Call, model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "map.svg"
    result = call("look", model, "one <two> &", "--target", "eins zwei", "--out", picture)
    assert result.code == 0
    assert result.err == f"wrote {picture}\n"
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = "".join(root.itertext())
    assert all(word in words for word in ("one", "two", "eins", "zwei"))


def test_look_without_a_sentence_writes_the_model_into_a_page(
    call: Call, model: Path, tmp_path: Path
) -> None:
    sizes = {}
    for quantization in ("float16", "int8"):
        file = tmp_path / f"{quantization}.html"
        result = call("look", model, "--out", file, "--quantization", quantization)
        assert (result.code, result.err) == (0, f"wrote {file}\n")
        sizes[quantization] = file.stat().st_size
        assert f"{file} is {sizes[quantization] / 1e6:.1f} MB" in result.out
        assert f"contains the model's weights ({quantization})" in result.out
        assert "Licence of the model: unknown." in result.out
        assert 'id="jumok-weights"' in file.read_text(encoding="utf-8")
    assert sizes["int8"] < sizes["float16"]


def test_look_refuses_a_quantization_that_is_ignored_or_unknown(
    call: Call, model: Path, tmp_path: Path
) -> None:
    ignored = call("look", model, "one two", "--quantization", "int8").error_of("look")
    assert "--quantization is for a page with the model" in ignored
    unknown = call("look", model, "--out", tmp_path / "x.html", "--quantization", "int4").error_of("look")
    assert "--quantization is float16 or int8. Received: int4." in unknown


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_look_writes_the_whole_explanation(suffix: str, call: Call, model: Path, tmp_path: Path) -> None:
    file = tmp_path / f"one{suffix}"
    result = call("look", model, "one two", "--target", "eins zwei drei", "--out", file)
    assert (result.code, result.err) == (0, f"wrote {file}\n")
    assert result.out.startswith("eins zwei drei\n")
    explanation = open_explanation(file)
    words = explanation.words("cross")
    assert words.keys == ("one", "two", "</s>")
    assert words.queries == ("eins", "zwei", "drei", "</s>")
    assert words.weights.sum(axis=-1) == pytest.approx(1, abs=0.05)  # a .json file has rounded weights
    assert [steps.cell.site for steps in explanation.cells] == ["encoder", "decoder", "cross"]
    assert explanation.statistics["cross"].effect is not None


def test_look_asks_for_a_shorter_sentence(call: Call, model: Path, tmp_path: Path) -> None:
    message = call("look", model, "one two " * 200, "--out", tmp_path / "one.json").error_of("look")
    assert "A file shows one short sentence. Received: a text that is translated in" in message
    assert not (tmp_path / "one.json").exists()


def test_look_refuses_a_sentence_that_is_too_long_for_the_model(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    long = "one two " * 110  # fewer than 1,000 characters, more than 200 tokens
    keep_whole = ("--sentences", "keep")
    for out in ([], ["--out", "map.svg"]):
        result = call("look", model, long, *keep_whole, *out)
        assert "too long for the model. Give one short sentence" in result.error_of("look")
        assert result.out == ""
        assert list(tmp_path.iterdir()) == []
        # With --target, a longer sentence is accepted: the model does not have to translate it.
        assert call("look", model, long, "--target", "eins", *out).code == 0
        for path in tmp_path.iterdir():
            path.unlink()
    with pytest.raises(DataError, match="too long for the model"):
        jumok.load(model).attention(long)


def test_look_writes_the_explanation_that_explain_returns(call: Call, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    assert call("look", model, "one two", "--out", file).code == 0
    plain = complete_explanation(explain(jumok.load(model), "one two"))
    # The name that a page shows on its figures.
    name = model.parent.name if model.name == "model" else model.name
    explanation = replace(plain, facts={**plain.facts, "name": name})
    assert file.read_text(encoding="utf-8") == explanation_to_json(explanation)
    assert json.loads(explanation_to_json(explanation))["version"] == 2


@pytest.mark.parametrize("sentence", ["", "   ", "\u2028"])
def test_look_refuses_a_sentence_without_words(
    sentence: str, call: Call, model: Path, tmp_path: Path
) -> None:
    message = call("look", model, sentence, "--out", tmp_path / "map.svg").error_of("look")
    assert 'The sentence is empty. Give one with words: jumok look MODEL "I go home."' in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sentence", ["...", "[bold]:heart:"])
def test_look_draws_odd_sentences(sentence: str, call: Call, model: Path, tmp_path: Path) -> None:
    result = call("look", model, sentence, "--out", tmp_path / "map.svg")
    assert result.code == 0
    ElementTree.fromstring((tmp_path / "map.svg").read_text(encoding="utf-8"))


def test_look_refuses_an_unknown_suffix(call: Call, model: Path, tmp_path: Path) -> None:
    message = call("look", model, "one", "--out", tmp_path / "map.bmp").error_of("look")
    assert ".json, .npz, .png or .svg" in message
    assert "map.bmp" in message
    assert list(tmp_path.iterdir()) == []


def test_look_does_not_write_into_a_missing_folder(call: Call, model: Path, tmp_path: Path) -> None:
    message = call("look", model, "one", "--out", tmp_path / "no" / "map.svg").error_of("look")
    assert str(tmp_path / "no" / "map.svg") in message


def test_info_describes_the_model(call: Call, model: Path) -> None:
    result = call("info", model)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{model}\n")
    assert "en → de" in result.out
    assert "width 16, 2 heads" in result.out
    assert "digits.en-de.tsv" in result.out
    assert f"jumok {jumok.__version__}" in result.out


def test_info_as_json_has_the_facts_of_the_model(call: Call, model: Path) -> None:
    facts = json.loads(call("info", model, "--json").out)
    translator = jumok.load(model)
    assert facts["languages"] == "en → de"
    assert facts["parameters"] == sum(weight.numel() for weight in translator.model.parameters())
    tokenizer = Tokenizer.from_bytes((model / "pieces.model").read_bytes())
    assert facts["tokens"] == f"{tokenizer.vocab_size} in pieces.model (unigram)"
    assert facts["facts"]["steps"] == 3
    assert set(facts["scores"]) >= {"bleu", "chrf"}
    assert "version:" in facts["scores"]["bleu"]["signature"]


def explanations_on(page: Path) -> list[Any]:
    [data] = re.findall(r'id="jumok-data">(.*?)</script>', page.read_text(encoding="utf-8"))
    explanations: list[Any] = json.loads(data)["explanations"]
    return explanations


def test_models_on_one_page_are_named_and_have_the_given_translation(
    call: Call, model: Path, tmp_path: Path
) -> None:
    other, file = shutil.copytree(model, tmp_path / "other" / "model"), tmp_path / "x.html"
    assert call("look", model, other, "one two", "--target", "eins neun", "--out", file).code == 0
    explanations = explanations_on(file)
    names = [explanation["facts"]["name"] for explanation in explanations]
    assert names == [model.parent.name, "other"]
    texts = [explanation["target"]["text"] for explanation in explanations]
    assert texts == ["eins neun", "eins neun"]


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/a/model", "runs/b/model"], ["a", "b"]),
        (["runs/a/model", "old/a/model", "runs/b"], ["runs/a", "old/a", "b"]),
        (["x/runs/a/model", "y/runs/a/model"], ["x/runs/a", "y/runs/a"]),
        (["runs/a", "runs/a/model"], ["a", "a/model"]),
        (["runs/a/model", "runs/a/model"], ["a", "a (2)"]),
        (["/a", "/b/a"], ["/a", "b/a"]),
    ],
)
def test_no_two_models_share_a_name(folders: list[str], names: list[str]) -> None:
    assert _names(folders) == names


def test_without_a_given_translation_each_model_on_a_page_shows_its_own(
    call: Call, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "x.html"
    assert call("look", model, model, "one two", "--out", file).code == 0
    explanations = explanations_on(file)
    assert [explanation["search"] is not None for explanation in explanations] == [True, True]
    assert len({explanation["facts"]["name"] for explanation in explanations}) == 2


def test_look_at_several_models_needs_a_page(call: Call, model: Path, tmp_path: Path) -> None:
    message = call("look", model, "one", "two", "--out", tmp_path / "x.svg").error_of("look")
    assert "Received: 2 models" in message
    assert "quotation marks" in message


def test_look_without_a_sentence_says_what_is_missing(call: Call, model: Path) -> None:
    assert "add --live" in call("look", model).error_of("look")


def test_look_live_refuses_options_that_a_live_page_would_ignore(
    call: Call, model: Path, tmp_path: Path
) -> None:
    options = ["--out", tmp_path / "x.html", "--target", "eins", "--quantization", "int8"]
    message = call("look", model, "--live", *options).error_of("look")
    assert "--out, --target, --quantization would be ignored with --live" in message


def test_look_live_needs_an_existing_model(call: Call, tmp_path: Path) -> None:
    assert "There is no folder" in call("look", tmp_path / "none", "--live").error_of("look")


@pytest.mark.medium
def test_look_live_serves_until_it_is_stopped(model: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "jumok", "look", str(model), str(model.parent), "--live"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        address = program.stdout.readline().removeprefix("open ").strip()
        with urllib.request.urlopen(address, timeout=20) as answer:
            page = answer.read().decode()
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=20)
    assert '"run": true' in page
    assert page.count('"name": ') == 2
    assert program.returncode == 0
