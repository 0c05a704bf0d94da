"""The model, batches and validation set of a run. Every rank makes the same model and batches."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jumok.config.recipe import TransformerSettings
from jumok.data.batching import Batches, ClassBatches
from jumok.data.masking import MaskedBatches
from jumok.inference.building import build_for_tokenizers
from jumok.system.device import DeviceConfig, choose_device
from jumok.training.loop.update import seed_step
from jumok.training.run.initial_model import load_initial_weights
from jumok.training.run.start_model import freeze_weights
from jumok.training.validation.classification import ClassValidation
from jumok.training.validation.plain_text import TextValidation
from jumok.training.validation.translation import TranslationValidation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.config.recipe import Recipe, TrainingSettings
    from jumok.data.store import PairStore
    from jumok.models.model import Model
    from jumok.text.tokenizer import TokenizerPair
    from jumok.training.run.run_folder import RunFolder
    from jumok.training.validation.protocol import Validation
    from jumok.types import Pair


def make_batches(recipe: Recipe, store: PairStore, tokenizers: TokenizerPair) -> Batches:
    """Return the training batches for the model's task."""
    task = recipe.model.task
    batches_class = MaskedBatches if task == "masked" else ClassBatches if task == "classify" else Batches
    return batches_class(
        store,
        batch_tokens=recipe.training.batch_tokens,
        seed=recipe.training.seed,
        tokenizers=tokenizers,
        sampling=recipe.text.sampling,
    )


def make_validation(pairs: Sequence[Pair], tokenizers: TokenizerPair, recipe: Recipe) -> Validation:
    """Return the validation set for the model's task."""
    if recipe.model.task == "classify":
        return ClassValidation(pairs, tokenizers, recipe)
    validation_class = TranslationValidation if recipe.model.task == "translate" else TextValidation
    return validation_class(pairs, tokenizers, recipe)


def fresh_model(folder: RunFolder, recipe: Recipe, tokenizers: TokenizerPair) -> Model:
    """Return the model of step 0. Recipe, tokenizers and stored initial weights, if any, determine it."""
    seed_step(recipe.training.seed, 0)
    model = build_for_tokenizers(recipe.model, tokenizers)
    if isinstance(recipe.model, TransformerSettings) and recipe.model.encoder_from:
        load_initial_weights(model, folder.encoder)
    if recipe.fine_tuning.start_from is not None:
        load_initial_weights(model, folder.start)
        freeze_weights(model, recipe.fine_tuning.freeze)
    return device_config(recipe.training).place(model)


def device_config(settings: TrainingSettings) -> DeviceConfig:
    """Return device and precision of this process. Each process of torchrun has an accelerator of its own."""
    if settings.device == "cpu" and settings.precision == "fp32":
        return DeviceConfig("cpu", "fp32")
    if settings.device == "cpu":  # a resumed run may be on another machine, which may crash on bf16
        return choose_device("cpu", settings.precision)
    index = os.environ.get("LOCAL_RANK")
    return choose_device(settings.device, settings.precision, index=None if index is None else int(index))
