"""The tables of the server agree: routes, OpenAPI document, document formats and docs/serve.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.server import pages
from jumok.server.api import API_ROUTES
from jumok.server.language_pairs import LanguagePair, LanguagePairs
from jumok.server.openapi import openapi_document
from jumok.server.service import ServerSettings, Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import Route

REPOSITORY = Path(__file__).parents[2]
LIVE_PAGE_REQUEST = ("POST", "/attention/{direction}/{operation}")
"""A request that only the live attention page sends. API clients use /v1/explain, so it is not documented."""


def _methods_and_paths(routes: Sequence[Route]) -> list[tuple[str, str]]:
    return [(method, route.path) for route in routes for method in (route.methods or set()) - {"HEAD"}]


def test_the_openapi_document_has_every_api_route_and_no_other() -> None:
    # A model without a source language writes captions. The route for captions exists only with such a model.
    service = Service(
        ServerSettings(models=()), LanguagePairs([LanguagePair(0, "en", "de"), LanguagePair(1, "", "ko")])
    )
    paths = openapi_document(service)["paths"]
    documented = [(method.upper(), path) for path, operations in paths.items() for method in operations]
    routes = _methods_and_paths(API_ROUTES)
    assert sorted([*documented, LIVE_PAGE_REQUEST]) == sorted(routes)
    ids = [operation["operationId"] for operations in paths.values() for operation in operations.values()]
    assert len(set(ids)) == len(ids)


def test_the_schema_of_a_form_has_the_names_of_glossaries(tmp_path: Path) -> None:
    (tmp_path / "law.tsv").write_text("en\tde\none\tEINS\n", encoding="utf-8")
    settings = ServerSettings(models=(), glossaries=(("law", tmp_path / "law.tsv"),))
    service = Service(settings, LanguagePairs([LanguagePair(0, "en", "de")]))
    content = openapi_document(service)["paths"]["/translate"]["post"]["requestBody"]["content"]
    forms = [body["schema"]["properties"] for media_type, body in content.items() if "form" in media_type]
    assert forms
    # "" stands for no glossary.
    assert [form["glossary"]["enum"] for form in forms] == [["", "law"]] * len(forms)


def test_no_route_occurs_twice() -> None:
    routes = _methods_and_paths([*API_ROUTES, *pages.ROUTES])
    assert len(set(routes)) == len(routes)


def test_the_documentation_names_every_suffix_and_every_api_path() -> None:
    page = (REPOSITORY / "docs" / "serve.md").read_text(encoding="utf-8")
    for document_format in DOCUMENT_FORMATS:
        for suffix in document_format.suffixes:
            assert f"`{suffix}`" in page, suffix
    for route in API_ROUTES:
        assert route.path.partition("{")[0].rstrip("/") in page, route.path
