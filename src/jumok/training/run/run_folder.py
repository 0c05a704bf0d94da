"""The run folder: its files, its lock, and the record that a resumed run must match.

    run.json          the decisions before the first step: recipe, reasons, plan, fingerprint of the data
    run.lock          locked while a process trains in the folder
    recipe.toml       the recipe again, for people
    pieces.model      the vocabulary (source.model and target.model if it is not shared)
    data/             the encoded pairs
    validation.jsonl  the validation pairs
    sources.json      names, sizes and times of the files of a large corpus: a resumed run does not read
                      unchanged files again
    encoder/          the initial weights of a pretrained encoder
    start/            the start model of a fine-tuned model: weights, card, old pairs
    checkpoints/      step-N/ …
    average/          the averaged weights that the finish of a phase chose
    metrics.jsonl     one line per report or validation
    tensorboard/      the curves, if requested
    model/            the best model so far, from the first validation on; the result when the run is finished

There may also be a folder `corpus/` with the sentences of the run; `jumok demo` writes one.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.recipe import Recipe, make_stored_recipe, recipe_to_toml
from jumok.config.renamed import current_name
from jumok.config.resolve import DerivedSetting, differences
from jumok.data.alignments import parse_alignment
from jumok.errors import JumokError, ModelFolderError, RecipeError, RunFolderError
from jumok.storage.folders import (
    disk_errors,
    is_leftover,
    json_with_checksum,
    make_folder,
    read_json_with_checksum,
    remove_leftovers,
    write_file,
)
from jumok.storage.model_folder import jumok_version
from jumok.system.locks import NO_LOCKS, acquire_lock
from jumok.training.loop.schedule import Phase, Plan
from jumok.types import Pair, Picture, Region

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filelock import BaseFileLock

    from jumok.config.resolve import Overrides

FORMAT = 2
LIMIT_SETTINGS = ("training.steps", "training.epochs", "training.minutes")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The decisions of a run. They and the data determine every step."""

    recipe: Recipe
    derived_settings: tuple[DerivedSetting, ...]
    plan: Plan
    fingerprint: str
    update_seconds: float = 1.0  # costs, as in `config.derive.TrainingCosts`
    validation_seconds: float = 0.0
    finish_seconds: float = 0.0
    order: str | None = None  # of the batches (`PairStore.order`); None: an older jumok did not record it
    end_reason: str = ""  # "done", "patience" or "stopped"; "" if the run has not ended


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths in a run folder, and its record."""

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
    def average(self) -> Path:
        return self.path / "average"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def validation_file(self) -> Path:
        return self.path / "validation.jsonl"

    @property
    def sources_file(self) -> Path:
        """The sizes and times of the files that a large corpus was read from."""
        return self.path / "sources.json"

    @property
    def encoder(self) -> Path:
        return self.path / "encoder"

    @property
    def start(self) -> Path:
        return self.path / "start"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process, since two runs in one folder would overwrite each other's files.

        Folders created here are removed if the run fails before it has stored anything.
        """
        self.check_is_run_folder()
        created = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        with disk_errors(self.path, "Nothing has been touched."):
            make_folder(self.path)
            lock = self._acquire_lock()
        try:
            remove_leftovers(self.path)
            remove_leftovers(self.checkpoints)
            if not self.record_file.exists():
                self._write({"format": FORMAT})
            yield
        except BaseException:
            self._remove_if_empty(created)
            raise
        finally:
            lock.release()

    def _acquire_lock(self) -> BaseFileLock:
        try:
            return acquire_lock(self.lock_file, wait=False)
        except BlockingIOError:
            raise RunFolderError(
                f"Another process is training in {self.path}. Wait for it, or choose another folder."
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            raise RunFolderError(
                f"{self.lock_file} cannot be locked: {error.strerror or error}. Without a lock, two "
                "processes could train in the same folder. Choose a folder on a local disk."
            ) from error

    def _remove_if_empty(self, created: list[Path]) -> None:
        """Remove these folders, innermost first, if they hold only a lock file and an empty record."""
        with suppress(OSError):
            if created and {self.record_file, self.lock_file}.issuperset(self.path.iterdir()):
                self.record_file.unlink(missing_ok=True)
                self.lock_file.unlink()  # last: from here on another process may lock the folder
                for folder in created:
                    folder.rmdir()

    def check_is_run_folder(self) -> None:
        """Raise if the folder has contents that are not from a run of jumok."""
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(
                f"{self.path} is a file. A run needs a folder: choose another name with --out."
            )
        if not self.path.exists() or self.record_file.exists():
            return
        names = sorted(path.name for path in self.path.iterdir() if path != self.lock_file)
        foreign = [name for name in names if not is_leftover(name) and name != "corpus"]
        if foreign:
            raise RunFolderError(
                f"{self.path} is not empty and is not a run of jumok. Received: {', '.join(foreign[:5])}. "
                "Choose another folder, or an empty one."
            )

    def record(self) -> RunRecord | None:
        """Return the record; None if the run was interrupted before its record was written."""
        try:
            content = read_json_with_checksum(self.record_file)
            if content["format"] > FORMAT:
                raise RunFolderError(
                    f"{self.path} was made by a newer jumok. Received format {content['format']}; this one "
                    f"reads up to {FORMAT}. Install a newer jumok: pip install -U jumok."
                )
            if "recipe" not in content:
                return None
            if content["format"] < FORMAT:
                raise RunFolderError(
                    f"The run in {self.path} was started by an older jumok, whose record is incomplete. "
                    f"Received format {content['format']}; this one continues runs of format {FORMAT}. "
                    "Start a new run in another folder."
                )
            # Older versions of jumok did not record the end of a run. They wrote the model only at the end.
            ended = "done" if self.model.exists() else ""
            return _record_from_json({"finished": ended, **content})
        except (ModelFolderError, RecipeError, KeyError, TypeError) as error:
            raise RunFolderError(
                f"The run in {self.path} cannot be continued: {error} Start a new run in another folder."
            ) from None

    def is_finished(self, record: RunRecord | None) -> bool:
        """Whether the run has ended and still has its model. A model that was moved away is made again.

        Without a record, a model alone counts as the end of a run.
        """
        return self.model.exists() and (record is None or record.end_reason != "")

    def mark_finished(self, reason: str) -> None:
        """Store why the run has ended; call this after its model folder is written."""
        record = self.record()
        if record is not None:
            self.write_record(replace(record, end_reason=reason))

    def write_validation_pairs(self, pairs: Sequence[Pair]) -> None:
        """Store the validation pairs, so that `jumok finish` needs no file of the corpus."""
        write_file(self.validation_file, b"".join(_pair_to_line(pair) for pair in pairs))

    def read_validation_pairs(self) -> list[Pair]:
        try:
            lines = self.validation_file.read_bytes().splitlines()
            if not lines:
                raise ValueError("Every run has validation pairs.")
            return [_pair_from_json(json.loads(line)) for line in lines]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, JumokError):
            raise RunFolderError(
                f"{self.validation_file} cannot be read, or an older jumok, which did not write it, started "
                "the run. Repeat the `jumok train` command of this run: it reads the validation pairs from "
                "your files."
            ) from None

    def write_record(self, record: RunRecord) -> None:
        """Store the decisions. `run.json` is written last: if it has a recipe, everything else is stored."""
        write_file(self.path / "recipe.toml", recipe_to_toml(record.recipe).encode())
        self._write(
            {
                "format": FORMAT,
                "created_by": jumok_version(),
                "fingerprint": record.fingerprint,
                "plan": record.plan.revisions,
                "phases": [asdict(phase) for phase in record.plan.phases],
                "update_seconds": record.update_seconds,
                "validation_seconds": record.validation_seconds,
                "finish_seconds": record.finish_seconds,
                **({"order": record.order} if record.order else {}),
                "finished": record.end_reason,
                "reasons": [
                    {"setting": setting.name, "value": setting.value, "why": setting.reason}
                    for setting in record.derived_settings
                ],
                "recipe": record.recipe.model_dump(mode="json", exclude_none=True),
            }
        )

    def _write(self, content: dict[str, Any]) -> None:
        write_file(self.record_file, json_with_checksum(content))

    def check_same_settings(self, overrides: Overrides, record: RunRecord) -> None:
        """Raise if an override differs from the settings that the run was started with.

        Limits may differ: a run can be given more steps, epochs or minutes (`more_training.py`).
        """
        changed = [
            (name, new, old)
            for name, new, old in differences(overrides, record.recipe)
            # With `training.shares`, the weights do not depend on the number of processes.
            if not (name == "training.processes" and record.recipe.training.shares)
            and name not in LIMIT_SETTINGS
            and not (name == "text.vocab_size" and _is_requested_size(new, record))
        ]
        if changed:
            lines = "\n".join(
                f"  {name}: received {new!r}, the run has {old!r}" for name, new, old in changed
            )
            raise RunFolderError(
                f"{self.path} holds a run with other settings:\n{lines}\n"
                "A run cannot change them half-way. Leave them out to continue the run, or choose another "
                "folder for a new one."
            )

    def check_same_sentences(self, fingerprint: str, record: RunRecord) -> None:
        """Raise if the sentences differ from those that the run was started on."""
        if fingerprint != record.fingerprint:
            raise RunFolderError(
                f"{self.path} holds a run on other sentences. Received a corpus with fingerprint "
                f"{fingerprint[:12]}; the run was started with {record.fingerprint[:12]}. Give the same "
                "files to continue the run, or choose another folder for a new one."
            )


