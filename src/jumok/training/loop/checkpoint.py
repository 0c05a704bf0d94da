"""Checkpoints: `checkpoints/step-N/`, each written whole or not at all.

    weights.safetensors     the weights after N updates
    optimiser.safetensors   Adam's two averages and its count
    ema.safetensors         the moving average of the weights, where there is one
    state.json              the step, the time spent, the validations so far, the length of metrics.jsonl
    manifest.json           sha256 and size of each of them

No random state is stored: step N+1 draws all of it from (seed, N+1). A checkpoint of a step is never
replaced by another of the same step, since both would hold the same weights; only a damaged one is moved
away.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, RunFolderError
from jumok.storage import remove_folder, tensors_from_bytes, tensors_to_bytes, verify_folder, write_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from torch import Tensor

__all__ = ["Checkpoint", "load_newest", "remove_old", "save_checkpoint", "saved_steps", "stored_weights"]

_NAME = re.compile(r"step-(\d+)")
FEWEST_KEPT = 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to go on as if nothing had happened."""

    step: int
    weights: Mapping[str, Tensor]
    optimiser: Mapping[str, Tensor]
    moving_average: Mapping[str, Tensor] | None
    state: Mapping[str, Any]


def saved_steps(folder: Path) -> list[int]:
    """The steps of the checkpoints in a folder, oldest first, whole or not."""
    if not folder.is_dir():
        return []
    return sorted(int(found[1]) for path in folder.iterdir() if (found := _NAME.fullmatch(path.name)))


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `folder/step-N`. If it stands there already it holds the same weights, and is left alone."""
    path = folder / f"step-{checkpoint.step}"
    if path.exists():
        return path
    earlier = saved_steps(folder)
    kept = (
        f"The checkpoint of step {earlier[-1]} is intact." if earlier else "There is no earlier checkpoint."
    )
    write_folder(path, _files(checkpoint), intact=kept)
    return path


def _files(checkpoint: Checkpoint) -> Iterator[tuple[str, bytes]]:
    yield "weights.safetensors", tensors_to_bytes(checkpoint.weights)
    yield "optimiser.safetensors", tensors_to_bytes(checkpoint.optimiser)
    if checkpoint.moving_average is not None:
        yield "ema.safetensors", tensors_to_bytes(checkpoint.moving_average)
    yield "state.json", json.dumps({"step": checkpoint.step, **checkpoint.state}, indent=1).encode()


def remove_old(folder: Path, needed: Collection[int]) -> None:
    """Remove all checkpoints but the newest two and those whose step is needed."""
    steps = saved_steps(folder)
    for step in steps[:-FEWEST_KEPT]:
        if step not in needed:
            remove_folder(folder / f"step-{step}")


def load_newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest whole checkpoint, and a sentence for each newer one that is damaged.

    None only if there has never been one: where checkpoints exist but none is whole, starting again from zero
    would throw away somebody's work without a word, so that is an error.
    """
    damaged: list[str] = []
    for step in reversed(saved_steps(folder)):
        path = folder / f"step-{step}"
        try:
            checkpoint = _read(path)
        except ModelFolderError as error:
            damaged.append(str(error))
            continue
        for later in saved_steps(folder):
            if later > step:
                _move_away(folder / f"step-{later}")
        return checkpoint, damaged
    if damaged:
        raise RunFolderError(
            f"None of the {len(damaged)} checkpoints in {folder} is whole:\n  " + "\n  ".join(damaged) + "\n"
            "Training does not start again from zero by itself. Restore the folder, or start a run elsewhere."
        )
    return None, []


def stored_weights(folder: Path, step: int, *, moving_average: bool) -> dict[str, Tensor]:
    """The weights of one checkpoint, or their moving average, verified."""
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


def _move_away(path: Path) -> None:
    """Keep a damaged checkpoint for whoever wants to look at it, under a name that nothing reads."""
    away = path.with_name(f"{path.name}.damaged")
    if away.exists():
        remove_folder(away)
    path.rename(away)
