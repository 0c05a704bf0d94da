"""Recipes: errors are reported together, TOML is read back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from jumok.config.recipe import (
    SETTINGS_BY_FAMILY,
    Recipe,
    RecurrentSettings,
    TrainingSettings,
    flatten,
    make_recipe,
    named_recipes,
    read_recipe,
    recipe_to_toml,
    setting_help,
)
from jumok.config.resolve import Overrides, differences
from jumok.errors import RecipeError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def bounds_of(info: FieldInfo) -> dict[str, Any]:
    """Return the bounds of a numeric field, as hypothesis names them."""
    bounds: dict[str, Any] = {}
    for bound in info.metadata:
        for name, option, exclude_option in (
            ("ge", "min_value", None),
            ("gt", "min_value", "exclude_min"),
            ("le", "max_value", None),
            ("lt", "max_value", "exclude_max"),
        ):
            if getattr(bound, name, None) is not None:
                bounds[option] = getattr(bound, name)
                if exclude_option:
                    bounds[exclude_option] = True
    return bounds


def values_of(annotation: Any, info: FieldInfo) -> st.SearchStrategy[Any]:
    """Return a strategy for the valid values of a field, from its type and bounds.

    New settings are therefore tested without a change here.
    """
    if get_origin(annotation) is Literal:
        return st.sampled_from(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return settings_of(annotation)
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(**{k: v for k, v in bounds_of(info).items() if not k.startswith("exclude")})
    if annotation is float:
        return st.floats(allow_nan=False, allow_infinity=False, **bounds_of(info))
    if annotation is str:
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    if annotation is type(None):
        return st.none()
    return st.one_of(*(values_of(part, info) for part in get_args(annotation)))


def settings_of(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    fields = {name: values_of(info.annotation, info) for name, info in model.model_fields.items()}
    # The family is never left out: without it, the other fields are read as those of a Transformer.
    required = {"family": fields.pop("family")} if "family" in fields else {}
    return st.fixed_dictionaries(required, optional=fields)


RECIPES = settings_of(Recipe).map(make_recipe)


@given(RECIPES)
def test_a_recipe_written_as_toml_and_read_back_is_the_same(recipe: Recipe) -> None:
    assert make_recipe(tomllib.loads(recipe_to_toml(recipe))) == recipe


def test_the_written_recipe_explains_every_setting(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    recipe = make_recipe(**{"training.minutes": 45})
    path.write_text(recipe_to_toml(recipe), encoding="utf-8")
    assert make_recipe(read_recipe(path)) == recipe
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# ")
            assert lines[number - 1] != "# None"


def test_settings_without_a_value_are_left_out_of_the_toml() -> None:
    text = recipe_to_toml(make_recipe())
    assert "minutes" not in tomllib.loads(text)["training"]
    assert tomllib.loads(text)["training"]["seed"] == 1


def test_every_setting_has_its_help() -> None:
    for settings in {type(section) for _, section in Recipe()} | set(SETTINGS_BY_FAMILY.values()):
        for name in settings.model_fields:
            assert setting_help(settings, name), f"{settings.__name__}.{name} has no help"


def test_settings_by_full_name_win_over_nested_settings() -> None:
    recipe = make_recipe({"model": {"size": "tiny", "width": 64}}, **{"model.width": 128, "search.beam": 1})
    assert (recipe.model.size, recipe.model.width, recipe.search.beam) == ("tiny", 128, 1)


def test_none_means_not_set() -> None:
    recipe = make_recipe({"model": {"width": 64}}, **{"model.width": None, "training.seed": None})
    assert recipe == make_recipe({"model": {"width": 64}})


def test_make_recipe_does_not_change_its_argument() -> None:
    settings = {"model": {"width": 64}}
    make_recipe(settings, **{"model.width": 128})
    assert settings == {"model": {"width": 64}}


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        make_recipe(
            {"model": {"widht": 64, "dropout": 1.5}, "serach": {"beam": 1}},
            **{"training.seed": "soon", "text.kind": "words"},
        )
    message = str(caught.value)
    assert 'model.widht: there is no such setting. Did you mean "width"?' in message
    assert 'serach: there is no such setting. Did you mean "search"?' in message
    assert "model.dropout: " in message
    assert "Received: 1.5" in message
    assert "training.seed: " in message
    assert "Received: 'soon'" in message
    assert "text.kind: " in message
    assert "'unigram' or 'bpe'" in message
    assert len(message.splitlines()) == 6  # a heading and five errors


def test_a_mechanism_without_its_name_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"model\.cross_attention: .*name is missing"):
        make_recipe({"model": {"cross_attention": {"knd": "scaled-dot"}}})


def test_a_name_unlike_any_known_name_gets_no_suggestion() -> None:
    with pytest.raises(RecipeError) as caught:
        make_recipe(**{"model.zzz": 1})
    assert str(caught.value).endswith("model.zzz: there is no such setting.")


def test_a_setting_outside_its_section_is_refused() -> None:
    with pytest.raises(RecipeError, match="seed: there is no such setting"):
        make_recipe({"seed": 1})
    with pytest.raises(RecipeError, match="model: "):
        make_recipe({"model": 5}, **{"model.width": 64})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_refused(value: float) -> None:
    for name in ("training.minutes", "search.length_penalty"):
        with pytest.raises(RecipeError, match=name):
            make_recipe(**{name: value})


def test_a_length_that_no_search_could_reach_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"search\.max_length_ratio"):
        make_recipe(**{"search.max_length_ratio": 1e30})


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        make_recipe().training.seed = 2  # type: ignore[misc]


def test_the_error_for_a_missing_recipe_names_its_path(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"no recipe at .*recipe\.toml"):
        read_recipe(tmp_path / "recipe.toml")


@pytest.mark.parametrize("data", [b"[model\n", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(data)
    with pytest.raises(RecipeError, match="is not a TOML file"):
        read_recipe(path)


def test_flatten_names_every_setting() -> None:
    flat = flatten(Recipe())
    assert flat["training.seed"] == 1
    assert flat["training.steps"] is None
    assert len(flat) == sum(len(type(settings).model_fields) for _, settings in Recipe())


@given(RECIPES)
def test_a_flat_recipe_makes_the_same_recipe(recipe: Recipe) -> None:
    again = make_recipe(**flatten(recipe))
    assert again == recipe


@given(RECIPES)
def test_a_recipe_does_not_differ_from_itself(recipe: Recipe) -> None:
    assert differences(Overrides.from_recipe(recipe), recipe) == []
    assert Overrides.from_recipe(recipe).with_defaults() == recipe


def test_training_settings_can_be_used_alone() -> None:
    assert TrainingSettings(steps=5).steps == 5


def test_recipes_that_ship_with_jumok_are_read_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(named_recipes()) == {"rnnsearch-50", "rnnencdec-50", "transformer-base", "transformer-big"}
    for name, file in named_recipes().items():
        assert file.read_text(encoding="utf-8").startswith("# "), (
            f"the first line of {name} does not say what it is"
        )
        assert make_recipe(read_recipe(Path(name))).model.family in {"recurrent", "transformer"}
    model = make_recipe(read_recipe(Path("rnnsearch-50"))).model
    assert isinstance(model, RecurrentSettings)
    assert (model.width, model.encoder_width, model.embedding) == (1000, 2000, 620)
    (tmp_path / "rnnsearch-50").mkdir()
    assert read_recipe(Path("rnnsearch-50")), "a folder of that name was read instead of the built-in recipe"
    (tmp_path / "transformer-base").write_text("[training]\nseed = 7\n", encoding="utf-8")
    # A file of that name is read instead of the built-in recipe.
    assert read_recipe(Path("transformer-base")) == {"training": {"seed": 7}}
    for missing in (tmp_path, Path("rnnsearch-5")):
        with pytest.raises(RecipeError, match=r"There is no recipe at .* rnnsearch-50"):
            read_recipe(missing)