def smaller_vocab_reason(requested: int) -> str:
    """Return why a vocabulary is smaller than requested."""
    return f"{requested:,} were requested, but the text has no more"


def _is_requested_size(vocab_size: int, record: RunRecord) -> bool:
    """Return whether the run was started with this vocabulary size although the text has fewer tokens."""
    why = smaller_vocab_reason(vocab_size)
    return any(
        (setting.name, setting.reason) == ("text.vocab_size", why) for setting in record.derived_settings
    )


def _record_from_json(content: dict[str, Any]) -> RunRecord:
    return RunRecord(
        recipe=make_stored_recipe(content["recipe"]),
        derived_settings=tuple(
            DerivedSetting(current_name(stored["setting"]), stored["value"], stored["why"])
            for stored in content["reasons"]
        ),
        plan=Plan(
            tuple((step, total) for step, total in content["plan"]),
            tuple(Phase(**phase) for phase in content.get("phases", [])),
        ),
        fingerprint=content["fingerprint"],
        update_seconds=content.get("update_seconds", 1.0),
        validation_seconds=content["validation_seconds"],
        finish_seconds=content["finish_seconds"],
        order=content.get("order"),
        end_reason=content["finished"],
    )


def _pair_to_line(pair: Pair) -> bytes:
    content: dict[str, Any] = {"source": pair.source, "target": pair.target}
    if pair.alignment is not None:
        content["alignment"] = str(pair.alignment)
    if pair.picture is not None:
        content["source"] = str(Path(pair.source).absolute())
        content["picture"] = asdict(pair.picture)
    return json.dumps(content).encode() + b"\n"


def _pair_from_json(content: dict[str, Any]) -> Pair:
    alignment, picture = content.get("alignment"), content.get("picture")
    return Pair(
        content["source"],
        content["target"],
        None if alignment is None else parse_alignment(alignment),
        None
        if picture is None
        else Picture(picture["digest"], tuple(Region(**region) for region in picture["regions"])),
    )
