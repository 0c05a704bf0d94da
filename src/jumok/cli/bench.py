"""`jumok bench attention`: what each layer costs as the sequence grows, measured on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from jumok.bench import Row, Table

SIZES = "1024,2048,4096,8192,16384"
SECONDS = 60.0


def bench(
    what: Annotated[Literal["attention"], typer.Argument(help="What to measure.")],
    sizes: Annotated[
        str, typer.Option(metavar="N,N,…", help="How many tokens the sequence has, two numbers or more.")
    ] = SIZES,
    seconds: Annotated[
        float,
        typer.Option(min=0.0, help="About how long to time; everything is timed once in any case."),
    ] = SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what attention costs: table 1 of "Attention is all you need", with two linear mechanisms.

    Time and memory of self-attention, efficient, linear and restricted attention, of a recurrent and a
    convolutional layer; operations, sequential steps, longest paths; and why scores are divided by √d.
    """
    del what  # there is one so far
    from jumok.bench import attention_table, check_sizes, keep_memory

    numbers = check_sizes(_numbers(sizes))
    if not as_json:
        typer.echo(f"measuring for about {seconds:.0f} seconds, and once more to count", err=True)
    table = attention_table(numbers, seconds=seconds, memory_kept=keep_memory())
    if as_json:
        typer.echo(json.dumps(table.facts(), ensure_ascii=False, indent=1))
        return
    for line in _lines(table):
        typer.echo(line)


def _numbers(sizes: str) -> list[int]:
    from jumok.errors import RecipeError

    words = [word.strip() for word in sizes.split(",") if word.strip()]
    if not all(word.isdecimal() for word in words):
        raise RecipeError(
            f"Sizes are numbers of tokens with commas between them. Received: --sizes {sizes}. "
            f"Such as: --sizes {SIZES}."
        )
    return [int(word) for word in words]


def _lines(table: Table) -> list[str]:
    largest = table.sizes[-1]
    places = next(iter(table.mechanisms.values())).path.places
    slowest = table.mechanisms["self-attention"].seconds[largest]
    heads = (
        ["", "operations", "sequential", "longest path", "time", "memory", f"at {largest:,} tokens:"],
        ["", "counted", "", f"{places} tokens", "~ n^", "~ n^", "seconds", "MB", "speed"],
    )
    body = [_cells(name, row, largest, slowest) for name, row in table.mechanisms.items()]
    shape, machine = table.shape, table.machine
    deep, narrow = table.scaling["dot_products"][-1], table.scaling["dot_products"][0]
    return [
        f"One sequence, {shape.heads} heads of {shape.width}, forward; threads: {machine.threads}, cores: "
        f"{machine.cores}, torch {machine.torch}.",
        "",
        *_aligned([*heads, *body]),
        "",
        f"r = {shape.neighbours}, in paths {table.path_shape.neighbours}; k = {shape.kernel}. Where the "
        f"dilation of convolutions grows, their path is {table.dilated.order}: {table.dilated.layers}.",
        f"Why 1/√d: the variance of q·k is {narrow['variance']:.1f} at d = {narrow['width']} and "
        f"{deep['variance']:.0f} at d = {deep['width']}, where the largest of 16 weights is "
        f"{deep['plain']['largest']:.2f}, and {deep['scaled']['largest']:.2f} after the division.",
    ]


def _cells(name: str, row: Row, largest: int, slowest: float) -> list[str]:
    return [
        name,
        f"{row.operations.order} {_short(row.operations.counted[largest])}",
        row.sequential.order,
        f"{row.path.order}: {row.path.layers}",
        f"{row.time_exponent:.2f}",
        f"{row.memory_exponent:.2f}",
        f"{row.seconds[largest]:.4f}",
        f"{row.peak_bytes[largest] / 1e6:,.0f}",
        f"×{slowest / row.seconds[largest]:,.1f}",
    ]


def _short(number: int) -> str:
    """1,234,567,890 → '1.2 G'."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:,}"


def _aligned(rows: list[list[str]]) -> list[str]:
    """Columns with two spaces between them: words to the left, and what follows the fourth to the right."""
    columns = max(len(row) for row in rows)
    full = [row + [""] * (columns - len(row)) for row in rows]
    widths = [max(len(row[column]) for row in full) for column in range(columns)]
    return [
        "  ".join(
            cell.ljust(width) if column < 4 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in full
    ]
