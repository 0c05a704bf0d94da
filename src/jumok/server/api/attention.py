"""`/v1/explain`, and the route that answers the requests of the live attention page.

A worker computes each answer with `jumok.server.viewer`, which defines the format of the page's requests and
of the answers. The page itself is in `pages.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import TypedDict

from jumok.analysis.changes import ChangeList, change_to_json
from jumok.errors import DataError
from jumok.server.api.fields import (
    STRING,
    ApiModel,
    Checked,
    Language,
    check_string,
    documented_service,
    field_error,
)
from jumok.server.api.parameters import check_size
from jumok.server.http_errors import NOT_FOUND, bad_request
from jumok.server.routes import POST, Endpoint
from jumok.server.workers.pending import Question

if TYPE_CHECKING:
    from jumok.server.language_pairs import LanguagePair
    from jumok.server.routes import ApiRequest
    from jumok.server.service import Service

__all__ = [
    "NO_SINGLE_MODEL",
    "ROUTES",
    "ShortText",
    "pair_from_url",
    "require_single_model",
    "single_model_pair",
]

NO_SINGLE_MODEL = "No single model translates in this direction, so there is no attention to see."
PAGE_OPERATIONS = ("explain", "rank-heads", "steps", "measures", "layers")
MAX_CHARACTERS = 1_000
MAX_REQUEST_BYTES = 64 * 1024
"""Maximum size of a request to a worker, as JSON. The longest `ChangeList` that is allowed fits into it."""


def _check_short_text(value: Any, service: Service) -> str:
    text = check_string(value, service)
    if len(text) > MAX_CHARACTERS:
        raise field_error(f"has {len(text)} characters, at most {MAX_CHARACTERS} are allowed")
    return text


ShortText = Annotated[
    str, Checked(_check_short_text, lambda _: {**STRING, "minLength": 1, "maxLength": MAX_CHARACTERS})
]


def require_single_model(schema: dict[str, Any]) -> None:
    """Make the schema of a request allow only language pairs that one model translates directly."""
    schema["anyOf"] = [
        {"properties": {"source": {"const": pair.source}, "target": {"const": pair.target}}}
        for pair in documented_service.get().language_pairs.text_pairs
    ]


class ExplainRequest(ApiModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=require_single_model)

    q: ShortText
    source: Language
    target: Language
    translation: str | None = Field(None, max_length=2 * MAX_CHARACTERS)
    changes: ChangeList = Field([])
    index: int = Field(0, ge=0)
    """The index of the sentence to explain, if `q` has several sentences."""


class ExplainAnswer(TypedDict):
    format: Literal["jumok-explanation"]
    version: int


async def explain(request: ApiRequest) -> Response:
    """Explain a translation: attention, search, alignments; optionally with changed attention.

    One model explains one sentence. The answer is the JSON that `explanation_to_json` writes. If `q` has
    several sentences, the answer also has `whole_text`.
    """
    fields = ExplainRequest.read(request)
    pair = single_model_pair(request, fields.source, fields.target)
    changes = [change_to_json(change) for change in fields.changes]
    body = {"sentence": fields.q, "changes": changes, "index": fields.index}
    if fields.translation is not None:
        body["target"] = fields.translation
    try:
        return await _ask_model(request, pair, "explain", body)
    except DataError as error:
        # The request is valid, but this model or sentence has no such head or position, for example.
        raise HTTPException(409, str(error)) from None


async def answer_live_page(request: ApiRequest) -> Response:
    """Answer a request of the live page."""
    operation = request.path_params["operation"]
    if operation not in PAGE_OPERATIONS:
        raise HTTPException(404, NOT_FOUND)
    try:
        return await _ask_model(request, pair_from_url(request), operation, request.fields)
    except DataError as error:
        raise bad_request(str(error)) from None


async def _ask_model(
    request: ApiRequest, pair: LanguagePair, operation: str, body: dict[str, Any]
) -> Response:
    """Return the model's answer to a request in the format of the live page. `body` has its fields."""
    check_size([text for text in body.values() if isinstance(text, str)], request.service)
    try:
        encoded = json.dumps(body)
    except RecursionError:
        raise bad_request("it is nested too deeply") from None
    if len(encoded) > MAX_REQUEST_BYTES:
        raise HTTPException(
            413,
            f"The request is too large. It has {len(encoded):,} bytes as JSON; at most "
            f"{MAX_REQUEST_BYTES:,} are allowed.",
        )
    question = Question("explain", {"operation": operation, "body": encoded}, encoded)
    answer = await request.service.pipeline.ask(pair, question, request.client_id)
    return Response(answer, media_type="application/json")


def pair_from_url(request: ApiRequest) -> LanguagePair:
    """Return the language pair that the URL names, such as `en_ko`; raise a 400 error if no model has it."""
    for pair in request.service.language_pairs.text_pairs:
        if pair.name == request.path_params["direction"]:
            return pair
    raise HTTPException(400, NO_SINGLE_MODEL)


def single_model_pair(request: ApiRequest, source: str, target: str) -> LanguagePair:
    """Return the language pair of the one model that translates from `source` to `target`.

    Raise a 400 error if no model translates directly between the two languages.
    """
    path = request.service.language_pairs.pivot_path(source, target)
    if path is None or len(path) != 1:
        raise bad_request(f"no single model translates from {source[:40]} to {target[:40]}")
    return path[0]


ROUTES = [
    Route(
        "/v1/explain", Endpoint(explain, ExplainAnswer, ExplainRequest, more_errors=("409",)), methods=POST
    ),
    Route("/attention/{direction}/{operation}", Endpoint(answer_live_page), methods=POST),
]
