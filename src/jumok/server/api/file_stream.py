"""Translate a file and stream events: the progress, and finally the address of the translation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.routing import Route

from jumok.server.api.event_stream import EVENT_STREAM, format_event, stream_events
from jumok.server.api.libretranslate import TranslateFileRequest, read_file
from jumok.server.request_body import MULTIPART
from jumok.server.routes import POST, Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.responses import Response

    from jumok.server.api.libretranslate import FileToTranslate
    from jumok.server.routes import ApiRequest

PROGRESS_SECONDS = 0.1  # minimum time between two events


async def translate_file_as_stream(request: ApiRequest) -> Response:
    """Translate a file, and report the progress as server-sent events.

    Each `progress` event has the number of translated sentences and the number of all sentences. Through a
    pivot language, each model's translation of a sentence counts as a part of the sentence. The last event is
    `file`, with the address of the translated file, or `error`.
    """
    return await stream_events(_events(await read_file(request)))


async def _events(file: FileToTranslate) -> AsyncIterator[str]:
    changed = asyncio.Event()
    done, total = 0, 0  # these count each sentence once per model

    def on_progress(*progress: int) -> None:
        nonlocal done, total
        done, total = progress
        changed.set()

    task = asyncio.create_task(file.translate(on_progress))
    task.add_done_callback(lambda _: changed.set())
    try:
        while not task.done():
            await changed.wait()
            changed.clear()
            if not task.done():
                num_models = max(1, len(file.plan.pivot_paths[0]))
                yield format_event("progress", {"done": done // num_models, "total": total // num_models})
                await asyncio.sleep(PROGRESS_SECONDS)
        answer = await task
    finally:
        task.cancel()
    detected = file.plan.detected
    yield format_event(
        "file",
        {
            **answer,
            "pivot": file.plan.pivots,
            **({} if detected is None else {"detectedLanguage": detected[0]}),
        },
    )


ROUTES = [
    Route(
        "/v1/translate_file/stream",
        Endpoint(
            translate_file_as_stream,
            dict[str, str],
            TranslateFileRequest,
            body_types=(MULTIPART,),
            answer_types=(EVENT_STREAM,),
        ),
        methods=POST,
    ),
]
