"""What a run trains with, made from what lies in its folder: any process of a team makes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.corpus import Batches
from jumok.models import build_model
from jumok.text import Vocabularies, load_subwords
from jumok.training.update import seed_step

if TYPE_CHECKING:
    from jumok.corpus import PairStore
    from jumok.models import TranslationModel
    from jumok.recipe import Recipe
    from jumok.training.folder import RunFolder

__all__ = ["fresh_model", "load_vocabularies", "make_batches"]


def load_vocabularies(folder: RunFolder, recipe: Recipe) -> Vocabularies:
    names = ["pieces.model"] if recipe.text.shared else ["source.model", "target.model"]
    sides = [load_subwords(folder.path / name) for name in names]
    return Vocabularies(source=sides[0], target=sides[-1], shared=recipe.text.shared)


def make_batches(recipe: Recipe, store: PairStore, vocabularies: Vocabularies) -> Batches:
    return Batches(
        store,
        batch_tokens=recipe.training.batch_tokens,
        seed=recipe.training.seed,
        vocabularies=vocabularies,
        sampling=recipe.text.sampling,
    )


def fresh_model(recipe: Recipe, vocabularies: Vocabularies) -> TranslationModel:
    """The model of step 0: a function of the settings and the seed."""
    seed_step(recipe.training.seed, 0)
    return build_model(
        recipe.model,
        source_pieces=vocabularies.source.size,
        target_pieces=vocabularies.target.size,
        shared=vocabularies.shared,
    )
