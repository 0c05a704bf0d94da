"""A fair comparison: systems trained on the same pairs with the same budget, scored on the same test set."""

from jumok.compare.report import draw_report
from jumok.compare.result import ComparisonResult, CurvePoint, Quarter, Row, collect_result
from jumok.compare.runner import Interrupted, SystemStarted, run_comparison
from jumok.compare.split import Split, median_length_source, split_pairs
from jumok.compare.systems import System, make_systems
from jumok.compare.table import HEADINGS, as_markdown, row_cells

__all__ = [
    "HEADINGS",
    "ComparisonResult",
    "CurvePoint",
    "Interrupted",
    "Quarter",
    "Row",
    "Split",
    "System",
    "SystemStarted",
    "as_markdown",
    "collect_result",
    "draw_report",
    "make_systems",
    "median_length_source",
    "row_cells",
    "run_comparison",
    "split_pairs",
]
