"""Table 1 of the paper, measured: one row per layer.

Only the formulas and the orders of operations ("n²·d") and paths ("n/r") are from papers. The orders of the
longest chains and all other numbers are measured. The fields of the dataclasses are the keys of
`jumok bench attention --json`, except that the key of `PathLength.sequence_length` is "places".
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from jumok.attention.chunks import CHUNK_POSITIONS
from jumok.errors import RecipeError
from jumok.profiling.cost import count_cost, fit_exponent, time_in_turns
from jumok.profiling.layers import PROFILED_LAYERS, Shape, dilated_stack
from jumok.profiling.paths import influence, path_length
from jumok.profiling.scaling import compare_widths, softmax_examples
from jumok.system.processes import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from jumok.profiling.cost import PassCost
    from jumok.profiling.layers import ProfiledLayer

MIN_TOKENS = 16
# Paths do not depend on the width, and are measured in narrow layers over a short sequence.
PATH_SHAPE = Shape(heads=2, width=8, neighbours=8)
PATH_SEQUENCE_LENGTH = 64
# Chains do not depend on the width either. Each length is twice the previous length. If a chain is
# proportional to n, its second increment is therefore twice the first. Every length has several chunks, so
# that the fixed number of operations for merging chunks is part of all three chains.
CHAIN_LENGTHS = tuple(CHUNK_POSITIONS * factor * 9 // 8 for factor in (1, 2, 4))


@dataclass(frozen=True, slots=True)
class Operations:
    """Multiply-adds: the paper's order, the numbers by its formula, and the numbers counted in a run."""

    order: str
    formula: dict[int, int]
    counted: dict[int, int]


@dataclass(frozen=True, slots=True)
class Sequential:
    """The longest chain of operations: the measured order of growth ("1", "log n", "n"), and the lengths."""

    order: str
    chain: dict[int, int]


@dataclass(frozen=True, slots=True)
class PathLength:
    """The number of layers from the first position to the last: the paper's order, and as measured."""

    order: str
    sequence_length: int  # the JSON key is "places"
    layers: int | None  # None: the first position does not reach the last


@dataclass(frozen=True, slots=True)
class Row:
    """The costs of one layer. The keys of the dictionaries are sequence lengths."""

    time_exponent: float
    memory_exponent: float
    seconds: dict[int, float]
    peak_bytes: dict[int, int]  # without the inputs
    operations: Operations
    sequential: Sequential
    path: PathLength


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    threads: int
    torch: str
    memory_kept: bool
    """Whether the process kept freed memory, so that no run waited for new pages."""


