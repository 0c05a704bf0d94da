"""Renamed settings: old names still work, and runs and models that were stored with them can be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import jumok
from jumok.config.renamed import RENAMED_SETTINGS
from jumok.errors import RecipeError, RenamedSettingWarning
from jumok.storage.folders import json_with_checksum, read_json_with_checksum
from jumok.training.events import Finished
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import training_events
from support.digits import TINY, digit_corpus

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {**TINY, "training.steps": 6, "training.validate_every": 3, "training.warmup_steps": 2}


def with_old_names(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the nested recipe with the old names of settings, as an older jumok stored it."""
    old_names = {new: old for old, new in RENAMED_SETTINGS.items()}
    return {
        section: {
            old_names.get(f"{section}.{name}", f"{section}.{name}").partition(".")[2]: value
            for name, value in values.items()
        }
        for section, values in recipe.items()
    }


def restore_old_names(file: Path) -> None:
    """Give the recipe and the reasons in a `run.json` or a `jumok.json` their old names."""
    content = read_json_with_checksum(file)
    content["recipe"] = with_old_names(content["recipe"])
    assert "longest" in content["recipe"]["training"]
    for reason in content.get("reasons", []):
        old_names = [old for old, new in RENAMED_SETTINGS.items() if new == reason["setting"]]
        reason["setting"] = (old_names or [reason["setting"]])[0]
    file.write_bytes(json_with_checksum(content))


def test_an_older_run_continues_and_its_model_loads(tmp_path: Path) -> None:
    list(training_events(digit_corpus(100), out=tmp_path, **SHORT))
    restore_old_names(tmp_path / "run.json")
    restore_old_names(tmp_path / "model" / "jumok.json")
    record = RunFolder(tmp_path).record()
    assert record is not None
    assert record.recipe.training.warmup_steps == 2
    assert "search.max_length_ratio" in {setting.name for setting in record.derived_settings}
    assert jumok.load(tmp_path / "model", engine="torch").translate(["one two"])[0].text

    events = list(training_events(digit_corpus(100), out=tmp_path, **SHORT))
    assert isinstance(events[-1], Finished)
    old = {**SHORT, "training.warmup": SHORT["training.warmup_steps"]}
    del old["training.warmup_steps"]
    with pytest.warns(RenamedSettingWarning, match=r"training\.warmup is now training\.warmup_steps"):
        list(training_events(digit_corpus(100), out=tmp_path, **old))


def test_an_old_keyword_sets_the_new_setting(tmp_path: Path) -> None:
    with pytest.warns(RenamedSettingWarning, match=r"training\.clip is now training\.clip_norm"):
        list(training_events(digit_corpus(100), out=tmp_path, **{**SHORT, "training.steps": 3}, clip=0.5))
    stored = json.loads((tmp_path / "run.json").read_text())["recipe"]["training"]
    assert stored["clip_norm"] == 0.5
    with pytest.raises(
        RecipeError, match=r"training\.max_sentence_tokens, search\.max_length_ratio\. Name one"
    ):
        next(iter(training_events(digit_corpus(50), out=tmp_path / "run", longest=3)))


def test_an_old_search_option_sets_the_new_one(tmp_path: Path) -> None:
    list(training_events(digit_corpus(100), out=tmp_path, **{**SHORT, "training.steps": 3}))
    translator = jumok.load(tmp_path / "model", engine="torch")
    with pytest.warns(RenamedSettingWarning, match=r"search\.longest is now search\.max_length_ratio"):
        old = translator.translate(["one two three"], longest=0.1)  # type: ignore[call-arg]
    assert old == translator.translate(["one two three"], max_length_ratio=0.1)
