"""`jumok bench attention`: how the cost of layers grows with sequence length, measured on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jumok.cli.language import localise
from jumok.cli.wrapped_text import pad
from jumok.errors import RecipeError
from jumok.plots.text_width import terminal_columns

if TYPE_CHECKING:
    from jumok.profiling.table import Row, Table

SIZES = "1024,2048,4096,8192,16384"
SECONDS = 60.0


def bench(
    what: Annotated[Literal["attention"], typer.Argument(help="What to measure.")],
    sizes: Annotated[
        str, typer.Option(metavar="N,N,…", help="Sequence lengths in tokens, at least two.")
    ] = SIZES,
    seconds: Annotated[
        float,
        typer.Option(min=0.0, help="About how long to measure; every layer is measured at least once."),
    ] = SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what attention costs: table 1 of "Attention is all you need", plus two linear mechanisms.

    Time and memory of self-attention, of efficient, linear and restricted attention, of a recurrent and a
    convolutional layer; operations, sequential steps, longest paths; and why scores are divided by √d.
    """
    del what  # "attention" is the only value so far
    from jumok.profiling.cost import keep_freed_memory  # start-up
    from jumok.profiling.table import attention_table, check_sizes  # start-up

    lengths = check_sizes(_parse_lengths(sizes))
    if not as_json:
        message = localise(
            "measuring time for about {seconds:.0f} seconds, then memory and operations", seconds=seconds
        )
        typer.echo(message, err=True)
    table = attention_table(lengths, seconds=seconds, memory_kept=keep_freed_memory())
    if as_json:
        typer.echo(json.dumps(table.to_dict(), ensure_ascii=False, indent=1))
        return
    for line in _format_table(table):
        typer.echo(line)


def _parse_lengths(sizes: str) -> list[int]:
    numbers = [number.strip() for number in sizes.split(",") if number.strip()]
    if not all(number.isdecimal() for number in numbers):
        raise RecipeError(
            localise(
                "--sizes takes sequence lengths separated by commas. Received: --sizes {sizes}. "
                "Example: --sizes {example}.",
                sizes=sizes,
                example=SIZES,
            )
        )
    return [int(number) for number in numbers]


def _format_table(table: Table) -> list[str]:
    """Return the lines of the table and its legend, for a terminal of 80 columns."""
    length = table.sizes[-1]
    self_attention_seconds = table.mechanisms["self-attention"].seconds[length]
    headings = (
        localise("|operations|steps|longest|time|memory|ms|MB|speed").split("|"),
        localise("|counted||path|~ n^|~ n^").split("|"),
    )
    body = [_cells(name, row, length, self_attention_seconds) for name, row in table.mechanisms.items()]
    values = {
        "shape": table.shape,
        "machine": table.machine,
        "dilated": table.dilated,
        "path_shape": table.path_shape,
        "narrow": table.scaling["dot_products"][0],
        "wide": table.scaling["dot_products"][-1],
        "length": length,
    }
    text_above = localise(
        "A sequence of n tokens, {shape.heads} heads of width {shape.width}, forward only.\n"
        "Threads: {machine.threads}, cores: {machine.cores}, torch {machine.torch}.",
        **values,
    )
    text_below = localise(
        "operations, ms, MB, speed: at {length:,} tokens; speed relative to self-attention\n"
        "steps: n if the number of steps that wait for each other grows with n, else 1\n"
        "longest path: layers from the first to the last of {dilated.sequence_length} tokens\n"
        "r: {shape.neighbours} neighbours on either side, {path_shape.neighbours} for the path\n"
        "k: {shape.kernel} tokens that a convolution reads\n"
        "Convolutions with growing dilation have a path of {dilated.order}: {dilated.layers} layers.\n"
        "\n"
        "Why 1/√d: the variance of q·k is {narrow[variance]:.1f} at d = {narrow[width]} and "
        "{wide[variance]:.0f} at d = {wide[width]}.\n"
        "At d = {wide[width]} the largest of 16 weights is {wide[plain][largest]:.2f}, after the division "
        "{wide[scaled][largest]:.2f}.",
        **values,
    )
    table_lines = _align_columns([*headings, *body])
    return [*text_above.split("\n"), "", *table_lines, "", *text_below.split("\n")]


def _cells(name: str, row: Row, length: int, self_attention_seconds: float) -> list[str]:
    """Return the cells of a layer. Time, memory and speed are those at this length."""
    return [
        name,
        f"{row.operations.order} {_format_large_number(row.operations.counted[length])}",
        row.sequential.order,
        f"{row.path.order}: {row.path.layers}",
        f"{row.time_exponent:.2f}",
        f"{row.memory_exponent:.2f}",
        _format_figure(1000 * row.seconds[length]),
        _format_figure(row.peak_bytes[length] / 1e6),
        f"×{_format_figure(self_attention_seconds / row.seconds[length])}",
    ]


def _format_figure(number: float) -> str:
    """Return two decimals below 10, one below 100, and none above: 0.12, 1.23, 12.3, 1,234."""
    decimals = 0 if number >= 100 else 1 if number >= 10 else 2
    return f"{number:,.{decimals}f}"


def _format_large_number(number: int) -> str:
    """Return 1,234,567,890 as '1.2G', and a number below a million with all its digits."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:,}"


def _align_columns(rows: list[list[str]]) -> list[str]:
    """Pad the cells: the first four columns are left-aligned, the others right-aligned."""
    columns = max(len(row) for row in rows)
    full = [row + [""] * (columns - len(row)) for row in rows]
    widths = [max(terminal_columns(row[column]) for row in full) for column in range(columns)]
    return [
        " ".join(
            pad(cell, width + 1) if column < 4 else " " * (width - terminal_columns(cell)) + cell
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in full
    ]
