"""`jumok compare pairs.tsv --attention none,bahdanau --model recurrent --minutes 5 --out runs/compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.arguments import (
    ColumnsOption,
    EncodingOption,
    FromOption,
    PairsArgument,
    ToOption,
    parse_assignments,
    require_utf8,
)
from jumok.cli.language import localise, localise_text
from jumok.config.recipe import Size, TrainingSettings, TransformerSettings, setting_help

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.compare.result import ComparisonResult
    from jumok.compare.split import Split
    from jumok.compare.systems import System


def compare(
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option(help="Folder for all results. The same folder again continues the comparison.")
    ],
    model: Annotated[
        str | None, typer.Option(metavar="FAMILY,…", help="Model families, separated by commas.")
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Attention mechanisms, each with every family of --model (recurrent if not given).",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="FAMILY[:ATTENTION]", help="One system to compare. Can be repeated."),
    ] = None,
    recipe: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE|NAME",
            help="A recipe.toml to compare, or a recipe that `jumok models` lists. Can be repeated.",
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of training for each system.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates for each system.")] = None,
    size: Annotated[Size | None, typer.Option(help=setting_help(TransformerSettings, "size"))] = None,
    seed: Annotated[int | None, typer.Option(help=setting_help(TrainingSettings, "seed"))] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting of a recipe, for all systems."),
    ] = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="PAIRS", help="Validation pairs; held out from PAIRS if not given."),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help="Test pairs; held out from PAIRS if not given.")
    ] = None,
    source: FromOption = None,
    target: ToOption = None,
    columns: ColumnsOption = "",
    encoding: EncodingOption = "",
    sentence: Annotated[
        str | None,
        typer.Option(
            help="The sentence whose attention is drawn; one of the test set if not given.",
            callback=require_utf8,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train models on the same pairs with the same budget; compare quality, speed, memory and attention.

    Writes compare.json, compare.md and report.html. The first system is the baseline of all significance
    tests. Ctrl-C saves and exits with code 130; the same command continues.
    """
    from jumok.compare.result import collect_result  # start-up
    from jumok.compare.split import median_length_source, split_pairs  # start-up
    from jumok.compare.systems import make_systems  # start-up
    from jumok.data.picture_corpora import holds_pictures  # start-up
    from jumok.models.validate import check_reads_pictures  # start-up

    options = {
        "training.minutes": minutes,
        "training.steps": steps,
        "training.seed": seed,
        "model.size": size,
    }
    option_settings = {name: value for name, value in options.items() if value is not None}
    systems = make_systems(
        [*(system or []), *_families_and_mechanisms(model, attention)],
        recipes=recipe or [],
        settings={**parse_assignments(settings or []), **option_settings},
    )
    if any(map(holds_pictures, pairs)):
        for each in systems:
            check_reads_pictures(each.overrides.family, each.overrides.get("model.task"), pictures=True)
    languages = systems[0].overrides.with_defaults().languages
    split = split_pairs(
        pairs,
        out=out,
        valid=valid or (),
        test=test or (),
        source=source or languages.source or None,
        target=target or languages.target or None,
        columns=columns,
        encoding=encoding,
    )
    sentence = sentence or median_length_source(split.test_pairs())
    _run(systems, split, out, sentence)
    result = collect_result(systems, split, out=out, sentence=sentence)
    json_text = json.dumps(result.as_dict(), ensure_ascii=False, indent=1)
    _write_files(result, json_text, out)
    if as_json:
        typer.echo(json_text)
    else:
        _print_table(result, out)


def _families_and_mechanisms(model: str | None, attention: str | None) -> list[str]:
    """`recurrent` and `none,bahdanau` → recurrent:none, recurrent:bahdanau."""
    # Mechanisms are usually compared in recurrent models, with `none` as the baseline.
    families = _split_commas(model) or (["recurrent"] if attention else [])
    mechanisms = _split_commas(attention)
    if not mechanisms:
        return families
    return [f"{family}:{mechanism}" for family in families for mechanism in mechanisms]


def _split_commas(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _run(systems: Sequence[System], split: Split, out: Path, sentence: str) -> None:
    from rich.console import Console  # start-up

    from jumok.cli.display import TrainingDisplay  # start-up
    from jumok.compare.runner import Interrupted, SystemStarted, run_comparison  # start-up

    with TrainingDisplay(Console(stderr=True)) as display:
        for event in run_comparison(systems, split, out=out, sentence=sentence):
            if isinstance(event, SystemStarted):
                done = localise(": already finished") if event.already_finished else ""
                display.print_line(f"[{event.number}/{event.count}] {event.name}{done}", style="bold magenta")
            elif isinstance(event, Interrupted):
                interrupted = localise("interrupted at {name}. The same command continues", name=event.name)
                display.print_line(interrupted, style="bold")
                raise typer.Exit(code=130)
            else:
                display.show(event)


def _write_files(result: ComparisonResult, json_text: str, out: Path) -> None:
    from jumok.compare.report import draw_report  # start-up
    from jumok.compare.table import as_markdown  # start-up
    from jumok.storage.folders import write_file  # start-up

    texts = {
        "compare.json": json_text + "\n",
        "compare.md": as_markdown(result),
        "report.html": draw_report(result),
    }
    for name, text in texts.items():
        write_file(out / name, text.encode("utf-8", "replace"))


def _print_table(result: ComparisonResult, out: Path) -> None:
    from rich.console import Console  # start-up
    from rich.table import Table  # start-up
    from rich.text import Text  # start-up

    from jumok.compare.table import HEADINGS, row_cells  # start-up

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column, heading in enumerate(HEADINGS):
        table.add_column(
            localise_text(heading), justify="left" if column == 0 else "right", no_wrap=column == 0
        )
    for row in result.rows:
        table.add_row(*map(Text, row_cells(row)))
    console = Console()
    # A file or pipe has no width to wrap at.
    Console(width=None if console.is_terminal else 160).print(table, highlight=False)
    for note in result.unequal_settings:
        typer.echo(f"! {localise_text(note)}")
    typer.echo(localise("report: {file}", file=out / "report.html"))
