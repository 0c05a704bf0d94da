"""The contract of LibreTranslate: its routes, fields, messages and their order. Clients need no change."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from jumok.corpus.languages import language_name
from jumok.errors import DataError
from jumok.serve.detecting import detect
from jumok.serve.faults import Fault, busy, invalid
from jumok.serve.files import FILE_TYPES, read_document
from jumok.serve.markup import read_markup
from jumok.serve.queueing import Wish
from jumok.serve.routes import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.serve.directions import Direction, Directions
    from jumok.serve.files import Document
    from jumok.serve.routes import Call
    from jumok.serve.service import Service
    from jumok.serve.translating import Rendering

__all__ = [
    "CONTRACT",
    "Asked",
    "check_size",
    "read_count",
    "read_texts",
    "render_all",
    "require",
    "routes_of",
]

AUTO = "auto"
FORMATS = ("text", "html")
FRONTEND_TIMEOUT = 500  # milliseconds a page waits for the next key before it asks
FILE_NAME = re.compile(r"[A-Za-z0-9_-]{32}\.(?:txt|srt|html|po)")


@dataclass(frozen=True, slots=True)
class Asked:
    """Where texts come from and go to: a route for each, and what was detected where nobody said."""

    routes: list[list[Direction]]
    detected: list[dict[str, Any]] | None

    @property
    def pivots(self) -> list[str]:
        """Third languages that any text goes through."""
        codes = [direction.target for route in self.routes for direction in route[:-1]]
        return list(dict.fromkeys(codes))


# --- What is asked ------------------------------------------------------------------------------------------


def read_texts(call: Call, *, arrays: bool = True) -> list[str]:
    """`q`, as a list."""
    q = call.sent.fields.get("q")
    if not q and not isinstance(q, int | float):
        raise invalid("missing q parameter")
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts) or (isinstance(q, list) and not arrays):
        raise invalid("q parameter is not a string" + " or an array of strings" * arrays)
    return texts


def require(call: Call, *names: str) -> None:
    for name in names:
        value = call.sent.fields.get(name)
        if value is None or value == "":
            raise invalid(f"missing {name} parameter")
        if not isinstance(value, str):
            raise invalid(f"{name} parameter is not a string")


def read_count(call: Call, name: str, *, least: int, most: int) -> int:
    """A number that may be left out, and may be a string as it is in a form."""
    value = call.sent.fields.get(name, least)
    if isinstance(value, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,8}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(f"{name} parameter is not a number")
    if not least <= value <= most:
        raise invalid(f"{name} parameter must be from {least} to {most}")
    return value


def check_size(texts: Sequence[str], service: Service) -> None:
    for size, limit in (
        (len(texts), service.limits.texts),
        (sum(map(len, texts)), service.limits.characters),
    ):
        if size > limit:
            raise invalid(f"request ({size}) exceeds text limit ({limit})")
    service.metrics.add("characters", sum(map(len, texts)))


def check_languages(call: Call) -> tuple[str, str]:
    """Source and target, each known; whether one leads to the other is not asked here."""
    source, target = call.sent.fields["source"], call.sent.fields["target"]
    for code in (source, target):
        if code not in call.service.directions.codes and not (code == AUTO and code is source):
            raise Fault(400, f"{code[:40]} is not supported")
    return source, target


async def routes_of(texts: Sequence[str], call: Call) -> Asked:
    """Check both languages, and find the way for each text."""
    directions = call.service.directions
    source, target = check_languages(call)
    if source != AUTO:
        return Asked([_route(directions, source, target)] * len(texts), None)
    # What is in the target language already stays; where nothing tells, it is one that can be translated.
    candidates = sorted(directions.sources(target), key=lambda code: code == target)
    found = await asyncio.to_thread(lambda: [detect(text, candidates)[0] for text in texts])
    told = [{"confidence": confidence, "language": code} for code, confidence in found]
    return Asked([_route(directions, code, target) for code, _ in found], told)


def _route(directions: Directions, source: str, target: str) -> list[Direction]:
    route = directions.route(source, target)
    if route is None:
        raise Fault(
            400,
            f"{language_name(target)} ({target}) is not available as a target language from "
            f"{language_name(source)} ({source})",
        )
    return route


# --- Answers ------------------------------------------------------------------------------------------------


async def translate(call: Call) -> Response:
    texts = read_texts(call)
    require(call, "source", "target")
    if call.sent.fields.get("alternatives", 0) is None:
        del call.sent.fields["alternatives"]
    alternatives = read_count(call, "alternatives", least=0, most=call.service.limits.alternatives)
    check_size(texts, call.service)
    check_languages(call)
    wanted = call.sent.fields.get("format")
    wanted = "text" if wanted in (None, "") else wanted
    if wanted not in FORMATS:
        raise Fault(400, f"{str(wanted)[:40]} format is not supported")
    asked = await routes_of(texts, call)
    if wanted == "html":
        documents = [await asyncio.to_thread(read_markup, text) for text in texts]
        done = await _render_documents(call.service, documents, asked.routes, n_best=alternatives + 1)
    else:
        rendered = await render_all(call.service, texts, asked.routes, Wish(n_best=alternatives + 1))
        done = [[one.text(), *(text for text, _ in one.alternatives())] for one in rendered]
    return JSONResponse(
        _as_asked(call.sent.fields["q"], done, asked, alternatives=alternatives), headers=_said(asked)
    )


def _as_asked(
    q: str | list[str], done: list[list[str]], asked: Asked, *, alternatives: int
) -> dict[str, Any]:
    """One answer for a string, arrays for an array."""
    many = isinstance(q, list)
    best = [ranked[0] for ranked in done]
    others = [ranked[1 : alternatives + 1] for ranked in done]
    answer: dict[str, Any] = {"translatedText": best if many else best[0]}
    if asked.detected is not None:
        answer["detectedLanguage"] = asked.detected if many else asked.detected[0]
    if alternatives:
        answer["alternatives"] = others if many else others[0]
    if asked.pivots:
        answer["pivot"] = asked.pivots
    return answer


def _said(asked: Asked) -> dict[str, str]:
    return {"X-Translated-Through": ", ".join(asked.pivots)} if asked.pivots else {}


async def render_all(
    service: Service, texts: Sequence[str], routes: Sequence[list[Direction]], wish: Wish
) -> list[Rendering]:
    """All texts, those of one route together."""
    by_route: dict[tuple[Direction, ...], list[int]] = {}
    for number, route in enumerate(routes):
        by_route.setdefault(tuple(route), []).append(number)
    if len(by_route) == 1:
        return await service.renderer.render(texts, routes[0], wish)
    groups = await asyncio.gather(
        *(
            service.renderer.render([texts[n] for n in numbers], route, wish)
            for route, numbers in by_route.items()
        )
    )
    found = {
        n: one
        for numbers, group in zip(by_route.values(), groups, strict=True)
        for n, one in zip(numbers, group, strict=True)
    }
    return [found[number] for number in range(len(texts))]


async def _render_documents(
    service: Service, documents: Sequence[Document], routes: Sequence[list[Direction]], *, n_best: int
) -> list[list[str]]:
    texts = [text for document in documents for text in document.texts]
    of_text = [route for document, route in zip(documents, routes, strict=True) for _ in document.texts]
    rendered = iter(await render_all(service, texts, of_text, Wish(n_best, align=True)))
    done = []
    for document, route in zip(documents, routes, strict=True):
        parts = [next(rendered) for _ in document.texts]
        done.append(await asyncio.to_thread(_written, document, parts, n_best if route else 1))
    return done


def _written(document: Document, parts: Sequence[Rendering], n_best: int) -> list[str]:
    ranked = [
        document.write([part.text(rank) for part in parts], [part.links(rank) for part in parts])
        for rank in range(n_best)
    ]
    return list(dict.fromkeys(ranked))


async def detect_language(call: Call) -> Response:
    texts = read_texts(call, arrays=False)
    check_size(texts, call.service)
    found = await asyncio.to_thread(detect, texts[0], call.service.directions.codes)
    return JSONResponse([{"confidence": confidence, "language": code} for code, confidence in found])


async def translate_file(call: Call) -> Response:
    sent = call.sent
    if sent.file is None:
        raise invalid("missing file parameter")
    require(call, "source", "target")
    try:
        suffix, document = await asyncio.to_thread(
            read_document, sent.file_name, sent.file, most_marks=call.service.limits.file_marks
        )
    except DataError as error:
        raise invalid(str(error)) from None
    check_size(["".join(document.texts)], call.service)
    asked = await routes_of(["\n".join(document.texts)], call)
    [[written, *_]] = await _render_documents(call.service, [document], asked.routes, n_best=1)
    name = call.service.shelf.put(written.encode("utf-8"), suffix)
    address = f"{call.scheme}://{call.headers['host']}/download_file/{name}"
    return JSONResponse({"translatedFileUrl": address}, headers=_said(asked))


async def download_file(call: Call) -> Response:
    name = call.parameters["name"]
    data = call.service.shelf.get(name) if FILE_NAME.fullmatch(name) else None
    if data is None:
        raise Fault(404, "There is no such file, or it is no longer kept.")
    suffix = name[name.rindex(".") :]
    # Never shown as a page of this server, whatever a browser thinks of it.
    headers = {
        "Content-Disposition": f'attachment; filename="translated{suffix}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return Response(data, media_type=FILE_TYPES[suffix], headers=headers)


async def languages(call: Call) -> Response:
    return JSONResponse(call.service.directions.listed())


async def frontend_settings(call: Call) -> Response:
    service = call.service
    first = service.directions.codes[:2]
    source, target = ({"code": code, "name": language_name(code)} for code in first)
    return JSONResponse(
        {
            "apiKeys": bool(service.keys),
            "charLimit": service.limits.characters,
            "filesTranslation": True,
            "frontendTimeout": FRONTEND_TIMEOUT,
            "keyRequired": bool(service.keys),
            "language": {"source": source, "target": target},
            "suggestions": False,
            "supportedFilesFormat": list(FILE_TYPES),
        }
    )


async def health(call: Call) -> Response:
    """Whether it can translate: where no worker is left, somebody should be told."""
    if not call.service.pool.pids:
        raise busy(503, "No worker is ready.", 5)
    return JSONResponse({"status": "ok"})


async def metrics(call: Call) -> Response:
    service = call.service
    text = service.metrics.text(
        waiting_sentences=len(service.queue),
        open_requests=service.queue.open_requests,
        workers=len(service.pool.pids),
    )
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


CONTRACT = [
    Route("POST", "/translate", "translate", translate, guarded=True),
    Route("POST", "/detect", "detect", detect_language, guarded=True),
    Route("GET", "/languages", "languages", languages),
    Route("POST", "/translate_file", "translateFile", translate_file, guarded=True),
    Route("GET", "/download_file/{name}", "downloadFile", download_file),
    Route("GET", "/frontend/settings", "frontendSettings", frontend_settings),
    Route("GET", "/health", "health", health),
    Route("GET", "/metrics", "metrics", metrics, guarded=True),
]
