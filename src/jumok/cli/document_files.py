"""The part of `jumok translate` for documents: `jumok translate MODEL report.docx --out report.ko.docx`."""

from __future__ import annotations

import hashlib
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.arguments import report_notes
from jumok.cli.encoded_input import read_document_file
from jumok.cli.language import localise, localise_text
from jumok.cli.segment_translator import DocumentJob, SegmentTranslator, memory_key
from jumok.documents.files import FilePlan, check_target, open_document, translate_file
from jumok.documents.message import has_all_placeholders
from jumok.documents.part_file import PartFile, make_key
from jumok.errors import DataError, RecipeError, StorageError
from jumok.storage.folders import disk_errors, make_folder, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.inference.text_options import TextOptions
    from jumok.inference.translator import Translator

    OnProgress = Callable[[int, int], None]


def make_job(
    translator: Translator,
    options: TextOptions,
    memory: Path | None,
    encoding: str,
    **load_options: object,
) -> DocumentJob:
    """Return the job for `translate_plan`. `load_options` are the options that the model was loaded with."""
    memory_translations = {} if memory is None else _read_memory(memory, translator, encoding)
    glossary = options.get("glossary")
    other_options = {name: value for name, value in options.items() if name != "glossary"}
    terms = {} if glossary is None else glossary.terms
    key = make_key(translator.facts.digest, other_options, terms, memory_translations, encoding, load_options)
    return DocumentJob(options, memory_translations, encoding, key)


def _read_memory(path: Path, translator: Translator, encoding: str) -> dict[str, str]:
    """Read a translation memory, which is a file of pairs in any format.

    If a text occurs several times, its last translation is used: tools append to a memory, so the last is the
    newest. A pair is left out if its translation is empty, because tools store texts that are not translated
    yet in this way. A pair is also left out if its translation lacks a placeholder of the source. If the
    memory cannot be read in `encoding`, it is read as UTF-8: documents in CP949 may have a memory in UTF-8.
    """
    from jumok.data.corpora import open_further_corpora  # start-up

    corpora = open_further_corpora(
        [str(path)],
        source=translator.source_language or None,
        target=translator.target_language or None,
        encoding=encoding,
    )
    memory: dict[str, str] = {}
    replaced: dict[str, str] = {}  # source → an earlier translation
    incomplete: dict[str, str] = {}  # source → a translation that lacks placeholders
    for pair in (pair for corpus in corpora for pair in corpus.pairs()):
        source, target = memory_key(pair.source), pair.target.replace("\0", " ").strip()
        if not target:
            continue
        if not has_all_placeholders(source, target):
            incomplete[source] = target
            continue
        if memory.get(source, target) != target:
            replaced[source] = memory[source]
        memory[source] = target
    _report_replaced(path, memory, replaced)
    _report_incomplete(path, incomplete)
    return memory


def _report_replaced(path: Path, memory: Mapping[str, str], replaced: Mapping[str, str]) -> None:
    """Print how many texts have several translations, with an example and the translation that is used."""
    if replaced:
        source, earlier = next(iter(replaced.items()))
        note = localise(
            "{name} has several translations of {count:,} of its {total:,} texts. The last in the file "
            "counts: {source!r} becomes {last!r}, not {earlier!r}.",
            name=path.name,
            count=len(replaced),
            total=len(memory),
            source=source,
            last=memory[source],
            earlier=earlier,
        )
        typer.echo(localise("note: {note}", note=note), err=True)


def _report_incomplete(path: Path, incomplete: Mapping[str, str]) -> None:
    """Print how many translations are not used because they lack a placeholder, with an example."""
    if incomplete:
        source, target = next(iter(incomplete.items()))
        note = localise(
            "{name} has translations that lack a placeholder of their source. They are not used ({count:,}): "
            "{source!r} → {target!r}.",
            name=path.name,
            count=len(incomplete),
            source=source,
            target=target,
        )
        typer.echo(localise("note: {note}", note=note), err=True)


