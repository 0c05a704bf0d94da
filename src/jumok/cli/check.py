"""`jumok check pairs.tsv`: what is in the data, what is wrong with it, what training will skip.

The exit code is 1 if training would refuse the data, 2 if it cannot be read at all.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import (
    ColumnsOption,
    EncodingOption,
    FromOption,
    PairsArgument,
    ToOption,
    format_noun,
)
from jumok.cli.language import localise, localise_text
from jumok.cli.wrapped_text import pad, shorten
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
    from jumok.data.picture_corpora import picture_errors, unreadable_refusal  # start-up

    reading: dict[str, Any] = {"columns": columns, "encoding": encoding}
    corpora = open_pairs_or_text(pairs, source=source, target=target, **reading)
    first = corpora[0]
    validation, tests = (_open_like(first, files, **reading) if files else [] for files in (valid, test))
    hold_out = 0 if valid else TrainingSettings().held_out_pairs
    report = check_corpora(corpora, validation=validation, tests=tests, hold_out=hold_out)
    unreadable = [message for corpus in corpora if corpus.pictures for message in picture_errors(corpus)]
    report = replace(report, refusal=report.refusal or unreadable_refusal(len(unreadable)))
    if as_json:
        pictures = {"unreadable_pictures": unreadable} if first.pictures else {}
        typer.echo(json.dumps({**_as_dict(report), **pictures}, ensure_ascii=False, indent=1))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for message in unreadable:
            console.print(message, style="red", markup=False)
        _show(console, report, examples, pictures=first.pictures, plain=first.plain)
    if report.refusal:
        raise typer.Exit(code=1)


def _open_like(first: Corpus, files: list[str], *, columns: str, encoding: str) -> list[Corpus]:
    """Open validation or test sets, with the languages and the kind (pairs or text) of the first corpus."""
    from jumok.data.corpora import open_further_corpora, open_texts  # start-up

    source, target = first.source_language or None, first.target_language or None
    return (
        open_texts(files, language=target, encoding=encoding)
        if first.plain
        else open_further_corpora(files, source=source, target=target, columns=columns, encoding=encoding)
    )


def _show(console: Console, report: CorpusReport, examples: int, *, pictures: bool, plain: bool) -> None:
    from rich.text import Text  # start-up

    noun, has_pairs = format_noun(pictures=pictures, plain=plain), not (pictures or plain)
    _show_corpora(console, report, noun, has_pairs=has_pairs)
    if report.language_fault:
        console.print(Text(localise_text(report.language_fault), "yellow"))
    if not report.faults and not any(report.leaked.values()) and not report.language_fault:
        console.print(localise("no faults found."))
    for fault in report.faults:
        _show_fault(console, fault, examples)
    _show_leaks(console, report, noun)
    counts = {"kept": report.kept, "pairs": report.pairs, "skipped": report.pairs - report.kept}
    counts["held_out"] = report.held_out
    if report.refusal:
        console.print(
            localise(
                "{kept:,} of {pairs:,} {noun} are left, {skipped:,} would be skipped.", noun=noun, **counts
            )
        )
        refusal = localise("Training would be refused: {reason}", reason=localise_text(report.refusal))
        console.print(Text(refusal, "yellow"))
        return
    all_used = localise(
        "training will use [bold]{kept:,}[/] of {pairs:,} {noun} and skip {skipped:,}.", noun=noun, **counts
    )
    some_held_out = localise(
        "training will use [bold]{kept:,}[/] of {pairs:,} {noun}, {held_out:,} of them for validation, and "
        "skip {skipped:,}.",
        noun=noun,
        **counts,
    )
    console.print(some_held_out if report.held_out else all_used)
    max_tokens = TrainingSettings().max_sentence_tokens
    console.print(
        localise(
            "It will also skip sentences of more than {count:,} tokens; these are not counted here.",
            count=max_tokens,
        )
    )
    if has_pairs:
        _show_measured_points(console, report.kept)


def _show_corpora(console: Console, report: CorpusReport, noun: str, *, has_pairs: bool) -> None:
    """Show what each corpus has, and the words of each side."""
    from rich.text import Text  # start-up

    for corpus in report.corpora:
        count = localise("{pairs:,} {noun}", pairs=corpus.pairs, noun=noun)
        weight = localise(", weight {weight:g}", weight=corpus.weight) if corpus.weight != 1 else ""
        dropped = "".join(f"; {localise_text(f'{n:,} {what}')}" for what, n in corpus.dropped.items())
        console.print(Text(corpus.name, "bold"), f": {count}{weight}{dropped}", sep="")
        if corpus.note:
            console.print(Text(f"  {pad(localise('read'), 7)}{localise_text(corpus.note)}"))
    text = {localise("text"): report.target}
    sides = {localise("source"): report.source, localise("target"): report.target} if has_pairs else text
    for name, side in sides.items():
        console.print(f"  {pad(name, 7)}{_describe_side(side)}")


def _show_leaks(console: Console, report: CorpusReport, noun: str) -> None:
    """Show how many sentences of the validation and test sets are also in the training pairs."""
    from rich.text import Text  # start-up

    for name, count in report.leaked.items():
        if not count:
            continue
        values = {"count": count, "size": report.set_sizes[name], "name": name, "noun": noun}
        leaked = localise(
            "{count:,} of {size:,} sentences of {name} are also in the training {noun}.", **values
        )
        trained_on = localise(
            "{count:,} of {size:,} sentences of {name} are also in the training {noun}; `jumok train` does "
            "not read that set and will train on them.",
            **values,
        )
        console.print(Text(trained_on if name in report.tests else leaked, "yellow"))


def _show_measured_points(console: Console, pairs: int) -> None:
    """Show the scores that models reached on other corpora of similar size.

    A model that is trained on these pairs may score differently.
    """
    from jumok.data.measured_points import nearest_points  # start-up

    console.print(
        localise("For comparison, measured on one or two CPU cores (docs/quality.md has the commands):")
    )
    for point in nearest_points(pairs):
        console.print(
            localise(
                "  {point.pairs:>9,} pairs, {point.minutes} min: BLEU {point.bleu} ({point.tokenizer}) on "
                "{corpus}",
                point=point,
                corpus=localise_text(point.corpus),
            )
        )


def _describe_side(side: SideReport) -> str:
    median, percentile_99, longest = (side.percentile(share) for share in (50, 99, 100))
    return localise(
        "{language} · {words:,} words, {distinct:,} distinct · words per sentence: median {median}, 99 % up "
        "to {percentile_99}, longest {longest}",
        language=side.language or localise("language unknown"),
        words=side.words,
        distinct=side.distinct_words,
        median=median,
        percentile_99=percentile_99,
        longest=longest,
    )


def _show_fault(console: Console, report: FaultReport, examples: int) -> None:
    from rich.text import Text  # start-up

    fault = report.fault
    skipped_or_kept = localise("{count:,} skipped", count=report.skipped) if fault.skips else localise("kept")
    title, meaning = localise_text(fault.title), localise_text(report.meaning)
    console.print(f"[yellow]{report.count:>9,} {title}[/] ({skipped_or_kept}): {meaning}")
    for example in report.examples[:examples]:
        pair = " ||| ".join(shorten(text) for text in (example.source, example.target) if text)
        # Text, not markup: rich would interpret brackets, backslashes and :names:.
        line = localise("line {line:,}: {note}", line=example.line, note=pair)
        console.print(Text(f"          {line}", "dim"))
        if example.detail:
            console.print(Text(f"            {localise_text(example.detail)}", "dim"))


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
