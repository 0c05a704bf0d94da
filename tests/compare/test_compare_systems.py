"""The systems of a comparison: their names and recipes, and which ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.compare.systems import (
    SHARED_SETTINGS,
    describe_budget,
    describe_unequal_settings,
    make_systems,
    with_shared_settings,
)
from jumok.config.recipe import make_recipe
from jumok.config.resolve import Overrides
from jumok.errors import RecipeError

STEPS = {"training.steps": 3}


def test_a_spec_names_a_system_and_sets_its_mechanism_at_every_site_that_supports_it():
    specs = ["recurrent:none", "recurrent:luong-dot", "transformer:efficient", "transformer:restricted"]
    systems = make_systems(specs, settings={**STEPS, "model.width": 32})
    assert [system.name for system in systems] == [
        "recurrent-none",
        "recurrent-luong-dot",
        "transformer-efficient",
        "transformer-restricted",
    ]
    models = [system.overrides.with_defaults().model for system in systems]
    assert [model.attention.kind for model in models[:2]] == ["none", "luong-dot"]
    sites = (models[2].encoder_attention, models[2].decoder_attention, models[2].cross_attention)
    assert [site.kind for site in sites] == ["efficient"] * 3
    assert models[3].decoder_attention.kind == "restricted"
    # Restricted attention cannot be cross-attention.
    assert models[3].cross_attention.kind == "scaled-dot"
    assert {model.width for model in models} == {32}
    assert {system.overrides["training.steps"] for system in systems} == {3}


def test_recipes_are_named_after_their_file_or_their_run_folder(tmp_path):
    run = tmp_path / "my run"
    run.mkdir()
    first, second = tmp_path / "big.toml", run / "recipe.toml"
    first.write_text('[model]\nfamily = "recurrent"\n[training]\nminutes = 9\n', encoding="utf-8")
    second.write_text("[training]\nsteps = 70\nclip_norm = 0.5\n", encoding="utf-8")
    systems = make_systems(recipes=[first, second], settings=STEPS)
    assert [system.name for system in systems] == ["big", "my-run"]
    assert [dict(system.overrides) for system in systems] == [
        {"model.family": "recurrent", "training.steps": 3},
        {"training.steps": 3, "training.clip_norm": 0.5},
    ]


@pytest.mark.parametrize(
    ("specs", "settings", "message"),
    [
        (["recurrent:none"], STEPS, "at least two systems. Received: recurrent-none"),
        ([], STEPS, "Received: none"),
        (["recurrent", "recurrent"], STEPS, "Received more than once: recurrent"),
        (["recurrent", "transformer:none"], STEPS, 'system "transformer-none" cannot be trained'),
        (["recurrent", "recurrent:bahdanu"], STEPS, 'Did you mean "bahdanau"'),
        (["recurrent", "recurrent:restricted"], STEPS, "does not support cross"),
        (["recurrent", "transfromer"], STEPS, 'Did you mean "transformer"'),
        (["recurrent", "transformer:"], STEPS, "Received: 'transformer:'"),
        (["transformer", "recurrent"], {**STEPS, "model.heads": 2}, 'system "recurrent" cannot'),
        (["transformer", "recurrent"], {}, "Set --minutes or --steps"),
    ],
)
def test_a_system_that_cannot_be_trained_is_refused_with_the_reason(specs, settings, message):
    with pytest.raises(RecipeError) as error:
        make_systems(specs, settings=settings)
    assert message in str(error.value)


def test_budgets_that_differ_are_refused(tmp_path):
    for name, steps in (("a", 3), ("b", 4)):
        (tmp_path / f"{name}.toml").write_text(f"[training]\nsteps = {steps}\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="a: 3 steps; b: 4 steps"):
        make_systems(recipes=[tmp_path / "a.toml", tmp_path / "b.toml"])


def test_a_recipe_cannot_take_the_name_of_a_file_of_the_comparison(tmp_path):
    (tmp_path / "data.toml").write_text("[training]\nsteps = 3\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="cannot be called data"):
        make_systems(["transformer"], recipes=[tmp_path / "data.toml"], settings=STEPS)


def test_a_missing_recipe_file_is_named():
    with pytest.raises(RecipeError, match=r"no recipe at no-such\.toml"):
        make_systems(["transformer"], recipes=[Path("no-such.toml")], settings=STEPS)


def test_shared_settings_come_from_the_first_system_unless_they_were_set():
    first = make_recipe(None, **{"text.vocab_size": 4000, "training.batch_tokens": 640, "training.seed": 7})
    second = Overrides.from_settings(**{"model.family": "recurrent", "training.batch_tokens": 512})
    merged = with_shared_settings(second, first)
    assert (merged["text.vocab_size"], merged["training.seed"]) == (4000, 7)
    assert merged["training.batch_tokens"] == 512
    assert merged["model.family"] == "recurrent"
    assert set(SHARED_SETTINGS) <= merged.keys()


def test_unequal_shared_settings_are_listed():
    recipes = {
        "a": make_recipe(None, **{"text.vocab_size": 400}),
        "b": make_recipe(None, **{"text.vocab_size": 500}),
    }
    assert describe_unequal_settings(recipes) == ("text.vocab_size is not the same: a 400, b 500.",)
    assert describe_unequal_settings({"a": recipes["a"], "c": recipes["a"]}) == ()


def test_a_budget_is_described_with_every_digit():
    assert describe_budget([None, 1_234_567, None]) == "1234567 steps"
    assert describe_budget([0.5, None, 3.0]) == "0.5 minutes, 3 epochs"
    assert describe_budget([None, None, None]) == "no budget"