def translate_plan(
    translator: Translator,
    plan: FilePlan,
    job: DocumentJob,
    save_memory: Path | None,
    *,
    to_files: bool,
    overwrite: bool,
) -> None:
    """Translate documents to files, or a single document to standard output."""
    if save_memory is not None:
        _check_memory_file(save_memory, translator, overwrite=overwrite)
    failures: list[str] = []
    if to_files:
        translated, failures = _translate_files(translator, plan, job, overwrite=overwrite)
    else:
        translated = _print_document(translator, plan.files[0][0], job)
    if failures:
        raise _failure_error(failures, save_memory)
    if save_memory is not None:
        _write_memory(save_memory, translator, translated)


def _failure_error(failures: Sequence[str], save_memory: Path | None) -> DataError:
    """Return an error that lists all failures, and says that the memory `save_memory` is not written."""
    one = localise("1 document could not be translated.")
    several = localise("{count:,} documents could not be translated.", count=len(failures))
    sentences = [one if len(failures) == 1 else several, *failures]
    if save_memory is not None:
        sentences.append(
            localise(
                "{file} is not written yet. Repair or remove these documents and run the same command again.",
                file=save_memory,
            )
        )
    return DataError(" ".join(sentences))


def _check_memory_file(path: Path, translator: Translator, *, overwrite: bool) -> None:
    """Before anything is translated, raise an error if the translation memory could not be written."""
    if path.suffix.lower() != ".tmx":
        raise RecipeError(
            localise(
                "--save-memory writes TMX. Choose a name that ends in .tmx. Received: {file}.", file=path
            )
        )
    if path.exists() and not overwrite:
        raise StorageError(
            localise(
                "{file} exists and is not overwritten. Choose another name, or add --overwrite.", file=path
            )
        )
    if not translator.source_language or not translator.target_language:
        raise DataError(
            localise(
                "This model does not say its languages, which a translation memory must name. Leave "
                "--save-memory out."
            )
        )


def _write_memory(path: Path, translator: Translator, translated: Mapping[str, str]) -> None:
    """Write sentences and their translations as a translation memory."""
    from jumok.data.formats.tmx_writer import write_tmx  # start-up

    data = write_tmx(translated.items(), translator.source_language, translator.target_language)
    with disk_errors(path.parent, localise("The documents are written.")):
        make_folder(path.parent)
    write_file(path, data)
    one = localise("{file}: 1 sentence with translation.", file=path)
    all_sentences = localise(
        "{file}: {count:,} sentences with translation.", file=path, count=len(translated)
    )
    typer.echo(one if len(translated) == 1 else all_sentences, err=True)


def _translate_files(
    translator: Translator, plan: FilePlan, job: DocumentJob, *, overwrite: bool
) -> tuple[dict[str, str], list[str]]:
    """Translate the files of a plan, and print which files were left out.

    Return all sentences with their translations, and the reasons why files could not be translated. If the
    input is a folder, a part file lists the translated files, so that the same command does not translate
    them again. It is removed when every file is translated.
    """
    if plan.folder is None:
        return _translate_in_order(translator, plan, job, None, overwrite=overwrite)
    progress = PartFile(plan.folder, make_key(job.key), overwrite=overwrite)
    try:
        return _translate_in_order(translator, plan, job, progress, overwrite=overwrite)
    finally:
        progress.close()


def _translate_in_order(
    translator: Translator, plan: FilePlan, job: DocumentJob, progress: PartFile | None, *, overwrite: bool
) -> tuple[dict[str, str], list[str]]:
    """Do the work of `_translate_files`. `progress` is the part file of a folder."""
    failures = []
    translated: dict[str, str] = {}
    num_from_memory = num_done_before = 0
    for number, (path, target) in enumerate(plan.files, 1):
        label = localise("{name} ({number} of {count})", name=path.name, number=number, count=len(plan.files))
        label = path.name if len(plan.files) == 1 else label
        digest = "" if progress is None else _digest(path)
        done = None if progress is None else progress.results.get(str(target))
        if done is not None and done["source"] == digest and target.exists():
            num_done_before += 1
            translated |= done["translated"]
            continue
        if refusal := _refusal_reason(path, target, overwrite=overwrite):
            failures.append(refusal)
            continue
        try:
            segment_translator = _translate_one(translator, path, target, job, label, overwrite=overwrite)
        except DataError as error:
            if len(plan.files) == 1:
                raise
            failures.append(str(error))
            continue
        num_from_memory += segment_translator.num_from_memory
        translated |= segment_translator.translated
        if progress is not None:
            progress.add(str(target), {"source": digest, "translated": segment_translator.translated})
    if progress is not None and not failures:
        progress.remove()  # after failures the file is kept, so that the same command can continue
    if job.memory:
        message = localise(
            "Segments and sentences that were taken from the translation memory: {count:,}.",
            count=num_from_memory,
        )
        typer.echo(message, err=True)
    _report_folder(plan, len(failures), num_done_before)
    return translated, failures


