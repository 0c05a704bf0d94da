"""From texts to translations: texts are split into sentences, queued, run through the models, and joined.

The models of a pivot path run one after another, each on all sentences with this path; word links are
composed through the words of the pivot language.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jumok.documents.document import SegmentTranslation
from jumok.server.thread_slot import ThreadSlot
from jumok.server.workers.pending import (
    BatchKey,
    BusyError,
    PendingQuestion,
    PendingSentence,
    TranslateOptions,
)
from jumok.server.workers.speed import CHARACTERS_PER_SENTENCE
from jumok.text.glossary import find_protected
from jumok.text.protected_strings import may_have_protected
from jumok.text.sentences import replace_sentences, text_spans
from jumok.text.term_placement import (
    evidence_of_links,
    has_all_terms,
    place_terms_in_sentence,
    term_notes,
)
from jumok.text.word_mapping import diagonal_links
from jumok.text.words import split_words, word_spans

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Generator,
        Iterator,
        Mapping,
        Sequence,
    )

    from jumok.documents.document import SpanLink
    from jumok.server.language_pairs import LanguagePair, PivotPath
    from jumok.server.limits import Limits
    from jumok.server.workers.pending import OpenRequest, Question
    from jumok.server.workers.queue import WorkQueue
    from jumok.text.glossary import Glossary, TermMatch
    from jumok.text.words import Span

    WordLink = tuple[int, int]
    Glossaries = Mapping[PivotPath, Glossary]
    Terms = dict[int, Sequence[TermMatch]]
    OnProgress = Callable[[int, int], None]

__all__ = ["SentenceTranslation", "TranslatedText", "TranslationPipeline", "read_translations"]

MARKUP_FACTOR = 4
"""A guess: a document with its markup has this many characters per character of text."""
MAX_AHEAD = 1_024
"""Maximum number of sentences in the queue per request and pivot path. With more, a large file would slow
down all clients."""


@dataclass(frozen=True, slots=True)
class SentenceTranslation:
    """One of the translations that the search has found for a sentence."""

    text: str
    score: float
    links: tuple[WordLink, ...] | None = None
    """Word links; None if they are not known."""
    notes: tuple[str, ...] = ()
    """What a reader should know: the translation was cut or repeats itself, or a term is missing."""
    probabilities: tuple[float, ...] | None = None
    """The last model's probability of each word; None if it was not computed, or a term was placed."""


RankedTranslations = tuple[SentenceTranslation, ...]
"""The translations of one sentence, best first."""


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """A text, the spans of its sentences, and the translations of each sentence, best first."""

    source: str
    spans: tuple[Span, ...]
    sentences: tuple[RankedTranslations, ...]
    target_language: str

    def text(self, rank: int = 0) -> str:
        """Join the translations of this rank; of a sentence with fewer translations, take the last."""
        return "".join(self._parts(rank))

    def other_ranks(self) -> list[int]:
        """Return the ranks from 1 whose text differs from the texts of all lower ranks."""
        num_ranks = max((len(translations) for translations in self.sentences), default=1)
        if num_ranks == 1:
            return []
        first_ranks = {self.text(rank): rank for rank in reversed(range(num_ranks))}
        return sorted(rank for rank in first_ranks.values() if rank)

    def score(self, rank: int = 0) -> float:
        """Return the mean score of the sentences; 0 if there are none."""
        scores = [translation.score for translation in self._translations_of_rank(rank)]
        return sum(scores) / len(scores) if scores else 0.0

    def notes(self) -> list[str]:
        """Return the notes on the best translation of each sentence."""
        return [note for translation in self._translations_of_rank(0) for note in translation.notes]

    def links(self, rank: int = 0) -> list[SpanLink]:
        """Return word links as character spans in the source and in the translation.

        The words of a sentence whose links are not known are linked by position.
        """
        span_links: list[SpanLink] = []
        for (start, end), target_start, translation in zip(
            self.spans, self._target_starts(rank), self._translations_of_rank(rank), strict=True
        ):
            source, target = word_spans(self.source[start:end]), word_spans(translation.text)
            links = (
                diagonal_links(len(source), len(target)) if translation.links is None else translation.links
            )
            span_links.extend((_shift(source[i], start), _shift(target[j], target_start)) for i, j in links)
        return span_links

    def words(self, rank: int = 0) -> list[tuple[Span, float | None]]:
        """Return the span of each word of the translation and the model's probability of it, if known."""
        words: list[tuple[Span, float | None]] = []
        for target_start, translation in zip(
            self._target_starts(rank), self._translations_of_rank(rank), strict=True
        ):
            spans = [_shift(span, target_start) for span in word_spans(translation.text)]
            words.extend(zip(spans, translation.probabilities or [None] * len(spans), strict=True))
        return words

    def segment_translation(self, rank: int = 0) -> SegmentTranslation:
        return SegmentTranslation(self.text(rank), self.links(rank))

    def _translations_of_rank(self, rank: int) -> list[SentenceTranslation]:
        return [translations[min(rank, len(translations) - 1)] for translations in self.sentences]

    def _target_starts(self, rank: int) -> list[int]:
        """Return where each sentence starts in the translation."""
        # The parts alternate: gap, sentence, gap, …, gap. A sentence starts where the gap before it ends.
        return list(accumulate(map(len, self._parts(rank))))[:-1:2]

    def _parts(self, rank: int) -> list[str]:
        texts = [translation.text for translation in self._translations_of_rank(rank)]
        return replace_sentences(self.source, self.spans, texts, self.target_language)


