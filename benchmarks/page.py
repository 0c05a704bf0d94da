"""Results as tables: in a terminal, in docs/performance.md and in docs/quality.md, and on their Korean pages.

On these pages, a pair of comments marks the section of each topic: `<!-- results: TOPIC -->` and `<!-- end of
results -->`. `python -m benchmarks.page` replaces the text between them by the tables of results/TOPIC.json,
so no figure there is typed by hand. A Korean page has the same tables, in English.
"""

from __future__ import annotations

import json
import re
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["as_markdown", "as_text", "fill_page", "write_pages"]

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
PAGES = tuple(
    PAGE.with_name(f"{name}{language}.md") for name in ("performance", "quality") for language in ("", ".ko")
)
RESULTS = Path(__file__).parent / "results"
NOT_MEASURED = "Not measured yet."
_SECTION = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


def as_text(content: Mapping[str, Any]) -> str:
    """Return the results of a topic as text for the terminal."""
    parts = [f"\n{content['topic'].upper()}   {_conditions(content)}"]
    for result in content["results"]:
        table = _cells(result)
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines = ["   ".join(_pad_cells(row, widths)).rstrip() for row in table]
        parts.append("\n".join([result["title"], "-" * max(map(len, lines)), *lines]))
    return "\n\n".join([*parts, *content["remarks"]])


def as_markdown(content: Mapping[str, Any]) -> str:
    """Return the results of a topic as Markdown for the page."""
    parts = [_conditions(content)]
    for result in content["results"]:
        head, *rows = _cells(result)
        rule = ["---", *["---:"] * (len(head) - 1)]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
        parts.append(f"**{result['title']}**\n\n{table}")
    return "\n\n".join([*parts, *content["remarks"]])


def _conditions(content: Mapping[str, Any]) -> str:
    machine, versions = content["machine"], content["versions"]
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    warning = (
        f" MEASURED ALTHOUGH THE MACHINE MAY HAVE BEEN BUSY ({content['busy_share']:.0%} at the start)."
        if content["may_have_been_busy"]
        else ""
    )
    rounds = f"Medians of {content['rounds']} rounds" if content["rounds"] > 1 else "One round"
    return (
        f"{content['date']}, {machine['cpu']}, cores: {machine['cores']}, {machine['system']}; {listed}. "
        f"{rounds}; the systems take turns.{warning}"
    )


def _cells(result: Mapping[str, Any]) -> list[list[str]]:
    """Return the head and the rows of the table of a result.

    The columns are the compared measure, its range over the rounds, the ratio, the ratio to the best round of
    the row's system, and other measures.
    """
    first = result["measure"]
    others = [name for row in result["rows"] for name in row["measures"] if name != first]
    columns = [first, *dict.fromkeys(others)]
    has_ranges = any(len(row.get("rounds", ())) > 1 for row in result["rows"])
    has_ratios = result.get("has_ratios", True)
    head = [
        "",
        columns[0],
        "range",
        "jumok's speed relative to it",
        "relative to its best round",
        *columns[1:],
    ]
    is_shown = [True, True, has_ranges, has_ratios, has_ranges and has_ratios, *[True] * (len(columns) - 1)]
    rows = [_row(row, columns, result.get("lower_is_better", False)) for row in result["rows"]]
    return [list(compress(row, is_shown)) for row in (head, *rows)]


def _row(row: Mapping[str, Any], columns: Sequence[str], lower_is_better: bool) -> list[str]:
    figures = [_figure(row["measures"].get(column)) for column in columns]
    rounds = row.get("rounds", ())
    ratio, best_ratio = row["ratio"], None
    if ratio is not None and len(rounds) > 1:
        value = row["measures"][columns[0]]
        best_ratio = ratio * (min(rounds) / value if lower_is_better else value / max(rounds))
    return [row["name"], figures[0], _range(rounds), _ratio(ratio), _ratio(best_ratio), *figures[1:]]


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f} ×"


def _range(rounds: Sequence[float]) -> str:
    """Return the range over the rounds, which shows how reliable a ratio of medians is."""
    return f"{_figure(min(rounds))} to {_figure(max(rounds))}" if len(rounds) > 1 else "–"


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _pad_cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = (
        cell.ljust(width) if column == 0 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return [first, *rest]


def fill_page(page: str, results: Path) -> str:
    """Return the page with every section replaced by the tables of its results."""

    def fill(section: re.Match[str]) -> str:
        path = results / f"{section[2]}.json"
        text = as_markdown(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else NOT_MEASURED
        return f"{section[1]}\n{text}\n\n{section[3]}"

    return _SECTION.sub(fill, page)


def write_pages(results: Path = RESULTS) -> None:
    for page in PAGES:
        page.write_text(fill_page(page.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    write_pages()
