"""The page at `/`, the live attention page, the page about the API at `/docs`, and the OpenAPI document.

The page at `/` is a plain form, which also works without JavaScript. Script and style of the pages at `/` and
`/docs` are built from `web/` (`page.js`, `page.css`). Text of a user or a model is escaped. The content
security policy has the digests of the page's own script and style, so that no other script can run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.plots.page import served_page
from jumok.server.api.attention import pair_from_url
from jumok.server.api.fields import AUTO, ApiModel, Language, Source, Tags, Text
from jumok.server.api.libretranslate import FRONTEND_TIMEOUT
from jumok.server.api.parameters import check_size, check_tags, find_pivot_paths
from jumok.server.api_examples import describe_values, example_requests, request_schema
from jumok.server.openapi import openapi_document
from jumok.server.routes import GET, POST, Endpoint
from jumok.server.ui_strings import ERROR_MESSAGES, STRINGS, localized_language_name, negotiate_language
from jumok.server.workers.pending import Question, TranslateOptions
from jumok.text.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.server.api.parameters import LanguagePlan
    from jumok.server.api_examples import ExampleRequest
    from jumok.server.language_pairs import LanguagePairs
    from jumok.server.routes import ApiRequest
    from jumok.server.service import Service

__all__ = ["ROUTES"]


BACK_LINK_STYLE = ".back-link{max-width:100rem;margin:0 auto;padding:.6rem 1.25rem 0;font-size:.875rem}"
BACK_LINK_STYLE += ".back-link a{color:var(--accent)}@media print{.back-link{display:none}}"


class PageForm(ApiModel):
    q: Text
    source: Source
    target: Language
    tags: Tags = ()


async def show_page(request: ApiRequest) -> Response:
    return _render_translation_page(request)


async def translate_on_page(request: ApiRequest) -> Response:
    """Answer the form, which a browser without JavaScript sends."""
    form, service = PageForm.read(request), request.service
    check_size([form.q], service)
    plan = await find_pivot_paths([form.q], form.source, form.target, service)
    check_tags(form.tags, plan.pivot_paths, service)
    options = TranslateOptions(tags=tuple(form.tags))
    [translated] = await service.pipeline.translate_all(
        [form.q], plan.pivot_paths, options, request.client_id
    )
    notice = _plan_notice(plan, form.target, _ui_language(request))
    return _render_translation_page(request, result=translated.text(), notice=notice)


def _plan_notice(plan: LanguagePlan, target: str, ui_language: str) -> str:
    """Return the line below the translation: the detected language, and the pivot languages.

    If the detected language is the target, the line also says that nothing was translated.
    """
    strings = STRINGS[ui_language]
    detected = [language["language"] for language in plan.detected or ()]
    labelled = ((strings["detected"], detected), (strings["through"], plan.pivots))
    notices = [
        label + ", ".join(localized_language_name(ui_language, code) for code in codes)
        for label, codes in labelled
        if codes
    ]
    return " · ".join([*notices, strings["untranslated"]] if detected == [target] else notices)


async def show_attention_page(request: ApiRequest) -> Response:
    """Show the live attention page. Its requests carry no key, so a server with keys has no such page."""
    if request.service.api_keys:
        raise HTTPException(
            404, "A server that requires API keys has no live page. Use POST /v1/explain instead."
        )
    pair = pair_from_url(request)
    question = Question("explain", {"operation": "page", "body": ""})
    data = json.loads(await request.service.pipeline.ask(pair, question, request.client_id))
    sentence = request.fields.get("q", "")
    data["live"] |= {"sentence": sentence if isinstance(sentence, str) else "", "story": False}
    html = _with_back_link(served_page(data), STRINGS[_ui_language(request)]["back"])
    # The page has its own policy, which allows its one script.
    return HTMLResponse(html, headers={"Content-Security-Policy": "frame-ancestors 'none'"})


def _with_back_link(html: str, label: str) -> str:
    """Add to the attention page a link that leads back to the translation, and allow the link's style."""
    link = f'<style>{BACK_LINK_STYLE}</style><nav class="back-link"><a href="/">{escape(label)}</a></nav>'
    allowed = html.replace("style-src ", f"style-src '{_digest(BACK_LINK_STYLE)}' ", 1)
    return allowed.replace('<div id="page">', f'{link}<div id="page">', 1)


