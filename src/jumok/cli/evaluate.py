"""`jumok evaluate MODEL test.en test.de --json`: the scores on a test set, each with its signature.

`jumok evaluate MODEL test.txt` is for a model of plain text: perplexity, or accuracy on masked tokens.
`jumok evaluate MODEL captions.tsv` or `pictures/` is for a model of pictures: captions, or classes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from jumok.cli.arguments import (
    ColumnsOption,
    DeviceOption,
    EncodingOption,
    EngineOption,
    Hardware,
    ModelArgument,
    PairsArgument,
    PrecisionOption,
    SentencesOption,
    ShortlistOption,
    names_of_given,
    report_fallback,
)
from jumok.cli.bulk import BulkOptions, RayOption, ShardOption, WorkersOption, translate_texts
from jumok.cli.language import localise, localise_text
from jumok.cli.wrapped_text import pad
from jumok.errors import DataError, RecipeError
from jumok.storage.folders import disk_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.data.corpora import Corpus
    from jumok.evaluation.bootstrap import Comparison
    from jumok.evaluation.translator_scores import Evaluation
    from jumok.inference.text_options import TextOptions
    from jumok.inference.translator import Translator
    from jumok.types import Pair

SUSPICIOUS_CHRF = 30.0
"""If chrF is lower than this, the test set is checked for swapped sides. The check takes about a second."""


def evaluate(
    model: ModelArgument,
    pairs: PairsArgument,
    against: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="A baseline, compared by paired bootstrap.")
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size; 1 is greedy.", min=1)] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="A hypothesis scores log p / length^penalty.")
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    shortlist: ShortlistOption = False,
    tokenize: Annotated[
        str | None,
        typer.Option(
            help="Tokenizer of sacreBLEU: 13a, none, char, ko-mecab …; by target language if not given."
        ),
    ] = None,
    lowercase: Annotated[bool, typer.Option(help="Ignore case.")] = False,
    columns: ColumnsOption = "",
    encoding: EncodingOption = "",
    sentences: SentencesOption = None,
    out: Annotated[Path | None, typer.Option(help="Also write the translations to this file.")] = None,
    workers: WorkersOption = None,
    shard: ShardOption = None,
    ray: RayOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a model on a test set: BLEU, chrF, TER with signatures; alignment error if there are gold links.

    A model of plain text is scored on a text with one sentence per line: perplexity, or accuracy on masked
    tokens.
    """
    from jumok.data.corpora import open_corpora  # start-up
    from jumok.evaluation.bootstrap import compare  # start-up
    from jumok.evaluation.translator_scores import looks_swapped  # start-up
    from jumok.inference.loading import load  # start-up
    from jumok.storage.model_folder import read_card  # start-up

    task = read_card(model).recipe.model.task
    hardware: Hardware = {"device": device, "precision": precision}
    if task != "translate":
        _refuse_options(
            {
                "--against": against,
                "--beam": beam,
                "--length-penalty": length_penalty,
                "--columns": columns or None,
                "--tokenize": tokenize,
                "--lowercase": lowercase or None,
                "--out": out,
                "--shortlist": shortlist or None,
                "--sentences": sentences,
                "--workers": workers,
                "--shard": shard,
                "--ray": ray,
                "--engine": None if engine == "auto" else engine,
            }
        )
        if task == "classify":
            _evaluate_classes(model, pairs, hardware, as_json=as_json)
        else:
            _evaluate_text(model, pairs, hardware, encoding=encoding, as_json=as_json)
        return
    translator = load(model, engine=engine, shortlist=shortlist, **hardware)
    report_fallback(translator.engine)
    # The baseline runs without a shortlist, which belongs to a single model.
    baseline_translator = load(against, engine=engine, **hardware) if against is not None else None
    if baseline_translator is not None:
        _refuse_other_languages(translator, baseline_translator, against)
    languages = {"source": translator.source_language or None, "target": translator.target_language or None}
    reading: dict[str, Any] = {**languages, "columns": columns, "encoding": encoding}
    _refuse_single_text(pairs)
    corpora = open_corpora(pairs, **reading)
    _check_source(model, corpora, pictures=translator.reads_pictures)
    test = [pair for corpus in corpora for pair in corpus.pairs()]
    search: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty}
    scoring: dict[str, Any] = {"tokenize": tokenize, "lowercase": lowercase}
    search["sentences"] = sentences
    bulk = BulkOptions("evaluate", workers, shard, ray)
    if bulk and out is None:
        raise RecipeError(
            localise(
                "{options}: translations are kept in parts beside --out. Add --out FILE.", options=bulk.names
            )
        )
    work = BulkWork(bulk, {"engine": engine, "shortlist": shortlist, **hardware}, out) if bulk else None
    evaluation = _evaluate(translator, model, test, search, scoring, work)
    if evaluation is None:
        return
    suspicious = evaluation.scores.chrf < SUSPICIOUS_CHRF and not translator.reads_pictures
    if suspicious and looks_swapped(translator, test):
        raise DataError(
            localise(
                "The sides of {files} seem to be swapped: the model translates {direction}, and it finds the "
                "sources far more probable as translations of the references. Swap the files or columns, or "
                "name files after their languages (test.en test.de).",
                files=localise(" and ").join(pairs),
                direction=_direction(translator),
            )
        )
    scores: dict[str, Any] = evaluation.as_dict()
    if out is not None:
        no_other_file = localise("No other file was written.")
        with disk_errors(out, localise("The finished parts are kept.") if bulk else no_other_file):
            out.write_text("".join(f"{text}\n" for text in evaluation.translations), encoding="utf-8")
    if baseline_translator is not None:
        baseline_scoring = {**scoring, "metrics": ("bleu", "chrf")}
        work = work and replace(work, loading={**work.loading, "shortlist": False}, suffix=".against")
        baseline = _evaluate(baseline_translator, against or model, test, search, baseline_scoring, work)
        if baseline is None:
            return
        comparisons = compare(
            baseline.translations,
            evaluation.translations,
            [pair.target for pair in test],
            language=translator.target_language,
            **scoring,
        )
        scores["against"] = {name: asdict(comparison) for name, comparison in comparisons.items()}
    if as_json:
        typer.echo(json.dumps(scores, ensure_ascii=False, indent=1))
        return
    for metric in ("bleu", "chrf", "ter"):
        typer.echo(f"{metric:<6} {scores[metric]:6.2f}   {scores[f'{metric}_signature']}")
    if "alignment_error" in scores:
        alignment = localise(
            "alignment error {error:.3f} (precision {precision:.3f}, recall {recall:.3f})",
            error=scores["alignment_error"],
            precision=scores["alignment_precision"],
            recall=scores["alignment_recall"],
        )
        typer.echo(alignment)
    if "pointing" in scores:
        pointing = localise(
            "pointing {pointing:.3f}   share of the {written:,} written words with a region ({words:,} in "
            "the references) whose most attended patch lies in the region ({overlap:.3f}: at least overlaps "
            "the region)",
            pointing=scores["pointing"],
            written=scores["pointing_written"],
            words=scores["pointing_words"],
            overlap=scores["pointing_overlap"],
        )
        typer.echo(pointing)
    if against is not None:
        for comparison in comparisons.values():
            typer.echo(_format_comparison(comparison, str(against)))


