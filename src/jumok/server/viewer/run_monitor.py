"""Reads the folder of a run, even while the run trains: its metrics, and the model of each checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from jumok.config.recipe import LanguageSettings
from jumok.errors import DataError
from jumok.inference.building import build_for_tokenizers
from jumok.inference.loading import load, training_facts
from jumok.inference.translator import ModelFacts, Translator
from jumok.storage.model_folder import read_card
from jumok.storage.tensors import load_module_weights
from jumok.text.tokenizer_files import read_tokenizers
from jumok.training.loop.checkpoint import load_checkpoint_weights, saved_steps
from jumok.training.loop.metrics import read_metrics
from jumok.training.run.run_folder import RunFolder
from jumok.training.validation.protocol import evenly_spaced

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.config.recipe import ModelSettings
    from jumok.models.model import TranslationModel
    from jumok.training.run.run_folder import RunRecord
    from jumok.types import Pair, ReadOut

__all__ = ["RunMonitor", "is_run_folder"]


def is_run_folder(path: Path) -> bool:
    return RunFolder(path).record_file.is_file()


@dataclass(frozen=True, slots=True)
class RunModel:
    """A model of a run, and the step of its checkpoint (None for the finished model)."""

    translator: Translator
    step: int | None


class RunMonitor:
    """Reads a run folder and never writes to it."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.name = path.resolve().name

    def report(self) -> dict[str, Any]:
        """Return the run's name, languages and metrics, its checkpoints, and whether it is finished.

        `checkpoints` has the steps of the checkpoints; none if the model does not translate text.
        """
        record = self.folder.record()
        languages = record.recipe.languages if record is not None else LanguageSettings()
        return {
            "name": self.name,
            "finished": self.folder.is_finished(record),
            "source_language": languages.source,
            "target_language": languages.target,
            "checkpoints": self._checkpoint_steps(),
            "metrics": read_metrics(self.folder.metrics),
        }

    @property
    def settings(self) -> ModelSettings | None:
        """The settings of the model that the run trains.

        None if this model does not translate text, or if the run has not written its record yet.
        """
        record = self._record()
        return None if record is None else record.recipe.model

    def curves(self) -> dict[str, Any]:
        """Return the run's name and its metrics, to draw them beside another run.

        Metrics that are lists or objects are left out.
        """
        lines = read_metrics(self.folder.metrics)
        scalars = [
            {name: value for name, value in line.items() if isinstance(value, int | float | str)}
            for line in lines
        ]
        return {"name": self.name, "metrics": scalars}

    def newest(self) -> RunModel | None:
        """Return the finished model, or the model of the newest checkpoint if the run is not finished.

        Return None if there is no checkpoint, or if the run trains no translator of text.
        """
        steps = self._checkpoint_steps()
        if steps and self.folder.is_finished(self._record()):
            return RunModel(load(self.folder.model, engine="torch"), None)
        return RunModel(self.translator(steps[-1]), steps[-1]) if steps else None

    def previous(self) -> RunModel | None:
        """Return the model of the checkpoint before the newest; None if there is none."""
        steps = self._checkpoint_steps()
        return RunModel(self.translator(steps[-2]), steps[-2]) if len(steps) > 1 else None

    def validation_pairs(self, count: int) -> tuple[list[Pair], int]:
        """Return at most `count` evenly spaced validation pairs, and the number of all validation pairs."""
        pairs = self.folder.read_validation_pairs()
        return evenly_spaced(pairs, count), len(pairs)

    def translator(self, step: int) -> Translator:
        """Return the model of one checkpoint."""
        record = self._record()
        if record is None or step not in self._checkpoint_steps():
            raise DataError(f"{self.folder.path} has no checkpoint of step {step}, or no longer.")
        recipe = record.recipe
        tokenizers = read_tokenizers(self.folder.path, shared=recipe.text.shared)
        model = build_for_tokenizers(recipe.model, tokenizers)
        has_average = recipe.training.ema_decay > 0
        load_module_weights(
            model, load_checkpoint_weights(self.folder.checkpoints, step, moving_average=has_average)
        )
        return Translator(
            cast("TranslationModel", model),
            tokenizers,
            search=recipe.search,
            read_out=self._read_out(record),
            max_source_tokens=recipe.training.max_sentence_tokens,
            facts=ModelFacts(
                recipe.languages.source,
                recipe.languages.target,
                # These facts can describe only one phase. A run that was trained further has more phases.
                {} if record.plan.phases else training_facts(recipe, step, record.plan.revisions),
            ),
        )

    def _read_out(self, record: RunRecord) -> ReadOut | None:
        """Return the read-out of the finished model, or None if the run is not finished.

        With this read-out, checkpoints show the same heads as the finished model.
        """
        return read_card(self.folder.model).read_out if self.folder.is_finished(record) else None

    def _record(self) -> RunRecord | None:
        """Return the run's record, or None if there is none yet or the model does not translate."""
        record = self.folder.record()
        if record is None or record.recipe.source.kind == "pictures":  # the page shows sentences
            return None
        return record if record.recipe.model.task == "translate" else None

    def _checkpoint_steps(self) -> list[int]:
        return [] if self._record() is None else saved_steps(self.folder.checkpoints)