def show_error(request: ApiRequest, error: HTTPException) -> Response:
    """Show the page with the error, and with the entered text if the form was read."""
    messages = ERROR_MESSAGES[_ui_language(request)]
    matches = (text for part, text in messages.items() if isinstance(part, str) and part in error.detail)
    template = next(matches, messages.get(error.status_code, "{message}"))
    headers = error.headers or {}
    message = template.format(message=error.detail, seconds=headers.get("Retry-After"))
    response = _render_translation_page(request, message=message)
    response.status_code = error.status_code
    response.headers.update(headers)
    return response


def _ui_language(request: ApiRequest) -> str:
    return negotiate_language(request.headers.get("accept-language", ""))


def _render_translation_page(
    request: ApiRequest, *, result: str = "", notice: str = "", message: str = ""
) -> Response:
    service, fields, ui_language = request.service, request.fields, _ui_language(request)
    sources, targets = _translatable_languages(service.language_pairs)
    text, target = fields.get("q", ""), fields.get("target")
    tags = service.all_tags
    return _render_template(
        "page.html",
        ui_language,
        nav='<a href="/docs">API</a>',
        sources=_options([AUTO, *sources], fields.get("source"), ui_language),
        targets=_options(targets, target, ui_language),
        target=escape(str(target or next(iter(targets), ""))),
        text=escape(text if isinstance(text, str) else ""),
        result=escape(result),
        notice=escape(notice),
        message=escape(message),
        tags=_tag_switches(list(tags), fields.get("tags"), ui_language),
        tags_hidden="" if tags else "hidden",
        key_hidden="" if service.api_keys else "hidden",
        suffixes=",".join(
            suffix for document_format in DOCUMENT_FORMATS for suffix in document_format.suffixes
        ),
        formats=", ".join(document_format.suffix[1:].upper() for document_format in DOCUMENT_FORMATS),
        settings=_to_attribute(_page_settings(service)),
        errors=_to_attribute(ERROR_MESSAGES),
    )


def _translatable_languages(pairs: LanguagePairs) -> tuple[list[str], list[str]]:
    """Return the source languages and the target languages of the server.

    A language is left out of the sources if its only target is the language itself, and out of the targets if
    its only source is the language itself.
    """
    sources = [code for code in pairs.codes if set(pairs.targets(code)) - {code}]
    targets = [code for code in pairs.codes if set(pairs.sources(code)) - {code}]
    return sources, targets


def _page_settings(service: Service) -> dict[str, Any]:
    """Return what the page's script needs to know about the server."""
    pairs = service.language_pairs
    return {
        "limit": service.limits.max_characters,
        "typingPause": FRONTEND_TIMEOUT,  # milliseconds after the last key press
        "targets": {code: pairs.targets(code) for code in pairs.codes},
        "names": {code: language_name(code) for code in pairs.codes},
        "tagsByPair": {pair.name: service.tags(pair) for pair in pairs.text_pairs},
        "attentionPages": not service.api_keys,
    }


def _render_template(template: str, ui_language: str, *, nav: str, **values: str) -> Response:
    """Return the page of a template file, with the strings of a language.

    The content security policy of the page allows its script and style.
    """
    script, style = _read("page.js").strip(), _read("page.css").strip()
    values |= {
        "script": script,
        "style": style,
        "language": ui_language,
        "strings": _to_attribute(STRINGS),
        **{
            f"string_{name.replace('-', '_')}": escape(string)
            for name, string in STRINGS[ui_language].items()
        },
    }
    header = Template(_read("page_header.html")).substitute(values, nav=nav)
    html = Template(_read(template)).substitute(values, header=header)
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})


def _to_attribute(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False))


def _options(codes: list[str], selected: object, ui_language: str) -> str:
    names = {
        code: STRINGS[ui_language]["auto"] if code == AUTO else localized_language_name(ui_language, code)
        for code in codes
    }
    return "".join(
        f'<option value="{escape(code)}"{" selected" * (code == selected)}>{escape(name)}</option>'
        for code, name in names.items()
    )


