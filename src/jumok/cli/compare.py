"""`jumok compare pairs.tsv --attention none,bahdanau --model recurrent --minutes 5 --out runs/compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.arguments import FromOption, PairsArgument, ToOption, assignments, setting_help, utf8
from jumok.recipe import Size, TrainingSettings, TransformerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.compare import Contender, Result, Split


def compare(
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option(help="Where everything goes. The same folder again continues the comparison.")
    ],
    model: Annotated[
        str | None, typer.Option(metavar="FAMILY,…", help="Families of models, with commas between.")
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Mechanisms, each in every family of --model; else recurrent."),
    ] = None,
    contender: Annotated[
        list[str] | None,
        typer.Option(metavar="FAMILY[:ATTENTION]", help="One contender; as often as you like."),
    ] = None,
    recipe: Annotated[
        list[Path] | None, typer.Option(help="A recipe.toml that takes part; as often as you like.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of training for each contender.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates for each contender.")] = None,
    size: Annotated[Size | None, typer.Option(help=setting_help(TransformerSettings, "size"))] = None,
    seed: Annotated[int | None, typer.Option(help=setting_help(TrainingSettings, "seed"))] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting of a recipe, for all contenders."),
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help="Validation pairs; else taken from PAIRS.")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help="Test pairs; else taken from PAIRS.")
    ] = None,
    source: FromOption = None,
    target: ToOption = None,
    sentence: Annotated[
        str | None,
        typer.Option(help="The sentence whose attention is drawn; else one of the test set.", callback=utf8),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train models on the same pairs with the same budget and compare quality, speed, memory and attention.

    Writes compare.json, compare.md and report.html. The first contender is the one that the others are
    tested against. Ctrl-C saves and leaves with exit code 130; the same command continues.
    """
    from jumok.compare import collect_result, make_contenders, middle_sentence, split_pairs

    options = {
        "training.minutes": minutes,
        "training.steps": steps,
        "training.seed": seed,
        "model.size": size,
    }
    given = {name: value for name, value in options.items() if value is not None}
    contenders = make_contenders(
        [*(contender or []), *_families_and_mechanisms(model, attention)],
        recipes=recipe or [],
        settings={**assignments(settings or []), **given},
    )
    languages = contenders[0].recipe.languages
    split = split_pairs(
        pairs,
        out=out,
        valid=valid or (),
        test=test or (),
        source=source or languages.source or None,
        target=target or languages.target or None,
    )
    looked_at = sentence or middle_sentence(split.test_pairs())
    _race(contenders, split, out, looked_at)
    result = collect_result(contenders, split, out=out, sentence=looked_at)
    found = json.dumps(result.as_dict(), ensure_ascii=False, indent=1)
    _write(result, found, out)
    if as_json:
        typer.echo(found)
    else:
        _tell(result, out)


def _families_and_mechanisms(model: str | None, attention: str | None) -> list[str]:
    """`recurrent` and `none,bahdanau` → recurrent:none, recurrent:bahdanau."""
    # The mechanisms that people compare by name are those of recurrent models, `none` above all.
    families = _listed(model) or (["recurrent"] if attention else [])
    mechanisms = _listed(attention)
    if not mechanisms:
        return families
    return [f"{family}:{mechanism}" for family in families for mechanism in mechanisms]


def _listed(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]


def _race(contenders: Sequence[Contender], split: Split, out: Path, sentence: str) -> None:
    from rich.console import Console

    from jumok.cli.display import TrainingDisplay
    from jumok.compare import Entered, Interrupted, race

    with TrainingDisplay(Console(stderr=True)) as display:
        for event in race(contenders, split, out=out, sentence=sentence):
            if isinstance(event, Entered):
                done = ": already finished" if event.finished else ""
                display.say(f"[{event.number}/{event.count}] {event.name}{done}", style="bold magenta")
            elif isinstance(event, Interrupted):
                display.say(f"interrupted at {event.name}. The same command continues", style="bold")
                raise typer.Exit(code=130)
            else:
                display.show(event)


def _write(result: Result, found: str, out: Path) -> None:
    from jumok.compare import as_markdown, draw_report
    from jumok.storage import write_file

    texts = {
        "compare.json": found + "\n",
        "compare.md": as_markdown(result),
        "report.html": draw_report(result),
    }
    for name, text in texts.items():
        write_file(out / name, text.encode("utf-8", "replace"))


def _tell(result: Result, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jumok.compare import HEADINGS, row_cells

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for row in result.rows:
        table.add_row(*map(Text, row_cells(row)))
    console = Console()
    # A file has no edge to wrap at.
    Console(width=None if console.is_terminal else 160).print(table, highlight=False)
    for note in result.unequal:
        typer.echo(f"! {note}")
    typer.echo(f"report: {out / 'report.html'}")
