"""What LibreTranslate has no words for, under /v1/: scores, n-best lists, word alignments and streams."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from jumok.serve.contract import check_size, read_count, read_texts, render_all, require, routes_of
from jumok.serve.faults import invalid
from jumok.serve.queueing import BusyError
from jumok.serve.routes import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from jumok.serve.contract import Asked
    from jumok.serve.routes import Call
    from jumok.serve.translating import Rendering

__all__ = ["VERSION_ONE"]


async def translate(call: Call) -> Response:
    texts, asked, n_best, align = _read(call)
    rendered = await render_all(call.service, texts, asked.routes, n_best=n_best, align=align)
    answer: dict[str, Any] = {
        "target": call.sent.fields["target"],
        "translations": [
            {**_about(asked, number, call), **_told(one, align=align)} for number, one in enumerate(rendered)
        ],
    }
    return JSONResponse(answer)


async def stream(call: Call) -> Response:
    """Server-sent events: `sentence` for each sentence as soon as it is done, in order, then `done`."""
    texts, asked, n_best, align = _read(call)
    events = _events(call, texts, asked, n_best=n_best, align=align)
    first = await anext(
        events
    )  # a request that is refused is refused with a status, before the stream begins
    return StreamingResponse(_with_first(first, events), media_type="text/event-stream")


async def _with_first(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    try:
        async for event in events:
            yield event
    except BusyError as error:
        yield _event("error", {"error": str(error)})


async def _events(
    call: Call, texts: Sequence[str], asked: Asked, *, n_best: int, align: bool
) -> AsyncIterator[str]:
    for number, (text, route) in enumerate(zip(texts, asked.routes, strict=True)):
        place = 0
        async for one in call.service.renderer.render_sentences(text, route, n_best=n_best, align=align):
            yield _event("sentence", {"number": number, "sentence": place, **_told(one, align=align)})
            place += 1
        yield _event("text", {"number": number, **_about(asked, number, call)})
    yield _event("done", {"texts": len(texts)})


def _read(call: Call) -> tuple[list[str], Asked, int, bool]:
    texts = read_texts(call)
    require(call, "source", "target")
    n_best = read_count(call, "n_best", least=1, most=call.service.limits.alternatives + 1)
    align = call.sent.fields.get("alignment", False)
    if not isinstance(align, bool) and align not in ("true", "false"):
        raise invalid("alignment parameter is not true or false")
    check_size(texts, call.service)
    return texts, routes_of(texts, call), n_best, align in (True, "true")


def _about(asked: Asked, number: int, call: Call) -> dict[str, Any]:
    """Which way a text went."""
    route = asked.routes[number]
    target = call.sent.fields["target"]
    detected = {} if asked.detected is None else {"detectedLanguage": asked.detected[number]}
    return {
        "source": route[0].source if route else target,
        **detected,
        "pivot": [direction.target for direction in route[:-1]],
    }


def _told(one: Rendering, *, align: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        **_scored(one.text(), one.score()),
        "alternatives": [_scored(text, score) for text, score in one.alternatives()],
    }
    if align:
        told["alignment"] = [
            {"source": list(source), "target": list(target)} for source, target in one.links()
        ]
    return told


def _scored(text: str, score: float) -> dict[str, Any]:
    """`score` is log p / length^penalty; `confidence` is the mean probability of a piece."""
    finite = math.isfinite(score)
    return {
        "text": text,
        "score": round(score, 5) if finite else None,
        "confidence": round(min(1.0, math.exp(score)), 5) if finite else 0.0,
    }


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON holds no line break, so that whatever a model says stays inside its event.
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


VERSION_ONE = [
    Route("POST", "/v1/translate", "translateWithScores", translate, guarded=True),
    Route("POST", "/v1/translate/stream", "translateAsStream", stream, guarded=True),
]