@dataclass(frozen=True, slots=True)
class BulkWork:
    """How a test set is translated in bulk: the workers, how they load a model, and the option --out.

    The parts are stored beside --out. `suffix` is added to the name of their folder, so that the parts of a
    baseline have a folder of their own.
    """

    options: BulkOptions
    loading: dict[str, Any]
    out: Path | None
    suffix: str = ""


def _evaluate(
    translator: Translator,
    folder: Path,
    test: Sequence[Pair],
    search: dict[str, Any],
    scoring: dict[str, Any],
    work: BulkWork | None,
) -> Evaluation | None:
    """Translate and score a test set; None if parts of other shards are missing."""
    from jumok.evaluation.translator_scores import evaluate_translations, evaluate_translator  # start-up

    if work is None or work.out is None:
        return evaluate_translator(translator, test, **search, **scoring)
    if translator.reads_pictures:
        work.options.refuse_pictures()
    from jumok.inference.bulk.parts import bulk_settings  # start-up

    options = {
        **search,
        "sentences": search["sentences"] or translator.sentences_for_scores,
        "protect": False,
    }
    settings = bulk_settings(folder, work.loading, cast("TextOptions", options), output="string")
    out = work.out.with_name(work.out.name + work.suffix)
    texts = translate_texts(settings, [pair.source for pair in test], out, work.options)
    return None if texts is None else evaluate_translations(translator, test, texts, **scoring)


def _direction(translator: Translator) -> str:
    from jumok.text.languages import language_name  # start-up

    codes = (translator.source_language, translator.target_language)
    unknown = localise("an unknown language")
    return " → ".join(localise_text(language_name(code)) if code else unknown for code in codes)


def _refuse_other_languages(translator: Translator, baseline: Translator, against: Path | None) -> None:
    """Raise an error if the languages of two models differ, because their scores cannot be compared.

    A language that a model does not name counts as the same.
    """
    from jumok.text.languages import find_language  # start-up

    def code(model: Translator, side: str) -> str:
        name = getattr(model, side)
        language = find_language(name)
        return language.code if language else name

    for side in ("source_language", "target_language"):
        if len({code(translator, side), code(baseline, side)} - {""}) > 1:
            raise RecipeError(
                localise(
                    "The two models translate between different languages: this model translates "
                    "{direction}, and {against} translates {other_direction}. Compare models of the same "
                    "direction.",
                    direction=_direction(translator),
                    against=against,
                    other_direction=_direction(baseline),
                )
            )


def _refuse_options(options: dict[str, Any]) -> None:
    """Raise an error if the value of an option is not None."""
    if names := names_of_given(options):
        raise RecipeError(
            localise(
                "{options} would be ignored: this model does not translate. Leave {options} out.",
                options=names,
            )
        )


