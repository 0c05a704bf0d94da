"""The averaged weights that were chosen at the end of a phase: `average/` of a run folder.

No checkpoint has these weights. If the run is given more training, a checkpoint of a later phase replaces the
model only if it validates better than this average.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError
from jumok.storage.folders import read_manifest, verify_folder, write_folder
from jumok.storage.tensors import tensors_from_bytes, tensors_to_bytes
from jumok.training.loop.state import ValidationRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

_WEIGHTS = "weights.safetensors"


@dataclass(frozen=True, slots=True)
class StoredAverage:
    """A stored average: its folder, its description and its validation."""

    folder: Path
    description: str
    validation: ValidationRecord

    def weights(self) -> dict[str, Tensor]:
        """Read the weights; raise a ModelFolderError if they are damaged."""
        return tensors_from_bytes(verify_folder(self.folder)[_WEIGHTS], self.folder / _WEIGHTS)


def store_average(
    folder: Path, weights: Mapping[str, Tensor], description: str, validation: ValidationRecord
) -> None:
    """Store the average. An average that was stored earlier is replaced."""
    write_folder(
        folder,
        [(_WEIGHTS, tensors_to_bytes(weights))],
        metadata={"description": description, "validation": asdict(validation)},
        failure_note="All checkpoints are intact; the same command finishes the run.",
        replace=True,
    )


def read_average(folder: Path) -> StoredAverage | None:
    """Return the stored average, without reading its weights; None if its manifest is missing or damaged."""
    try:
        content = read_manifest(folder / "manifest.json")
    except ModelFolderError:
        return None
    return StoredAverage(folder, content["description"], ValidationRecord(**content["validation"]))
