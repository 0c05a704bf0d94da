"""The comparison as one HTML page: table, learning curves, BLEU by length, attention side by side.

The page loads no other file: no script, no style sheet, no font. It follows the reader's choice of light or
dark.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from jumok.compare.table import HEADINGS, length_label, notes, row_cells
from jumok.plots.charts import NUM_COLOURS, Series, bar_chart, line_chart
from jumok.plots.heat_map import FONTS, draw_alignment
from jumok.plots.text_width import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.compare.result import ComparisonResult, Row
    from jumok.types import AttentionMap

LIGHT = ("#1f6fb4", "#c2541b", "#2a8a4a", "#8a4fb0", "#94760f", "#b8366f", "#2b7f8b", "#666666")
DARK = ("#6db3f2", "#f2955e", "#6fcf8e", "#c79af0", "#e0c25a", "#f086b4", "#74cdd8", "#b5b5b5")
NO_MAP = "There is no map: the model has no cross-attention, or its source is a picture."
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'  # not needed for SVG inside HTML

STYLE = f"""
:root {{ color-scheme: light dark; --paper: #ffffff; --ink: #1c1d21; --faded: #5c5d63; --rule: #dedbd3; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #17181b; --ink: #ececec; --faded: #a3a4aa; --rule: #3a3b40; }}
}}
body {{ margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 {FONTS}; }}
h1, h2 {{ font-weight: 600; line-height: 1.2; }}
h2 {{ margin-top: 2.5rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.3rem 0.8rem; border-bottom: 1px solid var(--rule); text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ color: var(--faded); font-weight: 500; vertical-align: bottom; }}
li, figcaption {{ color: var(--faded); }}
.row {{ display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }}
figure {{ margin: 0; max-width: 100%; overflow-x: auto; }}
svg {{ max-width: 100%; height: auto; }}
.chart text {{ fill: var(--faded); }}
.chart .grid {{ stroke: var(--rule); }}
.chart .line {{ fill: none; stroke: var(--colour); stroke-width: 2; }}
.chart .bar, .chart .dot {{ fill: var(--colour); }}
"""


def draw_report(result: ComparisonResult) -> str:
    """Return the page as HTML."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: ComparisonResult) -> Iterator[str]:
    title = "Comparison: " + ", ".join(printable(row.name) for row in result.rows)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{STYLE}{_colours()}</style>\n</head>\n<body>"
    yield f"<h1>{escape(title)}</h1>"
    yield from _table(result)
    yield from _curves(result.rows)
    yield from _lengths(result)
    yield from _attention(result)
    yield "</body>\n</html>"


def _colours() -> str:
    def rules(colours: Sequence[str]) -> str:
        return " ".join(
            f".series-{number} {{ --colour: {colours[number]}; }}" for number in range(NUM_COLOURS)
        )

    return f"{rules(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {rules(DARK)} }}\n"


def _table(result: ComparisonResult) -> Iterator[str]:
    yield '<div class="wide"><table>'
    yield f"<thead><tr>{''.join(f'<th>{escape(heading)}</th>' for heading in HEADINGS)}</tr></thead>"
    yield "<tbody>"
    for row in result.rows:
        yield f"<tr>{''.join(f'<td>{escape(printable(cell))}</td>' for cell in row_cells(row))}</tr>"
    yield "</tbody></table></div>"
    yield f"<ul>{''.join(f'<li>{escape(printable(note))}</li>' for note in notes(result))}</ul>"


def _curves(rows: Sequence[Row]) -> Iterator[str]:
    """Draw loss and BLEU over time if every validation has a time, else over steps."""
    has_times = all(point.seconds is not None for row in rows for point in row.curve)
    x_axis = "seconds" if has_times else "steps"
    yield f'<h2>Learning curves</h2>\n<p>On the validation set, over {x_axis}.</p>\n<div class="row">'
    for name, title in (("loss", "Loss per token"), ("bleu", "BLEU, greedy")):
        series = [
            Series(
                row.name,
                tuple(
                    (
                        point.step if point.seconds is None or not has_times else point.seconds,
                        getattr(point, name),
                    )
                    for point in row.curve
                ),
            )
            for row in rows
        ]
        chart = line_chart(series, title=f"{title}, over {x_axis}", x_label=x_axis)
        yield f"<figure><figcaption>{title}</figcaption>\n{chart}\n</figure>"
    yield "</div>"


def _lengths(result: ComparisonResult) -> Iterator[str]:
    labels = [length_label(quarter) for quarter in result.quarters]
    series = [Series(row.name, tuple(enumerate(row.bleu_by_length))) for row in result.rows]
    yield "<h2>BLEU by source length</h2>"
    yield "<p>The test sentences from the shortest sources to the longest, in up to four parts.</p>"
    yield f"<figure>\n{bar_chart(series, labels, title='BLEU by source length')}\n</figure>"


def _attention(result: ComparisonResult) -> Iterator[str]:
    yield "<h2>Attention</h2>"
    yield f"<p>{escape(printable(result.sentence))}</p>"
    yield "<p>Each system on its own translation; all maps have the same colour scale.</p>"
    yield '<div class="row">'
    maps = [row.attention for row in result.rows if row.attention is not None]
    largest = max((_largest_weight(attention) for attention in maps), default=1.0)
    for row in result.rows:
        if row.attention is None:
            drawing = f"<p>{NO_MAP}</p>"
        else:
            drawing = draw_alignment(row.attention, title=row.name, min_scale=largest).replace(_NAMESPACE, "")
        caption = escape(f"{printable(row.name)}: {printable(row.translation)}")
        yield f"<figure><figcaption>{caption}</figcaption>\n{drawing}</figure>"
    yield "</div>"


def _largest_weight(attention: AttentionMap) -> float:
    """Return the largest finite weight, but at least 1; some mechanisms have weights above 1."""
    return max(1.0, float(np.nan_to_num(attention.weights, nan=0.0, posinf=1.0).max(initial=1.0)))