def _refuse_single_text(files: list[str]) -> None:
    """Raise an error if there is only one text, because a translator is scored on pairs."""
    from jumok.data.input_files import InputFile  # start-up
    from jumok.data.readers import find_pair_format  # start-up

    is_text = len(files) == 1 and files[0].lower().endswith(".txt")
    if is_text and find_pair_format(InputFile(files[0])) is None:
        raise DataError(
            localise(
                "A translator is scored on sentences and their translations. Received: only {file}. Name "
                "both texts (jumok evaluate MODEL test.en test.de), or one file of pairs.",
                file=files[0],
            )
        )


def _check_source(model: Path, corpora: Sequence[Corpus], *, pictures: bool) -> None:
    """Raise an error if the corpora are text and the model reads pictures, or the reverse."""
    wrong_corpora = [corpus.name for corpus in corpora if corpus.pictures != pictures]
    if wrong_corpora:
        expected = localise("pictures with captions (.tsv)") if pictures else localise("sentence pairs")
        raise DataError(
            localise(
                "The model in {model} is scored on {expected}. Received: {received}.",
                model=model,
                expected=expected,
                received=", ".join(wrong_corpora),
            )
        )


def _evaluate_classes(folder: Path, pictures: list[str], hardware: Hardware, *, as_json: bool) -> None:
    from jumok.data.corpora import open_corpora  # start-up
    from jumok.evaluation.class_scores import evaluate_classifier  # start-up
    from jumok.inference.loading import load_picture_classifier  # start-up

    classifier = load_picture_classifier(folder, **hardware)
    corpora = open_corpora(pictures)
    _check_source(folder, corpora, pictures=True)
    scores = evaluate_classifier(classifier, [pair for corpus in corpora for pair in corpus.pairs()])
    if as_json:
        typer.echo(json.dumps(scores.as_dict(), ensure_ascii=False, indent=1))
        return
    accuracy = localise(
        "accuracy {scores.accuracy:.4f}   {scores.correct:,} of {scores.pictures:,} pictures", scores=scores
    )
    typer.echo(accuracy)
    for name, answer, count in scores.confusions:
        confusion = localise(
            "  {count:,} × {name} was taken for {answer}", count=count, name=name, answer=answer
        )
        typer.echo(confusion)


def _evaluate_text(
    folder: Path, texts: list[str], hardware: Hardware, *, encoding: str, as_json: bool
) -> None:
    from jumok.data.corpora import open_texts  # start-up
    from jumok.evaluation.text_scores import evaluate_text  # start-up
    from jumok.inference.loading import load_text_model  # start-up

    model = load_text_model(folder, **hardware)
    corpora = open_texts(texts, language=model.language or None, encoding=encoding)
    scores = evaluate_text(model, [pair.target for corpus in corpora for pair in corpus.pairs()]).as_dict()
    if left_out := int(scores["left_out"]):
        one = localise(
            "left out: 1 line of more than {tokens:,} tokens; training left such lines out too",
            tokens=model.max_tokens,
        )
        several = localise(
            "left out: {count:,} lines of more than {tokens:,} tokens; training left such lines out too",
            count=left_out,
            tokens=model.max_tokens,
        )
        typer.echo(several if left_out > 1 else one, err=True)
    if as_json:
        typer.echo(json.dumps(scores, ensure_ascii=False, indent=1))
        return
    if scores["task"] == "masked":
        counts = localise(
            "of {tokens:,} tokens of {sentences:,} sentences (the same masks every time)", **scores
        )
        _echo_score(localise("accuracy"), f"{scores['accuracy']:8.4f}", counts)
        _echo_score(localise("loss"), f"{scores['loss']:8.4f}", localise("nats per masked token"))
        return
    per_token = localise("per token: {tokens:,} tokens of {sentences:,} sentences, including </s>", **scores)
    per_word = localise("{words:,} words, including sentence ends", **scores)
    per_character = localise("{characters:,} characters", **scores)
    _echo_score(localise("perplexity"), f"{scores['perplexity']:8.2f}", per_token)
    _echo_score(localise("  per word"), f"{scores['word_perplexity']:8.2f}", per_word)
    _echo_score(localise("  per character"), f"{scores['character_perplexity']:8.2f}", per_character)
    _echo_score(localise("loss"), f"{scores['loss']:8.4f}", localise("nats per token"))


def _echo_score(label: str, value: str, meaning: str) -> None:
    typer.echo(f"{pad(label, 15)} {value}   {meaning}")


def _format_comparison(comparison: Comparison, against: str) -> str:
    low, high = comparison.delta_interval
    is_significant = comparison.p_value < 0.05
    return localise(
        "{comparison.metric:<6} {comparison.delta:+.2f} against {against} (95 %: {low:+.2f} to {high:+.2f}, "
        "p = {comparison.p_value:.3f}): {verdict}",
        comparison=comparison,
        against=against,
        low=low,
        high=high,
        verdict=localise("significant") if is_significant else localise("not significant"),
    )
