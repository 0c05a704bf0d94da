"""What attention costs, measured: table 1 of "Attention is all you need", and why it divides by √d.

`jumok bench attention` prints what `attention_table` gives.
"""

from jumok.bench.cost import Trace, Traced, fit_exponent, keep_memory, race, trace
from jumok.bench.layers import CONTENDERS, Contender, Layer, Shape, dilated_convolution, dilated_stack
from jumok.bench.paths import influence, longest_path
from jumok.bench.scaling import Scaling, softmax_examples, widths_compared
from jumok.bench.table import Machine, Operations, Path, Row, Sequential, Table, attention_table, check_sizes

__all__ = [
    "CONTENDERS",
    "Contender",
    "Layer",
    "Machine",
    "Operations",
    "Path",
    "Row",
    "Scaling",
    "Sequential",
    "Shape",
    "Table",
    "Trace",
    "Traced",
    "attention_table",
    "check_sizes",
    "dilated_convolution",
    "dilated_stack",
    "fit_exponent",
    "influence",
    "keep_memory",
    "longest_path",
    "race",
    "softmax_examples",
    "trace",
    "widths_compared",
]
