"""`jumok check pairs.tsv`: what is in the data, what is wrong with it, what training will skip.

The exit code is 1 if training would refuse the data, 2 if it cannot be read at all.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import ColumnsOption, EncodingOption, FromOption, PairsArgument, ToOption
from jumok.cli.wrapped_text import shorten
from jumok.config.recipe import TrainingSettings

if TYPE_CHECKING:
    from rich.console import Console

    from jumok.data.corpora import Corpus
    from jumok.data.corpus_report import CorpusReport, FaultReport, SideReport


def check(
    pairs: PairsArgument,
    valid: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help="Validation pairs, to look for leaks.")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="PAIRS", help="Test pairs, to look for leaks."),
    ] = None,
    source: FromOption = None,
    target: ToOption = None,
    columns: ColumnsOption = "",
    encoding: EncodingOption = "",
    examples: Annotated[int, typer.Option(help="Examples per fault.", min=0, max=3)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Report what is in your sentence pairs, what is wrong with them, and what training will skip.

    A single plain text file is checked as training data of a language model. Every picture is decoded, too.
    The exit code is 1 if training would refuse the pairs.
    """
    from rich.console import Console  # start-up

    from jumok.data.corpora import open_pairs_or_text  # start-up
    from jumok.data.corpus_report import check_corpora  # start-up
    from jumok.data.picture_corpora import unreadable_pictures  # start-up

    reading: dict[str, Any] = {"columns": columns, "encoding": encoding}
    corpora = open_pairs_or_text(pairs, source=source, target=target, **reading)
    first = corpora[0]
    validation, tests = (_open_like(first, files, **reading) if files else [] for files in (valid, test))
    hold_out = 0 if valid else TrainingSettings().held_out_pairs
    report = check_corpora(corpora, validation=validation, tests=tests, hold_out=hold_out)
    unreadable = [message for corpus in corpora if corpus.pictures for message in unreadable_pictures(corpus)]
    if as_json:
        pictures = {"unreadable_pictures": unreadable} if first.pictures else {}
        typer.echo(json.dumps({**_as_dict(report), **pictures}, ensure_ascii=False, indent=1))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for message in unreadable:
            console.print(message, style="red", markup=False)
        _show(console, report, examples, noun=_noun(first))
    if report.refusal:
        raise typer.Exit(code=1)


def _open_like(first: Corpus, files: list[str], *, columns: str, encoding: str) -> list[Corpus]:
    """Open validation or test sets like the first corpus: same languages, plain text if it is plain text."""
    from jumok.data.corpora import open_held_out, open_texts  # start-up

    source, target = first.source_language or None, first.target_language or None
    return (
        open_texts(files, language=target, encoding=encoding)
        if first.plain
        else open_held_out(files, source=source, target=target, columns=columns, encoding=encoding)
    )


def _noun(corpus: Corpus) -> str:
    return "pictures" if corpus.pictures else "sentences" if corpus.plain else "pairs"


def _show(console: Console, report: CorpusReport, examples: int, *, noun: str) -> None:
    from rich.text import Text  # start-up

    for corpus in report.corpora:
        weight = f", weight {corpus.weight:g}" if corpus.weight != 1 else ""
        dropped = "".join(f"; {count:,} {what}" for what, count in corpus.dropped.items())
        console.print(Text(corpus.name, "bold"), f": {corpus.pairs:,} {noun}{weight}{dropped}", sep="")
        if corpus.note:
            console.print(Text(f"  read    {corpus.note}"))
    sides = {"source": report.source, "target": report.target} if noun == "pairs" else {"text": report.target}
    for name, side in sides.items():
        console.print(f"  {name:<7}{_describe_side(side)}")
    if report.language_fault:
        console.print(Text(report.language_fault, "yellow"))
    if not report.faults and not any(report.leaked.values()) and not report.language_fault:
        console.print("no faults found.")
    for fault in report.faults:
        _show_fault(console, fault, examples)
    for name, count in report.leaked.items():
        if count:
            set_size = report.set_sizes[name]
            fate = (
                "; `jumok train` does not read that set and will train on them"
                if name in report.tests
                else ""
            )
            message = f"{count:,} of {set_size:,} sentences of {name} are also in the training {noun}{fate}."
            console.print(Text(message, "yellow"))
    if report.refusal:
        left = f"{report.kept:,} of {report.pairs:,} {noun} are left"
        console.print(f"{left}, {report.pairs - report.kept:,} would be skipped.")
        console.print(Text(f"Training would be refused: {report.refusal}", "yellow"))
        return
    used = f"[bold]{report.kept:,}[/] of {report.pairs:,} {noun}"
    held_out = f", {report.held_out:,} of them for validation," if report.held_out else ""
    console.print(f"training will use {used}{held_out} and skip {report.pairs - report.kept:,}.")
    max_tokens = TrainingSettings().max_sentence_tokens
    console.print(
        f"It will also skip sentences of more than {max_tokens:,} tokens; these are not counted here."
    )
    if noun == "pairs":
        _show_measured_points(console, report.kept)


def _show_measured_points(console: Console, pairs: int) -> None:
    """Quote what training reached on corpora of similar size. It says nothing about these pairs."""
    from jumok.data.measured_points import nearest_points  # start-up

    console.print("For comparison, measured on one or two CPU cores (docs/quality.md has the commands):")
    for point in nearest_points(pairs):
        score = f"BLEU {point.bleu} ({point.tokenizer})"
        console.print(f"  {point.pairs:>9,} pairs, {point.minutes} min: {score} on {point.corpus}")


def _describe_side(side: SideReport) -> str:
    median, percentile_99, longest = (side.percentile(share) for share in (50, 99, 100))
    return (
        f"{side.language or 'language unknown'} · {side.words:,} words, {side.distinct_words:,} distinct · "
        f"words per sentence: median {median}, 99 % up to {percentile_99}, longest {longest}"
    )


def _show_fault(console: Console, report: FaultReport, examples: int) -> None:
    from rich.text import Text  # start-up

    fault = report.fault
    fate = f"{report.skipped:,} skipped" if fault.skips else "kept"
    console.print(f"[yellow]{report.count:>9,} {fault.title}[/] ({fate}): {report.meaning}")
    for example in report.examples[:examples]:
        pair = " ||| ".join(shorten(text) for text in (example.source, example.target) if text)
        # Text, not markup: rich would interpret brackets, backslashes and :names:.
        console.print(Text(f"          line {example.line:,}: {pair}", "dim"))
        if example.detail:
            console.print(Text(f"            {example.detail}", "dim"))


def _as_dict(report: CorpusReport) -> dict[str, Any]:
    sides = {"source": report.source, "target": report.target}
    return {
        "pairs": report.pairs,
        "kept": report.kept,
        "held_out": report.held_out,
        "refusal": report.refusal,
        "language_fault": report.language_fault,
        "skipped": {fault.title: count for fault, count in report.skipped.items()},
        "faults": [
            {
                "fault": fault_report.fault.title,
                "count": fault_report.count,
                "skipped": fault_report.skipped,
                "examples": [
                    {name: value for name, value in asdict(example).items() if name != "detail" or value}
                    for example in fault_report.examples
                ],
            }
            for fault_report in report.faults
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
