"""The table of a comparison: the same cells in the terminal, in Markdown and in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.compare.result import Quarter, Result, Row

__all__ = ["HEADINGS", "as_markdown", "facts", "length_label", "row_cells"]

HEADINGS = (
    "contender",
    "BLEU",
    "95 %",
    "p",
    "chrF",
    "alignment error",
    "parameters",
    "training tokens/s",
    "decoding pieces/s",
    "memory MB",
)
MISSING = "–"


def row_cells(row: Row) -> tuple[str, ...]:
    """A contender's cells, one for each of `HEADINGS`."""
    low, high = row.bleu_interval
    return (
        row.name,
        f"{row.bleu:.1f}",
        f"{low:.1f}–{high:.1f}",
        MISSING if row.p_value is None else f"{row.p_value:.3f}",
        f"{row.chrf:.1f}",
        MISSING if row.alignment_error is None else f"{row.alignment_error:.3f}",
        f"{row.parameters:,}",
        MISSING if row.training_tokens is None else f"{row.training_tokens:,.0f}",
        f"{row.decoding_pieces:,.0f}",
        MISSING if row.peak_memory is None else f"{row.peak_memory:,.0f}",
    )


def facts(result: Result) -> list[str]:
    """What the numbers mean, a sentence each; what is not fair comes last."""
    first = result.rows[0].name
    alike = "the same pairs" if result.unequal else "the same pairs, pieces, batches and seed"
    return [
        f"Each contender had {result.budget} and {alike}.",
        f"Scores are of {result.sentences:,} test sentences that nobody was trained on; "
        f"BLEU is {result.bleu_signature}.",
        f"The intervals hold 95 % of the resamples; p is against {first}, by paired bootstrap.",
        *result.unequal,
    ]


def length_label(quarter: Quarter) -> str:
    if quarter.shortest == quarter.longest:
        return f"{quarter.longest} word" if quarter.longest == 1 else f"{quarter.longest} words"
    return f"{quarter.shortest}–{quarter.longest} words"


def as_markdown(result: Result) -> str:
    """The table, and BLEU by source length, for a page or an issue."""
    lengths = ("contender", *(length_label(quarter) for quarter in result.quarters))
    by_length = [(row.name, *(f"{bleu:.1f}" for bleu in row.bleu_by_length)) for row in result.rows]
    lines = [
        "# Comparison",
        "",
        *_markdown_table(HEADINGS, map(row_cells, result.rows)),
        "",
        *(f"- {fact}" for fact in facts(result)),
        "",
        "## BLEU by source length",
        "",
        *_markdown_table(lengths, by_length),
    ]
    return "\n".join(lines) + "\n"


def _markdown_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    top = list(headings)
    rule = ["---", *("--:" for _ in top[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (top, rule, *rows)]
