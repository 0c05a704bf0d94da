"""The end of a run: from checkpoints to a model folder.

1. Which weights: the best checkpoint that can be read, or the average of the last ones where that validates
   better.
2. Where alignments are read from: chosen on validation pairs, by their gold alignments where they have some.
3. The score that the model folder carries: the validation set once more, with the beam of the recipe.
4. What weights of eight bits would cost, so that a converted model knows whether to use them.

All of it follows from the checkpoints. Killed here, a run does it again when it is continued.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jumok.decoding import Translator, choose_read_out
from jumok.engines import INT8_COSTS
from jumok.errors import ModelFolderError, TrainingError
from jumok.evaluation import int8_costs
from jumok.storage import CorpusRecord, ModelCard, load_module_weights, module_weights, save_model
from jumok.training.average import average_weights
from jumok.training.checkpoint import saved_steps, stored_weights
from jumok.training.events import Event, Finished, Stage, Warned
from jumok.training.state import ValidationRecord, better

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from jumok.corpus import PairStore
    from jumok.models import TranslationModel
    from jumok.recipe import Recipe
    from jumok.text import Vocabularies
    from jumok.training.loop import Trainer
    from jumok.training.validation import ValidationResult, ValidationSet
    from jumok.values import Pair, ReadOut

__all__ = ["finish_run", "vocabulary_files"]

MOST_READ_OUT_PAIRS = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """The weights that were chosen, and how."""

    weights: Mapping[str, Tensor]
    how: str


def finish_run(
    trainer: Trainer,
    *,
    recipe: Recipe,
    vocabularies: Vocabularies,
    store: PairStore,
    folder: Path,
) -> Iterator[Event]:
    """Choose the weights, score them, write the model folder. Stops early if the run is interrupted."""
    started = trainer.seconds
    choice = yield from _choose_weights(trainer)
    load_module_weights(trainer.model, choice.weights)
    result = trainer.validation.validate(trainer.model, recipe.search.beam, stop=trainer.interrupted)
    if result is None or trainer.interrupted():
        yield Finished("interrupted", None, trainer.state.step, trainer.seconds)
        return
    if not math.isfinite(result.loss):
        raise TrainingError(
            f"There is nothing to make a model of: with {choice.how}, the best there is, the validation loss "
            f"is {result.loss}. Start a new run with a lower training.learning_rate or a longer "
            "training.warmup."
        )
    translates = recipe.model.task == "translate"
    read_out, facts = _facts_of_a_translator(trainer, vocabularies, recipe) if translates else (None, {})
    card = _card(trainer, recipe, store, result, read_out, choice.how, facts)
    save_model(
        folder,
        card,
        module_weights(trainer.model),
        vocabulary_files(vocabularies),
        intact="All checkpoints are intact; the same command finishes the run.",
    )
    scored = f", scored with beam {recipe.search.beam}" if translates else ""
    yield Stage("finishing", f"{choice.how}{scored}", trainer.seconds - started)
    yield Finished(trainer.reason or "done", folder, trainer.state.step, trainer.seconds, result.values())


def vocabulary_files(vocabularies: Vocabularies) -> dict[str, bytes]:
    """The vocabulary as files of a model folder."""
    if vocabularies.shared:
        return {"pieces.model": vocabularies.source.to_bytes()}
    return {"source.model": vocabularies.source.to_bytes(), "target.model": vocabularies.target.to_bytes()}


def _choose_weights(trainer: Trainer) -> Generator[Event, None, Choice]:
    """The best checkpoint that can be read, unless the average of the last ones is better still."""
    settings, state = trainer.settings, trainer.state
    best, choice = yield from _best_readable(trainer)
    if best is None:
        return choice
    steps = [record.step for record in state.validations[-settings.average :]]
    readable = []
    for step in steps if settings.average > 1 else []:
        try:
            readable.append(_weights_of(trainer, step))
        except ModelFolderError as error:
            yield Warned(f"a checkpoint is left out of the average: {error}")
    if len(readable) > 1:
        average = Choice(average_weights(readable), f"the average of the last {len(readable)} checkpoints")
        return average if _is_better(trainer, average, best) else choice
    return choice


def _best_readable(trainer: Trainer) -> Generator[Event, None, tuple[ValidationRecord | None, Choice]]:
    """The best checkpoint; where it is damaged the next best on the disk, at last the weights in memory."""
    settings, state = trainer.settings, trainer.state
    kind = "moving average" if settings.ema else "checkpoint"
    found = None
    choice = Choice(trainer.average or module_weights(trainer.model), f"the weights of step {state.step:,}")
    best, stored, damaged = state.best(settings.stop_on), saved_steps(trainer.checkpoints), []
    for record in state.ranked(settings.stop_on):
        if record is not best and record.step not in stored:
            continue  # removed long ago: there were better ones
        try:
            choice = Choice(_weights_of(trainer, record.step), f"the {kind} of step {record.step:,}")
        except ModelFolderError as error:
            damaged.append(str(error))
        else:
            found = record
            break
    for message in damaged:
        yield Warned(message, f"Used instead: {choice.how}.")
    return found, choice


def _is_better(trainer: Trainer, choice: Choice, best: ValidationRecord) -> bool:
    load_module_weights(trainer.model, choice.weights)
    result = trainer.validation.validate(trainer.model, beam=1, stop=trainer.interrupted)
    if result is None:
        return False
    record = ValidationRecord(trainer.state.step, result.loss, result.loss, result.values())
    return better(record, best, trainer.settings.stop_on)


def _weights_of(trainer: Trainer, step: int) -> dict[str, Tensor]:
    return stored_weights(trainer.checkpoints, step, moving_average=trainer.settings.ema > 0)


def _facts_of_a_translator(
    trainer: Trainer, vocabularies: Vocabularies, recipe: Recipe
) -> tuple[ReadOut | None, dict[str, float | None]]:
    """Where its alignments are read from, and what eight bits cost it."""
    model, validation = cast("TranslationModel", trainer.model), cast("ValidationSet", trainer.validation)
    read_out = _read_out(Translator(model, vocabularies), validation.pairs)
    return read_out, {INT8_COSTS: int8_costs(model, vocabularies, recipe, validation.translated)}


def _read_out(translator: Translator, pairs: Sequence[Pair]) -> ReadOut | None:
    """On pairs with a gold alignment where there are any, else on some of them all."""
    if not translator.model.looks_at_source:
        return None
    gold = [pair for pair in pairs if pair.alignment is not None]
    return choose_read_out(translator.attended((gold or list(pairs))[:MOST_READ_OUT_PAIRS]))


def _card(
    trainer: Trainer,
    recipe: Recipe,
    store: PairStore,
    result: ValidationResult,
    read_out: ReadOut | None,
    how: str,
    facts: Mapping[str, float | None],
) -> ModelCard:
    return ModelCard(
        recipe=recipe,
        scores=result.scores,
        read_out=read_out,
        corpora=tuple(
            CorpusRecord(part.name, part.last - part.first, store.fingerprint) for part in store.parts
        ),
        facts={
            "steps": trainer.state.step,
            "seconds": round(trainer.seconds, 1),
            "parameters": sum(tensor.numel() for tensor in trainer.model.parameters()),
            "weights": how,
            "validation_pairs": len(trainer.validation),
            "validation_loss": result.loss,
            **facts,
        },
        plan=trainer.plan.revisions,
    )
