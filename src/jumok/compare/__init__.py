"""A fair comparison: models trained on the same pairs with the same budget, scored on the same test set."""

from jumok.compare.contenders import Contender, make_contenders
from jumok.compare.race import Entered, Interrupted, race
from jumok.compare.report import draw_report
from jumok.compare.result import CurvePoint, Quarter, Result, Row, collect_result
from jumok.compare.split import Split, middle_sentence, split_pairs
from jumok.compare.table import HEADINGS, as_markdown, row_cells

__all__ = [
    "HEADINGS",
    "Contender",
    "CurvePoint",
    "Entered",
    "Interrupted",
    "Quarter",
    "Result",
    "Row",
    "Split",
    "as_markdown",
    "collect_result",
    "draw_report",
    "make_contenders",
    "middle_sentence",
    "race",
    "row_cells",
    "split_pairs",
]
