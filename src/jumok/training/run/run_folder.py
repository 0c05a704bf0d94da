"""The run folder: who may write to it, and whether a run may be continued as asked.

    run.json          what was decided before the first step: recipe, reasons, plan, fingerprint of the data
    recipe.toml       the recipe again, for people
    pieces.model      the vocabulary (source.model and target.model where not shared)
    data/             the encoded pairs
    encoder/          the weights that the encoder began with, where they came from another model
    checkpoints/      step-N/ …
    metrics.jsonl     a line for each report
    model/            the result; it appears when the run is finished, and not before

A folder `corpus/` may lie beside them: sentences that somebody keeps with their run, as `jumok demo` does.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, RecipeError, RunFolderError
from jumok.recipe import Recipe, differences, make_recipe, write_recipe
from jumok.storage import (
    checked_json,
    disk_errors,
    is_leftover,
    jumok_version,
    read_checked_json,
    remove_leftovers,
    write_file,
)
from jumok.training.derive import Reason
from jumok.training.schedule import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

__all__ = ["RunFolder", "RunRecord"]

FORMAT = 2


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run has decided; everything after follows from it and the data, step by step."""

    recipe: Recipe
    reasons: tuple[Reason, ...]
    plan: Plan
    fingerprint: str
    validation_seconds: float = 0.0
    finish_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of a run folder, and the record in it."""

    path: Path

    @property
    def record_file(self) -> Path:
        return self.path / "run.json"

    @property
    def lock_file(self) -> Path:
        return self.path / "run.lock"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def encoder(self) -> Path:
        return self.path / "encoder"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the folder for this process: two trainings in one folder would each undo the other.

        Folders that are made here go again if the run fails before it has anything to keep.
        """
        self.refuse_foreign()
        made = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        with disk_errors(self.path, "Nothing has been touched."):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self.lock_file.open("w")
        with lock:
            self._take(lock)
            try:
                remove_leftovers(self.path)
                remove_leftovers(self.checkpoints)
                if not self.record_file.exists():
                    self._write({"format": FORMAT})
                yield
            except BaseException:
                self._withdraw(made)
                raise

    def _take(self, lock: TextIO) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have withdrawn: a lock on a file that is gone keeps nobody out.
            taken = os.path.samestat(os.fstat(lock.fileno()), self.lock_file.stat())
        except (BlockingIOError, FileNotFoundError):
            taken = False
        if not taken:
            raise RunFolderError(
                f"Another process is training in {self.path}. Wait for it, or choose another folder."
            )

    def _withdraw(self, made: list[Path]) -> None:
        """Remove these folders, innermost first, if nothing is in them but a lock and an empty record."""
        with suppress(OSError):
            if made and {self.record_file, self.lock_file}.issuperset(self.path.iterdir()):
                self.record_file.unlink(missing_ok=True)
                self.lock_file.unlink()  # last: from here on others may come in
                for folder in made:
                    folder.rmdir()

    def refuse_foreign(self) -> None:
        """Raise where the folder holds what no run of jumok has put there."""
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(
                f"{self.path} is a file. A run needs a folder: choose another name with --out."
            )
        if not self.path.exists() or self.record_file.exists():
            return
        others = sorted(path.name for path in self.path.iterdir() if path != self.lock_file)
        others = [name for name in others if not is_leftover(name) and name != "corpus"]
        if others:
            raise RunFolderError(
                f"{self.path} is not empty and is not a run of jumok. Received: {', '.join(others[:5])}. "
                "Choose another folder, or an empty one."
            )

    def record(self) -> RunRecord | None:
        """What was decided, or None if the run never came so far."""
        try:
            content = read_checked_json(self.record_file)
            if content["format"] > FORMAT:
                raise RunFolderError(
                    f"{self.path} was made by a newer jumok. Received format {content['format']}; this one "
                    f"reads up to {FORMAT}. Install a newer jumok: pip install -U jumok."
                )
            if "recipe" not in content:
                return None
            if content["format"] < FORMAT:
                raise RunFolderError(
                    f"The run in {self.path} was started by an older jumok, whose record does not say all "
                    f"that was decided. Received format {content['format']}; this one continues {FORMAT}. "
                    "Start a new run in another folder."
                )
            return _record_from_json(content)
        except (ModelFolderError, RecipeError, KeyError, TypeError) as error:
            raise RunFolderError(
                f"The run in {self.path} cannot be continued: {error} Start a new run in another folder."
            ) from None

    def write_record(self, record: RunRecord) -> None:
        """Store the decisions. The record comes last: a folder that has one has all that it speaks of."""
        write_file(self.path / "recipe.toml", write_recipe(record.recipe).encode())
        self._write(
            {
                "format": FORMAT,
                "created_by": jumok_version(),
                "fingerprint": record.fingerprint,
                "plan": record.plan.revisions,
                "validation_seconds": record.validation_seconds,
                "finish_seconds": record.finish_seconds,
                "reasons": [
                    {"setting": reason.setting, "value": reason.value, "why": reason.why}
                    for reason in record.reasons
                ],
                "recipe": record.recipe.model_dump(mode="json", exclude_none=True),
            }
        )

    def _write(self, content: dict[str, Any]) -> None:
        write_file(self.record_file, checked_json(content))

    def refuse_other_settings(self, asked: Recipe, record: RunRecord) -> None:
        """A run is continued with the settings that it was started with, or not at all."""
        changed = [
            (name, new, old)
            for name, new, old in differences(asked, record.recipe)
            if (name, new) != ("model.size", "auto")
        ]
        if changed:
            lines = "\n".join(f"  {name}: asked {new!r}, the run has {old!r}" for name, new, old in changed)
            raise RunFolderError(
                f"{self.path} holds a run with other settings:\n{lines}\n"
                "Its schedule was laid out with those, so they cannot change half-way. Leave them out to "
                "continue the run, or choose another folder for a new one."
            )

    def refuse_other_sentences(self, fingerprint: str, record: RunRecord) -> None:
        """A run is continued on the sentences that it was started on, or not at all."""
        if fingerprint != record.fingerprint:
            raise RunFolderError(
                f"{self.path} holds a run on other sentences. Received a corpus with fingerprint "
                f"{fingerprint[:12]}; the run was started with {record.fingerprint[:12]}. Give the same "
                "files to continue the run, or choose another folder for a new one."
            )


def _record_from_json(content: dict[str, Any]) -> RunRecord:
    return RunRecord(
        recipe=make_recipe(content["recipe"]),
        reasons=tuple(Reason(**reason) for reason in content["reasons"]),
        plan=Plan(tuple((step, total) for step, total in content["plan"])),
        fingerprint=content["fingerprint"],
        validation_seconds=content["validation_seconds"],
        finish_seconds=content["finish_seconds"],
    )
