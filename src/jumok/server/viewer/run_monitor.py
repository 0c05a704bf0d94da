"""A run while it trains: its curves, and the model as it is in each checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from jumok.decoding import Translator, load
from jumok.decoding.loading import load_vocabularies, training_facts
from jumok.errors import DataError
from jumok.models import build_model
from jumok.recipe import LanguageSettings
from jumok.storage import VOCABULARY_FILES, load_module_weights
from jumok.training.checkpoint import saved_steps, stored_weights
from jumok.training.folder import RunFolder
from jumok.training.metrics import read_metrics

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.models import TranslationModel
    from jumok.text import Vocabularies
    from jumok.training.folder import RunRecord

__all__ = ["WatchedRun", "is_run"]


def is_run(path: Path) -> bool:
    return RunFolder(path).record_file.is_file()


class WatchedRun:
    """A run folder that is read and never written to."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.name = path.resolve().name

    def report(self) -> dict[str, Any]:
        """All its metrics so far, the steps whose models can be asked, and whether it is finished."""
        record = self.folder.record()
        languages = record.recipe.languages if record is not None else LanguageSettings()
        return {
            "name": self.name,
            "finished": self.folder.model.is_dir(),
            "source_language": languages.source,
            "target_language": languages.target,
            "checkpoints": self._steps(),
            "metrics": read_metrics(self.folder.metrics),
        }

    def newest(self) -> Translator | None:
        """The finished model, or the newest checkpoint's; None where there is no translator yet."""
        steps = self._steps()
        if steps and self.folder.model.is_dir():
            return load(self.folder.model)
        return self.translator(steps[-1]) if steps else None

    def translator(self, step: int) -> Translator:
        """The model of one checkpoint."""
        record = self._record()
        if record is None or step not in self._steps():
            raise DataError(f"{self.folder.path} has no checkpoint of step {step} any more.")
        recipe, vocabularies = record.recipe, self._vocabularies()
        model = build_model(
            recipe.model,
            source_pieces=vocabularies.source.size,
            target_pieces=vocabularies.target.size,
            shared=vocabularies.shared,
        )
        averaged = recipe.training.ema > 0
        load_module_weights(model, stored_weights(self.folder.checkpoints, step, moving_average=averaged))
        return Translator(
            cast("TranslationModel", model),
            vocabularies,
            search=recipe.search,
            source_language=recipe.languages.source,
            target_language=recipe.languages.target,
            longest_source=recipe.training.longest,
            training=training_facts(recipe, step, record.plan.revisions),
        )

    def _record(self) -> RunRecord | None:
        """What was decided; None where nothing was yet, or where what is trained does not translate."""
        record = self.folder.record()
        return record if record is not None and record.recipe.model.task == "translate" else None

    def _steps(self) -> list[int]:
        return [] if self._record() is None else saved_steps(self.folder.checkpoints)

    def _vocabularies(self) -> Vocabularies:
        files = (self.folder.path / name for name in VOCABULARY_FILES)
        return load_vocabularies({file.name: file.read_bytes() for file in files if file.is_file()})
