"""Routes under /v1/ that LibreTranslate does not have: scores, n-best lists, alignments and streams.

`/v1/explain` is in `attention.py`, `/v1/candidates` in `candidates.py`, `/v1/caption` in `captions.py`,
`/v1/translate_file/stream` in `file_stream.py`.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import ConfigDict
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from jumok.server.api.event_stream import EVENT_STREAM, format_event, stream_events
from jumok.server.api.fields import (
    ApiModel,
    Flag,
    GlossaryField,
    Language,
    Source,
    Tags,
    TextOrTexts,
    allow_known_pairs,
    bounded_integer,
)
from jumok.server.api.parameters import DetectedLanguage, check_size, check_tags, find_pivot_paths
from jumok.server.http_errors import bad_request
from jumok.server.routes import POST, Endpoint
from jumok.server.workers.pending import TranslateOptions
from jumok.text.sentences import text_before, text_spans

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from jumok.server.api.parameters import LanguagePlan
    from jumok.server.language_pairs import PivotPath
    from jumok.server.pipeline import TranslatedText
    from jumok.server.routes import ApiRequest


def _require_one_translation_if_greedy(schema: dict[str, Any]) -> None:
    """Make the schema of a request allow `greedy` only with an `n_best` of 1, and only known pairs."""
    allow_known_pairs(schema)
    one_translation_if_greedy = [
        {"properties": {"greedy": {"enum": [False, "false", None]}}},
        {"properties": {"n_best": {"enum": [1, "1", None]}}},
    ]
    schema["allOf"] = [{"anyOf": schema.pop("anyOf")}, {"anyOf": one_translation_if_greedy}]


class ScoredRequest(ApiModel):
    model_config = ConfigDict(json_schema_extra=_require_one_translation_if_greedy)

    q: TextOrTexts
    source: Source
    target: Language
    n_best: Annotated[int, bounded_integer(1, lambda limits: limits.max_alternatives + 1)] = 1
    alignment: Flag = False
    words: Flag = False
    greedy: Flag = False
    tags: Tags = ()
    glossary: GlossaryField = ""


class ScoredText(TypedDict):
    text: str
    score: float | None
    confidence: float


class SpanLink(TypedDict):
    source: tuple[int, int]
    target: tuple[int, int]


class ScoredWord(TypedDict):
    span: tuple[int, int]
    probability: float | None


class RankedText(ScoredText):
    alignment: NotRequired[list[SpanLink]]
    words: NotRequired[list[ScoredWord]]


class ScoredTranslation(RankedText):
    source: str
    detectedLanguage: NotRequired[DetectedLanguage]
    pivot: list[str]
    alternatives: list[RankedText]
    notes: NotRequired[list[str]]


class ScoredAnswer(TypedDict):
    target: str
    translations: list[ScoredTranslation]


async def translate_with_scores(request: ApiRequest) -> Response:
    """Translate with scores, n-best lists and word alignments."""
    texts, plan, options = await _read_request(request)
    translated = await request.service.pipeline.translate_all(
        texts, plan.pivot_paths, options, request.client_id, plan.glossaries
    )
    target = request.fields["target"]

    def to_json() -> list[dict[str, Any]]:
        return [
            {**_plan_json(plan, index, target), **translation_json(translation, options)}
            for index, translation in enumerate(translated)
        ]

    num_characters = options.n_best * sum(map(len, texts))
    translations = await request.service.thread_slot.run_if_large(num_characters, to_json)
    return JSONResponse({"target": target, "translations": translations})


async def translate_as_stream(request: ApiRequest) -> Response:
    """Like /v1/translate, as server-sent events: token by token and sentence by sentence.

    Events come in the order of the texts. For each sentence, `partial` events come before `sentence`. A
    `text` event follows the sentences of each text. The last event is `done`, or `error`.
    """
    texts, plan, options = await _read_request(request)
    events = _events(request, texts, plan, options._replace(stream=True))
    return await stream_events(events)


async def _events(
    request: ApiRequest, texts: Sequence[str], plan: LanguagePlan, options: TranslateOptions
) -> AsyncIterator[str]:
    pipeline, target = request.service.pipeline, request.fields["target"]
    num_done = 0  # texts whose events have all been sent
    streamed_texts = {index: _StreamedText(text, plan.pivot_paths[index]) for index, text in enumerate(texts)}

    def text_events(end: int) -> list[str]:
        """Return the `text` events of the texts from `num_done` up to but not including `end`.

        These texts are removed from `streamed_texts`.
        """
        return [
            format_event(
                "text",
                {"index": index, "text": streamed_texts.pop(index).text(), **_plan_json(plan, index, target)},
            )
            for index in range(num_done, end)
        ]

    with pipeline.open_request(request.client_id) as open_request:
        await pipeline.admit(open_request, texts, plan.pivot_paths, options, plan.glossaries)
        # Adjacent texts with the same pivot path are queued together. Usually all texts have the same source
        # language, and therefore the same path.
        for path, group in groupby(range(len(texts)), key=lambda index: plan.pivot_paths[index]):
            indices = list(group)
            results = pipeline.stream_sentences(
                [texts[index] for index in indices], path, options, open_request, plan.glossaries
            )
            async for group_index, sentence_index, result in results:
                text_index = indices[group_index]
                for event in text_events(text_index):
                    yield event
                num_done = text_index
                location = {"index": text_index, "sentence": sentence_index}
                if isinstance(result, str):
                    yield format_event("partial", {**location, "text": result})
                else:
                    location |= streamed_texts[text_index].add(result.text())
                    yield format_event("sentence", {**location, **translation_json(result, options)})
            for event in text_events(indices[-1] + 1):
                yield event
            num_done = indices[-1] + 1
    yield format_event("done", {"texts": len(texts)})


class _StreamedText:
    """The translation of a text, to which the translated sentences are added one after another."""

    def __init__(self, source: str, path: PivotPath) -> None:
        self._source = source
        self._spans = iter(text_spans(source, path[0].sentences)) if path else iter(())
        self._language = path[-1].target if path else ""
        self._parts: list[str] = []
        self._end = 0

    def add(self, sentence: str) -> dict[str, Any]:
        """Add the next translated sentence.

        Return the span of the sentence in the source, and the text between it and the sentence before it in
        the translation. If the path is empty, the whole text is one sentence.
        """
        start, end = next(self._spans, (0, len(self._source)))
        before = text_before(self._source, self._end, start, sentence, self._language)
        self._parts += [before, sentence]
        self._end = end
        return {"span": [start, end], "before": before}

    def text(self) -> str:
        return "".join(self._parts) + self._source[self._end :]


async def _read_request(request: ApiRequest) -> tuple[list[str], LanguagePlan, TranslateOptions]:
    fields = ScoredRequest.read(request)
    texts = fields.q if isinstance(fields.q, list) else [fields.q]
    if fields.greedy and fields.n_best > 1:
        raise bad_request("greedy finds one translation: n_best parameter must be 1")
    check_size(texts, request.service)
    plan = await find_pivot_paths(texts, fields.source, fields.target, request.service, fields.glossary)
    check_tags(fields.tags, plan.pivot_paths, request.service)
    options = TranslateOptions(
        fields.n_best, fields.alignment, fields.words, fields.greedy, tags=tuple(fields.tags)
    )
    return texts, plan, options


def _plan_json(plan: LanguagePlan, index: int, target: str) -> dict[str, Any]:
    """Return the source language, the detected language and the pivot languages of a text."""
    path = plan.pivot_paths[index]
    detected = {} if plan.detected is None else {"detectedLanguage": plan.detected[index]}
    return {
        "source": path[0].source if path else target,
        **detected,
        "pivot": [pair.target for pair in path[:-1]],
    }


def translation_json(translation: TranslatedText, options: TranslateOptions) -> dict[str, Any]:
    data = {
        **_ranked_json(translation, 0, options),
        "alternatives": [_ranked_json(translation, rank, options) for rank in translation.other_ranks()],
    }
    if notes := translation.notes():
        data["notes"] = notes
    return data


def _ranked_json(translation: TranslatedText, rank: int, options: TranslateOptions) -> dict[str, Any]:
    data = scored_json(translation.text(rank), translation.score(rank))
    if options.align:
        data["alignment"] = [
            {"source": list(source), "target": list(target)} for source, target in translation.links(rank)
        ]
    if options.words:
        data["words"] = [
            {"span": list(span), "probability": None if probability is None else round(probability, 5)}
            for span, probability in translation.words(rank)
        ]
    return data


def scored_json(text: str, score: float) -> dict[str, Any]:
    """Return a text, its score, and its confidence exp(score).

    With one model, length penalty 1 and no coverage penalty, the score of a sentence is its mean token log
    probability, so its confidence is the geometric mean of the token probabilities.
    """
    is_finite = math.isfinite(score)
    return {
        "text": text,
        "score": round(score, 5) if is_finite else None,
        "confidence": round(min(1.0, math.exp(score)), 5) if is_finite else 0.0,
    }


STREAM = Endpoint(translate_as_stream, dict[str, str], ScoredRequest, answer_types=(EVENT_STREAM,))
ROUTES = [
    Route("/v1/translate", Endpoint(translate_with_scores, ScoredAnswer, ScoredRequest), methods=POST),
    Route("/v1/translate/stream", STREAM, methods=POST),
]
