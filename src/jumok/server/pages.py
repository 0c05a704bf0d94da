"""The page at `/`, the live attention page, the list of API routes at `/docs`, and the OpenAPI document.

The page is a plain form, and its script is optional. Text of a user or a model is escaped, and the
content security policy names the digests of the page's one script and one style: no other script runs.
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

from jumok.documents import DOCUMENT_FORMATS
from jumok.plots import page_with_data
from jumok.server.api.attention import named_pair
from jumok.server.api.parameters import AUTO, check_size, find_pivot_paths, read_texts, require_strings
from jumok.server.http_errors import HttpError
from jumok.server.openapi import openapi_document
from jumok.server.routes import Route
from jumok.server.ui_strings import ERROR_MESSAGES, STRINGS, localized_language_name, negotiate_language
from jumok.server.workers.pending import TranslateOptions

if TYPE_CHECKING:
    from jumok.server.api.parameters import LanguageRouting
    from jumok.server.routes import RequestContext

__all__ = ["ROUTES"]

ATTENTION_PAGE = "/attention/{direction}/"


async def show_page(context: RequestContext) -> Response:
    return _render(context)


async def translate_on_page(context: RequestContext) -> Response:
    """Answer the form, as a browser without the script sends it."""
    texts = read_texts(context, allow_arrays=False)
    require_strings(context, "source", "target")
    check_size(texts, context.service)
    routing = await find_pivot_paths(texts, context)
    [translated] = await context.service.pipeline.translate_all(
        texts, routing.pivot_paths, TranslateOptions(), context.client
    )
    notice = _routing_notice(routing, _ui_language(context))
    return _render(context, result=translated.text(), notice=notice)


def _routing_notice(routing: LanguageRouting, ui_language: str) -> str:
    """Return the detected language and the pivot languages, as the page shows them."""
    strings = STRINGS[ui_language]
    detected = [language["language"] for language in routing.detected or ()]
    labelled = ((strings["detected"], detected), (strings["through"], routing.pivots))
    return " · ".join(
        label + ", ".join(localized_language_name(ui_language, code) for code in codes)
        for label, codes in labelled
        if codes
    )


async def show_attention_page(context: RequestContext) -> Response:
    """Show the live attention page. Its requests carry no key: a server that requires keys refuses it."""
    if context.service.api_keys:
        raise HttpError(
            404, "A server that requires API keys has no live page. Use POST /v1/explain instead."
        )
    pair = named_pair(context)
    data = json.loads(await context.service.pipeline.explain(pair, "page", "", context.client))
    sentence = context.fields.get("q", "")
    data["live"]["sentence"] = sentence if isinstance(sentence, str) else ""
    # The page has its own policy, which allows its one script.
    return HTMLResponse(page_with_data(data), headers={"Content-Security-Policy": "frame-ancestors 'none'"})


def show_error(context: RequestContext, error: HttpError) -> Response:
    """Show the page with the error, and with the entered text if it was read."""
    messages = ERROR_MESSAGES[_ui_language(context)]
    template = messages.get(error.message) or messages.get(error.status, "{message}")
    message = template.format(message=error.message, seconds=error.headers.get("Retry-After"))
    response = _render(context, message=message)
    response.status_code = error.status
    response.headers.update(error.headers)
    return response


def _ui_language(context: RequestContext) -> str:
    return negotiate_language(context.headers.get("accept-language", ""))


def _render(context: RequestContext, *, result: str = "", notice: str = "", message: str = "") -> Response:
    service, fields, ui_language = context.service, context.fields, _ui_language(context)
    pairs = service.language_pairs
    sources = [code for code in pairs.codes if set(pairs.targets(code)) - {code}]
    targets = [code for code in pairs.codes if set(pairs.sources(code)) - {code}]
    with_attention = () if service.api_keys else pairs.all
    text = fields.get("q", "")
    template, policy = _template()
    html = template.substitute(
        sources=_options([AUTO, *sources], fields.get("source"), ui_language),
        targets=_options(targets, fields.get("target"), ui_language),
        text=escape(text if isinstance(text, str) else ""),
        result=escape(result),
        notice=escape(notice),
        message=escape(message),
        language=ui_language,
        limit=service.limits.max_characters,
        key="" if service.api_keys else "hidden",
        files=",".join(document_format.suffix for document_format in DOCUMENT_FORMATS),
        models=escape(" ".join(pair.name for pair in with_attention)),
        strings=escape(json.dumps(STRINGS, ensure_ascii=False)),
        **{f"string_{name}": escape(string) for name, string in STRINGS[ui_language].items()},
    )
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})


def _options(codes: list[str], selected: object, ui_language: str) -> str:
    names = {
        code: STRINGS[ui_language]["auto"] if code == AUTO else localized_language_name(ui_language, code)
        for code in codes
    }
    return "".join(
        f'<option value="{escape(code)}"{" selected" * (code == selected)}>{escape(name)}</option>'
        for code, name in names.items()
    )


@cache
def _template() -> tuple[Template, str]:
    """Return the page and the policy that allows its own script and style only."""
    html = files("jumok.server").joinpath("page.html").read_text(encoding="utf-8")
    script, style = (_digest(html, tag) for tag in ("script", "style"))
    policy = (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return Template(html), policy


def _digest(html: str, tag: str) -> str:
    content = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[0]
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


async def openapi(context: RequestContext) -> Response:
    return JSONResponse(openapi_document(context.service))


async def docs(context: RequestContext) -> Response:
    """Show a table of the routes in the OpenAPI document, with their summaries."""
    document = openapi_document(context.service)
    rows = [
        f"<tr><td><code>{method.upper()} {escape(path)}</code><td>{escape(operation['summary'])}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>jumok API</title><h1>jumok API</h1>'
        "<p>The API of LibreTranslate, and more under /v1/. "
        'The OpenAPI document is at <a href="/spec">/spec</a>.</p>'
        f"<table>{''.join(rows)}</table></html>"
    )
    return HTMLResponse(html)


ROUTES = [
    Route("GET", "/", show_page),
    Route("POST", "/", translate_on_page, guarded=True, error_page=show_error),
    Route("GET", ATTENTION_PAGE, show_attention_page, guarded=True, error_page=show_error),
    Route("POST", ATTENTION_PAGE, show_attention_page, guarded=True, error_page=show_error),
    Route("GET", "/spec", openapi),
    Route("GET", "/openapi.json", openapi),
    Route("GET", "/docs", docs),
]
