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

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.plots.page import page_with_data
from jumok.server.api.attention import named_pair
from jumok.server.api.fields import AUTO, ApiModel, Source, Target, Text
from jumok.server.api.parameters import check_size, find_pivot_paths
from jumok.server.openapi import openapi_document
from jumok.server.routes import GET, POST, Endpoint
from jumok.server.ui_strings import ERROR_MESSAGES, STRINGS, localized_language_name, negotiate_language
from jumok.server.workers.pending import TranslateOptions

if TYPE_CHECKING:
    from jumok.server.api.parameters import LanguagePlan
    from jumok.server.routes import ApiRequest

__all__ = ["ROUTES"]


class PageForm(ApiModel):
    q: Text
    source: Source
    target: Target


async def show_page(request: ApiRequest) -> Response:
    return _render(request)


async def translate_on_page(request: ApiRequest) -> Response:
    """Answer the form, as a browser without the script sends it."""
    form, service = PageForm.read(request), request.service
    check_size([form.q], service)
    plan = await find_pivot_paths([form.q], form.source, form.target, service)
    [translated] = await service.pipeline.translate_all(
        [form.q], plan.pivot_paths, TranslateOptions(), request.client_id
    )
    notice = _plan_notice(plan, _ui_language(request))
    return _render(request, result=translated.text(), notice=notice)


def _plan_notice(plan: LanguagePlan, ui_language: str) -> str:
    """Return the detected language and the pivot languages, as the page shows them."""
    strings = STRINGS[ui_language]
    detected = [language["language"] for language in plan.detected or ()]
    labelled = ((strings["detected"], detected), (strings["through"], plan.pivots))
    return " · ".join(
        label + ", ".join(localized_language_name(ui_language, code) for code in codes)
        for label, codes in labelled
        if codes
    )


async def show_attention_page(request: ApiRequest) -> Response:
    """Show the live attention page. Its requests carry no key: a server that requires keys refuses it."""
    if request.service.api_keys:
        raise HTTPException(
            404, "A server that requires API keys has no live page. Use POST /v1/explain instead."
        )
    pair = named_pair(request)
    data = json.loads(await request.service.pipeline.explain(pair, "page", "", request.client_id))
    sentence = request.fields.get("q", "")
    data["live"]["sentence"] = sentence if isinstance(sentence, str) else ""
    # The page has its own policy, which allows its one script.
    return HTMLResponse(page_with_data(data), headers={"Content-Security-Policy": "frame-ancestors 'none'"})


def show_error(request: ApiRequest, error: HTTPException) -> Response:
    """Show the page with the error, and with the entered text if it was read."""
    messages = ERROR_MESSAGES[_ui_language(request)]
    template = messages.get(error.detail) or messages.get(error.status_code, "{message}")
    headers = error.headers or {}
    message = template.format(message=error.detail, seconds=headers.get("Retry-After"))
    response = _render(request, message=message)
    response.status_code = error.status_code
    response.headers.update(headers)
    return response


def _ui_language(request: ApiRequest) -> str:
    return negotiate_language(request.headers.get("accept-language", ""))


def _render(request: ApiRequest, *, result: str = "", notice: str = "", message: str = "") -> Response:
    service, fields, ui_language = request.service, request.fields, _ui_language(request)
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


async def openapi(request: ApiRequest) -> Response:
    return JSONResponse(openapi_document(request.service))


async def docs(request: ApiRequest) -> Response:
    """Show a table of the routes in the OpenAPI document, with their summaries."""
    document = openapi_document(request.service)
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


ATTENTION_PAGE = Endpoint(show_attention_page, error_page=show_error)
ROUTES = [
    Route("/", Endpoint(show_page, guarded=False), methods=GET),
    Route("/", Endpoint(translate_on_page, error_page=show_error), methods=POST),
    Route("/attention/{direction}/", ATTENTION_PAGE, methods=[*GET, *POST]),
    Route("/spec", Endpoint(openapi, guarded=False), methods=GET),
    Route("/openapi.json", Endpoint(openapi, guarded=False), methods=GET),
    Route("/docs", Endpoint(docs, guarded=False), methods=GET),
]
