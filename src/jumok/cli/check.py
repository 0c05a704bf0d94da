"""`jumok check pairs.tsv`: what is in my data, what is wrong with it, what training will skip."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import FromOption, PairsArgument, ToOption
from jumok.recipe import TrainingSettings

if TYPE_CHECKING:
    from rich.console import Console

    from jumok.corpus import CheckUp, Corpus, FaultReport, SideReport

_NOTHING_HELD_OUT = (
    "Training would be refused: so few different sentences leave none for validation. Give a validation set "
    "with --valid, or ten pairs or more of different sources."
)


def check(
    pairs: PairsArgument,
    valid: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help="Validation pairs, to look for leaks.")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="PAIRS", help="Test pairs, to look for leaks. Training does not know them."),
    ] = None,
    source: FromOption = None,
    target: ToOption = None,
    examples: Annotated[int, typer.Option(help="Examples shown of each fault.", min=0, max=3)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what is in your sentence pairs, what is wrong with them, and what training will skip.

    One text alone is looked at as what a language model learns from.
    """
    from rich.console import Console

    from jumok.corpus import check_up, open_pairs_or_text

    corpora = open_pairs_or_text(pairs, source=source, target=target)
    first = corpora[0]
    against, tests = (_open_beside(first, named) if named else [] for named in (valid, test))
    hold_out = 0 if valid else TrainingSettings().held_out
    report = check_up(corpora, against=against, tests=tests, hold_out=hold_out)
    if as_json:
        typer.echo(json.dumps(_as_dict(report), ensure_ascii=False, indent=1))
    else:
        console = Console(highlight=False, soft_wrap=True)
        _show(console, report, examples, plain=first.plain)
        if not valid and not report.held_out:
            console.print(f"[yellow]{_NOTHING_HELD_OUT}[/]")


def _open_beside(first: Corpus, named: list[str]) -> list[Corpus]:
    """Validation or test sets, of the languages of the corpus and plain where it is."""
    from jumok.corpus import open_corpora, open_texts

    source, target = first.source_language or None, first.target_language or None
    return (
        open_texts(named, language=target)
        if first.plain
        else open_corpora(named, source=source, target=target)
    )


def _show(console: Console, report: CheckUp, examples: int, *, plain: bool) -> None:
    from rich.text import Text

    noun = "sentences" if plain else "pairs"
    for corpus in report.corpora:
        weight = f", weight {corpus.weight:g}" if corpus.weight != 1 else ""
        noticed = "".join(f"; {count:,} {what}" for what, count in corpus.noticed.items())
        console.print(Text(corpus.name, "bold"), f": {corpus.pairs:,} {noun}{weight}{noticed}", sep="")
    sides = {"text": report.target} if plain else {"source": report.source, "target": report.target}
    for name, side in sides.items():
        console.print(f"  {name:<7}{_side(side)}")
    if not report.faults and not any(report.leaked.values()):
        console.print("nothing is wrong with them.")
    for fault in report.faults:
        _show_fault(console, fault, examples)
    for name, count in report.leaked.items():
        if count:
            of = report.against[name]
            fate = (
                "; `jumok train` does not know that set and will learn them" if name in report.tests else ""
            )
            told = f"{count:,} of {of:,} sentences of {name} are also in the training {noun}{fate}."
            console.print(Text(told, "yellow"))
    used = f"[bold]{report.kept:,}[/] of {report.pairs:,} {noun}"
    held_out = f", {report.held_out:,} of them for validation," if report.held_out else ""
    console.print(f"training will use {used}{held_out} and skip {report.pairs - report.kept:,}.")
    longest = TrainingSettings().longest
    console.print(f"It will also skip sentences of more than {longest:,} pieces, which are not counted here.")


def _side(side: SideReport) -> str:
    median, most, longest = (side.percentile(share) for share in (50, 99, 100))
    return (
        f"{side.language or 'language unknown'} · {side.words:,} words, {side.distinct_words:,} distinct · "
        f"words a sentence: median {median}, 99 % up to {most}, longest {longest}"
    )


def _show_fault(console: Console, report: FaultReport, examples: int) -> None:
    from rich.text import Text

    fault = report.fault
    fate = f"{report.skipped:,} skipped" if fault.skips else "kept"
    console.print(f"[yellow]{report.count:>9,} {fault.title}[/] ({fate}): {report.meaning}")
    for example in report.examples[:examples]:
        pair = " ||| ".join(_short(text) for text in (example.source, example.target) if text)
        # Text is data: as markup, its brackets, backslashes and :names: would turn into something else.
        console.print(Text(f"          line {example.line:,}: {pair}", "dim"))
        if example.detail:
            console.print(Text(f"            {example.detail}", "dim"))


def _short(text: str, most: int = 70) -> str:
    """One printable line: control characters are shown, not sent to the terminal."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _as_dict(report: CheckUp) -> dict[str, Any]:
    sides = {"source": report.source, "target": report.target}
    return {
        "pairs": report.pairs,
        "kept": report.kept,
        "held_out": report.held_out,
        "skipped": {fault.title: count for fault, count in report.skipped.items()},
        "faults": [
            {
                "fault": one.fault.title,
                "count": one.count,
                "skipped": one.skipped,
                "examples": [
                    {name: value for name, value in asdict(example).items() if name != "detail" or value}
                    for example in one.examples
                ],
            }
            for one in report.faults
        ],
        "leaked": dict(report.leaked),
        **{
            name: {
                "language": side.language,
                "words": side.words,
                "distinct_words": side.distinct_words,
                "median": side.percentile(50),
                "longest": side.percentile(100),
            }
            for name, side in sides.items()
        },
    }
