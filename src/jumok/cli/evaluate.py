"""`jumok evaluate MODEL test.en test.de --json`: a test set's scores, each with its signature.

`jumok evaluate MODEL test.txt` is for a model of plain text: perplexity, or the hidden pieces it guesses.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import EngineOption, ModelArgument, PairsArgument, ShortlistOption, say_engine
from jumok.errors import RecipeError

if TYPE_CHECKING:
    from jumok.evaluation import Comparison


def evaluate(
    model: ModelArgument,
    pairs: PairsArgument,
    against: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Another model: is MODEL better? Paired bootstrap.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.", min=1)
    ] = None,
    length_penalty: Annotated[float | None, typer.Option(help="A score is log p / length^penalty.")] = None,
    engine: EngineOption = "auto",
    shortlist: ShortlistOption = False,
    tokenize: Annotated[
        str | None,
        typer.Option(help="sacreBLEU's tokeniser: 13a, none, char, ko-mecab …; chosen by language."),
    ] = None,
    lowercase: Annotated[bool, typer.Option(help="Score without regard to case.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the translations to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a model on a test set: BLEU, chrF, TER with signatures; alignment error where there is gold.

    A model of plain text is scored on a text, a sentence a line: perplexity, or the hidden pieces it guesses.
    """
    from jumok.corpus import open_corpora
    from jumok.engines import load
    from jumok.evaluation import compare, evaluate_translator
    from jumok.storage import disk_errors, read_stored_model

    if read_stored_model(model).card.recipe.model.task != "translate":
        options = {"--against": against, "--beam": beam, "--length-penalty": length_penalty}
        others = {"--tokenize": tokenize, "--lowercase": lowercase or None, "--out": out}
        others["--shortlist"] = shortlist or None
        _refuse_given({**options, **others, "--engine": None if engine == "auto" else engine})
        _evaluate_text(model, pairs, as_json=as_json)
        return
    translator = load(model, engine=engine, shortlist=shortlist)
    say_engine(translator.engine)
    languages = {"source": translator.source_language or None, "target": translator.target_language or None}
    test = [pair for corpus in open_corpora(pairs, **languages) for pair in corpus.pairs()]
    search: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty}
    how: dict[str, Any] = {"tokenize": tokenize, "lowercase": lowercase}
    evaluation = evaluate_translator(translator, test, **search, **how)
    found: dict[str, Any] = evaluation.as_dict()
    if out is not None:
        with disk_errors(out, "No other file was written."):
            out.write_text("".join(f"{text}\n" for text in evaluation.translations), encoding="utf-8")
    if against is not None:
        baseline = evaluate_translator(
            load(against, engine=engine), test, metrics=("bleu", "chrf"), **search, **how
        )
        compared = compare(
            baseline.translations,
            evaluation.translations,
            [pair.target for pair in test],
            language=translator.target_language,
            **how,
        )
        found["against"] = {name: asdict(one) for name, one in compared.items()}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for metric in ("bleu", "chrf", "ter"):
        typer.echo(f"{metric:<6} {found[metric]:6.2f}   {found[f'{metric}_signature']}")
    if "alignment_error" in found:
        typer.echo(
            f"alignment error {found['alignment_error']:.3f} (precision {found['alignment_precision']:.3f}, "
            f"recall {found['alignment_recall']:.3f})"
        )
    if against is not None:
        for comparison in compared.values():
            typer.echo(_verdict(comparison, str(against)))


def _refuse_given(options: dict[str, Any]) -> None:
    given = ", ".join(name for name, value in options.items() if value is not None)
    if given:
        raise RecipeError(
            f"A model of plain text makes no translations, so {given} would be ignored. Leave it out."
        )


def _evaluate_text(folder: Path, texts: list[str], *, as_json: bool) -> None:
    from jumok.corpus import open_texts
    from jumok.decoding import load_text_model
    from jumok.evaluation import evaluate_text

    model = load_text_model(folder)
    corpora = open_texts(texts, language=model.language or None)
    found = evaluate_text(model, [pair.target for corpus in corpora for pair in corpus.pairs()]).as_dict()
    if found["left_out"]:
        typer.echo(
            f"left out: {found['left_out']:,} lines of more than the {model.longest:,} pieces that the model "
            "was trained on",
            err=True,
        )
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
        return
    of = f"{found['tokens']:,} pieces of {found['sentences']:,} sentences"
    if found["task"] == "masked":
        typer.echo(f"accuracy        {found['accuracy']:8.4f}   of {of}, hidden as always")
        typer.echo(f"loss            {found['loss']:8.4f}   nats a hidden piece")
        return
    typer.echo(f"perplexity      {found['perplexity']:8.2f}   a piece: {of}, </s> counted")
    typer.echo(f"  a word        {found['word_perplexity']:8.2f}   {found['words']:,} words, ends counted")
    typer.echo(f"  a character   {found['character_perplexity']:8.2f}   {found['characters']:,} characters")
    typer.echo(f"loss            {found['loss']:8.4f}   nats a piece")


def _verdict(comparison: Comparison, against: str) -> str:
    low, high = comparison.delta_interval
    sure = "chance is an unlikely cause" if comparison.p_value < 0.05 else "this may be chance"
    return (
        f"{comparison.metric:<6} {comparison.delta:+.2f} against {against} "
        f"(95 %: {low:+.2f} to {high:+.2f}, p = {comparison.p_value:.3f}): {sure}"
    )
