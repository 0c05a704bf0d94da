"""Settings are derived from corpus and machine; overrides are never changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jumok.config.derive import (
    BATCH_PICTURES,
    SIZES,
    USED_SHARE_OF_MINUTES,
    VALIDATION_SHARE,
    CorpusFacts,
    MachineFacts,
    TrainingCosts,
    derive,
    derive_schedule,
)
from jumok.config.recipe import flatten
from jumok.config.resolve import Overrides
from jumok.data.batch_plan import SOURCE_TOKENS_FACTOR

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
COSTS = TrainingCosts(batches_per_epoch=100, update_seconds=1.0, validation_seconds=5.0)


def test_overrides_are_never_changed() -> None:
    overrides = Overrides.from_settings(
        {
            "model": {"dropout": 0.05, "width": 96, "size": "base"},
            "text": {"vocab_size": 1000},
            "training": {"learning_rate": 1e-5, "steps": 77, "warmup_steps": 3, "patience": 4},
        }
    )
    resolved, _ = derive_schedule(derive(overrides, MULTI30K, CPU), COSTS)
    values = flatten(resolved.recipe)
    for name, value in overrides.items():
        assert values[name] == value, name
    assert not overrides.keys() & {setting.name for setting in resolved.reasons}


def test_every_derived_value_is_in_the_recipe_and_has_a_reason() -> None:
    resolved = derive(Overrides.from_settings({"training": {"minutes": 45}}), MULTI30K, CPU)
    resolved, steps = derive_schedule(resolved, COSTS)
    values = {**flatten(resolved.recipe), "training.steps": steps}
    for setting in resolved.reasons:
        assert values[setting.name] == setting.value
        assert setting.reason
    assert len({setting.name for setting in resolved.reasons}) == len(resolved.reasons)


def test_multi30k_gets_a_tiny_model_with_much_dropout() -> None:
    recipe = derive(Overrides.from_settings({"training": {"minutes": 45}}), MULTI30K, CPU).recipe
    assert recipe.model.size == "tiny"
    assert (recipe.model.width, recipe.model.feed_forward, recipe.model.heads) == (128, 256, 4)
    assert recipe.text.vocab_size == pytest.approx(8000, abs=200)
    assert recipe.text.vocab_size % 8 == 0
    assert recipe.model.dropout == 0.3
    assert recipe.training.schedule == "cosine"
    assert recipe.training.learning_rate == pytest.approx(4.5e-3)
    assert recipe.languages.target == "de"


def test_a_generated_corpus_gets_a_shallow_model_with_fewer_tokens_than_words() -> None:
    recipe = derive(Overrides(), GENERATED, CPU).recipe
    assert recipe.text.vocab_size < GENERATED.distinct_source_words + GENERATED.distinct_target_words
    assert (recipe.model.size, recipe.model.encoder_layers, recipe.model.decoder_layers) == ("tiny", 2, 2)
    assert recipe.model.dropout <= 0.1
    assert recipe.training.label_smoothing < 0.1


def test_few_minutes_are_spent_on_many_small_updates() -> None:
    short = derive(Overrides.from_settings({"training": {"minutes": 3}}), GENERATED, CPU).recipe
    long = derive(Overrides.from_settings({"training": {"minutes": 300}}), GENERATED, CPU).recipe
    assert short.training.batch_tokens < long.training.batch_tokens
    assert short.training.learning_rate < long.training.learning_rate


@pytest.mark.parametrize(
    ("pairs", "size"), [(5_000, "tiny"), (150_000, "small"), (5_000_000, "base"), (50_000_000, "base")]
)
def test_the_size_of_the_model_follows_the_size_of_the_corpus(pairs: int, size: str) -> None:
    facts = replace(MULTI30K, pairs=pairs, distinct_source_words=100_000)
    resolved = derive(Overrides(), facts, CPU)
    assert resolved.recipe.model.size == size
    assert f"{pairs:,}" in resolved.reason_for("model.size")


def test_larger_corpora_have_larger_vocabularies_and_less_dropout() -> None:
    corpora = [
        replace(MULTI30K, pairs=pairs, distinct_source_words=10**6)
        for pairs in (10_000, 100_000, 10**6, 10**7)
    ]
    recipes = [derive(Overrides(), facts, CPU).recipe for facts in corpora]
    vocab_sizes = [recipe.text.vocab_size for recipe in recipes]
    dropout = [recipe.model.dropout for recipe in recipes]
    assert vocab_sizes == sorted(vocab_sizes)
    assert 16_000 <= vocab_sizes[2] <= 24_000
    assert vocab_sizes[3] == 32_000
    assert dropout == sorted(dropout, reverse=True)
    assert (dropout[0], dropout[-1]) == (0.3, 0.1)


@pytest.mark.parametrize(
    ("batch", "accumulate", "beta2"), [(4096, 1, 0.98), (512, 1, 0.9975), (512, 8, 0.98), (16384, 1, 0.98)]
)
def test_adam_averages_smaller_updates_over_more_steps(batch: int, accumulate: int, beta2: float) -> None:
    """Below 4096 tokens per update, the average of squared gradients covers as many tokens as at 4096.

    For an eighth of the tokens, 1 - β₂ is 0.02 / 8 = 0.0025.
    """
    overrides = Overrides.from_settings({"training": {"batch_tokens": batch, "accumulate": accumulate}})
    resolved = derive(overrides, MULTI30K, CPU)
    assert resolved.recipe.training.beta2 == beta2
    assert "tokens per update" in resolved.reason_for("training.beta2")


def test_each_number_of_heads_divides_the_widths_of_all_sizes_or_of_none() -> None:
    """A number of heads that does not divide the width can therefore be refused before the size is known."""
    for heads in range(1, 65):
        assert len({width % heads == 0 for _, _, width, _, _ in SIZES.values()}) == 1


def test_the_derived_number_of_heads_divides_a_width_that_no_size_has() -> None:
    recipe = derive(Overrides.from_settings({"model": {"width": 90}}), MULTI30K, CPU).recipe
    assert recipe.model.width % recipe.model.heads == 0


def test_without_a_limit_the_schedule_is_inverse_sqrt_and_patience_ends_the_run() -> None:
    resolved, steps = derive_schedule(derive(Overrides(), MULTI30K, CPU), COSTS)
    training = resolved.recipe.training
    assert training.schedule == "inverse-sqrt"
    assert training.patience > 0
    assert training.average_checkpoints > 1
    assert steps is None


def test_epochs_become_steps() -> None:
    overrides = Overrides.from_settings({"training": {"epochs": 2.5, "accumulate": 4}})
    resolved, steps = derive_schedule(derive(overrides, MULTI30K, CPU), COSTS)
    assert resolved.recipe.training.steps is None
    assert steps == 63  # 2.5 · 100 / 4, rounded up


def test_the_smallest_limit_decides() -> None:
    overrides = Overrides.from_settings({"training": {"epochs": 10, "steps": 50, "minutes": 100}})
    resolved = derive(overrides, MULTI30K, CPU)

    def planned_steps(**costs: float) -> int | None:
        return derive_schedule(resolved, replace(COSTS, **costs))[1]

    assert planned_steps() == 50
    assert planned_steps(batches_per_epoch=2) == 20  # 10 epochs of 2 updates
    assert planned_steps(update_seconds=1000.0) == 5  # 100 minutes are less than 6 updates of 1000 seconds


@pytest.mark.parametrize(
    ("minutes", "validation"), [(0.5, 0.01), (0.5, 4.0), (45, 0.01), (45, 4.0), (45, 100.0)]
)
def test_minutes_are_used_but_not_exceeded(minutes: float, validation: float) -> None:
    resolved = derive(Overrides.from_settings({"training": {"minutes": minutes}}), MULTI30K, CPU)
    costs = TrainingCosts(
        100,
        update_seconds=0.25,
        validation_seconds=validation,
        finish_seconds=3 * validation,
        preparation_seconds=10,
    )
    resolved, steps = derive_schedule(resolved, costs)
    assert steps is not None
    validations = -(-steps // resolved.recipe.training.validate_every)
    seconds = costs.preparation_seconds + steps * costs.update_seconds + costs.finish_seconds
    seconds_of_validations = validations * costs.validation_seconds
    seconds += seconds_of_validations
    assert 0.85 * 60 * minutes < seconds <= (USED_SHARE_OF_MINUTES + 0.005) * 60 * minutes
    # The last validation, at the end, may follow the one before it at once: up to twice the share.
    assert validations == 1 or seconds_of_validations <= 2 * VALIDATION_SHARE * 60 * minutes


def test_minutes_that_are_too_short_for_a_validation_become_one_step() -> None:
    resolved = derive(Overrides.from_settings({"training": {"minutes": 0.5}}), MULTI30K, CPU)
    resolved, steps = derive_schedule(resolved, TrainingCosts(100, 0.25, validation_seconds=100.0))
    assert (steps, resolved.recipe.training.validate_every) == (1, 1)


def test_validation_costs_at_most_its_share() -> None:
    resolved = derive(Overrides.from_settings({"training": {"steps": 1000}}), MULTI30K, CPU)
    costs = TrainingCosts(100, update_seconds=1.0, validation_seconds=20.0)
    resolved, _ = derive_schedule(resolved, costs)
    # Validations of 20 s and n updates of 1 s between them: 20 / (20 + n) is at most the share.
    assert resolved.recipe.training.validate_every >= 20 * (1 - VALIDATION_SHARE) / VALIDATION_SHARE


PICTURE_CORPUS = replace(
    GENERATED, pairs=9_000, distinct_source_words=0, source_words=0, source_language="", picture_side=32
)


def test_pictures_are_cut_into_about_eight_rows_of_patches_and_small_ones_into_fewer() -> None:
    for side, size, patch in ((32, 32, 4), (8, 8, 4), (1, 8, 4), (50, 48, 6), (4000, 64, 8)):
        source = derive(Overrides(), replace(PICTURE_CORPUS, picture_side=side), CPU).recipe.source
        assert (source.kind, source.size, source.patch_size, source.colour) == (
            "pictures",
            size,
            patch,
            "rgb",
        )
    source = derive(Overrides.from_settings(**{"source.patch_size": 5}), PICTURE_CORPUS, CPU).recipe.source
    assert (source.size, source.patch_size) == (30, 5)
    source = derive(Overrides.from_settings(**{"source.size": 30}), PICTURE_CORPUS, CPU).recipe.source
    assert (source.size, source.patch_size) == (30, 3)
    grey = derive(Overrides(), replace(PICTURE_CORPUS, grey_pictures=True), CPU).recipe
    assert grey.source.colour == "grey"


def test_the_task_of_pictures_follows_the_family() -> None:
    captions = derive(Overrides(), PICTURE_CORPUS, CPU).recipe
    assert captions.model.task == "translate"
    assert not captions.text.shared
    assert captions.languages.target == "de"
    classes = derive(Overrides.from_settings(**{"model.family": "encoder-only"}), PICTURE_CORPUS, CPU)
    assert classes.recipe.model.task == "classify"
    assert classes.recipe.training.stop_on == "accuracy"
    assert not classes.reason_for("text.vocab_size")
    assert derive(Overrides(), MULTI30K, CPU).recipe.source.kind == "text"


def test_captions_are_written_by_one_decoder_layer() -> None:
    captions = derive(Overrides(), PICTURE_CORPUS, CPU)
    assert (captions.recipe.model.encoder_layers, captions.recipe.model.decoder_layers) == (4, 1)
    assert "its own attention" in captions.reason_for("model.decoder_layers")
    repetitive = derive(Overrides(), replace(PICTURE_CORPUS, distinct_target_words=32), CPU).recipe.model
    assert (repetitive.encoder_layers, repetitive.decoder_layers) == (2, 1)
    model = derive(Overrides.from_settings(**{"model.decoder_layers": 3}), PICTURE_CORPUS, CPU).recipe.model
    assert model.decoder_layers == 3


def test_a_batch_has_some_dozens_of_pictures_and_their_captions() -> None:
    by_patches = derive(Overrides(), replace(PICTURE_CORPUS, target_words=9_000 * 5), CPU).recipe
    max_patches = SOURCE_TOKENS_FACTOR * by_patches.training.batch_tokens
    assert max_patches / by_patches.source.num_patches == BATCH_PICTURES
    small_pictures = replace(PICTURE_CORPUS, target_words=9_000 * 50, picture_side=8)
    long_captions = derive(Overrides(), small_pictures, CPU).recipe
    # A caption of 50 words has more than 60 tokens.
    assert long_captions.training.batch_tokens >= BATCH_PICTURES * 60
