"""The part of `jumok translate` and `jumok evaluate` for bulk work: `--workers`, `--shard` and `--ray`.

jumok translate MODEL in.txt --out out.txt --workers 4
jumok translate MODEL in.txt --out out.txt --shard 3/64        one of 64 jobs of a cluster
jumok translate MODEL in.txt --out out.txt --ray auto
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.arguments import MAX_NOTES, names_of_given, report_notes
from jumok.cli.input_lines import count_lines
from jumok.cli.language import localise, localise_text
from jumok.cli.status_line import status_line
from jumok.errors import DataError, RecipeError, StorageError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jumok.cli.input_lines import InputLines
    from jumok.inference.bulk.job import BulkJob, BulkProgress
    from jumok.inference.bulk.parts import BulkSettings
    from jumok.inference.bulk.processes import BulkWorkers

SECONDS_PER_REPORT = 10.0
"""Without a terminal, this much time passes between two lines of progress, or more."""

WorkersOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Translate with N processes, each with its own copy of the model. Finished parts are kept "
        "beside --out, and the same command continues from them.",
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Translate only shard I of N; the shard that ends last joins the parts of all shards.",
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDRESS]",
        help="Translate with actors of a Ray cluster (auto: the running cluster); on this machine if no "
        "address is given.",
    ),
]


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """The options for bulk work. An instance is false if --workers, --shard and --ray are all missing."""

    command: str
    workers: int | None = None
    shard: str | None = None
    ray: str | None = None

    def __bool__(self) -> bool:
        return not (self.workers is None and self.shard is None and self.ray is None)

    @property
    def names(self) -> str:
        """The names of the options that the user gave, for messages."""
        values = {"--workers": self.workers, "--shard": self.shard, "--ray": self.ray}
        return names_of_given(values)

    def refuse_pictures(self) -> None:
        """Raise an error, because pictures cannot be translated in parts.

        A finished part is reused if its lines are unchanged. A line with the path of a picture may be
        unchanged although the picture was changed.
        """
        raise UnsupportedError(
            localise(
                "Pictures are not translated in parts, because a picture may change while its path stays. "
                "Received: {options} and a model of pictures. Leave {options} out.",
                options=self.names,
            )
        )

    def start(self, settings: BulkSettings) -> BulkWorkers:
        """Return the workers that the options request.

        Without --workers, there is one process, which uses all cores; with --ray, there is one actor per free
        core.
        """
        if self.ray is not None:
            from jumok.inference.bulk.ray_workers import RayWorkers  # start-up

            return RayWorkers(settings, self.ray, self.workers or 0)
        from jumok.inference.bulk.processes import ProcessWorkers  # start-up

        return ProcessWorkers(settings, self.workers or 1)


def plan_outputs(
    sources: Sequence[Path], out: Path | None, options: BulkOptions, *, overwrite: bool
) -> list[tuple[Path, Path]]:
    """Return each input with its output: the file --out, or a file of the same name in the folder --out.

    Raise an error if --out is missing, if an input is a document, or if an output would replace its input,
    another output, or a file that is not the output of an earlier bulk translation.
    """
    from jumok.documents.registry import find_format, is_document  # start-up

    if not sources or out is None:
        raise RecipeError(
            localise(
                "{options}: finished parts are stored beside the output file. Name the input and the output: "
                "jumok {command} MODEL in.txt --out out.txt.",
                options=options.names,
                command=options.command,
            )
        )
    for source in sources:
        if not source.is_file():
            raise DataError(
                localise(
                    "There is no file {file}. {options} translates texts of many lines.",
                    file=source,
                    options=options.names,
                )
            )
        if is_document(source.name) and find_format(source.name).suffix != ".txt":
            raise RecipeError(
                localise(
                    "{file} is a document. {options} translates texts of many lines. Leave {options} out.",
                    file=source,
                    options=options.names,
                )
            )
    in_folder = len(sources) > 1 or out.is_dir()
    files = [(source, out / source.name if in_folder else out) for source in sources]
    if len({target for _, target in files}) < len(files):
        raise RecipeError(
            localise(
                "Two of the files have the same name, so one translation would replace the other. Rename one "
                "of the two files."
            )
        )
    for source, target in files:
        if target.exists() and target.samefile(source):
            raise DataError(
                localise("{file} would replace its own source. Choose another name for --out.", file=target)
            )
        if not overwrite and not target.with_name(f"{target.name}.parts").is_dir():
            _refuse_existing(target)
    return files


def check_replaceable(files: Sequence[tuple[Path, Path]], settings: BulkSettings, *, overwrite: bool) -> None:
    """Raise an error if an output exists and must not be replaced.

    An output may be replaced if `overwrite` is true, or if these settings wrote it and it was not changed
    since.
    """
    from jumok.inference.bulk.parts import PartFolder  # start-up

    for _, target in files:
        if not overwrite and not PartFolder(target).has_joined(target, settings):
            _refuse_existing(target)


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise StorageError(
            localise(
                "{file} exists, and these settings did not write it, or it was changed since. Choose another "
                "name, or add --overwrite to replace it.",
                file=target,
            )
        )


def translate_files(
    settings: BulkSettings,
    files: Sequence[tuple[Path, Path]],
    options: BulkOptions,
    open_lines: Callable[[Path], InputLines],
    *,
    overwrite: bool,
) -> None:
    """Translate files line by line. Write each output whose parts all exist."""
    check_replaceable(files, settings, overwrite=overwrite)
    jobs = [_job(_lines(source, open_lines), out, settings, options) for source, out in files]
    total = sum(count_lines(source) for source, _ in files)
    _run(jobs, settings, options, total)
    notes: list[str] = []
    num_lines = num_notes = num_below_n_best = 0
    for (source, out), job in zip(files, jobs, strict=True):
        if _report_missing_parts(job, options):
            continue
        if not job.is_written():  # another command may have written the output meanwhile
            check_replaceable([(source, out)], settings, overwrite=overwrite)
        job.join()
        name = f"{source.name}, " if len(files) > 1 else ""
        for first_line, part in job.parts():
            num_lines += part.lines
            num_notes += part.num_notes
            num_below_n_best += part.num_below_n_best
            if len(notes) < MAX_NOTES:
                notes += [name + format_line_note(first_line + index, note) for index, note in part.notes]
    report_notes(notes[:MAX_NOTES], total=num_notes)
    if num_below_n_best:
        report_below_n_best(num_below_n_best, num_lines, settings.n_best)


def report_below_n_best(num_below_n_best: int, num_lines: int, n_best: int, advice: str = "") -> None:
    """Print on standard error how many lines have fewer than `n_best` translations, and the advice."""
    message = localise(
        "{num_below_n_best:,} of {num_lines:,} lines have fewer than {n_best} translations: no other text "
        "was found.",
        num_below_n_best=num_below_n_best,
        num_lines=num_lines,
        n_best=n_best,
    )
    typer.echo(f"jumok translate: {message} {advice}".rstrip(), err=True)


def format_line_note(line: int, note: str) -> str:
    """Return a note with its line number."""
    return localise("line {line:,}: {note}", line=line, note=localise_text(note))


def translate_texts(
    settings: BulkSettings, texts: Sequence[str], out: Path, options: BulkOptions
) -> list[str] | None:
    """Return the translations of texts; None if parts of other shards are missing.

    `settings.output` must be "string", so that every line of a part is one translation as JSON.
    """
    job = _job(texts, out, settings, options)
    _run([job], settings, options, len(texts))
    if _report_missing_parts(job, options):
        return None
    job.remove_outdated_parts()
    return [json.loads(line) for _, part in job.parts() for line in part.output.splitlines()]


def _job(texts: Iterable[str], out: Path, settings: BulkSettings, options: BulkOptions) -> BulkJob:
    from jumok.inference.bulk.job import BulkJob, parse_shard  # start-up

    return BulkJob(texts, out, settings, None if options.shard is None else parse_shard(options.shard))


def _lines(source: Path, open_lines: Callable[[Path], InputLines]) -> Iterator[str]:
    with closing(open_lines(source)) as lines:
        yield from lines


def _run(jobs: Sequence[BulkJob], settings: BulkSettings, options: BulkOptions, total: int) -> None:
    from jumok.inference.bulk.job import run_jobs  # start-up

    workers = options.start(settings)
    with status_line(localise("starting the workers")) as show:
        report = _Progress(total, workers.count, options, show)
        progress = run_jobs(jobs, workers, report)
    if workers.fallback_message:
        typer.echo(localise_text(workers.fallback_message), err=True)
    report.finish(progress)


class _Progress:
    """Shows the progress of all workers.

    On a terminal, one line is updated with every part. Otherwise a part prints a line if the last line was
    printed more than ten seconds ago.
    """

    def __init__(self, total: int, workers: int, options: BulkOptions, show: Callable[[str], None]) -> None:
        self._total, self._workers, self._options, self._show = total, workers, options, show
        self._started = self._reported = time.monotonic()

    def __call__(self, progress: BulkProgress) -> None:
        self._show(self._text(progress))
        if not sys.stderr.isatty() and time.monotonic() - self._reported > SECONDS_PER_REPORT:
            self._reported = time.monotonic()
            typer.echo(self._text(progress), err=True)

    def finish(self, progress: BulkProgress) -> None:
        parts = localise(
            "; {done:,} parts are new, {found:,} were already there",
            done=progress.parts,
            found=progress.reused_parts,
        )
        typer.echo(f"{self._text(progress)}{parts}", err=True)

    def _text(self, progress: BulkProgress) -> str:
        speed = progress.lines / max(time.monotonic() - self._started, 1e-3)
        done = progress.lines + progress.reused_lines
        values = {"done": done, "total": self._total, "speed": speed, "workers": self._workers}
        one_worker = localise("{done:,} of {total:,} lines, {speed:,.0f} lines/s by 1 worker", **values)
        several_workers = localise(
            "{done:,} of {total:,} lines, {speed:,.0f} lines/s by {workers} workers", **values
        )
        return f"jumok {self._options.command}: {several_workers if self._workers > 1 else one_worker}"


def _report_missing_parts(job: BulkJob, options: BulkOptions) -> int:
    """Return how many parts of a job are missing. If some are, print their number on standard error."""
    num_existing, needed = job.num_parts()
    if num_existing < needed:
        message = localise(
            "{missing:,} of {needed:,} parts of {file} are missing. Run the other shards: the shard that "
            "ends last joins the parts.",
            missing=needed - num_existing,
            needed=needed,
            file=job.out,
        )
        typer.echo(f"jumok {options.command}: {message}", err=True)
    return needed - num_existing
