"""`jumok translate MODEL < in.txt > out.txt`: translate lines, or documents with their formatting.

jumok translate MODEL report.docx --out report.ko.docx

A model of pictures reads the path of a picture from each line, and writes its caption or class.
"""

from __future__ import annotations

import io
import json
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from jumok.cli.arguments import (
    MAX_NOTES,
    DeviceOption,
    EncodingOption,
    EngineOption,
    GlossaryOption,
    Hardware,
    ModelArgument,
    PrecisionOption,
    SeedOption,
    SentencesOption,
    ShortlistOption,
    TemperatureOption,
    names_of_given,
    report_fallback,
    report_notes,
    require_utf8,
    sampling_options,
)
from jumok.cli.bulk import (
    BulkOptions,
    RayOption,
    ShardOption,
    WorkersOption,
    format_line_note,
    plan_outputs,
    report_below_n_best,
    translate_files,
)
from jumok.cli.input_lines import InputLines, count_lines
from jumok.cli.language import localise
from jumok.config.recipe import SearchSettings, setting_help
from jumok.data.input_files import standard_input, without_compression
from jumok.errors import DataError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.config.recipe import LanguageSettings
    from jumok.documents.files import FilePlan
    from jumok.inference.search.plan import SearchOverrides
    from jumok.inference.text_options import TextOptions
    from jumok.inference.translation import Translation
    from jumok.text.glossary import Glossary


_TABLES = {".csv", ".tsv"}


