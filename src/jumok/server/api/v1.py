"""What LibreTranslate's API lacks, under /v1/: scores, n-best lists, alignments and streams.

`/v1/explain` is in `attention.py`.
"""

from __future__ import annotations

import json
import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from jumok.server.api.parameters import (
    check_size,
    find_pivot_paths,
    read_flag,
    read_glossaries,
    read_integer,
    read_texts,
    require_strings,
)
from jumok.server.http_errors import bad_request
from jumok.server.routes import Route
from jumok.server.workers.pending import BusyError, RequestTooLargeError, TranslateOptions
from jumok.text.sentences import replace_sentences, text_spans

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from jumok.server.api.parameters import LanguageRouting
    from jumok.server.language_pairs import PivotPath
    from jumok.server.pipeline import TranslatedText
    from jumok.server.routes import RequestContext

__all__ = ["ROUTES"]


async def translate(context: RequestContext) -> Response:
    texts, routing, options = await _read_request(context)
    translated = await context.service.pipeline.translate_all(
        texts,
        routing.pivot_paths,
        options,
        context.client,
        read_glossaries(context, routing.pivot_paths),
    )
    answer: dict[str, Any] = {
        "target": context.fields["target"],
        "translations": [
            {**_routing_json(routing, index, context), **_translation_json(translation, options)}
            for index, translation in enumerate(translated)
        ],
    }
    return JSONResponse(answer)


async def translate_stream(context: RequestContext) -> Response:
    """Server-sent events, in the order of the texts: `partial`, `sentence`, `text`, and finally `done`."""
    texts, routing, options = await _read_request(context)
    events = _events(context, texts, routing, options._replace(stream=True))
    first = await anext(events)  # a request that is refused gets its status before the stream begins
    headers = {"X-Accel-Buffering": "no"}  # else nginx would hold events back until its buffer is full
    return StreamingResponse(_prepend(first, events), media_type="text/event-stream", headers=headers)


async def _prepend(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    try:
        async for event in events:
            yield event
    except (BusyError, RequestTooLargeError) as error:
        yield _event("error", {"error": str(error)})


async def _events(
    context: RequestContext, texts: Sequence[str], routing: LanguageRouting, options: TranslateOptions
) -> AsyncIterator[str]:
    pipeline = context.service.pipeline
    num_done = 0  # texts whose events have all been sent
    sentences: dict[int, list[str]] = {}  # text index → its sentences that have been translated

    def text_events(end: int) -> list[str]:
        """Return the `text` events of the texts from `num_done` to `end`."""
        events = []
        for index in range(num_done, end):
            text = _join_sentences(texts[index], sentences.pop(index, []), routing.pivot_paths[index])
            data = {"index": index, "text": text, **_routing_json(routing, index, context)}
            events.append(_event("text", data))
        return events

    glossaries = read_glossaries(context, routing.pivot_paths)
    with pipeline.open_request(context.client) as request:
        pipeline.admit(request, texts, routing.pivot_paths, options)
        # Adjacent texts with the same path are queued together: with one source language, all of them.
        for path, group in groupby(range(len(texts)), key=lambda index: routing.pivot_paths[index]):
            indices = list(group)
            results = pipeline.stream_sentences(
                [texts[index] for index in indices], path, options, request, glossaries
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


async def _read_request(context: RequestContext) -> tuple[list[str], LanguageRouting, TranslateOptions]:
    texts = read_texts(context)
    require_strings(context, "source", "target")
    max_n_best = context.service.limits.max_alternatives + 1
    n_best = read_integer(context, "n_best", minimum=1, maximum=max_n_best)
    align, greedy = (read_flag(context, name) for name in ("alignment", "greedy"))
    if greedy and n_best > 1:
        raise bad_request("greedy finds one translation: n_best parameter must be 1")
    check_size(texts, context.service)
    return texts, await find_pivot_paths(texts, context), TranslateOptions(n_best, align, greedy)


def _routing_json(routing: LanguageRouting, index: int, context: RequestContext) -> dict[str, Any]:
    """Return the source language, the detected one and the pivot languages of a text."""
    path = routing.pivot_paths[index]
    target = context.fields["target"]
    detected = {} if routing.detected is None else {"detectedLanguage": routing.detected[index]}
    return {
        "source": path[0].source if path else target,
        **detected,
        "pivot": [pair.target for pair in path[:-1]],
    }


def _translation_json(translation: TranslatedText, options: TranslateOptions) -> dict[str, Any]:
    data: dict[str, Any] = {
        **_scored_json(translation.text(), translation.score()),
        "alternatives": [_scored_json(text, score) for text, score in translation.alternatives()],
    }
    if notes := translation.notes():
        data["notes"] = notes
    if options.align:
        data["alignment"] = [
            {"source": list(source), "target": list(target)} for source, target in translation.links()
        ]
    return data


def _scored_json(text: str, score: float) -> dict[str, Any]:
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


ROUTES = [
    Route("POST", "/v1/translate", translate, guarded=True),
    Route("POST", "/v1/translate/stream", translate_stream, guarded=True),
]
