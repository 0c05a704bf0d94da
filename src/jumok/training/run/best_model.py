"""The best model so far: `model/` of a run that is not finished.

`model/` is written after the first validation and replaced whenever a validation is the best so far. It has
the weights of the best checkpoint and the scores of that validation. The slower work is done only at the
finish of the run: averaging, a search with the beam of the recipe, the read-out of alignments, the cost of
8-bit weights. A run that is given more training keeps its finished model until a later checkpoint validates
better. If the finish chose an average, the checkpoint must validate better than that average.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from jumok.errors import JumokError, ModelFolderError
from jumok.storage.model_folder import ScoreRecord, read_card, save_model
from jumok.storage.tensors import module_weights
from jumok.text.tokenizer_files import tokenizers_to_files
from jumok.training.loop.checkpoint import load_checkpoint_weights
from jumok.training.loop.state import USELESS_RATIO
from jumok.training.run.model_card import BEST_STEP, make_model_card, source_facts
from jumok.training.run.phase_average import read_average

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from jumok.config.recipe import Recipe
    from jumok.training.loop.state import ValidationRecord
    from jumok.training.loop.trainer import Trainer
    from jumok.training.run.preparation import TrainingData


class BestModel:
    """Keeps `model/` up to date while the trainer trains."""

    def __init__(self, trainer: Trainer, data: TrainingData, recipe: Recipe) -> None:
        self._trainer, self._data, self._recipe = trainer, data, recipe
        self._folder = data.folder.model
        self._written_step = self._stored_step()
        self._average = read_average(data.folder.average)

    def update(self) -> None:
        """Write the model of the best validation.

        It is not written if it is already stored, if its weights diverged, or if the stored average of an
        earlier phase is better.
        """
        trainer = self._trainer
        best = trainer.state.best(trainer.settings.stop_on)
        if best is None or best.step == self._written_step:
            return
        if not best.loss <= USELESS_RATIO * trainer.validation.uniform_loss:
            return
        if self._folder.exists() and not self._is_better_than_average(best):
            return
        scores = {
            name: ScoreRecord(value, best.signatures.get(name, "")) for name, value in best.scores.items()
        }
        try:
            weights = self._weights(best)
        except ModelFolderError:  # the checkpoint is damaged; the finish warns and uses the next best
            return
        card = make_model_card(
            trainer,
            self._data,
            self._recipe,
            scores=scores,
            facts={
                "steps": best.step,
                "weights": f"the checkpoint of step {best.step:,}, the best so far of an unfinished run",
                "validation_loss": best.loss,
                **self._source_facts,
            },
        )
        save_model(
            self._folder,
            card,
            weights,
            tokenizers_to_files(self._data.tokenizers),
            checked=True,
            failure_note="All checkpoints are intact; the same command continues the run.",
            replace=True,
        )
        self._written_step = best.step

    def _is_better_than_average(self, best: ValidationRecord) -> bool:
        """Whether `best` is better than the validation of the stored average; True if there is no average."""
        trainer, average = self._trainer, self._average
        return average is None or trainer.state.is_better(best, average.validation, trainer.settings.stop_on)

    @cached_property
    def _source_facts(self) -> dict[str, Any]:
        return source_facts(self._data, self._recipe)

    def _weights(self, best: ValidationRecord) -> Mapping[str, Tensor]:
        trainer = self._trainer
        if best.step == trainer.state.step:
            return trainer.moving_average or module_weights(trainer.model)
        has_moving_average = trainer.settings.ema_decay > 0
        return load_checkpoint_weights(
            trainer.files.checkpoints, best.step, moving_average=has_moving_average
        )

    def _stored_step(self) -> int | None:
        """Return the best step in the card of the model that is stored; None if the model cannot be read."""
        try:
            step = read_card(self._folder).facts.get(BEST_STEP)
        except JumokError:
            return None
        return step if isinstance(step, int) else None
