"""The computation of one attention weight, step by step, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jumok.errors import DataError, suggest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Cell:
    """One weight of a map, by site, layer, head, query and key; indices count from 0."""

    site: str
    layer: int
    head: int
    query: int
    key: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name, its formula, and its values.

    `over` says what the values are: the elements of a vector ("width"), one value per key ("keys"), one value
    per cell of the head's map ("cells"), or a single number ("number").
    """

    name: str
    formula: str
    values: NDArray[np.float32]  # (width,), (key,), (query, key) or ()
    over: Literal["width", "keys", "cells", "number"] = "width"


@dataclass(frozen=True, slots=True)
class CellSteps:
    """All steps of a cell, in the order of computation."""

    cell: Cell
    steps: tuple[Step, ...]

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Return the values of the step with this name."""
        for step in self.steps:
            if step.name == name:
                return step.values
        known = [step.name for step in self.steps]
        raise DataError(
            f'There is no step "{name}" here.{suggest(name, known)} There are: {", ".join(known)}.'
        )

    def __contains__(self, name: object) -> bool:
        return any(step.name == name for step in self.steps)
