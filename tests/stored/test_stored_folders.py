"""Folders that jumok wrote before its modules and settings were renamed must always load.

`make_folders.py` made these folders and describes them. The tests use the folders as a user does, through
`import jumok` and the command line. Bits of results differ between machines, so the tests compare texts and
rounded scores. For the stored sentences, no translation depends on rounding.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

import jumok
from jumok.analysis.json_format import explanation_from_json, explanation_to_json

HERE = Path(__file__).resolve().parent
PAIRS, TEXT = HERE / "pairs.en-ko.tsv", HERE / "text.en.txt"
RECIPE = HERE / "half-way" / "written.toml"  # of the run `written`, with old names of settings
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
TRANSLATORS: dict[str, dict[str, Any]] = EXPECTED["translators"]
CONVERTIBLE = [name for name, stored in TRANSLATORS.items() if "ctranslate2" in stored["engines"]]
TEXT_MODELS = list(EXPECTED["scores"])
INTERRUPTED_RUNS = ["single", "team", "written", "encoder-from"]  # `make_interrupted_runs` describes them
STOPPED_AT, STEPS = 40, 80

# Old names of renamed settings, each with a value that differs from that of the run `written`.
DIFFERENT_VALUES = [
    "text.pieces=64",
    "model.places=57",
    'model.cross_attention={ kind = "luong-location", longest = 34 }',
    "training.longest=13",
    "training.warmup=21",
    "training.average=3",
    "training.ema=0.5",
    "training.clip=3.5",
    "training.held_out=7",
    "search.longest=1.5",
    "search.no_repeat=3",
]

# An old name in a recipe gives a warning with the new name.
IGNORE_OLD_NAME_WARNINGS = pytest.mark.filterwarnings("ignore::jumok.errors.RenamedSettingWarning")


class Result(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


class Call(Protocol):
    def __call__(self, *arguments: str | Path) -> Result: ...


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """A function that runs `python -m jumok ARGUMENTS` in this process, where torch is already imported."""

    def run(*arguments: str | Path) -> Result:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["jumok", *map(str, arguments)])
        sys.modules.pop("jumok.__main__", None)
        with pytest.raises(SystemExit) as exit_info:
            runpy.run_module("jumok", run_name="__main__")
        output = capsys.readouterr()
        return Result(int(exit_info.value.code or 0), output.out, output.err)

    return run


def model_folder(name: str) -> Path:
    return HERE / "models" / name


def translate_sources(translator: jumok.Translator, name: str, **search: Any) -> list[str]:
    sources = [line["source"] for line in TRANSLATORS[name]["lines"]]
    return [translation.text for translation in translator.translate(sources, **search)]


def expected_values(name: str, key: str) -> list[Any]:
    """Return this field of every line of a model in expected.json."""
    return [line[key] for line in TRANSLATORS[name]["lines"]]


# --- model folders ---


def test_every_stored_model_is_tested() -> None:
    names = {path.name for path in (HERE / "models").iterdir()}
    assert names == {*TRANSLATORS, *TEXT_MODELS}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_stored_model_gives_the_expected_translations(name: str) -> None:
    """Lines of more than `training.longest` tokens are split. Without the split, the texts would differ."""
    translator = jumok.load(model_folder(name), engine="torch")
    assert translate_sources(translator, name) == expected_values(name, "beam")
    assert translate_sources(translator, name, beam=1) == expected_values(name, "greedy")


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_stored_model_gives_the_expected_scores(name: str) -> None:
    """A small numerical error may leave the texts unchanged, but it changes the scores."""
    translator = jumok.load(model_folder(name), engine="torch")
    scores = [translation.score for translation in translator.translate(expected_values(name, "source"))]
    assert scores == pytest.approx(expected_values(name, "score"), abs=1e-3)


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_a_stored_model_runs_on_ctranslate2(name: str) -> None:
    translator = jumok.load(model_folder(name), engine="ctranslate2", cores=1)
    assert translate_sources(translator, name) == expected_values(name, "beam")
    assert translate_sources(translator, name, beam=1) == expected_values(name, "greedy")


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_stored_shortlist_is_used(engine: str) -> None:
    """The expected translations do not change with it."""
    translator = jumok.load(model_folder("transformer"), engine=engine, cores=1, shortlist=True)
    assert translate_sources(translator, "transformer") == expected_values("transformer", "beam")


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_stored_model_can_be_explained(name: str) -> None:
    translator = jumok.load(model_folder(name), engine="torch")
    explanation = jumok.explain(translator, expected_values(name, "source")[0])
    assert explanation.text == expected_values(name, "beam")[0]
    assert explanation_from_json(explanation_to_json(explanation)).text == explanation.text


@pytest.mark.parametrize("name", [*TRANSLATORS, *TEXT_MODELS])
def test_info_verifies_a_stored_model(name: str, call: Call) -> None:
    result = call("info", model_folder(name), "--json")
    assert result.code == 0, result.err
    info = json.loads(result.out)
    assert info["parameters"] >= info["facts"]["parameters"] > 0  # batch norms store more than they train
    assert info["shortlist"] == (name == "transformer")


def test_the_stored_explanation_opens_and_agrees_with_its_model() -> None:
    stored = jumok.open_explanation(HERE / "explanation.json")
    new = jumok.explain(jumok.load(model_folder("transformer"), engine="torch"), stored.source.text)
    assert (stored.text, stored.score) == (new.text, pytest.approx(new.score, abs=1e-3))
    assert set(stored.attention) == set(new.attention)
    for site, attention in stored.attention.items():
        # Each stored weight is rounded to one of 256 values.
        assert attention.weights == pytest.approx(new.attention[site].weights, abs=2 / 255)


# --- text models ---


def test_the_stored_language_model_gives_the_expected_completions() -> None:
    lines = EXPECTED["language-model"]
    model = jumok.load_text_model(model_folder("language-model"))
    assert model.complete([line["beginning"] for line in lines]) == [line["text"] for line in lines]


@pytest.mark.parametrize("name", TEXT_MODELS)
def test_a_stored_text_model_has_the_expected_loss(name: str, tmp_path: Path, call: Call) -> None:
    """The loss depends on every weight. A line of more than `training.longest` tokens is left out."""
    text = tmp_path / TEXT.name
    too_long = " ".join(["one two three four"] * 4) + ".\n"
    text.write_text(TEXT.read_text(encoding="utf-8") + too_long, encoding="utf-8")
    result = call("evaluate", model_folder(name), text, "--json")
    assert result.code == 0, result.err
    scores, stored_scores = json.loads(result.out), EXPECTED["scores"][name]
    assert scores["left_out"] == 1
    for key in ("task", "sentences", "tokens"):
        assert scores[key] == stored_scores[key]
    # The first word of a line can only be guessed, so the accuracy differs a little between machines.
    assert scores["accuracy"] == pytest.approx(stored_scores["accuracy"], abs=0.02)
    assert scores["loss"] == pytest.approx(stored_scores["loss"], abs=1e-3)


# --- interrupted run folders ---


@pytest.fixture
def copy_of_runs(tmp_path: Path) -> Path:
    """A folder with a copy of the interrupted runs and their pairs. The runs were trained at another path."""
    shutil.copytree(HERE / "half-way", tmp_path / "half-way")
    shutil.copy(PAIRS, tmp_path)
    return tmp_path


def metric_lines(run: Path) -> list[str]:
    return (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()


def assert_resumed_and_finished(name: str, copy_of_runs: Path, call: Call) -> None:
    """Assert that the run resumed from its checkpoint and did all steps, and that its model translates."""
    before = [
        line for line in metric_lines(HERE / "half-way" / name) if json.loads(line)["step"] <= STOPPED_AT
    ]
    run = copy_of_runs / "half-way" / name
    assert before
    # The lines contain times. If the run had started again, the times would differ.
    assert metric_lines(run)[: len(before)] == before
    info = json.loads(call("info", run / "model", "--json").out)
    assert info["facts"]["steps"] == STEPS
    source, target = PAIRS.read_text(encoding="utf-8").splitlines()[0].split("\t")[:2]
    translator = jumok.load(run / "model", engine="torch")
    assert translator.translate([source])[0].text
    assert jumok.explain(translator, source, target=target).text == target


@pytest.mark.medium
@pytest.mark.parametrize("name", INTERRUPTED_RUNS)
def test_a_stored_run_resumes_and_finishes(name: str, copy_of_runs: Path, call: Call) -> None:
    """The command sets nothing. The model that `model.encoder_from` names is not needed again."""
    result = call("train", copy_of_runs / PAIRS.name, "--out", copy_of_runs / "half-way" / name)
    assert result.code == 0, result.err
    assert_resumed_and_finished(name, copy_of_runs, call)


@IGNORE_OLD_NAME_WARNINGS
@pytest.mark.medium
def test_a_run_resumes_with_its_recipe_in_old_names(copy_of_runs: Path, call: Call) -> None:
    """Old names are read as the new names, so the settings of the recipe equal those of the run."""
    run = copy_of_runs / "half-way" / "written"
    result = call(
        "train", copy_of_runs / PAIRS.name, "--out", run, "--recipe", copy_of_runs / "half-way" / RECIPE.name
    )
    assert result.code == 0, result.err
    assert_resumed_and_finished("written", copy_of_runs, call)


@IGNORE_OLD_NAME_WARNINGS
@pytest.mark.parametrize("setting", DIFFERENT_VALUES)
def test_an_old_name_with_a_different_value_is_refused(setting: str, copy_of_runs: Path, call: Call) -> None:
    """If jumok ignored a setting because its name is old, the run would resume."""
    run, recipe = copy_of_runs / "half-way" / "written", copy_of_runs / "half-way" / RECIPE.name
    result = call("train", copy_of_runs / PAIRS.name, "--out", run, "--recipe", recipe, "--set", setting)
    assert result.code == 2, result.err
    assert "other settings" in result.err
    assert not (run / "model").exists()


@IGNORE_OLD_NAME_WARNINGS
@pytest.mark.medium
def test_a_recipe_in_old_names_starts_a_new_run(copy_of_runs: Path, call: Call) -> None:
    result = call("train", PAIRS, "--out", copy_of_runs / "new", "--recipe", RECIPE, "--steps", "2")
    assert result.code == 0, result.err
    assert jumok.load(copy_of_runs / "new" / "model", engine="torch").translate(["one two."])


# --- stored files ---


def test_no_stored_file_contains_an_absolute_path() -> None:
    paths = [path for path in HERE.rglob("*") if path.suffix in {".json", ".jsonl", ".toml"}]
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.:/+])/(?:[a-z]{2,8}|Users)/", text), path
