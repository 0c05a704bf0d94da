"""The page at `/`, the list of routes at `/docs`, and the OpenAPI document.

The page works as a plain form; its script only makes it pleasant. Nothing that a person or a model wrote is
put into it unescaped, and its one script and one style are named by their digests: no other would run.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, JSONResponse, Response

from jumok.corpus.languages import language_name
from jumok.serve.contract import AUTO, check_size, read_texts, render_all, require, routes_of
from jumok.serve.files import FILE_TYPES
from jumok.serve.openapi import openapi_document
from jumok.serve.queueing import Wish
from jumok.serve.routes import Route

if TYPE_CHECKING:
    from jumok.serve.faults import Fault
    from jumok.serve.routes import Call

__all__ = ["PAGES"]

REFUSALS = {
    "en": {429: "Too many requests. Try again in {seconds} s."},
    "ko": {
        400: "번역할 수 없습니다. {message}",
        403: "API 키가 올바르지 않습니다.",
        408: "글이 제때 도착하지 않았습니다. 다시 시도하세요.",
        413: "글이 너무 깁니다.",
        415: "이 형식은 읽을 수 없습니다.",
        429: "요청이 너무 많습니다. {seconds}초 뒤에 다시 시도하세요.",
        500: "서버에 문제가 생겼습니다. {message}",
        503: "서버가 바쁩니다. {seconds}초 뒤에 다시 시도하세요.",
    },
}
"""What the page says where its script, which has words of its own, does not run; else the fault's message."""


async def page(call: Call) -> Response:
    return _show(call)


async def translate_on_page(call: Call) -> Response:
    """What the form sends where there is no script."""
    texts = read_texts(call, arrays=False)
    require(call, "source", "target")
    check_size(texts, call.service)
    asked = await routes_of(texts, call)
    [rendered] = await render_all(call.service, texts, asked.routes, Wish())
    found = language_name(asked.detected[0]["language"]) if asked.detected else ""
    return _show(call, result=rendered.text(), found=found)


def refuse_on_page(call: Call, fault: Fault) -> Response:
    """The page again, with what was written, if that has arrived, and why it was not translated."""
    tongue = "ko" if call.headers.get("accept-language", "").lower().startswith("ko") else "en"
    words = REFUSALS[tongue].get(fault.status, "{message}")
    message = words.format(message=fault.message, seconds=fault.headers.get("Retry-After"))
    shown = _show(call, message=message, tongue=tongue)
    shown.status_code = fault.status
    shown.headers.update(fault.headers)
    return shown


def _show(
    call: Call, *, result: str = "", found: str = "", message: str = "", tongue: str = "en"
) -> Response:
    service, fields = call.service, call.sent.fields
    codes = service.directions.codes
    sources = [code for code in codes if set(service.directions.targets(code)) - {code}]
    targets = [code for code in codes if set(service.directions.sources(code)) - {code}]
    watched = () if service.keys else service.directions.all
    text = fields.get("q", "")
    template, policy = _template()
    shown = template.substitute(
        sources=_options([AUTO, *sources], fields.get("source")),
        targets=_options(targets, fields.get("target")),
        text=escape(text if isinstance(text, str) else ""),
        result=escape(result),
        found=escape(found),
        message=escape(message),
        tongue=tongue,
        limit=service.limits.characters,
        key="" if service.keys else "hidden",
        files=",".join(FILE_TYPES),
        models=escape(" ".join(one.name for one in watched)),
    )
    return HTMLResponse(shown, headers={"Content-Security-Policy": policy})


def _options(codes: list[str], chosen: object) -> str:
    names = {code: "Detect language" if code == AUTO else language_name(code) for code in codes}
    return "".join(
        f'<option value="{escape(code)}"{" selected" * (code == chosen)}>{escape(name)}</option>'
        for code, name in names.items()
    )


@cache
def _template() -> tuple[Template, str]:
    """The page, and the policy under which its own script and style run and nothing else."""
    html = files("jumok.serve").joinpath("page.html").read_text(encoding="utf-8")
    script, style = (_digest(html, tag) for tag in ("script", "style"))
    policy = (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return Template(html), policy


def _digest(html: str, tag: str) -> str:
    inside = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[0]
    return "sha256-" + base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()


async def openapi(call: Call) -> Response:
    return JSONResponse(openapi_document(call.service))


async def docs(call: Call) -> Response:
    """Every route with a line about it, for people."""
    document = openapi_document(call.service)
    rows = [
        f"<tr><td><code>{method.upper()} {escape(path)}</code><td>{escape(operation['summary'])}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    shown = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>jumok API</title><h1>jumok API</h1>'
        f'<p>The contract of LibreTranslate, and more. Machines read <a href="/spec">/spec</a>.</p>'
        f"<table>{''.join(rows)}</table></html>"
    )
    return HTMLResponse(shown)


PAGES = [
    Route("GET", "/", "page", page),
    Route("POST", "/", "translateOnPage", translate_on_page, guarded=True, refuse=refuse_on_page),
    Route("GET", "/spec", "spec", openapi),
    Route("GET", "/openapi.json", "openapi", openapi),
    Route("GET", "/docs", "docs", docs),
]
