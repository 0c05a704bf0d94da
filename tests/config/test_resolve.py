"""Overrides are the settings that a person has set; `resolve` adds derived settings, with reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumok.config.recipe import flatten, make_recipe
from jumok.config.resolve import DerivedSetting, Overrides, differences, resolve, with_settings
from jumok.errors import RecipeError

SOURCES = Path(__file__).parents[2] / "src" / "jumok"


def test_overrides_hold_only_the_settings_that_were_set() -> None:
    overrides = Overrides.from_settings(
        {"model": {"width": 256}}, **{"training.seed": 1, "search.beam": None}
    )
    # A setting that is set to its default value (256 and 1) counts as set.
    assert dict(overrides) == {"model.width": 256, "training.seed": 1}
    assert overrides.get("search.beam") is None
    assert overrides.nested() == {"model": {"width": 256}, "training": {"seed": 1}}


def test_a_size_that_is_auto_is_not_set() -> None:
    assert not Overrides.from_settings({"model": {"size": "auto"}})
    over_a_file = Overrides.from_settings({"model": {"size": "tiny"}}, **{"model.size": "auto"})
    assert "model.size" not in over_a_file


def test_overrides_are_checked_and_converted_as_a_recipe_is() -> None:
    assert dict(Overrides.from_settings(**{"training.minutes": "5"})) == {"training.minutes": 5.0}
    with pytest.raises(RecipeError, match=r"training\.minuts: there is no such setting"):
        Overrides.from_settings(**{"training.minuts": 5})
    with pytest.raises(RecipeError, match="the family recurrent has no such setting"):
        Overrides.from_settings(**{"model.heads": 2}).updated({"model.family": "recurrent"})


def test_a_mechanism_without_options_is_stored_as_its_name() -> None:
    named = Overrides.from_settings(**{"model.cross_attention": {"kind": "bahdanau"}})
    assert dict(named) == {"model.cross_attention": "bahdanau"}
    options = {"kind": "bahdanau", "units": 8}
    assert Overrides.from_settings(**{"model.cross_attention": options})["model.cross_attention"] == options


def test_updating_overrides_does_not_change_the_original() -> None:
    first = Overrides.from_settings(**{"training.seed": 1, "model.width": 64})
    second = first.updated({"training.seed": 2, "model.width": None, "model.family": "recurrent"})
    assert dict(second) == {"training.seed": 2, "model.width": 64, "model.family": "recurrent"}
    assert dict(first) == {"training.seed": 1, "model.width": 64}
    assert (first.family, second.family) == ("transformer", "recurrent")


def test_overrides_win_over_derived_settings_which_win_over_defaults() -> None:
    overrides = Overrides.from_settings(**{"model.width": 64})
    derived = [DerivedSetting("model.width", 128, "size tiny"), DerivedSetting("model.heads", 2, "size tiny")]
    resolved = resolve(overrides, derived)
    assert flatten(resolved.recipe) == {**flatten(make_recipe()), "model.width": 64, "model.heads": 2}
    assert resolved.reasons == (derived[1],)
    assert (resolved.reason_for("model.heads"), resolved.reason_for("model.width")) == ("size tiny", "")


def test_derived_settings_never_replace_an_override() -> None:
    resolved = resolve(Overrides.from_settings(**{"training.seed": 1}))
    for value in (2, 3):
        resolved = resolved.with_derived([DerivedSetting("training.seed", value, "because")])
    assert resolved.recipe.training.seed == 1
    assert resolved.reasons == ()


def test_a_correction_replaces_a_value_and_its_reason() -> None:
    overrides = Overrides.from_settings(**{"text.vocab_size": 8000})
    correction = DerivedSetting("text.vocab_size", 300, "the text has no more")
    dropout = DerivedSetting("model.dropout", 0.3, "few pairs")
    for resolved in (
        resolve(overrides, [dropout]),
        resolve(Overrides(), [DerivedSetting("text.vocab_size", 500, "few words"), dropout]),
    ):
        corrected = resolved.corrected(correction)
        assert corrected.recipe.text.vocab_size == 300
        assert set(corrected.reasons) == {correction, dropout}
        assert corrected.overrides == resolved.overrides  # what the person set stays on record


def test_only_overrides_can_differ_from_a_recipe() -> None:
    stored = make_recipe({"model": {"width": 512}, "training": {"seed": 7, "minutes": 5}})
    overrides = Overrides.from_settings({"model": {"width": 256}, "training": {"seed": 7}})
    assert differences(overrides, stored) == [("model.width", 256, 512)]
    assert differences(Overrides(), stored) == []


def test_with_settings_changes_no_other_settings() -> None:
    recipe = make_recipe(**{"training.minutes": 5, "model.cross_attention": {"kind": "bahdanau", "units": 8}})
    changed = with_settings(recipe, {"model.width": 64})
    assert flatten(changed) == {**flatten(recipe), "model.width": 64}


def test_only_one_module_asks_pydantic_which_fields_were_set() -> None:
    """`overrides.py` must ask if a caller passes a `Recipe`. All other modules use `Overrides`."""
    options = re.compile("exclude_unset|model_fields_set|exclude_defaults")
    names = [path.name for path in SOURCES.rglob("*.py") if options.search(path.read_text(encoding="utf-8"))]
    assert names == ["overrides.py"]
