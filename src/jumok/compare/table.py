"""The table of a comparison: the same cells in the terminal, in Markdown and in the HTML report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.compare.result import ComparisonResult, Quarter, Row

HEADINGS = (
    "system",
    "BLEU",
    "95 %",
    "p",
    "chrF",
    "alignment error",
    "parameters",
    "training tokens/s",
    "decoding tokens/s",
    "memory MB",
)
MISSING = "–"


def row_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row, one per heading in `HEADINGS`."""
    low, high = row.bleu_interval
    return (
        row.name,
        f"{row.bleu:.1f}",
        f"{low:.1f}–{high:.1f}",
        MISSING if row.p_value is None else f"{row.p_value:.3f}",
        f"{row.chrf:.1f}",
        MISSING if row.alignment_error is None else f"{row.alignment_error:.3f}",
        f"{row.parameters:,}",
        _rounded(row.training_tokens_per_second),
        _rounded(row.decoding_tokens_per_second),
        _rounded(row.peak_memory_mb),
    )


def _rounded(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def notes(result: ComparisonResult) -> list[str]:
    """Return sentences that explain the numbers; settings that make the comparison unfair come last."""
    first = result.rows[0].name
    same_settings = "the same pairs"
    if not result.unequal_settings:
        same_settings += ", vocabulary, batch size and seed"
    return [
        f"Each system had {result.budget} of training and {same_settings}.",
        f"The scores are on {result.num_sentences:,} test sentences that no system was trained on; "
        f"BLEU signature: {result.bleu_signature}.",
        f"95 % is the confidence interval of BLEU; p is against {first}. Both are from a paired bootstrap.",
        *result.unequal_settings,
    ]


def length_label(quarter: Quarter) -> str:
    if quarter.min_words == quarter.max_words:
        return f"{quarter.max_words} word" if quarter.max_words == 1 else f"{quarter.max_words} words"
    return f"{quarter.min_words}–{quarter.max_words} words"


def as_markdown(result: ComparisonResult) -> str:
    """Return the table and BLEU by source length as Markdown."""
    lengths = ("system", *(length_label(quarter) for quarter in result.quarters))
    by_length = [(row.name, *(f"{bleu:.1f}" for bleu in row.bleu_by_length)) for row in result.rows]
    lines = [
        "# Comparison",
        "",
        *_markdown_table(HEADINGS, map(row_cells, result.rows)),
        "",
        *(f"- {note}" for note in notes(result)),
        "",
        "## BLEU by source length",
        "",
        *_markdown_table(lengths, by_length),
    ]
    return "\n".join(lines) + "\n"


def _markdown_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    header = list(headings)
    rule = ["---", *("--:" for _ in header[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]
