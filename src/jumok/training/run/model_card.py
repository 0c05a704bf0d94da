"""The model card of a run, which describes the model in its model folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.resolve import with_settings
from jumok.inference.loading import PHASES
from jumok.storage.model_folder import CorpusRecord, ModelCard
from jumok.text.sentences import MULTIPLE_SENTENCES, multiple_sentences_share
from jumok.training.run.start_model import read_start_card
from jumok.training.validation.protocol import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.config.recipe import Recipe
    from jumok.storage.model_folder import ScoreRecord
    from jumok.training.loop.trainer import Trainer
    from jumok.training.run.preparation import TrainingData
    from jumok.types import ReadOut

VALIDATION_FINGERPRINT = "validation_fingerprint"
"""The model card's fact that says which pairs training validated on (`data.hold_out.fingerprint_pairs`)."""
BEST_STEP = "best_step"
"""The model card's fact that says at which step the validation was best when the model was written."""
MAX_SPLIT_SOURCES = 2_000
"""At most this many sources of training pairs are split into sentences, to see if some are paragraphs."""


def make_model_card(
    trainer: Trainer,
    data: TrainingData,
    recipe: Recipe,
    *,
    scores: Mapping[str, ScoreRecord],
    facts: Mapping[str, Any],
    read_out: ReadOut | None = None,
) -> ModelCard:
    """Return the card. `facts` are added to the facts that the models of all runs have."""
    store, best = data.store, trainer.state.best(trainer.settings.stop_on)
    start_corpora = read_start_card(data.folder).corpora if recipe.fine_tuning.start_from else ()
    corpora = (
        CorpusRecord(corpus.name, corpus.end - corpus.first, store.fingerprint) for corpus in store.corpora
    )
    return ModelCard(
        recipe=_without_folders(recipe),
        scores=scores,
        read_out=read_out,
        corpora=(*start_corpora, *corpora),
        facts={
            "seconds": round(trainer.seconds, 1),
            "parameters": sum(tensor.numel() for tensor in trainer.model.parameters()),
            "validation_pairs": len(trainer.validation),
            VALIDATION_FINGERPRINT: trainer.validation.fingerprint,
            **({BEST_STEP: best.step} if best is not None else {}),
            # `plan.phases` does not contain the first phase.
            **({PHASES: len(trainer.plan.phases) + 1} if trainer.plan.phases else {}),
            **facts,
        },
        plan=trainer.plan.revisions,
    )


def source_facts(data: TrainingData, recipe: Recipe) -> dict[str, Any]:
    """Return the share of training sources that have more than one sentence.

    The result is empty if the model does not translate text.
    """
    if recipe.model.task != "translate" or recipe.source.kind == "pictures":
        return {}
    indices = evenly_spaced(range(len(data.store)), MAX_SPLIT_SOURCES)
    sources = [data.tokenizers.source.decode(data.store.pair_ids(index)[0]) for index in indices]
    return {MULTIPLE_SENTENCES: round(multiple_sentences_share(sources), 4)}


def _without_folders(recipe: Recipe) -> Recipe:
    """Return the recipe with names of files instead of their paths, since the model may be published."""
    encoder, tuning = getattr(recipe.model, "encoder_from", None), recipe.fine_tuning
    file_names = {
        "model.encoder_from": encoder and Path(encoder).name,
        "fine_tuning.start_from": tuning.start_from and Path(tuning.start_from).name,
        "fine_tuning.keep": [Path(file).name for file in tuning.keep] or None,
        "fine_tuning.replay": [Path(file).name for file in tuning.replay] or None,
    }
    if not any(file_names.values()):
        return recipe
    return with_settings(recipe, file_names)