def _refusal_reason(source: Path, target: Path, *, overwrite: bool) -> str:
    """Return why a translation may not be written; "" if it may.

    `plan_files` accepts all existing targets of a folder with a part file. Here they are refused, except
    those that `_translate_in_order` has skipped: an earlier command wrote them, from the same sources.
    """
    try:
        check_target(source, target, overwrite=overwrite)
    except (DataError, StorageError) as error:
        return str(error)
    return ""


def _digest(path: Path) -> str:
    """Return the sha256 of a file; "" if the file cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # the error is reported when the document is opened
        return ""


def _report_folder(plan: FilePlan, num_failures: int, num_done_before: int) -> None:
    """Print how many of several documents were translated, and which files were left out."""
    counts = {"count": len(plan.files) - num_failures, "before": num_done_before}
    if len(plan.files) > 1:
        if counts["count"] == 1:
            now = localise("1 document was translated.")
            resumed = localise("1 document was translated, by an earlier command.")
        else:
            now = localise("{count:,} documents were translated.", **counts)
            resumed = localise(
                "{count:,} documents were translated, {before:,} of them by an earlier command.", **counts
            )
        typer.echo(resumed if num_done_before else now, err=True)
    if plan.left_out:
        names = _first_names(plan.left_out)
        typer.echo(localise("Left out, because their type is not known: {names}.", names=names), err=True)
    if plan.hidden:
        typer.echo(localise("Left out, because hidden: {names}.", names=_first_names(plan.hidden)), err=True)


def _first_names(paths: Sequence[Path]) -> str:
    names, more = ", ".join(path.name for path in paths[:5]), len(paths) - 5
    return localise("{names} and {more:,} more", names=names, more=more) if more > 0 else names


def _translate_one(
    translator: Translator, path: Path, target: Path, job: DocumentJob, label: str, *, overwrite: bool
) -> SegmentTranslator:
    with _segment_progress(label) as on_progress:
        segment_translator = SegmentTranslator(
            translator, job, target=target, overwrite=overwrite, on_progress=on_progress
        )
        try:
            notes = translate_file(
                path,
                target,
                segment_translator,
                language=translator.target_language,
                source_language=translator.source_language,
                read=partial(read_document_file, encoding=job.encoding),
                overwrite=overwrite,
            )
            if segment_translator.part is not None:
                segment_translator.part.remove()
        except KeyboardInterrupt:
            if segment_translator.part is not None and segment_translator.part.results:
                message = localise(
                    "The finished part of the translation is in {file}. The same command continues.",
                    file=segment_translator.part.path,
                )
                typer.echo(message, err=True)
            raise
        finally:
            if segment_translator.part is not None:
                segment_translator.part.close()
    report_notes([f"{path.name}: {localise_text(note)}" for note in (*notes, *segment_translator.notes)])
    return segment_translator


def _print_document(translator: Translator, source: Path, job: DocumentJob) -> dict[str, str]:
    """Write a translated document to standard output; return its sentences with their translations."""
    document = open_document(source, partial(read_document_file, encoding=job.encoding))
    segment_translator = SegmentTranslator(translator, job)
    data = document.write(
        segment_translator(document.segments), translator.target_language, translator.source_language
    )
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    report_notes([*document.notes, *segment_translator.notes])
    return segment_translator.translated


@contextmanager
def _segment_progress(label: str) -> Iterator[OnProgress | None]:
    """Show a progress bar if standard error is a terminal. Yield the callback that moves the bar, or None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # start-up
    from rich.markup import escape  # start-up
    from rich.progress import (  # start-up
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(24), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(escape(label), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
