"""Explanations, and the requests of the live attention page: attention, and the effect of changing it.

The requests and answers are those of `jumok.server.viewer`, which runs in the workers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from jumok.analysis.changes import ChangeList, change_to_json, first_error
from jumok.errors import DataError
from jumok.server.api.parameters import check_size, read_texts, require_strings
from jumok.server.http_errors import HttpError, bad_request
from jumok.server.routes import NOT_FOUND, Route

if TYPE_CHECKING:
    from jumok.server.language_pairs import LanguagePair
    from jumok.server.routes import RequestContext

__all__ = ["NO_SINGLE_MODEL", "ROUTES", "ExplainRequest", "named_pair"]

NO_SINGLE_MODEL = "No single model translates in this direction, so there is no attention to see."
PAGE_OPERATIONS = ("explain", "rank-heads", "steps")
MAX_REQUEST_BYTES = 64 * 1024
"""Of a request to a worker; 64 changes with all their indices take less."""


class ExplainRequest(BaseModel):
    """The fields of /v1/explain besides the languages and the key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    q: str = Field(min_length=1, max_length=1_000)
    translation: str | None = Field(None, max_length=2_000)
    changes: ChangeList = Field([])
    index: int = Field(0, ge=0)
    """The sentence of `q` that is explained, if it has several."""


async def explain(context: RequestContext) -> Response:
    """Explain one sentence by one model; the answer is what `explanation_to_json` writes."""
    read_texts(context, allow_arrays=False)
    require_strings(context, "source", "target")
    fields = dict(context.fields)
    pair = _single_model(context, fields.pop("source"), fields.pop("target"))
    try:
        request = ExplainRequest.model_validate(fields)
    except ValidationError as error:
        raise bad_request(first_error(error)) from None
    changes = [change_to_json(change) for change in request.changes]
    body = {"sentence": request.q, "changes": changes, "index": request.index}
    if request.translation is not None:
        body["target"] = request.translation
    try:
        return await _send_to_model(context, pair, "explain", body)
    except DataError as error:
        # The request is valid, but this model or sentence has no such head or position.
        raise HttpError(409, str(error)) from None


async def answer_page(context: RequestContext) -> Response:
    """Answer a request of the live page."""
    operation = context.path_parameters["operation"]
    if operation not in PAGE_OPERATIONS:
        raise HttpError(404, NOT_FOUND)
    try:
        return await _send_to_model(context, named_pair(context), operation, context.fields)
    except DataError as error:
        raise bad_request(str(error)) from None


async def _send_to_model(
    context: RequestContext, pair: LanguagePair, operation: str, body: dict[str, Any]
) -> Response:
    check_size([text for text in body.values() if isinstance(text, str)], context.service)
    try:
        encoded = json.dumps(body)
    except RecursionError:
        raise bad_request("it is nested too deeply") from None
    if len(encoded) > MAX_REQUEST_BYTES:
        raise HttpError(
            413,
            f"The request is too large. It has {len(encoded):,} bytes as JSON; at most "
            f"{MAX_REQUEST_BYTES:,} are allowed.",
        )
    answer = await context.service.pipeline.explain(pair, operation, encoded, context.client)
    return Response(answer, media_type="application/json")


def named_pair(context: RequestContext) -> LanguagePair:
    """Return the language pair that the URL names."""
    for pair in context.service.language_pairs.all:
        if pair.name == context.path_parameters["direction"]:
            return pair
    raise HttpError(400, NO_SINGLE_MODEL)


def _single_model(context: RequestContext, source: str, target: str) -> LanguagePair:
    """Return the language pair of the model that translates directly; refuse if none does."""
    path = context.service.language_pairs.pivot_path(source, target)
    if path is None or len(path) != 1:
        raise bad_request(f"no single model translates from {source[:40]} to {target[:40]}")
    return path[0]


ROUTES = [
    Route("POST", "/v1/explain", explain, guarded=True),
    Route("POST", "/attention/{direction}/{operation}", answer_page, guarded=True),
]
