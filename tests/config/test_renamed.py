"""Renamed settings: old names work with a warning, and stored recipes are read without a warning."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from jumok.config.recipe import (
    Recipe,
    SearchSettings,
    TrainingSettings,
    make_recipe,
    make_stored_recipe,
    read_recipe,
    recipe_to_toml,
    setting_names,
)
from jumok.config.renamed import RENAMED_SETTINGS, current_name, with_current_names
from jumok.config.resolve import Overrides, differences
from jumok.errors import RecipeError, RenamedSettingWarning

if TYPE_CHECKING:
    from pathlib import Path

# Settings of a recipe. The other renamed settings are options of a mechanism.
RENAMED_RECIPE_SETTINGS = [
    (old, new) for old, new in RENAMED_SETTINGS.items() if not old.startswith("luong-location.")
]
OLD_LUONG_LOCATION = {"kind": "luong-location", "longest": 300}
STORED_SETTINGS: dict[str, Any] = {
    "text": {"pieces": 1000},
    "model": {"places": 700, "cross_attention": OLD_LUONG_LOCATION},
    "training": {"longest": 90, "warmup": 7},
    "search": {"longest": 1.5, "no_repeat": 3},
}


def has_the_stored_values(recipe: Recipe) -> bool:
    return (
        (recipe.text.vocab_size, recipe.model.max_positions) == (1000, 700)  # type: ignore[union-attr]
        and recipe.model.cross_attention.options == {"max_keys": 300}  # type: ignore[union-attr]
        and (recipe.training.max_sentence_tokens, recipe.training.warmup_steps) == (90, 7)
        and (recipe.search.max_length_ratio, recipe.search.no_repeat_ngram_size) == (1.5, 3)
    )


def test_every_new_name_exists_and_no_old_one_does() -> None:
    assert {new for _, new in RENAMED_RECIPE_SETTINGS} <= set(setting_names())
    assert not set(RENAMED_SETTINGS) & set(setting_names())
    assert not set(RENAMED_SETTINGS) & set(RENAMED_SETTINGS.values())


@pytest.mark.parametrize(("old", "new"), RENAMED_RECIPE_SETTINGS)
def test_an_old_name_sets_the_new_one_and_warns_once(old: str, new: str) -> None:
    # A value that the setting accepts: 64, unless the setting has a lower maximum.
    value = {"training.ema": 0.5, "search.longest": 2.5, "training.average": 3}.get(old, 64)
    section, _, name = old.partition(".")
    message = f"^{old} is now {new}; the old name works until 1.0.$"
    with pytest.warns(RenamedSettingWarning, match=message) as as_override:
        assert dict(Overrides.from_settings(**{old: value})) == {new: value}
    with pytest.warns(RenamedSettingWarning, match=message) as in_a_file:
        assert dict(Overrides.from_settings({section: {name: value}})) == {new: value}
    assert len(as_override) == len(in_a_file) == 1


def test_an_old_option_of_a_mechanism_warns() -> None:
    with pytest.warns(
        RenamedSettingWarning, match=r"luong-location\.longest is now luong-location\.max_keys"
    ):
        recipe = make_recipe(**{"model.cross_attention": OLD_LUONG_LOCATION})
    assert recipe.model.cross_attention.options == {"max_keys": 300}  # type: ignore[union-attr]
    other = make_recipe(**{"model.cross_attention": {"kind": "bahdanau", "longest": 300}})
    assert other.model.cross_attention.options == {"longest": 300}  # type: ignore[union-attr]


def test_an_old_name_as_an_argument_of_a_settings_class_warns() -> None:
    with pytest.warns(RenamedSettingWarning, match=r"training\.warmup is now"):
        assert TrainingSettings(warmup=3).warmup_steps == 3  # type: ignore[call-arg]
    with pytest.warns(RenamedSettingWarning, match=r"search\.no_repeat is now"):
        assert SearchSettings(no_repeat=3).no_repeat_ngram_size == 3  # type: ignore[call-arg]


def test_the_warning_points_at_the_caller() -> None:
    with pytest.warns(RenamedSettingWarning) as through_function:
        make_recipe(**{"training.warmup": 3})
    with pytest.warns(RenamedSettingWarning) as through_pydantic:
        Recipe(training={"warmup": 3})  # type: ignore[arg-type]
    assert {warning.filename for warning in [*through_function, *through_pydantic]} == {__file__}


def test_stored_settings_are_read_without_a_warning(tmp_path: Path) -> None:
    assert has_the_stored_values(make_stored_recipe(STORED_SETTINGS))
    written = recipe_to_toml(make_stored_recipe(STORED_SETTINGS))
    for old, new in RENAMED_RECIPE_SETTINGS:
        written = written.replace(f"\n{new.partition('.')[2]} = ", f"\n{old.partition('.')[2]} = ")
    written = written.replace("max_keys = 300", "longest = 300")
    (tmp_path / "recipe.toml").write_text(written, encoding="utf-8")
    with pytest.warns(RenamedSettingWarning):  # without a run.json it counts as a recipe that a user wrote
        assert has_the_stored_values(make_recipe(read_recipe(tmp_path / "recipe.toml")))
    (tmp_path / "run.json").touch()
    assert has_the_stored_values(make_recipe(read_recipe(tmp_path / "recipe.toml")))


def test_old_and_new_names_of_equal_values_are_no_difference() -> None:
    """A run can therefore be continued under either name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedSettingWarning)
        overrides = Overrides.from_settings(STORED_SETTINGS)
    assert differences(overrides, make_stored_recipe(STORED_SETTINGS)) == []
    assert (
        differences(Overrides.from_recipe(make_stored_recipe(STORED_SETTINGS)), overrides.with_defaults())
        == []
    )


