"""Settings: checked all at once, written so that they can be read, compared by what was asked for."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from jumok.errors import RecipeError
from jumok.recipe import (
    Recipe,
    TrainingSettings,
    differences,
    flatten,
    make_recipe,
    read_recipe,
    write_recipe,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic.fields import FieldInfo


def limits(info: FieldInfo) -> dict[str, Any]:
    """The bounds of a numeric field, as hypothesis names them."""
    found: dict[str, Any] = {}
    for bound in info.metadata:
        for name, option, excluded in (
            ("ge", "min_value", None),
            ("gt", "min_value", "exclude_min"),
            ("le", "max_value", None),
            ("lt", "max_value", "exclude_max"),
        ):
            if getattr(bound, name, None) is not None:
                found[option] = getattr(bound, name)
                if excluded:
                    found[excluded] = True
    return found


def values_of(annotation: Any, info: FieldInfo) -> st.SearchStrategy[Any]:
    """Any valid value of a field, drawn from its type and bounds, so that a new setting is tested at once."""
    if get_origin(annotation) is Literal:
        return st.sampled_from(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return settings_of(annotation)
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(**{k: v for k, v in limits(info).items() if not k.startswith("exclude")})
    if annotation is float:
        return st.floats(allow_nan=False, allow_infinity=False, **limits(info))
    if annotation is str:
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    if annotation is type(None):
        return st.none()
    return st.one_of(*(values_of(part, info) for part in get_args(annotation)))


def settings_of(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    fields = {name: values_of(info.annotation, info) for name, info in model.model_fields.items()}
    # What names no family is a Transformer's.
    needed = {"family": fields.pop("family")} if "family" in fields else {}
    return st.fixed_dictionaries(needed, optional=fields)


RECIPES = settings_of(Recipe).map(make_recipe)


@given(RECIPES)
def test_what_is_written_is_what_is_read(recipe: Recipe) -> None:
    assert make_recipe(tomllib.loads(write_recipe(recipe))) == recipe


def test_the_written_recipe_explains_every_setting(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    recipe = make_recipe(**{"training.minutes": 45})
    path.write_text(write_recipe(recipe), encoding="utf-8")
    assert make_recipe(read_recipe(path)) == recipe
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# ")
            assert lines[number - 1] != "# None"


def test_what_is_not_set_is_left_out() -> None:
    text = write_recipe(make_recipe())
    assert "minutes" not in tomllib.loads(text)["training"]
    assert tomllib.loads(text)["training"]["seed"] == 1


def test_every_setting_has_its_help() -> None:
    for section, settings in Recipe():
        for name, info in type(settings).model_fields.items():
            assert info.description, f"{section}.{name}"


def test_nested_and_flat_settings_meet() -> None:
    recipe = make_recipe({"model": {"size": "tiny", "width": 64}}, **{"model.width": 128, "search.beam": 1})
    assert (recipe.model.size, recipe.model.width, recipe.search.beam) == ("tiny", 128, 1)


def test_none_means_not_set() -> None:
    recipe = make_recipe({"model": {"width": 64}}, **{"model.width": None, "training.seed": None})
    assert recipe.model.width == 64
    assert recipe.training.model_fields_set == set()


def test_the_given_settings_are_not_changed() -> None:
    given_settings = {"model": {"width": 64}}
    make_recipe(given_settings, **{"model.width": 128})
    assert given_settings == {"model": {"width": 64}}


def test_all_faults_are_told_at_once() -> None:
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
    assert len(message.splitlines()) == 6


def test_a_mechanism_without_its_name_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"model\.cross_attention: .*name is missing"):
        make_recipe({"model": {"cross_attention": {"knd": "scaled-dot"}}})


def test_an_unknown_name_far_from_all_gets_no_suggestion() -> None:
    with pytest.raises(RecipeError) as caught:
        make_recipe(**{"model.zzz": 1})
    assert str(caught.value).endswith("model.zzz: there is no such setting.")


def test_a_setting_outside_its_section_is_refused() -> None:
    with pytest.raises(RecipeError, match="seed: there is no such setting"):
        make_recipe({"seed": 1})
    with pytest.raises(RecipeError, match="model: "):
        make_recipe({"model": 5}, **{"model.width": 64})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_without_end_is_refused(value: float) -> None:
    for name in ("training.minutes", "search.length_penalty"):
        with pytest.raises(RecipeError, match=name):
            make_recipe(**{name: value})


def test_a_length_that_no_search_could_reach_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"search\.longest"):
        make_recipe(**{"search.longest": 1e30})


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        make_recipe().training.seed = 2  # type: ignore[misc]


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no recipe at"):
        read_recipe(tmp_path / "recipe.toml")


@pytest.mark.parametrize("data", [b"[model\n", b"\xff\xfe"])
def test_something_else_than_toml_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(data)
    with pytest.raises(RecipeError, match="is not a TOML file"):
        read_recipe(path)


def test_flatten_names_every_setting() -> None:
    flat = flatten(Recipe())
    assert flat["training.seed"] == 1
    assert flat["training.steps"] is None
    assert len(flat) == sum(len(type(settings).model_fields) for _, settings in Recipe())


def test_flatten_only_what_was_set() -> None:
    recipe = make_recipe({"model": {"width": 256}}, **{"training.seed": 1})
    assert flatten(recipe, only_set=True) == {"model.width": 256, "training.seed": 1}


@given(RECIPES)
def test_a_flat_recipe_makes_the_same_recipe(recipe: Recipe) -> None:
    again = make_recipe(**flatten(recipe, only_set=True))
    assert again == recipe


def test_differences_are_of_what_was_asked_for() -> None:
    stored = make_recipe({"model": {"width": 512}, "training": {"seed": 7, "minutes": 5}})
    asked = make_recipe({"model": {"width": 256}, "training": {"seed": 7}})
    assert differences(asked, stored) == [("model.width", 256, 512)]


@given(RECIPES)
def test_a_recipe_does_not_differ_from_itself(recipe: Recipe) -> None:
    assert differences(recipe, recipe) == []
    assert differences(make_recipe(), recipe) == []


def test_training_settings_stand_alone() -> None:
    assert TrainingSettings(steps=5).steps == 5