@dataclass(frozen=True, slots=True)
class Table:
    shape: Shape
    path_shape: Shape
    """The sizes of the layers used to measure paths."""
    sizes: list[int]
    """The lengths of the sequences, in tokens."""
    mechanisms: dict[str, Row]
    dilated: PathLength
    """The path through a stack of convolutions with growing dilation."""
    scaling: dict[str, Any]
    machine: Machine

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain dicts for JSON."""
        table = asdict(self)
        for path in (table["dilated"], *(row["path"] for row in table["mechanisms"].values())):
            path["places"] = path.pop("sequence_length")
        return table


def attention_table(
    sizes: Sequence[int], *, seconds: float, shape: Shape | None = None, memory_kept: bool = False
) -> Table:
    """Measure every layer on sequences of these sizes, timing for about `seconds` in total.

    `memory_kept` is only reported: call `keep_freed_memory` first if the process may keep freed memory.
    """
    lengths, shape = check_sizes(sizes), shape or Shape()
    runs = _runs(lengths, shape)
    # Counting is also the warm-up for timing.
    costs = {key: count_cost(run) for key, run in runs.items()}
    medians = time_in_turns(runs, seconds=seconds)
    rows = {
        name: _row(
            layer,
            shape,
            {size: medians[name, size] for size in lengths},
            {size: costs[name, size] for size in lengths},
        )
        for name, layer in PROFILED_LAYERS.items()
    }
    scaling = {
        "dot_products": [asdict(scaling) for scaling in compare_widths()],
        "softmax": softmax_examples(),
    }
    return Table(shape, PATH_SHAPE, lengths, rows, _dilated_path(), scaling, _machine(memory_kept))


def check_sizes(sizes: Sequence[int]) -> list[int]:
    """Return the distinct sizes in order; raise unless there are two, each of at least `MIN_TOKENS`."""
    distinct = sorted(set(sizes))
    if len(distinct) < 2 or distinct[0] < MIN_TOKENS:
        raise RecipeError(
            f"Fitting an exponent needs two or more sizes, each of at least {MIN_TOKENS} tokens. "
            f"Received: {', '.join(map(str, sizes)) or 'none'}. Give several, such as 1024,2048,4096."
        )
    return distinct


def _runs(sizes: list[int], shape: Shape) -> dict[tuple[str, int], Callable[[], Tensor]]:
    """Return (layer name, size) → function that runs a forward pass. Functions of one size are adjacent."""
    layers = {name: layer.build(shape) for name, layer in PROFILED_LAYERS.items()}
    runs: dict[tuple[str, int], Callable[[], Tensor]] = {}
    for size in sizes:
        states = {one_head: shape.states(size, one_head=one_head) for one_head in (False, True)}
        for name, layer in PROFILED_LAYERS.items():
            runs[name, size] = partial(layers[name], states[layer.one_head])
    return runs


def _row(layer: ProfiledLayer, shape: Shape, seconds: dict[int, float], costs: dict[int, PassCost]) -> Row:
    peaks = {size: cost.peak_bytes for size, cost in costs.items()}
    chains = {size: cost.longest_chain for size, cost in costs.items()}
    return Row(
        time_exponent=fit_exponent(seconds),
        memory_exponent=fit_exponent(peaks),
        seconds=seconds,
        peak_bytes=peaks,
        operations=Operations(
            layer.operations_order,
            formula={size: layer.multiply_adds(shape, size) for size in costs},
            counted={size: cost.multiply_adds for size, cost in costs.items()},
        ),
        sequential=Sequential(_chain_order(layer), chains),
        path=_path(layer),
    )


def _chain_order(layer: ProfiledLayer) -> str:
    narrow_layer = layer.build(PATH_SHAPE)
    return growth_order(
        [
            count_cost(
                partial(narrow_layer, PATH_SHAPE.states(length, one_head=layer.one_head))
            ).longest_chain
            for length in CHAIN_LENGTHS
        ]
    )


def growth_order(amounts: Sequence[int]) -> str:
    """Return how three amounts, for n, 2n and 4n, grow.

    "1" means that the last two are equal, "n" that the second increment is about twice the first, and "log n"
    that the second increment is smaller than for "n".
    """
    shortest, middle, longest = amounts
    if longest == middle:
        return "1"
    return "n" if longest - middle > 1.5 * (middle - shortest) else "log n"


def _path(layer: ProfiledLayer) -> PathLength:
    states = PATH_SHAPE.states(PATH_SEQUENCE_LENGTH, one_head=layer.one_head)
    layer_influence = influence(layer.build(PATH_SHAPE, one_step=True), states)
    return PathLength(layer.path_order, PATH_SEQUENCE_LENGTH, path_length(itertools.repeat(layer_influence)))


def _dilated_path() -> PathLength:
    states = PATH_SHAPE.states(PATH_SEQUENCE_LENGTH, one_head=True)
    layers = dilated_stack(PATH_SHAPE, PATH_SEQUENCE_LENGTH)
    return PathLength(
        "log_k n", PATH_SEQUENCE_LENGTH, path_length(influence(layer, states) for layer in layers)
    )


def _machine(memory_kept: bool) -> Machine:
    return Machine(available_cores(), torch.get_num_threads(), str(torch.__version__), memory_kept)
