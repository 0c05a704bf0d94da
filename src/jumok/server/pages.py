"""The page at `/`, the live page about attention, the list of routes at `/docs`, and the OpenAPI document.

The page works as a plain form; its script only makes it pleasant. Nothing that a person or a model wrote is
put into it unescaped, and its one script and one style are named by their digests: no other would run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, JSONResponse, Response

from jumok.serve.contract import AUTO, check_size, read_texts, render_all, require, routes_of
from jumok.serve.files import FILE_TYPES
from jumok.serve.openapi import openapi_document
from jumok.serve.queueing import Wish
from jumok.serve.routes import Route
from jumok.serve.views import show_page
from jumok.serve.words import REFUSALS, WORDS, choose_tongue, name_in

if TYPE_CHECKING:
    from jumok.serve.contract import Asked
    from jumok.serve.faults import Fault
    from jumok.serve.routes import Call

__all__ = ["PAGES"]

ATTENTION_PAGE = "/attention/{direction}/"


async def page(call: Call) -> Response:
    return _show(call)


async def translate_on_page(call: Call) -> Response:
    """What the form sends where there is no script."""
    texts = read_texts(call, arrays=False)
    require(call, "source", "target")
    check_size(texts, call.service)
    asked = await routes_of(texts, call)
    [rendered] = await render_all(call.service, texts, asked.routes, Wish())
    return _show(call, result=rendered.text(), found=_found(asked, _tongue(call)))


def _found(asked: Asked, tongue: str) -> str:
    """What a reader should know of the way: the language that was detected, and any between it and theirs."""
    words = WORDS[tongue]
    detected = [found["language"] for found in asked.detected or ()]
    told = ((words["detected"], detected), (words["through"], asked.pivots))
    return " · ".join(
        word + ", ".join(name_in(tongue, code) for code in codes) for word, codes in told if codes
    )


def refuse_on_page(call: Call, fault: Fault) -> Response:
    """The page again, with what was written, if that has arrived, and why nothing came of it."""
    refusals = REFUSALS[_tongue(call)]
    words = refusals.get(fault.message) or refusals.get(fault.status, "{message}")
    message = words.format(message=fault.message, seconds=fault.headers.get("Retry-After"))
    shown = _show(call, message=message)
    shown.status_code = fault.status
    shown.headers.update(fault.headers)
    return shown


def _tongue(call: Call) -> str:
    return choose_tongue(call.headers.get("accept-language", ""))


def _show(call: Call, *, result: str = "", found: str = "", message: str = "") -> Response:
    service, fields, tongue = call.service, call.sent.fields, _tongue(call)
    codes = service.directions.codes
    sources = [code for code in codes if set(service.directions.targets(code)) - {code}]
    targets = [code for code in codes if set(service.directions.sources(code)) - {code}]
    watched = () if service.keys else service.directions.all
    text = fields.get("q", "")
    template, policy = _template()
    shown = template.substitute(
        sources=_options([AUTO, *sources], fields.get("source"), tongue),
        targets=_options(targets, fields.get("target"), tongue),
        text=escape(text if isinstance(text, str) else ""),
        result=escape(result),
        found=escape(found),
        message=escape(message),
        tongue=tongue,
        limit=service.limits.characters,
        key="" if service.keys else "hidden",
        files=",".join(FILE_TYPES),
        models=escape(" ".join(one.name for one in watched)),
        words=escape(json.dumps(WORDS, ensure_ascii=False)),
        **{f"word_{name}": escape(word) for name, word in WORDS[tongue].items()},
    )
    return HTMLResponse(shown, headers={"Content-Security-Policy": policy})


def _options(codes: list[str], chosen: object, tongue: str) -> str:
    names = {code: WORDS[tongue]["auto"] if code == AUTO else name_in(tongue, code) for code in codes}
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
    Route("GET", ATTENTION_PAGE, "attentionPage", show_page, guarded=True, refuse=refuse_on_page),
    Route("POST", ATTENTION_PAGE, "attentionPageOf", show_page, guarded=True, refuse=refuse_on_page),
    Route("GET", "/spec", "spec", openapi),
    Route("GET", "/openapi.json", "openapi", openapi),
    Route("GET", "/docs", "docs", docs),
]
