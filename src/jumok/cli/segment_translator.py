"""Translates the segments of documents sentence by sentence, with word links.

A long document is translated in blocks of sentences. Finished blocks are stored in a part file. If the
process is killed, the same command continues after the last stored block. Which sentences form a block
depends only on the document, so an interruption does not change the translation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jumok.documents.document import SegmentTranslation
from jumok.documents.part_file import PartFile, make_key
from jumok.documents.segment_codes import TextWithCodes, split_at_codes
from jumok.errors import UnsupportedError
from jumok.inference.terminology import PairMissingTerms, find_terms, place_in_pairs
from jumok.inference.text_options import LINE_BY_LINE, separate_options
from jumok.server.pipeline import SentenceTranslation, TranslatedText
from jumok.text.normalisation import normalise
from jumok.text.plain_spaces import plain_spaces
from jumok.text.sentences import text_spans
from jumok.text.term_placement import has_all_terms, term_notes
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from jumok.inference.text_options import TextOptions
    from jumok.inference.translation import Translation
    from jumok.inference.translator import Translator
    from jumok.text.words import Span

    OnProgress = Callable[[int, int], None]
    Links = tuple[tuple[int, int], ...]

BLOCK_SENTENCES = 512


def memory_key(text: str) -> str:
    """Return the key of a text in a translation memory, in which every kind of space is a plain space."""
    return plain_spaces(normalise(text)).strip()


def _no_options() -> TextOptions:
    return {}


@dataclass(frozen=True)
class DocumentJob:
    """How documents are translated.

    `options` has the options for splitting and search, and the glossary. `memory` has translations of
    segments and sentences, which are used unchanged; its keys come from `memory_key`. `key` is a digest of
    the model, of all options and of the memory (`document_files.make_job`).
    """

    options: TextOptions = field(default_factory=_no_options)
    memory: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""
    """The encoding of texts that are not UTF-8."""
    key: str = ""


class SegmentTranslator:
    """Translates the segments of one document by sentence, with the word links that inline markup needs."""

    def __init__(
        self,
        translator: Translator,
        job: DocumentJob | None = None,
        *,
        target: Path | None = None,
        overwrite: bool = False,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._translator, self._job = translator, job or DocumentJob()
        self._handling, self._search = separate_options(self._job.options, translator)
        self._memory = self._job.memory
        self._target, self._overwrite = target, overwrite
        self._on_progress = on_progress
        self._num_done = self._num_sentences = 0
        self.part: PartFile | None = None
        """The stored blocks, if the document has several and is written to a file."""
        self.translated: dict[str, str] = {}
        """The translations of sentences, and of segments that were taken from the memory as a whole."""
        self.num_from_memory = 0
        """How many segments and sentences were taken from the memory."""
        self.notes: list[str] = []
        """What a reader should know about the translation, such as a term that could not be placed."""

    def __call__(self, segments: Sequence[str]) -> list[SegmentTranslation]:
        """Return the translation of each segment of the document."""
        memory_translations = {
            text.with_codes: translation
            for text in segments
            if isinstance(text, TextWithCodes) and (translation := self._memory_translation(text)) is not None
        }
        self.num_from_memory += len(memory_translations)
        from_memory = [
            memory_translations.get(text.with_codes) if isinstance(text, TextWithCodes) else None
            for text in segments
        ]
        new = iter(
            self._translate_segments(
                [text for text, found in zip(segments, from_memory, strict=True) if found is None]
            )
        )
        for source in memory_translations:
            self.translated[source.strip()] = self._memory[memory_key(source)]
        return [next(new) if found is None else found for found in from_memory]

    def _memory_translation(self, segment: TextWithCodes) -> SegmentTranslation | None:
        """Return the memory's translation of a segment with placeholders.

        Return None if the memory has no translation, or if its placeholders are not those of the segment.
        """
        source = segment.with_codes
        target = self._memory.get(memory_key(source))
        pieces = None if target is None else split_at_codes(segment, target)
        if pieces is None:
            return None
        stripped = source.strip()
        start = source.index(stripped)
        leading_space, trailing_space = source[:start], source[start + len(stripped) :]
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        return SegmentTranslation(text, pieces=[leading_space, *pieces, trailing_space])

    def _translate_segments(self, segments: Sequence[str]) -> list[SegmentTranslation]:
        # A sentence that occurs several times in a document is translated once.
        spans = {text: self._spans(text) for text in segments}
        sentences = list(dict.fromkeys(text[start:end] for text in spans for start, end in spans[text]))
        translations = self._translate(sentences)
        self.translated = {source: translation.text for source, translation in translations.items()}
        translated = {
            text: TranslatedText(
                text,
                spans[text],
                tuple((translations[text[start:end]],) for start, end in spans[text]),
                self._translator.target_language,
            ).segment_translation()
            for text in spans
        }
        return [translated[text] for text in segments]

    def _translate(self, sentences: Sequence[str]) -> dict[str, SentenceTranslation]:
        """Translate sentences block by block. Blocks that an earlier process has stored are only read."""
        self._num_sentences = len(sentences)
        self.num_from_memory += sum(memory_key(sentence) in self._memory for sentence in sentences)
        if self._target is not None and len(sentences) > BLOCK_SENTENCES:
            key = make_key(self._job.key, BLOCK_SENTENCES, list(sentences))
            self.part = PartFile(self._target, key, overwrite=self._overwrite)
        translations: dict[str, SentenceTranslation] = {}
        for start in range(0, len(sentences), BLOCK_SENTENCES):
            block = sentences[start : start + BLOCK_SENTENCES]
            self._num_done = start
            stored = None if self.part is None else self.part.results.get(str(start))
            if stored is None:
                num_notes = len(self.notes)
                new = self._translate_block(block)
                if self.part is not None:
                    rows = [(new[sentence].text, new[sentence].links) for sentence in block]
                    self.part.add(str(start), {"sentences": rows, "notes": self.notes[num_notes:]})
            else:
                new = {
                    sentence: SentenceTranslation(text, 0.0, links and tuple((i, j) for i, j in links))
                    for sentence, (text, links) in zip(block, stored["sentences"], strict=True)
                }
                self.notes += stored["notes"]
            translations |= new
        return translations

    def _spans(self, text: str) -> tuple[Span, ...]:
        """Return one span for the whole text if the memory has the text, else the spans of its sentences."""
        stripped = text.strip()
        if memory_key(stripped) not in self._memory:
            return tuple(text_spans(text, self._handling.sentences))
        start = text.index(stripped)
        return ((start, start + len(stripped)),)

    def _translate_block(self, sentences: Sequence[str]) -> dict[str, SentenceTranslation]:
        """Return the translation of each sentence, from the memory or from the model, with word links."""
        memory_pairs = [
            Pair(sentence, self._memory[key])
            for sentence in sentences
            if (key := memory_key(sentence)) in self._memory
        ]
        memory_sources = {pair.source for pair in memory_pairs}
        new = [sentence for sentence in sentences if sentence not in memory_sources]
        translations = self._translator.translate(
            new,
            scores=False,
            # A sentence counts twice: when it is translated, and when its word links are computed (`_links`).
            on_progress=lambda done, total: self._report(self._num_done * 2 + done),
            **LINE_BY_LINE,
            **self._search,
        )
        self.notes += [note for translation in translations for note in translation.notes]
        unsplit = [
            Pair(translation.source, translation.text)
            for translation in translations
            if len(translation.parts) <= 1
        ]
        pairs = [*memory_pairs, *unsplit]
        links = dict(zip([pair.source for pair in pairs], self._links(pairs), strict=True))
        texts = {pair.source: pair.target for pair in memory_pairs}
        for translation in translations:
            texts[translation.source] = translation.text
            if translation.source not in links:
                links[translation.source] = _links_of_parts(translation)
        with_links = {
            source: SentenceTranslation(text, score=0.0, links=links[source])
            for source, text in texts.items()
        }
        return with_links | self._with_terms({source: texts[source] for source in new})

    def _with_terms(self, texts: Mapping[str, str]) -> dict[str, SentenceTranslation]:
        """Place missing terms in translations. Return the translations that lacked terms, by source.

        `texts` has all translations by source. If a term could not be placed, `self.notes` gets a note.
        """
        rows = [(source, text, find_terms(source, self._handling)) for source, text in texts.items()]
        incomplete = [
            PairMissingTerms(Pair(source, text), matches)
            for source, text, matches in rows
            if not has_all_terms(text, matches)
        ]
        placed = place_in_pairs(incomplete, self._translator, self._retranslate)
        self.notes += [note for terms in placed for note in term_notes(terms)]
        return {
            missing.pair.source: SentenceTranslation(terms.text, score=0.0, links=terms.links)
            for missing, terms in zip(incomplete, placed, strict=True)
        }

    def _retranslate(self, sentences: Sequence[str], prefixes: Sequence[str]) -> list[Translation]:
        return self._translator.translate(
            sentences, prefix=prefixes, scores=False, **LINE_BY_LINE, **self._search
        )

    def _links(self, pairs: Sequence[Pair]) -> Sequence[Links | None]:
        """Return the word links of each pair; None for each if the model has no cross-attention.

        Aligning is the second half of the progress of a block.
        """
        try:
            links = [tuple(sorted(alignment.sure)) for alignment in self._translator.align_all(pairs)]
        except UnsupportedError:
            return [None] * len(pairs)
        self._report(2 * min(self._num_done + BLOCK_SENTENCES, self._num_sentences))
        return links

    def _report(self, done: int) -> None:
        if self._on_progress is not None:
            self._on_progress(done, 2 * self._num_sentences)


def _links_of_parts(translation: Translation) -> Links | None:
    try:
        return tuple(sorted(translation.alignment.sure))
    except UnsupportedError:
        return None