@pytest.mark.filterwarnings("ignore::jumok.errors.RenamedSettingWarning")
def test_both_names_are_refused_only_if_they_differ() -> None:
    both = {"longest": 90, "max_sentence_tokens": 91}
    message = r"training\.longest = 90, training\.max_sentence_tokens = 91\. Leave training\.longest out"
    with pytest.raises(RecipeError, match=message):
        make_recipe({"training": both})
    with pytest.raises(RecipeError, match=message):
        make_recipe(**{f"training.{name}": value for name, value in both.items()})
    with pytest.raises(RecipeError, match=message):
        TrainingSettings.model_validate(both)
    with pytest.raises(RecipeError, match=r"luong-location\.longest = 300, luong-location\.max_keys = 5"):
        make_recipe(**{"model.cross_attention": {**OLD_LUONG_LOCATION, "max_keys": 5}})
    same = make_recipe({"training": {"longest": 90, "max_sentence_tokens": 90}})
    assert same.training.max_sentence_tokens == 90


@pytest.mark.filterwarnings("ignore::jumok.errors.RenamedSettingWarning")
def test_an_override_wins_over_a_file_under_either_name() -> None:
    for in_file, override in (("longest", "max_sentence_tokens"), ("max_sentence_tokens", "longest")):
        recipe = make_recipe({"training": {in_file: 90}}, **{f"training.{override}": 80})
        assert recipe.training.max_sentence_tokens == 80
    unset = make_recipe(**{"training.longest": None, "training.max_sentence_tokens": 80})
    assert unset.training.max_sentence_tokens == 80


@pytest.mark.filterwarnings("ignore::jumok.errors.RenamedSettingWarning")
def test_errors_name_the_new_setting() -> None:
    with pytest.raises(RecipeError, match=r"training\.max_sentence_tokens: .*Received: 1"):
        make_recipe(**{"training.longest": 1})
    with pytest.raises(RecipeError, match='Did you mean "warmup_steps"'):
        make_recipe(**{"training.warmup_stepps": 1})


def test_names_that_were_not_renamed_stay() -> None:
    assert current_name("training.seed") == "training.seed"
    assert with_current_names({"training.seed": 1}) == {"training.seed": 1}
