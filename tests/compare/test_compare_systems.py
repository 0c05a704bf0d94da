"""Who takes part in a comparison, under which name, and who is turned away."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.compare import make_contenders
from jumok.compare.contenders import EQUAL, equalised, unequal
from jumok.errors import RecipeError
from jumok.recipe import flatten, make_recipe

STEPS = {"training.steps": 3}


def test_words_become_named_recipes_with_the_mechanism_in_its_place():
    words = ["recurrent:none", "recurrent:luong-dot", "transformer:efficient", "transformer"]
    contenders = make_contenders(words, settings={**STEPS, "model.width": 32})
    assert [one.name for one in contenders] == [
        "recurrent-none",
        "recurrent-luong-dot",
        "transformer-efficient",
        "transformer",
    ]
    models = [one.recipe.model for one in contenders]
    assert [model.attention.kind for model in models[:2]] == ["none", "luong-dot"]
    assert models[2].cross_attention.kind == "efficient"
    assert models[2].decoder_attention.kind == "scaled-dot", "efficient attention is not causal"
    assert {model.width for model in models} == {32}
    assert {one.recipe.training.steps for one in contenders} == {3}


def test_recipes_are_called_after_their_file_or_their_run_folder(tmp_path):
    run = tmp_path / "my run"
    run.mkdir()
    first, second = tmp_path / "big.toml", run / "recipe.toml"
    first.write_text('[model]\nfamily = "recurrent"\n[training]\nminutes = 9\n', encoding="utf-8")
    second.write_text("[training]\nsteps = 70\nclip = 0.5\n", encoding="utf-8")
    contenders = make_contenders(recipes=[first, second], settings=STEPS)
    assert [one.name for one in contenders] == ["big", "my-run"]
    trainings = [one.recipe.training for one in contenders]
    assert [(training.minutes, training.steps) for training in trainings] == [(None, 3), (None, 3)]
    assert trainings[1].clip == 0.5


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (["recurrent:none"], STEPS, "two contenders or more. Received: recurrent-none"),
        ([], STEPS, "Received: none"),
        (["recurrent", "recurrent"], STEPS, "Received more than once: recurrent"),
        (["recurrent", "transformer:none"], STEPS, 'contender "transformer-none" cannot take part'),
        (["recurrent", "recurrent:bahdanu"], STEPS, 'Did you mean "bahdanau"'),
        (["recurrent", "recurrent:restricted"], STEPS, "does not support cross"),
        (["recurrent", "transfromer"], STEPS, 'Did you mean "transformer"'),
        (["recurrent", "transformer:"], STEPS, "Received: 'transformer:'"),
        (["transformer", "recurrent"], {**STEPS, "model.heads": 2}, 'contender "recurrent" cannot'),
        (["transformer", "recurrent"], {}, "Set --minutes or --steps"),
    ],
)
def test_who_cannot_take_part_is_told_why(words, settings, said):
    with pytest.raises(RecipeError) as error:
        make_contenders(words, settings=settings)
    assert said in str(error.value)


def test_budgets_that_differ_are_refused(tmp_path):
    for name, steps in (("a", 3), ("b", 4)):
        (tmp_path / f"{name}.toml").write_text(f"[training]\nsteps = {steps}\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="a: 3 steps; b: 4 steps"):
        make_contenders(recipes=[tmp_path / "a.toml", tmp_path / "b.toml"])


def test_a_recipe_cannot_take_the_name_of_a_file_of_the_comparison(tmp_path):
    (tmp_path / "data.toml").write_text("[training]\nsteps = 3\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="cannot be called data"):
        make_contenders(["transformer"], recipes=[tmp_path / "data.toml"], settings=STEPS)


def test_a_recipe_that_is_not_there_is_named():
    with pytest.raises(RecipeError, match=r"no recipe at no-such\.toml"):
        make_contenders(["transformer"], recipes=[Path("no-such.toml")], settings=STEPS)


def test_what_must_be_equal_comes_from_the_first_unless_it_was_set():
    first = make_recipe(None, **{"text.pieces": 4000, "training.batch_tokens": 640, "training.seed": 7})
    asked = make_recipe(None, **{"model.family": "recurrent", "training.batch_tokens": 512})
    equal = flatten(equalised(asked, first))
    assert (equal["text.pieces"], equal["training.seed"]) == (4000, 7)
    assert equal["training.batch_tokens"] == 512
    assert equal["model.family"] == "recurrent"
    assert set(EQUAL) <= set(flatten(equalised(asked, first), only_set=True))


def test_what_is_not_equal_is_said():
    recipes = {"a": make_recipe(None, **{"text.pieces": 400}), "b": make_recipe(None, **{"text.pieces": 500})}
    assert unequal(recipes) == ("text.pieces is not the same: a 400, b 500.",)
    assert unequal({"a": recipes["a"], "c": recipes["a"]}) == ()
