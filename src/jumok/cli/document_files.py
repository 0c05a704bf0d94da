"""The part of `jumok translate` for documents: `jumok translate MODEL report.docx --out report.ko.docx`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.documents import SegmentTranslation
from jumok.documents.files import open_document, plan_files, translate_file
from jumok.errors import DataError, UnsupportedError
from jumok.server.pipeline import Candidate, TranslatedText
from jumok.text.sentences import sentence_spans
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.inference import SearchOverrides, Translation, Translator

    OnProgress = Callable[[int, int], None]

__all__ = ["SegmentTranslator", "print_document", "translate_documents"]


class SegmentTranslator:
    """Translates segments sentence by sentence, with the word links that inline markup needs.

    `memory` has translations of whole segments, which are taken as they are.
    """

    def __init__(
        self,
        translator: Translator,
        search: SearchOverrides,
        *,
        memory: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._translator = translator
        self._search = search
        self._memory = memory or {}
        self._on_progress = on_progress
        self.num_remembered = 0

    def __call__(self, segments: Sequence[str]) -> list[SegmentTranslation]:
        translator = self._translator
        # What a document repeats is translated once.
        spans = {text: tuple(sentence_spans(text)) for text in segments if self._remembered(text) is None}
        sentences = list(dict.fromkeys(text[start:end] for text in spans for start, end in spans[text]))
        candidates = self._candidates(sentences)
        translated = {
            text: TranslatedText(
                text,
                spans[text],
                tuple((candidates[text[start:end]],) for start, end in spans[text]),
                translator.target_language,
            ).segment_translation()
            for text in spans
        }
        return [self._translation(text, translated) for text in segments]

    def _translation(self, text: str, translated: Mapping[str, SegmentTranslation]) -> SegmentTranslation:
        remembered = self._remembered(text)
        if remembered is None:
            return translated[text]
        self.num_remembered += 1
        pair = Pair(text.strip(), remembered)
        start = len(text) - len(text.lstrip())
        candidate = Candidate(remembered, 0.0, self._links([pair])[0])
        spans = ((start, start + len(pair.source)),)
        return TranslatedText(text, spans, ((candidate,),), "").segment_translation()

    def _remembered(self, text: str) -> str | None:
        return self._memory.get(text.strip()) if text.strip() else None

    def _candidates(self, sentences: Sequence[str]) -> dict[str, Candidate]:
        translations = self._translator.translate(
            sentences, scores=False, on_progress=self._on_progress, **self._search
        )
        unsplit = [translation for translation in translations if len(translation.parts) <= 1]
        links = dict(
            zip(
                [translation.source for translation in unsplit],
                self._links([Pair(translation.source, translation.text) for translation in unsplit]),
                strict=True,
            )
        )
        return {
            translation.source: Candidate(
                translation.text,
                0.0,
                links[translation.source] if translation.source in links else _links_of_parts(translation),
            )
            for translation in translations
        }

    def _links(self, pairs: Sequence[Pair]) -> Sequence[tuple[tuple[int, int], ...] | None]:
        try:
            return [tuple(sorted(alignment.sure)) for alignment in self._translator.align_all(pairs)]
        except UnsupportedError:  # a model without cross-attention
            return [None] * len(pairs)


def _links_of_parts(translation: Translation) -> tuple[tuple[int, int], ...] | None:
    try:
        return tuple(sorted(translation.alignment.sure))
    except UnsupportedError:
        return None


def translate_documents(
    translator: Translator, source: Path, out: Path, search: SearchOverrides, *, overwrite: bool
) -> None:
    """Translate a file, or every document of a folder, and say what was left out."""
    plan = plan_files(source, out, overwrite=overwrite)
    failures = []
    for number, (path, target) in enumerate(plan.files, 1):
        label = path.name if len(plan.files) == 1 else f"{path.name} ({number} of {len(plan.files)})"
        with _segment_progress(label) as on_progress:
            translate = SegmentTranslator(translator, search, on_progress=on_progress)
            try:
                translate_file(path, target, translate, language=translator.target_language)
            except DataError as error:
                if len(plan.files) == 1:
                    raise
                failures.append(str(error))
    num_written = len(plan.files) - len(failures)
    if source.is_dir():
        typer.echo(f"{num_written:,} documents were written to {out}.", err=True)
    if plan.left_out:
        names = ", ".join(path.name for path in plan.left_out[:5])
        more = f" and {len(plan.left_out) - 5:,} more" if len(plan.left_out) > 5 else ""
        typer.echo(
            f"{len(plan.left_out):,} files are of no known type and were left out: {names}{more}.", err=True
        )
    if failures:
        raise DataError(f"{len(failures):,} documents could not be translated. " + " ".join(failures))


def print_document(translator: Translator, source: Path, search: SearchOverrides) -> None:
    """Write a translated document to standard output."""
    if sys.stdout.isatty():
        raise DataError(
            f"{source.name} is a document. Name the file to write: --out translated{source.suffix}"
        )
    document = open_document(source)
    translations = SegmentTranslator(translator, search)(document.segments)
    data = document.write(translations, translator.target_language)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def _segment_progress(label: str) -> Iterator[OnProgress | None]:
    """Show a progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # start-up
    from rich.progress import (  # start-up
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(label), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