def translate(
    model: ModelArgument,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Text with one sentence per line (standard input if not given), a document (.docx, .html, "
            ".srt, …), or a folder of documents. For a model of pictures: a picture, or a text with "
            "one path per line. Several texts with --workers, --shard or --ray.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The translated document or folder; its format stays the same. With --workers, --shard and "
            "--ray: the translated lines.",
        ),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="For documents: a translation memory (a file of pairs). Its translations are used first.",
        ),
    ] = None,
    save_memory: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For documents: also write their sentences and translations as a translation memory (.tmx), "
            "for CAT tools and for --memory.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="With --out: replace a file that exists.")] = False,
    glossary: GlossaryOption = None,
    sentences: SentencesOption = None,
    encoding: EncodingOption = "",
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
    no_repeat_ngram_size: Annotated[
        int | None, typer.Option(help=setting_help(SearchSettings, "no_repeat_ngram_size"))
    ] = None,
    max_length_ratio: Annotated[
        float | None, typer.Option(help=setting_help(SearchSettings, "max_length_ratio"))
    ] = None,
    n_best: Annotated[int, typer.Option(help="Translations per line; more than 1 needs --json.", min=1)] = 1,
    prefix: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="A prefix that every translation must start with.", callback=require_utf8
        ),
    ] = "",
    sample: Annotated[bool, typer.Option(help="Sample instead of beam search.")] = False,
    temperature: TemperatureOption = None,
    top_k: Annotated[
        int | None, typer.Option(help="With --sample: only the k likeliest tokens; 0 for all.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="With --sample: the likeliest tokens with this total probability; 1 for all."),
    ] = None,
    seed: SeedOption = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    shortlist: ShortlistOption = False,
    workers: WorkersOption = None,
    shard: ShardOption = None,
    ray: RayOption = None,
    align: Annotated[bool, typer.Option(help="With --json: add word alignments.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line: text, score, tokens.")
    ] = False,
) -> None:
    """Translate lines from a file or standard input to standard output. Empty lines stay empty.

    A line may have any number of sentences: --sentences says whether each is translated by itself. They stay
    on one line. A document (docs/documents.md lists the formats) comes back as a document, with its
    formatting. A model of pictures writes the caption of each picture, or names its class.
    """
    bulk = BulkOptions("translate", workers, shard, ray)
    source = None if bulk else _only_file(files)
    _refuse_swapped(model, files[0] if files else None)
    outputs = plan_outputs(files or [], out, bulk, overwrite=overwrite) if bulk else []
    plan = None if bulk else _plan_documents(source, out, overwrite=overwrite)
    if plan is not None and (as_json or n_best > 1 or prefix or sample):
        raise RecipeError(
            localise(
                "--json, --n-best, --prefix and --sample are for lines. Leave them out to translate a "
                "document."
            )
        )
    for option, path in (("--memory", memory), ("--save-memory", save_memory)):
        if path is not None and plan is None:
            raise RecipeError(
                localise("{option} is for documents. Name a document to translate.", option=option)
            )
    if n_best > 1 and not as_json:
        raise RecipeError(
            localise(
                "--n-best {n_best} gives several translations per line; plain output has one. Add --json.",
                n_best=n_best,
            )
        )
    if align and not as_json:
        raise RecipeError(localise("--align adds a field to each result. Add --json."))
    sampling_settings = sampling_options(sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    from jumok.inference.loading import load  # start-up
    from jumok.inference.search.plan import Sampling  # start-up
    from jumok.storage.model_folder import read_card  # start-up

    search: SearchOverrides = {
        "beam": beam,
        "patience_factor": patience_factor,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "no_repeat_ngram_size": no_repeat_ngram_size,
        "max_length_ratio": max_length_ratio,
    }
    hardware: Hardware = {"device": device, "precision": precision}
    recipe = read_card(model).recipe
    if recipe.model.task == "classify":
        refused_options = {
            "--out": out,
            "--memory": memory,
            "--save-memory": save_memory,
            "--encoding": encoding or None,
            "--engine": None if engine == "auto" else engine,
            "--shortlist": shortlist or None,
            "--workers": workers,
            "--shard": shard,
            "--ray": ray,
            **{f"--{name.replace('_', '-')}": value for name, value in search.items()},
            "--sample": sample or None,
            "--prefix": prefix or None,
            "--n-best": n_best if n_best > 1 else None,
            "--align": align or None,
            "--glossary": glossary,
            "--sentences": sentences,
        }
        _classify(model, source, refused_options, hardware, as_json=as_json)
        return
    sampling = Sampling(**sampling_settings) if sample else None
    options = cast("TextOptions", {**search, "sentences": sentences})
    if glossary is not None:
        options["glossary"] = _read_glossary(glossary, recipe.languages, encoding)
    if bulk:
        if recipe.source.kind == "pictures":
            bulk.refuse_pictures()
        from jumok.inference.bulk.parts import Output, bulk_settings  # start-up

        output: Output = "json with alignment" if align else "json" if as_json else "text"
        load_options = {"engine": engine, "shortlist": shortlist, **hardware}
        settings = bulk_settings(
            model, load_options, options, sampling, output=output, n_best=n_best, prefix=prefix
        )
        translate_files(
            settings,
            outputs,
            bulk,
            lambda path: _input_lines(path, encoding, pictures=False),
            overwrite=overwrite,
        )
        return
    translator = load(model, engine=engine, shortlist=shortlist, **hardware)
    report_fallback(translator.engine_for(sampling, prefix=prefix, **search))
    if plan is not None:
        from jumok.cli.document_files import make_job, translate_plan  # start-up

        load_options = {"engine": engine, "shortlist": shortlist, **hardware}
        job = make_job(translator, options, memory, encoding, **load_options)
        translate_plan(translator, plan, job, save_memory, to_files=out is not None, overwrite=overwrite)
        return
    printer = _TranslationPrinter(n_best=n_best, align=align, as_json=as_json)
    is_picture = translator.reads_pictures and source is not None and _has_picture_suffix(source)
    with (
        closing(_input_lines(source, encoding, pictures=translator.reads_pictures)) as texts,
        _progress_bar(None if is_picture else source) as advance,
    ):
        # With samples and shortlists, a translation depends on the lines in the same batch. Except on a
        # terminal, where each line is answered at once, batches must therefore not depend on the time at
        # which lines arrive.
        ready = texts.ready if texts.is_terminal or not (sample or shortlist) else None
        for translation in translator.stream(
            texts, ready=ready, n_best=n_best, prefix=prefix, sampling=sampling, scores=as_json, **options
        ):
            printer.write(translation)
            advance()
    printer.report(_advice(sample))


def _read_glossary(path: Path, languages: LanguageSettings, encoding: str) -> Glossary:
    from jumok.data.glossary_files import read_glossary  # start-up

    return read_glossary(
        path,
        source_language=languages.source or "",
        target_language=languages.target or "",
        encoding=encoding,
    )


def _only_file(files: list[Path] | None) -> Path | None:
    """Return the one file to translate; None for standard input."""
    if files is not None and len(files) > 1:
        raise RecipeError(
            localise(
                "Several files are translated with --workers, --shard or --ray, to a folder. Received: "
                "{count} files. Name one, or add --workers 1 --out FOLDER.",
                count=len(files),
            )
        )
    return None if not files or files[0] == Path("-") else files[0]


def _refuse_swapped(model: Path, source: Path | None) -> None:
    """Raise an error if the file comes before the model on the command line."""
    if source is not None and model.is_file() and (source / "jumok.json").is_file():
        raise RecipeError(
            localise("The model comes first: jumok translate {model} {file}", model=source, file=model)
        )


class _TranslationPrinter:
    """Prints translations, and afterwards the notes on them."""

    def __init__(self, *, n_best: int, align: bool, as_json: bool) -> None:
        self._n_best, self._align, self._as_json = n_best, align, as_json
        self._num_lines = self._num_below_n_best = self._num_notes = 0
        self._notes: list[str] = []

    def write(self, translation: Translation) -> None:
        text = translation.as_json(align=self._align) if self._as_json else translation.as_line()
        sys.stdout.write(text + "\n")
        self._num_lines += 1
        for note in translation.notes:
            self._num_notes += 1
            if len(self._notes) < MAX_NOTES:
                self._notes.append(format_line_note(self._num_lines, note))
        self._num_below_n_best += (
            bool(translation.source.strip()) and 1 + len(translation.alternatives) < self._n_best
        )

    def report(self, advice: str) -> None:
        if self._num_below_n_best or self._notes:
            sys.stdout.flush()  # before the messages below, if both go to one terminal
        report_notes(self._notes, total=self._num_notes)
        if self._num_below_n_best:
            report_below_n_best(self._num_below_n_best, self._num_lines, self._n_best, advice)


def _input_lines(source: Path | None, encoding: str, *, pictures: bool) -> InputLines:
    """Return the lines of a file. If `pictures` is set and the file is a picture, return its path."""
    if pictures and source is not None and _has_picture_suffix(source):
        return InputLines.of_text(str(source))
    if not encoding and (source is None or without_compression(source.name) == source.name):
        return InputLines(source)
    from jumok.cli.encoded_input import read_text_file, transcode_to_utf8  # start-up

    if source is None:
        data = transcode_to_utf8(standard_input().read(), localise("standard input"), encoding)
        return InputLines(None, stream=io.BytesIO(data))
    return InputLines(source, stream=io.BytesIO(read_text_file(source, encoding)))


def _has_picture_suffix(path: Path) -> bool:
    from jumok.pictures.reading import PICTURE_SUFFIXES  # start-up: numpy

    return path.suffix.lower() in PICTURE_SUFFIXES


def _classify(
    folder: Path, source: Path | None, refused_options: dict[str, Any], hardware: Hardware, *, as_json: bool
) -> None:
    """Print the class of each picture. Raise an error if one of the `refused_options` is not None."""
    from jumok.inference.loading import load_picture_classifier  # start-up

    if names := names_of_given(refused_options):
        raise RecipeError(
            localise(
                "{options} would be ignored: a classifier names a class. Leave {options} out.", options=names
            )
        )
    classifier = load_picture_classifier(folder, **hardware)
    with closing(_input_lines(source, "", pictures=True)) as paths:
        for path in paths:
            [answer] = classifier.classify([path.strip()]) if path.strip() else [None]
            if as_json and answer is not None:
                probabilities = {name: round(value, 5) for name, value in answer.probabilities.items()}
                record = {"source": path, "text": answer.name, "probabilities": probabilities}
                typer.echo(json.dumps(record, ensure_ascii=False))
            else:
                typer.echo("" if answer is None else answer.name)


def _plan_documents(source: Path | None, out: Path | None, *, overwrite: bool) -> FilePlan | None:
    """Return the documents to translate; None if the input is lines. Print a note if the lines are a table.

    Wrong options are refused here, before the model is loaded.
    """
    if out is None and overwrite:
        raise RecipeError(localise("--overwrite replaces the file that --out names. Add --out FILE."))
    if source is None:
        if out is not None:
            raise RecipeError(
                localise("--out is for documents. Name the document: jumok translate MODEL FILE --out FILE.")
            )
        return None
    from jumok.documents.files import FilePlan, plan_files  # start-up
    from jumok.documents.registry import find_format, is_document, is_refused  # start-up

    if out is not None:
        if not source.exists():
            raise DataError(localise("There is no file {name}.", name=source))
        return plan_files(source, out, overwrite=overwrite)
    if source.is_dir():
        raise RecipeError(
            localise(
                "{folder} is a folder. Name the folder for its translation: --out FOLDER.", folder=source
            )
        )
    if is_refused(source.name):
        find_format(source.name)  # raises, with advice
    if source.suffix.lower() in _TABLES:
        note = localise(
            "{name} is a table, and its lines are translated as they are, with separators. To translate one "
            "column, cut it out, or save the table as .xlsx.",
            name=source.name,
        )
        typer.echo(localise("note: {note}", note=note), err=True)
    if not is_document(source.name) or find_format(source.name).suffix == ".txt":
        return None
    if sys.stdout.isatty():
        raise RecipeError(
            localise(
                "{name} is a document. Name the file to write: --out NAME{suffix}",
                name=source.name,
                suffix=source.suffix,
            )
        )
    return FilePlan([(source, source)], [])  # the translation is printed, so no target is needed


def _advice(sample: bool) -> str:
    """Return how to get more translations, for lines with fewer than --n-best."""
    higher_temperature = localise("A higher --temperature finds more.")
    return higher_temperature if sample else localise("A wider --beam finds more.")


@contextmanager
def _progress_bar(path: Path | None) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error, unless translations go to the terminal.

    `path` is the text whose lines are translated; with None, the bar shows no total. Yield a function that
    counts one more line.
    """
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda: None
        return
    from rich.console import Console  # start-up
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # start-up

    total = count_lines(path) if path is not None and path.is_file() else None
    name, unit, time_left = localise("translating"), localise("lines"), "{task.fields[time_left]}"
    columns = (TextColumn(name), BarColumn(24), MofNCompleteColumn(), TextColumn(unit), TextColumn(time_left))
    started, done = time.monotonic(), 0
    # By default the bar would capture standard output.
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        task = bar.add_task("", total=total, time_left="")

        def advance() -> None:
            nonlocal done
            done += 1
            bar.update(task, advance=1, time_left=_time_left(time.monotonic() - started, done, total))

        yield advance


def _time_left(elapsed: float, done: int, total: int | None) -> str:
    """Estimate the remaining time from the mean time per line so far.

    The time of the last few lines would be no measure, because lines arrive in blocks.
    """
    if total is None or done > total:
        return ""
    minutes, seconds = divmod(round(elapsed / done * (total - done)), 60)
    return localise("{time} left", time=f"{minutes}:{seconds:02}")
