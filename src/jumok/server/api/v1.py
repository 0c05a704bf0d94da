"""What LibreTranslate's API lacks, under /v1/: scores, n-best lists, alignments and streams.

`/v1/explain` is in `attention.py`, `/v1/caption` in `captions.py`.
"""

from __future__ import annotations

import json
import math
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import ConfigDict
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from typing_extensions import TypedDict

from jumok.server.api.fields import (
    ApiModel,
    Flag,
    GlossaryField,
    Source,
    Target,
    TextOrTexts,
    bounded_integer,
    known_pair,
)
from jumok.server.api.parameters import DetectedLanguage, check_size, find_pivot_paths
from jumok.server.http_errors import bad_request
from jumok.server.routes import POST, Endpoint
from jumok.server.workers.pending import BusyError, RequestTooLargeError, TranslateOptions
from jumok.text.sentences import replace_sentences, text_spans

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from jumok.server.api.parameters import LanguagePlan
    from jumok.server.language_pairs import PivotPath
    from jumok.server.pipeline import TranslatedText
    from jumok.server.routes import ApiRequest

__all__ = ["ROUTES", "ScoredText", "scored_json"]

EVENT_STREAM = "text/event-stream"


def _require_one_if_greedy(schema: dict[str, Any]) -> None:
    known_pair(schema)
    one_if_greedy = [
        {"properties": {"greedy": {"enum": [False, "false", None]}}},
        {"properties": {"n_best": {"enum": [1, "1", None]}}},
    ]
    schema["allOf"] = [{"anyOf": schema.pop("anyOf")}, {"anyOf": one_if_greedy}]


class ScoredRequest(ApiModel):
    model_config = ConfigDict(json_schema_extra=_require_one_if_greedy)

    q: TextOrTexts
    source: Source
    target: Target
    n_best: Annotated[int, bounded_integer(1, lambda limits: limits.max_alternatives + 1)] = 1
    alignment: Flag = False
    greedy: Flag = False
    glossary: GlossaryField = ""


class ScoredText(TypedDict):
    text: str
    score: float | None
    confidence: float


class SpanLink(TypedDict):
    source: tuple[int, int]
    target: tuple[int, int]


class ScoredTranslation(ScoredText):
    source: str
    detectedLanguage: NotRequired[DetectedLanguage]
    pivot: list[str]
    alternatives: list[ScoredText]
    alignment: NotRequired[list[SpanLink]]
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
    translations = [
        {**_plan_json(plan, index, target), **_translation_json(translation, options)}
        for index, translation in enumerate(translated)
    ]
    return JSONResponse({"target": target, "translations": translations})


async def translate_as_stream(request: ApiRequest) -> Response:
    """Like /v1/translate, as server-sent events: token by token and sentence by sentence.

    They are in the order of the texts: `partial`, `sentence`, `text`, and finally `done`.
    """
    texts, plan, options = await _read_request(request)
    events = _events(request, texts, plan, options._replace(stream=True))
    first = await anext(events)  # a request that is refused gets its status before the stream begins
    headers = {"X-Accel-Buffering": "no"}  # else nginx would hold events back until its buffer is full
    return StreamingResponse(_prepend(first, events), media_type=EVENT_STREAM, headers=headers)


