"""`jumok translate MODEL < in.txt > out.txt`: one line in, one line out, in order."""

from __future__ import annotations

import json
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import (
    EngineOption,
    ModelArgument,
    SeedOption,
    ShortlistOption,
    TemperatureOption,
    drawing_choices,
    say_engine,
    setting_help,
    utf8,
)
from jumok.cli.input_lines import InputLines
from jumok.errors import RecipeError
from jumok.recipe import SearchSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.decoding import Translation


def translate(
    model: ModelArgument,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Text, a sentence a line; standard input if not given."),
    ] = None,
    beam: Annotated[int | None, typer.Option(help=setting_help(SearchSettings, "beam"), min=1)] = None,
    patience_factor: Annotated[
        float | None, typer.Option(help=setting_help(SearchSettings, "patience_factor"))
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help=setting_help(SearchSettings, "length_penalty"))
    ] = None,
    coverage_penalty: Annotated[
        float | None, typer.Option(help=setting_help(SearchSettings, "coverage_penalty"))
    ] = None,
    no_repeat: Annotated[int | None, typer.Option(help=setting_help(SearchSettings, "no_repeat"))] = None,
    longest: Annotated[float | None, typer.Option(help=setting_help(SearchSettings, "longest"))] = None,
    n_best: Annotated[
        int, typer.Option(help="Translations of each line; more than 1 needs --json.", min=1)
    ] = 1,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="How the translation of every line must begin.", callback=utf8)
    ] = "",
    sample: Annotated[bool, typer.Option(help="Draw at random instead of searching.")] = False,
    temperature: TemperatureOption = None,
    top_k: Annotated[
        int | None, typer.Option(help="With --sample: only the k likeliest pieces; 0 is all.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="With --sample: the likeliest pieces up to this mass; 1 is all.")
    ] = None,
    seed: SeedOption = None,
    engine: EngineOption = "auto",
    shortlist: ShortlistOption = False,
    align: Annotated[bool, typer.Option(help="With --json: add word alignments.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line: text, score, pieces.")
    ] = False,
) -> None:
    """Translate lines from a file or standard input to standard output. Empty lines stay empty."""
    if n_best > 1 and not as_json:
        raise RecipeError(
            f"--n-best {n_best} gives several translations a line; plain output holds one. Add --json."
        )
    if align and not as_json:
        raise RecipeError("--align adds a field to each result. Add --json.")
    given = drawing_choices(sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    from jumok.decoding import Sampling, SearchChoices
    from jumok.engines import load

    translator = load(model, engine=engine, shortlist=shortlist)
    search: SearchChoices = {
        "beam": beam,
        "patience_factor": patience_factor,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "no_repeat": no_repeat,
        "longest": longest,
    }
    sampling = Sampling(**given) if sample else None
    say_engine(translator.engine_for(sampling, longest=longest, prefix=prefix))
    lines = short = 0
    with closing(InputLines(source)) as texts, _bar(source) as advance:
        # What a draw or a shortlist gives depends on the lines read with it, and must not on the clock.
        ready = texts.ready if texts.typed or not (sample or shortlist) else None
        for translation in translator.stream(
            texts, ready=ready, n_best=n_best, prefix=prefix, sampling=sampling, scores=as_json, **search
        ):
            sys.stdout.write(_as_json(translation, align=align) if as_json else translation.text)
            sys.stdout.write("\n")
            lines += 1
            short += bool(translation.source.strip()) and 1 + len(translation.alternatives) < n_best
            advance()
    if short:
        sys.stdout.flush()  # the lines first, where both go to one terminal
        typer.echo(
            f"jumok translate: {short:,} of {lines:,} lines have fewer than the {n_best} translations asked "
            f"for: no others were found that read differently. {_more(sample)}",
            err=True,
        )


def _more(sample: bool) -> str:
    return "A higher --temperature finds more." if sample else "A wider --beam finds more."


@contextmanager
def _bar(path: Path | None) -> Iterator[Callable[[], None]]:
    """A bar on standard error that moves a line with each call, unless the translations themselves show."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("translating"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    # Left to itself the bar would take what is written to standard output for its own.
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        task = bar.add_task("", total=_count_lines(path) if path is not None and path.is_file() else None)
        yield lambda: bar.advance(task)


def _count_lines(path: Path) -> int:
    count, last = 0, b"\n"
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(2**20), b""):
            count, last = count + chunk.count(b"\n"), chunk
    return count + (not last.endswith(b"\n"))


def _as_json(translation: Translation, *, align: bool) -> str:
    record: dict[str, Any] = {
        "source": translation.source,
        "text": translation.text,
        "score": round(translation.score, 5),
        "pieces": list(translation.pieces),
    }
    if translation.alternatives:
        record["alternatives"] = [
            {"text": text, "score": round(score, 5)} for text, score in translation.alternatives
        ]
    if align:
        record["alignment"] = str(translation.alignment)
    return json.dumps(record, ensure_ascii=False)
