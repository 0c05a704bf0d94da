"""The API of LibreTranslate: its routes, fields, messages and their order. Its clients work unchanged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from jumok.documents import DOCUMENT_FORMATS, DocumentTooLargeError, read_document, read_markup
from jumok.errors import DataError
from jumok.server.api.parameters import (
    check_languages,
    check_size,
    find_pivot_paths,
    read_glossaries,
    read_integer,
    read_texts,
    require_strings,
)
from jumok.server.http_errors import HttpError, bad_request, retry_later
from jumok.server.routes import Route
from jumok.server.workers.pending import TranslateOptions
from jumok.text.language_detection import detect_languages
from jumok.text.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.documents import HtmlMarkup
    from jumok.server.api.parameters import LanguageRouting
    from jumok.server.language_pairs import PivotPath
    from jumok.server.pipeline import TranslatedText
    from jumok.server.routes import RequestContext
    from jumok.text.glossary import Glossary

__all__ = ["ROUTES"]

TEXT_FORMATS = ("text", "html")
FRONTEND_TIMEOUT = 500  # milliseconds that a page waits for the next key press before it sends a request


async def translate(context: RequestContext) -> Response:
    texts = read_texts(context)
    require_strings(context, "source", "target")
    if context.fields.get("alternatives", 0) is None:
        del context.fields["alternatives"]
    max_alternatives = context.service.limits.max_alternatives
    alternatives = read_integer(context, "alternatives", minimum=0, maximum=max_alternatives)
    check_size(texts, context.service)
    check_languages(context)
    text_format = context.fields.get("format")
    text_format = "text" if text_format in (None, "") else text_format
    if text_format not in TEXT_FORMATS:
        raise HttpError(400, f"{str(text_format)[:40]} format is not supported")
    routing = await find_pivot_paths(texts, context)
    glossaries = read_glossaries(context, routing.pivot_paths)
    if text_format == "html":
        context.service.pipeline.check_room(context.client, sum(map(len, texts)))
        markups = [await context.service.run_in_thread(read_markup, text) for text in texts]
        ranked = await _translate_html(context, markups, routing.pivot_paths, glossaries, alternatives + 1)
    else:
        options = TranslateOptions(n_best=alternatives + 1)
        translated = await context.service.pipeline.translate_all(
            texts, routing.pivot_paths, options, context.client, glossaries
        )
        ranked = [
            [translation.text(), *(text for text, _ in translation.alternatives())]
            for translation in translated
        ]
    answer = _to_answer(context.fields["q"], ranked, routing, alternatives=alternatives)
    return JSONResponse(answer, headers=_pivot_header(routing))


def _to_answer(
    q: str | list[str], ranked: list[list[str]], routing: LanguageRouting, *, alternatives: int
) -> dict[str, Any]:
    """Return single values if `q` is a string, arrays if it is an array."""
    is_array = isinstance(q, list)
    best = [texts[0] for texts in ranked]
    others = [texts[1 : alternatives + 1] for texts in ranked]
    answer: dict[str, Any] = {"translatedText": best if is_array else best[0]}
    if routing.detected is not None:
        answer["detectedLanguage"] = routing.detected if is_array else routing.detected[0]
    if alternatives:
        answer["alternatives"] = others if is_array else others[0]
    if routing.pivots:
        answer["pivot"] = routing.pivots
    return answer


def _pivot_header(routing: LanguageRouting) -> dict[str, str]:
    return {"X-Translated-Through": ", ".join(routing.pivots)} if routing.pivots else {}


async def _translate_html(
    context: RequestContext,
    markups: Sequence[HtmlMarkup],
    pivot_paths: Sequence[PivotPath],
    glossaries: Mapping[PivotPath, Glossary],
    n_best: int,
) -> list[list[str]]:
    """Return the translations of each HTML text, best first, without duplicates."""
    segments = [segment for markup in markups for segment in markup.segments]
    paths = [path for markup, path in zip(markups, pivot_paths, strict=True) for _ in markup.segments]
    options = TranslateOptions(n_best, align=True)
    pipeline = context.service.pipeline
    translated = iter(await pipeline.translate_all(segments, paths, options, context.client, glossaries))
    results = []
    for markup, path in zip(markups, pivot_paths, strict=True):
        segments_of_markup = [next(translated) for _ in markup.segments]
        num_ranks = n_best if path else 1
        results.append(
            await context.service.run_in_thread(_fill_ranked, markup, segments_of_markup, num_ranks)
        )
    return results


def _fill_ranked(markup: HtmlMarkup, translated: Sequence[TranslatedText], num_ranks: int) -> list[str]:
    ranked = [
        markup.fill([segment.segment_translation(rank) for segment in translated])
        for rank in range(num_ranks)
    ]
    return list(dict.fromkeys(ranked))


async def detect(context: RequestContext) -> Response:
    texts = read_texts(context, allow_arrays=False)
    check_size(texts, context.service)
    service = context.service
    detected = await service.run_in_thread(detect_languages, texts[0], service.language_pairs.codes)
    return JSONResponse([{"confidence": confidence, "language": code} for code, confidence in detected])


async def translate_file(context: RequestContext) -> Response:
    request, service = context.request, context.service
    if request.file is None:
        raise bad_request("missing file parameter")
    require_strings(context, "source", "target")
    service.pipeline.check_room(context.client, len(request.file))
    read = partial(read_document, max_syntax_characters=service.limits.max_file_syntax_characters)
    try:
        document_format, document = await service.run_in_thread(read, request.file_name, request.file)
    except DocumentTooLargeError as error:
        raise HttpError(413, str(error)) from None
    except DataError as error:
        raise bad_request(str(error)) from None
    segments = document.segments
    check_size(["".join(segments)], service)
    routing = await find_pivot_paths(["\n".join(segments)], context)
    paths = routing.pivot_paths * len(segments)
    options = TranslateOptions(align=True)
    glossaries = read_glossaries(context, routing.pivot_paths)
    translated = await service.pipeline.translate_all(segments, paths, options, context.client, glossaries)
    target = context.fields["target"]
    data = await service.run_in_thread(
        lambda: document.write([text.segment_translation() for text in translated], target)
    )
    name = service.download_cache.put(data, document_format)
    url = f"{context.scheme}://{context.headers['host']}/download_file/{name}"
    return JSONResponse({"translatedFileUrl": url}, headers=_pivot_header(routing))


async def download_file(context: RequestContext) -> Response:
    file = context.service.download_cache.get(context.path_parameters["name"])
    if file is None:
        raise HttpError(404, "There is no such file, or it has expired.")
    # A browser must never show it as a page of this server.
    headers = {
        "Content-Disposition": f'attachment; filename="translated{file.document_format.suffix}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return Response(file.data, media_type=file.document_format.media_type, headers=headers)


async def languages(context: RequestContext) -> Response:
    return JSONResponse(context.service.language_pairs.to_json())


async def frontend_settings(context: RequestContext) -> Response:
    service = context.service
    default_codes = service.language_pairs.codes[:2]
    source, target = ({"code": code, "name": language_name(code)} for code in default_codes)
    return JSONResponse(
        {
            "apiKeys": bool(service.api_keys),
            "charLimit": service.limits.max_characters,
            "filesTranslation": True,
            "frontendTimeout": FRONTEND_TIMEOUT,
            "keyRequired": bool(service.api_keys),
            "language": {"source": source, "target": target},
            "suggestions": False,
            "supportedFilesFormat": [document_format.suffix for document_format in DOCUMENT_FORMATS],
        }
    )


async def health(context: RequestContext) -> Response:
    """Report whether the server can translate: 503 if no worker is ready."""
    if not context.service.pool.pids:
        raise retry_later(503, "No worker is ready.", 5)
    return JSONResponse({"status": "ok"})


async def metrics(context: RequestContext) -> Response:
    service = context.service
    text = service.metrics.to_text(
        waiting_sentences=len(service.queue),
        open_requests=service.queue.open_requests,
        workers=len(service.pool.pids),
    )
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


ROUTES = [
    Route("POST", "/translate", translate, guarded=True),
    Route("POST", "/detect", detect, guarded=True),
    Route("GET", "/languages", languages),
    Route("POST", "/translate_file", translate_file, guarded=True),
    Route("GET", "/download_file/{name}", download_file),
    Route("GET", "/frontend/settings", frontend_settings),
    Route("GET", "/health", health),
    Route("GET", "/metrics", metrics, guarded=True),
]
