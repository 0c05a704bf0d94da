"""The table: a row for each contender, all of it measured on the spot.

Only the orders ("n²·d", "n/r") are the paper's words, to be compared with the numbers beside them.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from jumok.bench.cost import fit_exponent, race, trace
from jumok.bench.layers import CONTENDERS, Shape, dilated_stack
from jumok.bench.paths import influence, longest_path
from jumok.bench.scaling import softmax_examples, widths_compared
from jumok.errors import RecipeError
from jumok.processes import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from jumok.bench.cost import Traced
    from jumok.bench.layers import Contender

__all__ = ["Machine", "Operations", "Path", "Row", "Sequential", "Table", "attention_table", "check_sizes"]

FEWEST_PLACES = 16
# Paths do not depend on the width, and are measured in narrow layers over few places.
PATH_PLACES = 64
PATH_SHAPE = Shape(heads=2, width=8, neighbours=8)


@dataclass(frozen=True, slots=True)
class Operations:
    """Products with their additions: in the paper's words, by the formula, and as counted while it ran."""

    order: str
    formula: dict[int, int]
    counted: dict[int, int]


@dataclass(frozen=True, slots=True)
class Sequential:
    """Whether the longest chain of operations grows with the sequence ("n") or not ("1"), and the chains."""

    order: str
    chain: dict[int, int]


@dataclass(frozen=True, slots=True)
class Path:
    """The layers from the first place to the last: in the paper's words, and as found with so many places."""

    order: str
    places: int
    layers: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One contender. What depends on the number of places stands under that number."""

    time_exponent: float
    memory_exponent: float
    seconds: dict[int, float]
    peak_bytes: dict[int, int]  # the most that was held at a time, beside the states that were given
    operations: Operations
    sequential: Sequential
    path: Path


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    threads: int
    torch: str
    memory_kept: bool
    """Whether freed memory stayed with the process, so that no run waited for new pages."""


@dataclass(frozen=True, slots=True)
class Table:
    shape: Shape
    path_shape: Shape
    """What the layers were that paths were measured in."""
    sizes: list[int]
    mechanisms: dict[str, Row]
    dilated: Path
    """The path through convolutions whose dilation grows from layer to layer."""
    scaling: dict[str, Any]
    machine: Machine

    def facts(self) -> dict[str, Any]:
        """The table as plain dicts, ready for JSON."""
        return asdict(self)


def attention_table(
    sizes: Sequence[int], *, seconds: float, shape: Shape | None = None, memory_kept: bool = False
) -> Table:
    """Measure every contender on sequences of these sizes, with about so many seconds for the clock.

    `memory_kept` is noted in the table: call `keep_memory` before, where the process may keep what it frees.
    """
    tokens, shape = check_sizes(sizes), shape or Shape()
    runs = _runs(tokens, shape)
    # Counting is the warm-up, too.
    traced = {key: trace(run) for key, run in runs.items()}
    taken = race(runs, seconds=seconds)
    rows = {
        name: _row(
            contender,
            shape,
            {size: taken[name, size] for size in tokens},
            {size: traced[name, size] for size in tokens},
        )
        for name, contender in CONTENDERS.items()
    }
    scaling = {
        "dot_products": [asdict(scaling) for scaling in widths_compared()],
        "softmax": softmax_examples(),
    }
    return Table(shape, PATH_SHAPE, tokens, rows, _dilated_path(), scaling, _machine(memory_kept))


def check_sizes(sizes: Sequence[int]) -> list[int]:
    """The sizes in order, each once, if an exponent can be fitted through them."""
    distinct = sorted(set(sizes))
    if len(distinct) < 2 or distinct[0] < FEWEST_PLACES:
        raise RecipeError(
            f"An exponent is fitted through two or more sizes, each of at least {FEWEST_PLACES} tokens. "
            f"Received: {', '.join(map(str, sizes)) or 'none'}. Give several, such as 1024,2048,4096."
        )
    return distinct


def _runs(sizes: list[int], shape: Shape) -> dict[tuple[str, int], Callable[[], Tensor]]:
    """A forward pass of every contender over every size; the contenders of one size stand together."""
    layers = {name: contender.build(shape) for name, contender in CONTENDERS.items()}
    runs: dict[tuple[str, int], Callable[[], Tensor]] = {}
    for size in sizes:
        states = {one_head: shape.states(size, one_head=one_head) for one_head in (False, True)}
        for name, contender in CONTENDERS.items():
            runs[name, size] = partial(layers[name], states[contender.one_head])
    return runs


def _row(contender: Contender, shape: Shape, seconds: dict[int, float], traced: dict[int, Traced]) -> Row:
    peaks = {size: each.peak_bytes for size, each in traced.items()}
    chains = {size: each.longest_chain for size, each in traced.items()}
    return Row(
        time_exponent=fit_exponent(seconds),
        memory_exponent=fit_exponent(peaks),
        seconds=seconds,
        peak_bytes=peaks,
        operations=Operations(
            contender.operations,
            formula={size: contender.multiply_adds(shape, size) for size in traced},
            counted={size: each.multiply_adds for size, each in traced.items()},
        ),
        sequential=Sequential("n" if chains[max(chains)] > chains[min(chains)] else "1", chains),
        path=_path(contender),
    )


def _path(contender: Contender) -> Path:
    states = PATH_SHAPE.states(PATH_PLACES, one_head=contender.one_head)
    influenced = influence(contender.build(PATH_SHAPE, hop=True), states)
    return Path(contender.path, PATH_PLACES, longest_path(itertools.repeat(influenced)))


def _dilated_path() -> Path:
    states = PATH_SHAPE.states(PATH_PLACES, one_head=True)
    layers = dilated_stack(PATH_SHAPE, PATH_PLACES)
    return Path("log_k n", PATH_PLACES, longest_path(influence(layer, states) for layer in layers))


def _machine(memory_kept: bool) -> Machine:
    return Machine(available_cores(), torch.get_num_threads(), str(torch.__version__), memory_kept)
