"""How one number of an attention map comes to be: its steps, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jumok.errors import DataError, nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Cell", "CellSteps", "Step"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a map: a site, a layer and a head of it, a query and a key, all counted from 0."""

    site: str
    layer: int
    head: int
    query: int
    key: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name, its formula, and its numbers.

    `over` tells what the numbers run over: the width of a vector, the keys of the query's row, all cells of
    the head's map, or nothing, where it is one number.
    """

    name: str
    formula: str
    values: NDArray[np.float32]  # (width,), (key,), (query, key) or ()
    over: Literal["width", "keys", "cells", "number"] = "width"


@dataclass(frozen=True, slots=True)
class CellSteps:
    """All steps of a cell, in the order in which they are computed."""

    cell: Cell
    steps: tuple[Step, ...]

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """The numbers of the step of that name."""
        for step in self.steps:
            if step.name == name:
                return step.values
        known = [step.name for step in self.steps]
        raise DataError(
            f'There is no step "{name}" here.{nearest(name, known)} There are: {", ".join(known)}.'
        )

    def __contains__(self, name: object) -> bool:
        return any(step.name == name for step in self.steps)