class TranslationPipeline:
    """Puts the sentences of requests into the queue, and waits for them until the request times out."""

    def __init__(self, queue: WorkQueue, limits: Limits, thread_slot: ThreadSlot | None = None) -> None:
        self._queue = queue
        self._limits = limits
        self._thread_slot = thread_slot or ThreadSlot()

    @contextmanager
    def open_request(self, client: str) -> Iterator[OpenRequest]:
        """Open a request of a client. At the end, items of the request that still wait are removed.

        A TimeoutError inside the `with` statement becomes a BusyError.
        """
        deadline = asyncio.get_running_loop().time() + self._limits.request_timeout
        request = self._queue.open(client, deadline)
        try:
            yield request
        except TimeoutError:
            raise BusyError("The request took too long. Try again later, or send less.", 5) from None
        finally:
            self._queue.close(request)

    async def admit(
        self,
        request: OpenRequest,
        texts: Sequence[str],
        pivot_paths: Sequence[PivotPath],
        options: TranslateOptions,
        glossaries: Glossaries = MappingProxyType({}),
    ) -> None:
        """Accept the work of a request.

        Raise an error, before the work begins, if it would take too long or the queue has no room for it.
        """
        seconds, characters = 0.0, 0
        by_path = _group_by_path(pivot_paths)
        for path, indices in by_path.items():
            texts_of_path = texts if len(by_path) == 1 else [texts[index] for index in indices]
            num_characters = sum(map(len, texts_of_path)) if path else 0
            characters += num_characters
            seconds += await self._thread_slot.run_if_large(
                num_characters, self._estimate, texts_of_path, _batch_keys(path, options), path in glossaries
            )
        self._queue.check_size(seconds)
        # Usually a request has one pivot path, and so at most MAX_AHEAD sentences in the queue at a time.
        sentences = min(MAX_AHEAD, len(texts) + characters // CHARACTERS_PER_SENTENCE)
        self._queue.admit(
            request,
            seconds,
            sentences=sentences,
            characters=min(characters, sentences * CHARACTERS_PER_SENTENCE),
        )

    def _estimate(self, texts: Sequence[str], keys: Sequence[BatchKey], has_glossary: bool) -> float:
        """Return the seconds of work of texts that are translated along one pivot path.

        A text with terms or protected strings (addresses, placeholders, `code`) takes longer. Attention is
        computed to find the words that they replace, and a sentence is translated again if its translation
        lacks a protected string.
        """
        by_terms: dict[bool, list[str]] = {}
        for text in texts:
            by_terms.setdefault(has_glossary or may_have_protected(text), []).append(text)
        return sum(
            self._queue.speed.seconds_of_texts(key, group, terms=terms)
            for key in keys
            for terms, group in by_terms.items()
        )

    def check_room(self, client: str, num_characters: int) -> None:
        """Refuse a document, before it is read, if its client already has too much work in the queue.

        The languages of the document are not known yet, so the estimate is that of the fastest model.
        """
        text = "x" * (num_characters // MARKUP_FACTOR)
        min_seconds = self._queue.speed.min_seconds_of_text(text, TranslateOptions(align=True))
        with self.open_request(client) as request:
            self._queue.check_room(request, min_seconds)

    async def translate_all(
        self,
        texts: Sequence[str],
        pivot_paths: Sequence[PivotPath],
        options: TranslateOptions,
        client: str,
        glossaries: Glossaries = MappingProxyType({}),
        *,
        on_progress: OnProgress | None = None,
    ) -> list[TranslatedText]:
        """Translate each text along its own pivot path; texts with the same path are queued together.

        `glossaries` has the terms for the texts of each path. Protected strings (addresses, placeholders,
        `code`) are kept unchanged even without a glossary.
        If all texts have the same path, `on_progress(done, total)` counts each sentence once per model.
        Otherwise `on_progress` is not called.
        """
        by_path = _group_by_path(pivot_paths)
        with self.open_request(client) as request:
            await self.admit(request, texts, pivot_paths, options, glossaries)
            if len(by_path) == 1:
                return await self._translate(
                    texts, pivot_paths[0], options, request, glossaries, on_progress=on_progress
                )
            tasks = [
                asyncio.create_task(
                    self._translate([texts[index] for index in indices], path, options, request, glossaries)
                )
                for path, indices in by_path.items()
            ]
            try:
                groups = await asyncio.gather(*tasks)
            finally:
                for task in tasks:  # if a task fails, `gather` does not cancel the other tasks
                    task.cancel()
        translated = {
            index: translation
            for indices, group in zip(by_path.values(), groups, strict=True)
            for index, translation in zip(indices, group, strict=True)
        }
        return [translated[index] for index in range(len(texts))]

    async def _translate(
        self,
        texts: Sequence[str],
        path: PivotPath,
        options: TranslateOptions,
        request: OpenRequest,
        glossaries: Glossaries,
        *,
        on_progress: OnProgress | None = None,
    ) -> list[TranslatedText]:
        """Translate texts along one pivot path."""
        num_characters = sum(map(len, texts))
        spans, sentences, terms = await self._thread_slot.run_if_large(
            num_characters, _split, texts, path, options, glossaries.get(path)
        )
        options = _with_links(options, path, terms)
        translations = await self._run_path(
            sentences, _batch_keys(path, options), request, terms, on_progress=on_progress
        )

        def join() -> list[TranslatedText]:
            of_sentences = (_without_tags(ranked, len(options.tags)) for ranked in translations)
            return [
                _translated_text(text, sentence_spans, [next(of_sentences) for _ in sentence_spans], path)
                for text, sentence_spans in zip(texts, spans, strict=True)
            ]

        return await self._thread_slot.run_if_large(num_characters, join)

    async def stream_sentences(
        self,
        texts: Sequence[str],
        path: PivotPath,
        options: TranslateOptions,
        request: OpenRequest,
        glossaries: Glossaries = MappingProxyType({}),
    ) -> AsyncIterator[tuple[int, int, str | TranslatedText]]:
        """Translate the texts of an admitted request along one path, sentence by sentence, in order.

        Yield (text index, sentence index, partial translation or final result) for each partial translation
        and each result. If the path is empty, nothing is translated, and each text is one result.
        """
        if not path:
            for index, text in enumerate(texts):
                yield index, 0, _translated_text(text, (), [], path)
            return
        spans, sentence_texts, terms = await self._thread_slot.run_if_large(
            sum(map(len, texts)), _split, texts, path, options, glossaries.get(path)
        )
        sentences = [
            (text_index, sentence_index, text[start:end])
            for text_index, (text, sentence_spans) in enumerate(zip(texts, spans, strict=True))
            for sentence_index, (start, end) in enumerate(sentence_spans)
        ]
        options = _with_links(options, path, terms)
        results = self._stream_path(sentence_texts, _batch_keys(path, options), request, terms)
        async with aclosing(results):
            for text_index, sentence_index, sentence in sentences:
                while isinstance(result := await anext(results), str):
                    yield text_index, sentence_index, result
                translations = _without_tags(result, len(options.tags))
                translated = _translated_text(sentence, ((0, len(sentence)),), [translations], path)
                yield text_index, sentence_index, translated

    async def ask(self, pair: LanguagePair, question: Question, client: str) -> str:
        """Return a model's answer, as JSON. A DataError says why a question is refused."""
        with self.open_request(client) as request:
            pending = PendingQuestion(pair.model_index, question, request)
            self._queue.admit(request, self._queue.speed.seconds(pending))
            self._queue.add([pending])
            async with asyncio.timeout_at(request.deadline):
                return await pending.future

    async def _run_path(
        self,
        sentences: list[str],
        keys: Sequence[BatchKey],
        request: OpenRequest,
        terms: Terms,
        *,
        on_progress: OnProgress | None = None,
    ) -> list[RankedTranslations]:
        """Return the translations of each sentence. Only the last model may give more than one.

        If there is one model, its worker places the terms. If there are several models, the terms are placed
        here, by the composed word links.
        """
        originals = sentences
        best: list[SentenceTranslation] = []
        translations: list[RankedTranslations] = []
        for index, key in enumerate(keys):
            translations = []
            worker_terms = terms if len(keys) == 1 else {}
            with closing(self._queued_in_order(sentences, key, request, worker_terms)) as queued:
                async with asyncio.timeout_at(request.deadline):
                    for sentence in queued:
                        translations.append(read_translations(await sentence.future))
                        if on_progress is not None:
                            on_progress(
                                index * len(sentences) + len(translations), len(keys) * len(sentences)
                            )
            if best:
                pairs = zip(best, translations, strict=True)
                translations = [_compose_pivot(pivot, ranked) for pivot, ranked in pairs]
            best = [ranked[0] for ranked in translations]
            sentences = [translation.text for translation in best]
        if len(keys) > 1:
            for index, matches in terms.items():
                translations[index] = _place_terms(originals[index], translations[index], matches)
        return translations

    async def _stream_path(
        self, sentences: list[str], keys: Sequence[BatchKey], request: OpenRequest, terms: Terms
    ) -> AsyncGenerator[str | RankedTranslations]:
        """For each sentence in order, yield its partial texts, and then its translations."""
        *pivot_keys, key = keys
        best = [translations[0] for translations in await self._run_path(sentences, pivot_keys, request, {})]
        texts = [translation.text for translation in best] if pivot_keys else sentences
        worker_terms = {} if pivot_keys else terms
        with closing(self._queued_in_order(texts, key, request, worker_terms)) as queued:
            for index, sentence in enumerate(queued):
                async with aclosing(_partial_texts(sentence, request.deadline)) as partials:
                    async for text in partials:
                        yield text
                async with asyncio.timeout_at(request.deadline):
                    translations = read_translations(await sentence.future)
                if pivot_keys:
                    composed = _compose_pivot(best[index], translations)
                    translations = _place_terms(sentences[index], composed, terms.get(index, ()))
                yield translations

    def _queued_in_order(
        self, texts: Sequence[str], key: BatchKey, request: OpenRequest, terms: Terms
    ) -> Generator[PendingSentence]:
        """Put sentences into the queue, and yield them in order; the caller waits for each future.

        At most `MAX_AHEAD` of them are in the queue at a time. A generator that is closed withdraws those.
        """
        remaining = enumerate(texts)
        ahead: deque[PendingSentence] = deque()
        try:
            while True:
                if len(ahead) <= MAX_AHEAD // 2:
                    more = [
                        PendingSentence(key, text, request, terms.get(index, ()))
                        for index, text in islice(remaining, MAX_AHEAD - len(ahead))
                    ]
                    if more:
                        self._queue.add(more)
                        ahead.extend(more)
                if not ahead:
                    return
                yield ahead[0]
                ahead.popleft()
        finally:
            self._queue.withdraw(ahead)


def _group_by_path(pivot_paths: Sequence[PivotPath]) -> dict[PivotPath, list[int]]:
    """Return the indices of the texts of each pivot path."""
    if pivot_paths and all(path is pivot_paths[0] for path in pivot_paths):  # hashing them would take longer
        return {pivot_paths[0]: list(range(len(pivot_paths)))}
    by_path: dict[PivotPath, list[int]] = {}
    for index, path in enumerate(pivot_paths):
        by_path.setdefault(path, []).append(index)
    return by_path


def _batch_keys(path: PivotPath, options: TranslateOptions) -> list[BatchKey]:
    """Return the key of each model on a path. Only the last model streams or gives several translations."""
    last_options = options.without_tags()
    if len(path) == 1:
        return [BatchKey(path[0].model_index, last_options)]
    pivot_options = last_options._replace(n_best=1, words=False, stream=False)
    return [BatchKey(pair.model_index, last_options if pair is path[-1] else pivot_options) for pair in path]


def _split(
    texts: Sequence[str], path: PivotPath, options: TranslateOptions, glossary: Glossary | None
) -> tuple[list[tuple[Span, ...]], list[str], Terms]:
    """Return the spans of each text's sentences, all sentences with their tags, and the terms in them."""
    spans = [tuple(text_spans(text, path[0].sentences)) if path else () for text in texts]
    sentences = [
        _with_tags(text[start:end], options)
        for text, sentence_spans in zip(texts, spans, strict=True)
        for start, end in sentence_spans
    ]
    return spans, sentences, _find_terms(sentences, glossary)


def _with_tags(sentence: str, options: TranslateOptions) -> str:
    return " ".join((*options.tags, sentence))


def _without_tags(translations: RankedTranslations, num_tags: int) -> RankedTranslations:
    """Return the translations with links to the sentence without its tags. Each tag is one word."""
    if not num_tags:
        return translations
    return tuple(
        replace(
            translation,
            links=translation.links
            and tuple((i - num_tags, j) for i, j in translation.links if i >= num_tags),
        )
        for translation in translations
    )


async def _partial_texts(sentence: PendingSentence, deadline: float) -> AsyncGenerator[str]:
    """Yield the translation so far whenever it has changed, until the translation is complete."""
    sentence.future.add_done_callback(lambda _: sentence.updated.set())
    while not sentence.future.done():
        async with asyncio.timeout_at(deadline):
            await sentence.updated.wait()
        sentence.updated.clear()
        if not sentence.future.done():
            yield sentence.partial


def _translated_text(
    text: str, spans: tuple[Span, ...], sentences: Sequence[RankedTranslations], path: PivotPath
) -> TranslatedText:
    return TranslatedText(text, spans, tuple(sentences), path[-1].target if path else "")


def _find_terms(sentences: Sequence[str], glossary: Glossary | None) -> Terms:
    """Return the terms and protected strings of each sentence, by its index. Leave out other sentences."""
    terms: Terms = {}
    for index, sentence in enumerate(sentences):
        matches: Sequence[TermMatch] = find_protected(sentence)
        if glossary is not None:
            matches = glossary.find(sentence, matches)
        if matches:
            terms[index] = matches
    return terms


def _with_links(options: TranslateOptions, path: PivotPath, terms: Terms) -> TranslateOptions:
    """Return options that request word links if the pipeline itself will place terms by them."""
    return options._replace(align=True) if terms and len(path) > 1 else options


def _place_terms(
    sentence: str, translations: RankedTranslations, matches: Sequence[TermMatch]
) -> RankedTranslations:
    """Return the translations of a sentence with its terms, placed by word links or else by position."""
    placed = []
    for translation in translations:
        if not has_all_terms(translation.text, matches):
            lengths = len(split_words(sentence)), len(split_words(translation.text))
            links = translation.links or diagonal_links(*lengths)
            evidence = evidence_of_links(links, *lengths, by_position=not translation.links)
            terms = place_terms_in_sentence(sentence, translation.text, evidence, matches)
            notes = (*translation.notes, *term_notes(terms))
            translation = SentenceTranslation(terms.text, translation.score, terms.links, notes)
        placed.append(translation)
    return tuple(placed)


def read_translations(records: list[dict[str, Any]], num_tags: int = 0) -> RankedTranslations:
    """Return the translations that a worker has sent for a sentence that begins with `num_tags` tags."""
    translations = tuple(
        SentenceTranslation(
            record["text"],
            record["score"],
            None if record.get("links") is None else tuple((i, j) for i, j in record["links"]),
            tuple(record.get("notes", ())),
            tuple(record["probabilities"]) if "probabilities" in record else None,
        )
        for record in records
    )
    return _without_tags(translations, num_tags)


def _compose_pivot(pivot: SentenceTranslation, translations: RankedTranslations) -> RankedTranslations:
    """Turn translations of a pivot sentence into translations of its source sentence.

    `pivot` is the translation of the source sentence into the pivot language. Scores are added.
    """
    composed = []
    sources_of = defaultdict(list)  # pivot word → source words
    for i, j in pivot.links or ():
        sources_of[j].append(i)
    for translation in translations:
        links = None
        if pivot.links is not None and translation.links is not None:
            links = tuple(sorted({(i, k) for j, k in translation.links for i in sources_of.get(j, ())}))
        notes = (*pivot.notes, *translation.notes)
        score = pivot.score + translation.score
        composed.append(replace(translation, score=score, links=links, notes=notes))
    return tuple(composed)


def _shift(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset
