"""The part of `jumok translate` for documents: `jumok translate MODEL report.docx --out report.ko.docx`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.arguments import report_notes
from jumok.documents.document import SegmentTranslation
from jumok.documents.files import FilePlan, open_document, translate_file
from jumok.errors import DataError, UnsupportedError
from jumok.inference.terminology import find_terms, place_in_pairs
from jumok.inference.text_options import LINE_BY_LINE, separate_options
from jumok.server.pipeline import Candidate, TranslatedText
from jumok.text.sentences import text_spans
from jumok.text.term_placement import has_all_terms, missing_term_note
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.inference.text_options import TextOptions
    from jumok.inference.translation import Translation
    from jumok.inference.translator import Translator
    from jumok.text.words import Span

    OnProgress = Callable[[int, int], None]
    Links = tuple[tuple[int, int], ...]

_ALIGNED_AT_ONCE = 1_024  # pairs per block; progress is reported after each block


class SegmentTranslator:
    """Translates segments sentence by sentence, with the word links that inline markup needs.

    `memory` has translations of segments and sentences, which are taken over as they are. `options` may
    keep the lines of a text whole, and have a glossary.
    """

    def __init__(
        self,
        translator: Translator,
        options: TextOptions,
        *,
        memory: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._translator = translator
        self._handling, self._search = separate_options(options, translator)
        self._memory = memory or {}
        self._on_progress = on_progress
        self.num_from_memory = 0
        """Segments and sentences that were taken from the memory."""
        self.notes: list[str] = []
        """What a reader should know about the translation, such as a term that could not be placed."""

    def __call__(self, segments: Sequence[str]) -> list[SegmentTranslation]:
        # What a document repeats is translated once.
        spans = {text: self._spans(text) for text in segments}
        sentences = list(dict.fromkeys(text[start:end] for text in spans for start, end in spans[text]))
        candidates = self._candidates(sentences)
        translated = {
            text: TranslatedText(
                text,
                spans[text],
                tuple((candidates[text[start:end]],) for start, end in spans[text]),
                self._translator.target_language,
            ).segment_translation()
            for text in spans
        }
        return [translated[text] for text in segments]

    def _spans(self, text: str) -> tuple[Span, ...]:
        """Return the whole text if the memory has it, or else its sentences."""
        stripped = text.strip()
        if stripped not in self._memory:
            return tuple(text_spans(text, self._handling.sentences))
        start = text.index(stripped)
        return ((start, start + len(stripped)),)

    def _candidates(self, sentences: Sequence[str]) -> dict[str, Candidate]:
        new = [sentence for sentence in sentences if sentence not in self._memory]
        translations = self._translator.translate(
            new,
            scores=False,
            on_progress=lambda done, total: self._report(done, 2 * total),
            **LINE_BY_LINE,
            **self._search,
        )
        self.notes += [note for translation in translations for note in translation.notes]
        known = [Pair(sentence, self._memory[sentence]) for sentence in sentences if sentence in self._memory]
        self.num_from_memory += len(known)
        whole = [
            Pair(translation.source, translation.text)
            for translation in translations
            if len(translation.parts) <= 1
        ]
        links = dict(
            zip([pair.source for pair in (*known, *whole)], self._links([*known, *whole]), strict=True)
        )
        texts = {pair.source: pair.target for pair in known}
        for translation in translations:
            texts[translation.source] = translation.text
            if translation.source not in links:
                links[translation.source] = _links_of_parts(translation)
        candidates = {
            source: Candidate(text, score=0.0, links=links[source]) for source, text in texts.items()
        }
        return candidates | self._with_terms({source: texts[source] for source in new})

    def _with_terms(self, texts: Mapping[str, str]) -> dict[str, Candidate]:
        """Return the translations that lack a term of their source, with it; `texts` is source → text."""
        found = [(source, text, find_terms(source, self._handling)) for source, text in texts.items()]
        lacking = [
            (Pair(source, text), matches)
            for source, text, matches in found
            if not has_all_terms(text, matches)
        ]
        placed = place_in_pairs(lacking, self._translator)
        self.notes += [missing_term_note(term) for one in placed for term in one.missing]
        return {
            pair.source: Candidate(one.text, score=0.0, links=one.links)
            for (pair, _), one in zip(lacking, placed, strict=True)
        }

    def _links(self, pairs: Sequence[Pair]) -> Sequence[Links | None]:
        """Return the word links of each pair. Aligning is the second half of the progress."""
        links: list[Links | None] = []
        try:
            for start in range(0, len(pairs), _ALIGNED_AT_ONCE):
                block = pairs[start : start + _ALIGNED_AT_ONCE]
                links += [tuple(sorted(alignment.sure)) for alignment in self._translator.align_all(block)]
                self._report(len(pairs) + len(links), 2 * len(pairs))
        except UnsupportedError:  # a model without cross-attention
            return [None] * len(pairs)
        return links

    def _report(self, done: int, total: int) -> None:
        if self._on_progress is not None:
            self._on_progress(done, total)


def read_memory(path: Path, translator: Translator) -> dict[str, str]:
    """Read a translation memory: any file of pairs. Of several translations of a text, the last counts."""
    from jumok.data.corpora import open_corpora  # start-up

    corpora = open_corpora(
        [str(path)], source=translator.source_language or None, target=translator.target_language or None
    )
    return {pair.source.strip(): pair.target.strip() for corpus in corpora for pair in corpus.pairs()}


def _links_of_parts(translation: Translation) -> Links | None:
    try:
        return tuple(sorted(translation.alignment.sure))
    except UnsupportedError:
        return None


def translate_documents(
    translator: Translator,
    plan: FilePlan,
    options: TextOptions,
    *,
    memory: Mapping[str, str] | None = None,
) -> None:
    """Translate the files of a plan, and say what was left out."""
    failures = []
    num_from_memory = 0
    for number, (path, target) in enumerate(plan.files, 1):
        label = path.name if len(plan.files) == 1 else f"{path.name} ({number} of {len(plan.files)})"
        with _segment_progress(label) as on_progress:
            translate = SegmentTranslator(translator, options, memory=memory, on_progress=on_progress)
            try:
                translate_file(path, target, translate, language=translator.target_language)
            except DataError as error:
                if len(plan.files) == 1:
                    raise
                failures.append(str(error))
        num_from_memory += translate.num_from_memory
        report_notes([f"{path.name}: {note}" for note in translate.notes])
    if memory is not None:
        message = f"{num_from_memory:,} segments and sentences were taken from the translation memory."
        typer.echo(message, err=True)
    if len(plan.files) > 1:
        typer.echo(f"{len(plan.files) - len(failures):,} documents were translated.", err=True)
    if plan.left_out:
        names = ", ".join(path.name for path in plan.left_out[:5])
        more = f" and {len(plan.left_out) - 5:,} more" if len(plan.left_out) > 5 else ""
        typer.echo(f"Left out, because their type is not known: {names}{more}.", err=True)
    if failures:
        raise DataError(f"{len(failures):,} documents could not be translated. " + " ".join(failures))


def print_document(
    translator: Translator, source: Path, options: TextOptions, *, memory: Mapping[str, str] | None = None
) -> None:
    """Write a translated document to standard output."""
    document = open_document(source)
    translate = SegmentTranslator(translator, options, memory=memory)
    data = document.write(translate(document.segments), translator.target_language)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    report_notes(translate.notes)


@contextmanager
def _segment_progress(label: str) -> Iterator[OnProgress | None]:
    """Show a progress bar on standard error, if that is a terminal."""
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
