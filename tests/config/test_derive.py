"""Open settings are filled from corpus and machine; what was set is never touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jumok.recipe import Recipe, flatten, make_recipe
from jumok.training.derive import SIZES, CorpusFacts, MachineFacts, Pace, derive, derive_pace

MULTI30K = CorpusFacts(
    pairs=29_000,
    source_words=377_000,
    target_words=360_000,
    distinct_source_words=10_000,
    distinct_target_words=18_700,
    distinct_characters=110,
    source_language="en",
    target_language="de",
)
GENERATED = replace(
    MULTI30K,
    pairs=200_000,
    source_words=1_500_000,
    target_words=1_200_000,
    distinct_source_words=400,
    distinct_target_words=6_000,  # Korean inflects what English does not
    distinct_characters=500,
)
CPU = MachineFacts(cores=2)


def test_what_was_set_is_never_touched() -> None:
    asked = make_recipe(
        {
            "model": {"dropout": 0.05, "width": 96, "size": "base"},
            "text": {"pieces": 1000},
            "training": {"learning_rate": 1e-5, "steps": 77, "warmup": 3, "patience": 4},
        }
    )
    recipe, reasons = derive(asked, MULTI30K, CPU)
    recipe, _, more = derive_pace(recipe, asked, Pace(100, 1.0, 5.0))
    kept = flatten(recipe)
    for name, value in flatten(asked, only_set=True).items():
        assert kept[name] == value, name
    named = {reason.setting for reason in [*reasons, *more]}
    assert "model.dropout" not in named
    assert "text.pieces" not in named


def test_every_reason_is_true_of_the_recipe() -> None:
    asked = make_recipe({"training": {"minutes": 45}})
    recipe, reasons = derive(asked, MULTI30K, CPU)
    recipe, steps, more = derive_pace(recipe, asked, Pace(100, 0.3, 4.0))
    have = {**flatten(recipe), "training.steps": steps}
    for reason in [*reasons, *more]:
        assert have[reason.setting] == reason.value
        assert reason.why
    assert len({reason.setting for reason in reasons}) == len(reasons)


def test_multi30k() -> None:
    recipe, _ = derive(make_recipe({"training": {"minutes": 45}}), MULTI30K, CPU)
    assert recipe.model.size == "tiny"
    assert (recipe.model.width, recipe.model.feed_forward, recipe.model.heads) == (128, 256, 4)
    assert recipe.text.pieces == pytest.approx(8000, abs=200)
    assert recipe.text.pieces % 8 == 0
    assert recipe.model.dropout == 0.3
    assert recipe.training.schedule == "cosine"
    assert recipe.training.learning_rate == pytest.approx(4.5e-3)
    assert recipe.languages.target == "de"


def test_a_generated_corpus_gets_a_shallow_model_with_fewer_pieces_than_words() -> None:
    recipe, _ = derive(Recipe(), GENERATED, CPU)
    assert recipe.text.pieces < GENERATED.distinct_source_words + GENERATED.distinct_target_words
    assert (recipe.model.size, recipe.model.encoder_layers, recipe.model.decoder_layers) == ("tiny", 2, 2)
    assert recipe.model.dropout <= 0.1
    assert recipe.training.label_smoothing < 0.1


def test_few_minutes_are_spent_on_many_small_updates() -> None:
    short, _ = derive(make_recipe({"training": {"minutes": 3}}), GENERATED, CPU)
    long, _ = derive(make_recipe({"training": {"minutes": 300}}), GENERATED, CPU)
    assert short.training.batch_tokens < long.training.batch_tokens
    assert short.training.learning_rate < long.training.learning_rate


@pytest.mark.parametrize(
    ("pairs", "size"), [(5_000, "tiny"), (150_000, "small"), (5_000_000, "base"), (50_000_000, "base")]
)
def test_size_follows_the_corpus(pairs: int, size: str) -> None:
    facts = replace(MULTI30K, pairs=pairs, distinct_source_words=100_000)
    recipe, reasons = derive(Recipe(), facts, MachineFacts(2))
    assert recipe.model.size == size
    assert f"{pairs:,}" in next(reason.why for reason in reasons if reason.setting == "model.size")


def test_larger_corpora_have_more_pieces_and_less_dropout() -> None:
    facts = [
        replace(MULTI30K, pairs=pairs, distinct_source_words=10**6)
        for pairs in (10_000, 100_000, 10**6, 10**7)
    ]
    recipes = [derive(Recipe(), fact, CPU)[0] for fact in facts]
    pieces = [recipe.text.pieces for recipe in recipes]
    dropout = [recipe.model.dropout for recipe in recipes]
    assert pieces == sorted(pieces)
    assert 16_000 <= pieces[2] <= 24_000
    assert pieces[3] == 32_000
    assert dropout == sorted(dropout, reverse=True)
    assert (dropout[0], dropout[-1]) == (0.3, 0.1)


@pytest.mark.parametrize(
    ("batch", "accumulate", "beta"), [(4096, 1, 0.98), (512, 1, 0.9975), (512, 8, 0.98), (16384, 1, 0.98)]
)
def test_small_updates_are_remembered_longer(batch: int, accumulate: int, beta: float) -> None:
    """The squared gradients of about as many pieces are averaged, whatever the size of an update."""
    asked = make_recipe({"training": {"batch_tokens": batch, "accumulate": accumulate}})
    recipe, reasons = derive(asked, MULTI30K, CPU)
    assert recipe.training.beta2 == beta
    assert "training.beta2" in {reason.setting for reason in reasons}


@pytest.mark.parametrize("heads", range(1, 65))
def test_heads_fit_the_width_of_every_size_or_of_none(heads: int) -> None:
    """So that heads that cannot fit are refused before the size is known."""
    assert len({width % heads == 0 for _, _, width, _, _ in SIZES.values()}) == 1


def test_heads_divide_an_odd_width() -> None:
    recipe, _ = derive(make_recipe({"model": {"width": 90}}), MULTI30K, CPU)
    assert recipe.model.width % recipe.model.heads == 0


def test_no_limit_means_inverse_sqrt_and_patience() -> None:
    recipe, _ = derive(Recipe(), MULTI30K, CPU)
    recipe, steps, _ = derive_pace(recipe, Recipe(), Pace(100, 1.0, 5.0))
    assert recipe.training.schedule == "inverse-sqrt"
    assert recipe.training.patience > 0
    assert recipe.training.average > 1
    assert steps is None


def test_epochs_become_steps() -> None:
    asked = make_recipe({"training": {"epochs": 2.5, "accumulate": 4}})
    recipe, _ = derive(asked, MULTI30K, CPU)
    recipe, steps, _ = derive_pace(recipe, asked, Pace(100, 1.0, 5.0))
    assert recipe.training.steps is None
    assert steps == 63  # 2.5 · 100 / 4, rounded up


def test_the_smallest_limit_holds() -> None:
    asked = make_recipe({"training": {"epochs": 10, "steps": 50, "minutes": 100}})
    recipe, _ = derive(asked, MULTI30K, CPU)
    assert derive_pace(recipe, asked, Pace(100, 0.1, 1.0))[1] == 50
    assert derive_pace(recipe, asked, Pace(2, 0.1, 1.0))[1] == 20
    assert 1 < (derive_pace(recipe, asked, Pace(100, 1000.0, 1.0))[1] or 0) < 10


@pytest.mark.parametrize("validation", [0.01, 4.0, 100.0])
@pytest.mark.parametrize("minutes", [0.5, 45])
def test_minutes_are_used_but_not_exceeded(minutes: float, validation: float) -> None:
    asked = make_recipe({"training": {"minutes": minutes}})
    recipe, _ = derive(asked, MULTI30K, CPU)
    pace = Pace(100, update=0.25, validation=validation, finish=3 * validation, spent=10)
    recipe, steps, _ = derive_pace(recipe, asked, pace)
    assert steps is not None
    validations = -(-steps // recipe.training.validate_every)
    seconds = pace.spent + steps * pace.update + validations * pace.validation + pace.finish
    if minutes == 45:
        assert 0.85 * 60 * minutes < seconds <= 0.975 * 60 * minutes
        assert validations * pace.validation <= 0.1 * 60 * minutes


def test_validation_costs_at_most_its_share() -> None:
    asked = make_recipe({"training": {"steps": 1000}})
    recipe, _ = derive(asked, MULTI30K, CPU)
    recipe, _, _ = derive_pace(recipe, asked, Pace(100, update=1.0, validation=20.0))
    assert recipe.training.validate_every >= 20 * 0.92 / 0.08