async def _prepend(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    try:
        async for event in events:
            yield event
    except (BusyError, RequestTooLargeError) as error:
        yield _event("error", {"error": str(error)})


async def _events(
    request: ApiRequest, texts: Sequence[str], plan: LanguagePlan, options: TranslateOptions
) -> AsyncIterator[str]:
    pipeline, target = request.service.pipeline, request.fields["target"]
    num_done = 0  # texts whose events have all been sent
    sentences: dict[int, list[str]] = {}  # text index → its sentences that have been translated

    def text_events(end: int) -> list[str]:
        """Return the `text` events of the texts from `num_done` to `end`."""
        events = []
        for index in range(num_done, end):
            text = _join_sentences(texts[index], sentences.pop(index, []), plan.pivot_paths[index])
            data = {"index": index, "text": text, **_plan_json(plan, index, target)}
            events.append(_event("text", data))
        return events

    with pipeline.open_request(request.client_id) as opened:
        pipeline.admit(opened, texts, plan.pivot_paths, options, plan.glossaries)
        # Adjacent texts with the same path are queued together: with one source language, all of them.
        for path, group in groupby(range(len(texts)), key=lambda index: plan.pivot_paths[index]):
            indices = list(group)
            results = pipeline.stream_sentences(
                [texts[index] for index in indices], path, options, opened, plan.glossaries
            )
            async for group_index, sentence_index, result in results:
                text_index = indices[group_index]
                for event in text_events(text_index):
                    yield event
                num_done = text_index
                location = {"index": text_index, "sentence": sentence_index}
                if isinstance(result, str):
                    yield _event("partial", {**location, "text": result})
                else:
                    sentences.setdefault(text_index, []).append(result.text())
                    yield _event("sentence", {**location, **_translation_json(result, options)})
            for event in text_events(indices[-1] + 1):
                yield event
            num_done = indices[-1] + 1
    yield _event("done", {"texts": len(texts)})


def _join_sentences(text: str, sentences: Sequence[str], path: PivotPath) -> str:
    """Return a text whose sentences were streamed, with the characters between them."""
    if not path:
        return text
    spans = text_spans(text, path[0].sentences)
    return "".join(replace_sentences(text, spans, sentences, path[-1].target))


async def _read_request(request: ApiRequest) -> tuple[list[str], LanguagePlan, TranslateOptions]:
    fields = ScoredRequest.read(request)
    texts = fields.q if isinstance(fields.q, list) else [fields.q]
    if fields.greedy and fields.n_best > 1:
        raise bad_request("greedy finds one translation: n_best parameter must be 1")
    check_size(texts, request.service)
    plan = await find_pivot_paths(texts, fields.source, fields.target, request.service, fields.glossary)
    return texts, plan, TranslateOptions(fields.n_best, fields.alignment, fields.greedy)


def _plan_json(plan: LanguagePlan, index: int, target: str) -> dict[str, Any]:
    """Return the source language, the detected one and the pivot languages of a text."""
    path = plan.pivot_paths[index]
    detected = {} if plan.detected is None else {"detectedLanguage": plan.detected[index]}
    return {
        "source": path[0].source if path else target,
        **detected,
        "pivot": [pair.target for pair in path[:-1]],
    }


def _translation_json(translation: TranslatedText, options: TranslateOptions) -> dict[str, Any]:
    data: dict[str, Any] = {
        **scored_json(translation.text(), translation.score()),
        "alternatives": [scored_json(text, score) for text, score in translation.alternatives()],
    }
    if notes := translation.notes():
        data["notes"] = notes
    if options.align:
        data["alignment"] = [
            {"source": list(source), "target": list(target)} for source, target in translation.links()
        ]
    return data


def scored_json(text: str, score: float) -> dict[str, Any]:
    """Return a text, its score, and its confidence exp(score).

    With length penalty 1 and no coverage penalty, the score of a sentence is its mean token log probability,
    so its confidence is the geometric mean of the token probabilities.
    """
    is_finite = math.isfinite(score)
    return {
        "text": text,
        "score": round(score, 5) if is_finite else None,
        "confidence": round(min(1.0, math.exp(score)), 5) if is_finite else 0.0,
    }


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON contains no line break, so nothing that a model generates can end the event.
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


STREAM = Endpoint(translate_as_stream, dict[str, str], ScoredRequest, answer_types=(EVENT_STREAM,))
ROUTES = [
    Route("/v1/translate", Endpoint(translate_with_scores, ScoredAnswer, ScoredRequest), methods=POST),
    Route("/v1/translate/stream", STREAM, methods=POST),
]