def _tag_switches(tags: list[str], field: object, ui_language: str) -> str:
    """Return a check box per tag. `field` is the value of `tags` in the request, which is not validated."""
    selected = field if isinstance(field, list) else [field]
    names = {tag: STRINGS[ui_language].get(f"tag-{tag[1:-1].lower()}", tag) for tag in tags}
    return "".join(
        f'<label class="switch" title="{escape(tag)}"><input type="checkbox" name="tags" '
        f'value="{escape(tag)}"{" checked" * (tag in selected)}>{escape(name)}</label>'
        for tag, name in names.items()
    )


@cache
def _read(name: str) -> str:
    return files("jumok.server").joinpath(name).read_text(encoding="utf-8")


@cache
def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


async def openapi(request: ApiRequest) -> Response:
    return JSONResponse(openapi_document(request.service))


async def docs(request: ApiRequest) -> Response:
    """Show every route of the OpenAPI document: its fields, and examples to copy."""
    service, ui_language = request.service, _ui_language(request)
    pair = service.language_pairs.text_pairs[0]
    examples = example_requests(
        openapi_document(service),
        f"{request.scope['scheme']}://{request.headers['host']}",
        (pair.source, pair.target),
        key="YOUR-KEY" if service.api_keys else "",
    )
    routes = list(examples)
    return _render_template(
        "api_page.html",
        ui_language,
        nav=f'<a href="/">{escape(STRINGS[ui_language]["translate"])}</a>',
        contents="".join(
            f'<li><a href="#{escape(operation["operationId"])}"><code>{method} {escape(path)}</code></a></li>'
            for method, path, operation, _ in routes
        ),
        routes="\n".join(_route_html(*route, ui_language, service.language_pairs) for route in routes),
    )


def _route_html(
    method: str,
    path: str,
    operation: Mapping[str, Any],
    example: ExampleRequest | None,
    ui_language: str,
    pairs: LanguagePairs,
) -> str:
    schema, strings = request_schema(operation), STRINGS[ui_language]
    fields = _with_translatable_languages(schema.get("properties", {}), pairs)
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>"
        f"<td>{escape(strings['required']) if name in schema.get('required', ()) else ''}"
        f"<td><code>{escape(describe_values(field_schema))}</code>"
        for name, field_schema in fields.items()
    )
    head = "".join(f"<th>{escape(strings[name])}" for name in ("field", "required", "values"))
    table = f'<div class="scroll"><table><tr>{head}{rows}</table></div>' if rows else ""
    blocks = "".join(
        f'<div class="example" data-example="{escape(name)}"><pre><code>{escape(code)}</code></pre></div>'
        for name, code in (example.examples() if example else {}).items()
    )
    return (
        f'<article id="{escape(operation["operationId"])}">'
        f'<h2><span class="method">{method}</span> <code>{escape(path)}</code></h2>'
        f'<p lang="en">{escape(operation["summary"])}</p>{table}{blocks}</article>'
    )


def _with_translatable_languages(fields: dict[str, Any], pairs: LanguagePairs) -> dict[str, Any]:
    """Return the schemas of fields, where `source` and `target` list only `_translatable_languages`."""
    if not {"source", "target"} <= fields.keys():
        return fields
    restricted_fields = {
        name: fields[name]
        | {"enum": [code for code in fields[name]["enum"] if code == AUTO or code in codes]}
        for name, codes in zip(("source", "target"), _translatable_languages(pairs), strict=True)
        if "enum" in fields[name]
    }
    return fields | restricted_fields


ATTENTION_PAGE = Endpoint(show_attention_page, error_page=show_error)
ROUTES = [
    Route("/", Endpoint(show_page, guarded=False), methods=GET),
    Route("/", Endpoint(translate_on_page, error_page=show_error), methods=POST),
    Route("/attention/{direction}/", ATTENTION_PAGE, methods=[*GET, *POST]),
    Route("/spec", Endpoint(openapi, guarded=False), methods=GET),
    Route("/openapi.json", Endpoint(openapi, guarded=False), methods=GET),
    Route("/docs", Endpoint(docs, guarded=False), methods=GET),
]
