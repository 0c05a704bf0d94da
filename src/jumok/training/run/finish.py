"""The end of a run: from checkpoints to a model folder.

1. The weights: the best readable checkpoint, the average of the last ones, or the average that an earlier
   phase of the run chose, whichever validates best. If the run has a start model, a point between that model
   and these weights (`fine_tuning.py`).
2. The scores of the model folder: the validation set once more, with the recipe's beam.
3. The read-out of alignments, chosen on validation pairs. If some validation pairs have gold alignments, only
   these pairs are used.
4. The cost of 8-bit weights in quality, which decides whether a converted model uses them.

Everything is computed from stored files. A run that is killed during the finish repeats all of it when it
is resumed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jumok.errors import JumokError, ModelFolderError, TrainingError
from jumok.evaluation.int8_cost import measure_int8_cost
from jumok.inference.alignment.readout import choose_read_out
from jumok.inference.loading import INT8_COSTS
from jumok.inference.translator import Translator
from jumok.storage.model_folder import read_card, save_model
from jumok.storage.tensors import load_module_weights, module_weights
from jumok.text.tokenizer_files import tokenizers_to_files
from jumok.training.events import Event, Finished, StageDone, StageStarted, Warned
from jumok.training.loop.averaging import average_weights
from jumok.training.loop.checkpoint import load_checkpoint_weights, saved_steps
from jumok.training.loop.state import USELESS_RATIO, ValidationRecord
from jumok.training.run.model_card import make_model_card, source_facts
from jumok.training.run.phase_average import read_average, store_average

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from jumok.config.recipe import Recipe
    from jumok.models.model import TranslationModel
    from jumok.text.tokenizer import TokenizerPair
    from jumok.training.loop.trainer import Trainer
    from jumok.training.run.fine_tuning import FineTuning
    from jumok.training.run.preparation import TrainingData
    from jumok.training.validation.translation import TranslationValidation
    from jumok.types import Pair, ReadOut

MAX_READ_OUT_PAIRS = 200


@dataclass(frozen=True, slots=True)
class ChosenWeights:
    """The weights of the model folder, and a description of where they come from."""

    weights: Mapping[str, Tensor]
    description: str


def finish_run(
    trainer: Trainer, data: TrainingData, recipe: Recipe, fine_tuning: FineTuning | None
) -> Iterator[Event]:
    """Choose the weights, score them, and write the model folder. An interruption ends this early."""
    yield StageStarted("finishing")
    started, folder, tokenizers = trainer.seconds, data.folder.model, data.tokenizers
    choice = yield from _choose_weights(trainer, data.folder.average)
    if fine_tuning is not None:
        choice, alpha = yield from _interpolate(fine_tuning, trainer, choice)
    load_module_weights(trainer.model, choice.weights)
    result = trainer.validation.validate(trainer.model, recipe.search.beam, should_stop=trainer.should_stop)
    if result is None or trainer.should_stop():
        yield interrupted_event(trainer, folder)
        return
    yield from _refuse_useless(result.loss, trainer.validation.uniform_loss, choice)
    translates = recipe.model.task == "translate"
    facts: Mapping[str, float | str | None]
    read_out, facts = _analyse_translator(trainer, tokenizers, recipe) if translates else (None, {})
    if fine_tuning is not None:
        facts = {**facts, **(yield from fine_tuning.report(trainer, result, alpha))}
        if trainer.should_stop():
            yield interrupted_event(trainer, folder)
            return
    card = make_model_card(
        trainer,
        data,
        recipe,
        scores=result.scores,
        facts={
            "steps": trainer.state.step,
            "weights": choice.description,
            "validation_loss": result.loss,
            **source_facts(data, recipe),
            **facts,
        },
        read_out=read_out,
    )
    save_model(
        folder,
        card,
        module_weights(trainer.model),
        tokenizers_to_files(tokenizers),
        checked=True,
        failure_note="All checkpoints are intact; the same command finishes the run.",
        replace=True,
    )
    data.folder.mark_finished(trainer.stop_reason or "done")
    trainer.remove_old_checkpoints()
    scored = f", scored with beam {recipe.search.beam}" if translates else ""
    yield StageDone("finishing", f"{choice.description}{scored}", trainer.seconds - started)
    yield Finished(
        trainer.stop_reason or "done", folder, trainer.state.step, trainer.seconds, result.score_values()
    )


def interrupted_event(trainer: Trainer, folder: Path) -> Finished:
    """Return the last event of an interrupted run. It names the best model so far, if there is one."""
    scores: dict[str, float] = {}
    with suppress(JumokError):  # a damaged model folder
        scores = {name: score.value for name, score in read_card(folder).scores.items()}
    model_folder = folder if folder.exists() else None
    return Finished("interrupted", model_folder, trainer.state.step, trainer.seconds, scores)


def _refuse_useless(loss: float, uniform_loss: float, choice: ChosenWeights) -> Iterator[Warned]:
    """Raise if even the best weights have diverged; warn if they are no better than guessing."""
    if not loss <= USELESS_RATIO * uniform_loss:
        raise TrainingError(
            f"No model was made: the validation loss is {loss:,.4g} even with the best weights "
            f"({choice.description}); giving every token the same probability gives {uniform_loss:.2f}. "
            "Start a new run with a lower training.learning_rate or more training.warmup_steps."
        )
    if loss > uniform_loss:
        yield Warned(
            f"the model is worse than guessing: its validation loss is {loss:.2f}; giving every token the "
            f"same probability gives {uniform_loss:.2f}",
            "After a short run, train for longer. After a long one, there are too few pairs, or "
            "training.learning_rate is too high.",
        )


def _choose_weights(trainer: Trainer, average_folder: Path) -> Generator[Event, None, ChosenWeights]:
    """Return the weights that validate best.

    The candidates are the best readable checkpoint, the average of the last checkpoints, and the average that
    an earlier phase has stored.
    """
    state, stop_on = trainer.state, trainer.settings.stop_on
    best, choice = yield from _best_readable(trainer)
    if best is None:
        return choice
    average = yield from _average_of_last(trainer)
    validation = None if average is None else _validate(trainer, average)
    if average is not None and validation is not None and state.is_better(validation, best, stop_on):
        best, choice = validation, average
    else:
        average = None
    stored_average = read_average(average_folder)
    if stored_average is not None and state.is_better(stored_average.validation, best, stop_on):
        try:
            return ChosenWeights(stored_average.weights(), stored_average.description)
        except ModelFolderError as error:
            yield Warned(str(error), f"Used instead: {choice.description}.")
    if average is not None and not trainer.should_stop():
        store_average(average_folder, average.weights, average.description, best)
    return choice


def _average_of_last(trainer: Trainer) -> Generator[Event, None, ChosenWeights | None]:
    """Return the average of the last checkpoints; None if fewer than two are wanted or can be read."""
    num_averaged = trainer.settings.average_checkpoints
    steps = [record.step for record in trainer.state.validations[-num_averaged:]]
    weights_by_step = {}
    for step in steps if num_averaged > 1 else []:
        try:
            weights_by_step[step] = _checkpoint_weights(trainer, step)
        except ModelFolderError as error:
            yield Warned(f"a checkpoint was left out of the average: {error}")
    if len(weights_by_step) < 2:
        return None
    description = f"the average of the last {len(weights_by_step)} checkpoints up to step {steps[-1]:,}"
    if len(weights_by_step) < len(steps):
        readable_steps = ", ".join(f"{step:,}" for step in weights_by_step)
        description = f"the average of {len(weights_by_step)} checkpoints (steps {readable_steps})"
    return ChosenWeights(average_weights(list(weights_by_step.values())), description)


def _interpolate(
    fine_tuning: FineTuning, trainer: Trainer, tuned: ChosenWeights
) -> Generator[Event, None, tuple[ChosenWeights, float]]:
    """Return the best interpolation between the start model and the tuned weights, and its α."""
    weights, alpha = yield from fine_tuning.choose_weights(trainer, tuned.weights)
    between = "" if alpha == 1 else f"{alpha:.0%} of the way from the start model to "
    return ChosenWeights(weights, f"{between}{tuned.description}"), alpha


def _best_readable(trainer: Trainer) -> Generator[Event, None, tuple[ValidationRecord | None, ChosenWeights]]:
    """Return the best checkpoint that can be read, as its validation and its weights.

    If no checkpoint can be read, return None and the weights in memory.
    """
    settings, state = trainer.settings, trainer.state
    kind = "moving average" if settings.ema_decay else "checkpoint"
    best_readable = None
    weights = trainer.moving_average or module_weights(trainer.model)
    choice = ChosenWeights(weights, f"the weights of step {state.step:,}")
    best, stored_steps = state.best(settings.stop_on), saved_steps(trainer.files.checkpoints)
    damage_messages = []
    for record in state.ranked(settings.stop_on):
        if record is not best and record.step not in stored_steps:
            continue  # the checkpoint was removed during the run, since others were better
        try:
            weights = _checkpoint_weights(trainer, record.step)
            choice = ChosenWeights(weights, f"the {kind} of step {record.step:,}")
        except ModelFolderError as error:
            damage_messages.append(str(error))
        else:
            best_readable = record
            break
    for message in damage_messages:
        yield Warned(message, f"Used instead: {choice.description}.")
    return best_readable, choice


def _validate(trainer: Trainer, choice: ChosenWeights) -> ValidationRecord | None:
    """Validate these weights with greedy search; return None if the run is interrupted."""
    load_module_weights(trainer.model, choice.weights)
    result = trainer.validation.validate(trainer.model, beam=1, should_stop=trainer.should_stop)
    if result is None:
        return None
    # There is no training loss of averaged weights. Only detectors would read it.
    return ValidationRecord(trainer.state.step, result.loss, result.loss, result.score_values())


def _checkpoint_weights(trainer: Trainer, step: int) -> dict[str, Tensor]:
    return load_checkpoint_weights(
        trainer.files.checkpoints, step, moving_average=trainer.settings.ema_decay > 0
    )


def _analyse_translator(
    trainer: Trainer, tokenizers: TokenizerPair, recipe: Recipe
) -> tuple[ReadOut | None, dict[str, float | None]]:
    """Return the read-out of alignments, and the cost of 8-bit weights in quality."""
    model = cast("TranslationModel", trainer.model)
    validation = cast("TranslationValidation", trainer.validation)
    if recipe.source.kind == "pictures":
        # Pictures have no words to align. Only torch, which has no 8-bit weights, runs a model of pictures.
        return None, {INT8_COSTS: None}
    read_out = _read_out(Translator(model, tokenizers), validation.pairs)
    return read_out, {INT8_COSTS: measure_int8_cost(model, tokenizers, recipe, validation.translated)}


def _read_out(translator: Translator, pairs: Sequence[Pair]) -> ReadOut | None:
    """Choose the read-out on pairs with a gold alignment if there are any, else on the first pairs."""
    if not translator.model.has_cross_attention:
        return None
    gold = [pair for pair in pairs if pair.alignment is not None]
    return choose_read_out(translator.attended_pairs((gold or list(pairs))[:MAX_READ_OUT_PAIRS]))
