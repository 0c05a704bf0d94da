"""Answers as server-sent events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from jumok.server.workers.pending import BusyError, RequestTooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EVENT_STREAM = "text/event-stream"


def format_event(name: str, data: dict[str, Any]) -> str:
    # JSON contains no line break, so nothing that a model generates can end the event.
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


async def stream_events(events: AsyncIterator[str]) -> StreamingResponse:
    """Wait for the first event, so that a refused request gets an error status; then stream all events.

    If the request fails after the first event, the last event is `error`.
    """
    first = await anext(events)
    headers = {"X-Accel-Buffering": "no"}  # else nginx would hold events back until its buffer is full
    return StreamingResponse(_prepend(first, events), media_type=EVENT_STREAM, headers=headers)


async def _prepend(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    try:
        async for event in events:
            yield event
    except (BusyError, RequestTooLargeError) as error:
        status = 503 if isinstance(error, BusyError) else 413
        yield format_event("error", {"error": str(error), "status": status})
