"""What LibreTranslate has no words for, under /v1/: scores, n-best, alignments, streams, explanations."""

from __future__ import annotations

import json
import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from jumok.serve.contract import check_size, read_count, read_texts, render_all, require, routes_of
from jumok.serve.faults import invalid
from jumok.serve.queueing import BusyError, Wish
from jumok.serve.routes import Route
from jumok.serve.sentences import lay_out, sentence_spans
from jumok.serve.views import explain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from jumok.serve.contract import Asked
    from jumok.serve.directions import Direction
    from jumok.serve.routes import Call
    from jumok.serve.translating import Rendering

__all__ = ["VERSION_ONE"]


async def translate(call: Call) -> Response:
    texts, asked, wish = await _read(call)
    rendered = await render_all(call.service, texts, asked.routes, wish)
    answer: dict[str, Any] = {
        "target": call.sent.fields["target"],
        "translations": [
            {**_about(asked, number, call), **_told(one, wish)} for number, one in enumerate(rendered)
        ],
    }
    return JSONResponse(answer)


async def stream(call: Call) -> Response:
    """Server-sent events, in the order of the texts: `said`, `sentence`, `text`, and at last `done`."""
    texts, asked, wish = await _read(call)
    events = _events(call, texts, asked, wish._replace(watched=True))
    first = await anext(events)  # what is refused is refused with a status, before the stream begins
    # nginx would keep what it reads until it has several pages of it.
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(_with_first(first, events), media_type="text/event-stream", headers=headers)


async def _with_first(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    try:
        async for event in events:
            yield event
    except BusyError as error:
        yield _event("error", {"error": str(error)})


async def _events(call: Call, texts: Sequence[str], asked: Asked, wish: Wish) -> AsyncIterator[str]:
    renderer = call.service.renderer
    deadline = renderer.deadline()
    done = 0  # texts of which everything was told

    found: dict[int, list[str]] = {}  # the sentences of the text that is being told

    def ended(until: int) -> list[str]:
        told = []
        for n in range(done, until):
            whole = _joined(texts[n], found.pop(n, []), asked.routes[n])
            told.append(_event("text", {"number": n, "text": whole, **_about(asked, n, call)}))
        return told

    # Neighbours that go the same way are queued together: with one source language that is all of them.
    for route, group in groupby(range(len(texts)), key=lambda n: asked.routes[n]):
        numbers = list(group)
        of_group = [texts[n] for n in numbers]
        async for n, place, heard in renderer.render_sentences(of_group, route, wish, deadline):
            for event in ended(numbers[n]):
                yield event
            done = numbers[n]
            where = {"number": done, "sentence": place}
            if isinstance(heard, str):
                yield _event("said", {**where, "text": heard})
            else:
                found.setdefault(done, []).append(heard.text())
                yield _event("sentence", {**where, **_told(heard, wish)})
        for event in ended(numbers[-1] + 1):
            yield event
        done = numbers[-1] + 1
    yield _event("done", {"texts": len(texts)})


def _joined(text: str, sentences: Sequence[str], route: Sequence[Direction]) -> str:
    """A text whose sentences were told one by one, with what stands between them."""
    if not route:
        return text
    return "".join(lay_out(text, sentence_spans(text), sentences, route[-1].target))


async def _read(call: Call) -> tuple[list[str], Asked, Wish]:
    texts = read_texts(call)
    require(call, "source", "target")
    n_best = read_count(call, "n_best", least=1, most=call.service.limits.alternatives + 1)
    align, greedy = (_read_flag(call, name) for name in ("alignment", "greedy"))
    if greedy and n_best > 1:
        raise invalid("greedy finds one translation: n_best parameter must be 1")
    check_size(texts, call.service)
    return texts, await routes_of(texts, call), Wish(n_best, align, greedy)


def _read_flag(call: Call, name: str) -> bool:
    value = call.sent.fields.get(name, False)
    if not isinstance(value, bool) and value not in ("true", "false"):
        raise invalid(f"{name} parameter is not true or false")
    return value in (True, "true")


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


def _told(one: Rendering, wish: Wish) -> dict[str, Any]:
    told: dict[str, Any] = {
        **_scored(one.text(), one.score()),
        "alternatives": [_scored(text, score) for text, score in one.alternatives()],
    }
    if wish.align:
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
    Route("POST", "/v1/explain", "explain", explain, guarded=True),
]
