"""Checkpoints: `checkpoints/step-N/`, each written atomically.

    weights.safetensors     the weights after N updates
    optimiser.safetensors   Adam's two averages and step count of each parameter
    ema.safetensors         the moving average of the weights, if there is one
    state.json              the step, the time spent, the validations so far, the length of metrics.jsonl
    manifest.json           sha256 and size of each file

No random state is stored, because each step seeds all generators itself (`update.py`). A checkpoint is never
overwritten, since a second checkpoint of the same step would have the same weights. A damaged checkpoint is
renamed if there is an older one that can be read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, RunFolderError
from jumok.storage.folders import remove_folder, verify_folder, write_folder
from jumok.storage.tensors import tensors_from_bytes, tensors_to_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from torch import Tensor

_NAME = re.compile(r"step-(\d+)")
MIN_CHECKPOINTS = 2  # the newest ones, which are always kept


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to continue bit for bit."""

    step: int
    weights: Mapping[str, Tensor]
    optimiser: Mapping[str, Tensor]
    moving_average: Mapping[str, Tensor] | None
    state: Mapping[str, Any]


def saved_steps(folder: Path) -> list[int]:
    """Return the steps of the checkpoints in a folder, oldest first, damaged ones included."""
    if not folder.is_dir():
        return []
    return sorted(int(match[1]) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `folder/step-N` and return its path. If that checkpoint exists, nothing is written."""
    path = folder / f"step-{checkpoint.step}"
    if path.exists():
        return path
    earlier = saved_steps(folder)
    failure_note = (
        f"The checkpoint of step {earlier[-1]} is intact." if earlier else "There is no earlier checkpoint."
    )
    write_folder(path, _files(checkpoint), failure_note=failure_note)
    return path


def _files(checkpoint: Checkpoint) -> Iterator[tuple[str, bytes]]:
    yield "weights.safetensors", tensors_to_bytes(checkpoint.weights)
    yield "optimiser.safetensors", tensors_to_bytes(checkpoint.optimiser)
    if checkpoint.moving_average is not None:
        yield "ema.safetensors", tensors_to_bytes(checkpoint.moving_average)
    yield "state.json", json.dumps({"step": checkpoint.step, **checkpoint.state}, indent=1).encode()


def remove_old_checkpoints(folder: Path, needed: Collection[int]) -> None:
    """Remove all checkpoints except the newest two and those of the steps in `needed`."""
    steps = saved_steps(folder)
    for step in steps[:-MIN_CHECKPOINTS]:
        if step not in needed:
            remove_folder(folder / f"step-{step}")


def load_newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest undamaged checkpoint, and an error message for each damaged checkpoint after it.

    The checkpoint is None if the folder has no checkpoints. If all checkpoints are damaged, a RunFolderError
    is raised, since starting from zero would silently discard the work.
    """
    damage_messages: list[str] = []
    for step in reversed(saved_steps(folder)):
        path = folder / f"step-{step}"
        try:
            checkpoint = _read(path)
        except ModelFolderError as error:
            damage_messages.append(str(error))
            continue
        for later in saved_steps(folder):
            if later > step:
                _rename_damaged(folder / f"step-{later}")
        return checkpoint, damage_messages
    if damage_messages:
        raise RunFolderError(
            f"All {len(damage_messages)} checkpoints in {folder} are damaged:\n  "
            + "\n  ".join(damage_messages)
            + "\nTraining does not restart from zero by itself. Restore the folder, or start a new run in "
            "another folder."
        )
    return None, []


def load_checkpoint_weights(folder: Path, step: int, *, moving_average: bool) -> dict[str, Tensor]:
    """Return the weights of one checkpoint, or their moving average, verified against the manifest."""
    path = folder / f"step-{step}"
    files = verify_folder(path)
    name = "ema.safetensors" if moving_average else "weights.safetensors"
    if name not in files:
        raise ModelFolderError(f"{path} does not list {name}.")
    return tensors_from_bytes(files[name], path / name)


def _read(path: Path) -> Checkpoint:
    files = verify_folder(path)
    missing = {"weights.safetensors", "optimiser.safetensors", "state.json"} - set(files)
    if missing:
        raise ModelFolderError(f"{path} does not list {', '.join(sorted(missing))}.")
    state = json.loads(files["state.json"])
    tensors = {
        name: tensors_from_bytes(data, path / name) for name, data in files.items() if name != "state.json"
    }
    return Checkpoint(
        step=int(state.pop("step")),
        weights=tensors["weights.safetensors"],
        optimiser=tensors["optimiser.safetensors"],
        moving_average=tensors.get("ema.safetensors"),
        state=state,
    )


def _rename_damaged(path: Path) -> None:
    """Rename a damaged checkpoint to `step-N.damaged`, which nothing reads; the user can inspect it."""
    new_path = path.with_name(f"{path.name}.damaged")
    if new_path.exists():
        remove_folder(new_path)
    path.rename(new_path)
