"""`jumok translate MODEL < in.txt > out.txt`: one line in, one line out, in order."""

from __future__ import annotations

import json
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import ModelArgument, setting_help, utf8
from jumok.errors import DataError, RecipeError
from jumok.recipe import SearchSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    temperature: Annotated[
        float | None, typer.Option(help="With --sample: below 1 is bolder, above 1 wilder.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="With --sample: only the k likeliest pieces; 0 is all.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="With --sample: the likeliest pieces up to this mass; 1 is all.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --sample: the seed, 1 if not given.", min=0, max=2**32 - 1)
    ] = None,
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
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    given: dict[str, Any] = {name: value for name, value in drawing.items() if value is not None}
    if given and not sample:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise RecipeError(
            f"Without --sample nothing is drawn at random, so {options} would be ignored. "
            f"Add --sample, or leave {options} out."
        )
    from jumok.decoding import Sampling, SearchChoices, load

    translator = load(model)
    search: SearchChoices = {
        "beam": beam,
        "patience_factor": patience_factor,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "no_repeat": no_repeat,
        "longest": longest,
    }
    sampling = Sampling(**given) if sample else None
    lines = short = 0
    for translation in translator.stream(
        _lines(source), n_best=n_best, prefix=prefix, sampling=sampling, **search
    ):
        sys.stdout.write(_as_json(translation, align=align) if as_json else translation.text)
        sys.stdout.write("\n")
        lines += 1
        short += bool(translation.source.strip()) and 1 + len(translation.alternatives) < n_best
    if short:
        sys.stdout.flush()  # the lines first, where both go to one terminal
        typer.echo(
            f"jumok translate: {short:,} of {lines:,} lines have fewer than the {n_best} translations asked "
            f"for: no others were found that read differently. {_more(sample)}",
            err=True,
        )


def _more(sample: bool) -> str:
    return "A higher --temperature finds more." if sample else "A wider --beam finds more."


def _lines(path: Path | None) -> Iterator[str]:
    """Lines split at \\n only, so that n lines in are n lines out whatever the text holds."""
    from jumok.corpus.lines import standard_input

    name = "standard input" if path is None else str(path)
    try:
        with standard_input() if path is None else path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if number == 1:
                    line = line.removeprefix(BOM_UTF8)
                try:
                    yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{name}, line {number:,}, byte {error.start + 1}: this is not UTF-8. "
                        "Convert the file (iconv -f latin1 -t utf-8, say) and run again."
                    ) from None
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None


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
