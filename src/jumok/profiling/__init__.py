"""The measured cost of attention: table 1 of "Attention is all you need", and why it divides by √d.

`jumok bench attention` prints the result of `attention_table`.
"""

from jumok.profiling.cost import (
    OperationCounter,
    PassCost,
    count_cost,
    fit_exponent,
    keep_memory,
    time_in_turns,
)
from jumok.profiling.layers import (
    PROFILED_LAYERS,
    Layer,
    ProfiledLayer,
    Shape,
    dilated_convolution,
    dilated_stack,
)
from jumok.profiling.paths import influence, path_length
from jumok.profiling.scaling import Scaling, compare_widths, softmax_examples
from jumok.profiling.table import (
    Machine,
    Operations,
    PathLength,
    Row,
    Sequential,
    Table,
    attention_table,
    check_sizes,
)

__all__ = [
    "PROFILED_LAYERS",
    "Layer",
    "Machine",
    "OperationCounter",
    "Operations",
    "PassCost",
    "PathLength",
    "ProfiledLayer",
    "Row",
    "Scaling",
    "Sequential",
    "Shape",
    "Table",
    "attention_table",
    "check_sizes",
    "compare_widths",
    "count_cost",
    "dilated_convolution",
    "dilated_stack",
    "fit_exponent",
    "influence",
    "keep_memory",
    "path_length",
    "softmax_examples",
    "time_in_turns",
]
