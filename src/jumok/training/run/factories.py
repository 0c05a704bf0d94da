"""What a run trains with, made from what lies in its folder: any process of a team makes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.corpus import Batches, MaskedBatches
from jumok.models import build_model
from jumok.recipe import TransformerSettings
from jumok.text import Vocabularies, load_subwords
from jumok.training.start import begin_with
from jumok.training.update import seed_step

if TYPE_CHECKING:
    from jumok.corpus import PairStore
    from jumok.models import Model
    from jumok.recipe import Recipe
    from jumok.training.folder import RunFolder

__all__ = ["fresh_model", "load_vocabularies", "make_batches"]


def load_vocabularies(folder: RunFolder, recipe: Recipe) -> Vocabularies:
    names = ["pieces.model"] if recipe.text.shared else ["source.model", "target.model"]
    sides = [load_subwords(folder.path / name) for name in names]
    return Vocabularies(source=sides[0], target=sides[-1], shared=recipe.text.shared)


def make_batches(recipe: Recipe, store: PairStore, vocabularies: Vocabularies) -> Batches:
    """The batches that the model of a recipe learns from."""
    kind = MaskedBatches if recipe.model.task == "masked" else Batches
    return kind(
        store,
        batch_tokens=recipe.training.batch_tokens,
        seed=recipe.training.seed,
        vocabularies=vocabularies,
        sampling=recipe.text.sampling,
    )


def fresh_model(folder: RunFolder, recipe: Recipe, vocabularies: Vocabularies) -> Model:
    """The model of step 0: a function of the settings, the seed and the encoder that it begins with."""
    seed_step(recipe.training.seed, 0)
    model = build_model(
        recipe.model,
        source_pieces=vocabularies.source.size,
        target_pieces=vocabularies.target.size,
        shared=vocabularies.shared,
    )
    if isinstance(recipe.model, TransformerSettings) and recipe.model.encoder_from:
        begin_with(model, folder.encoder)
    return model
