"""Captions of pictures, by models that were trained on pictures.

The picture is decoded in a worker process, so that a damaged or malicious picture cannot crash the server.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jumok.errors import DataError
from jumok.server.api.fields import STRING, ApiModel, Checked, check_string, field_error
from jumok.server.api.v1 import ScoredText, scored_json
from jumok.server.http_errors import bad_request
from jumok.server.request_body import MULTIPART
from jumok.server.routes import POST, Endpoint
from jumok.server.workers.pending import Question

if TYPE_CHECKING:
    from jumok.server.routes import ApiRequest
    from jumok.server.service import Service

# `minItems`: see FILE_SCHEMA in libretranslate.py.
PICTURE_SCHEMA = {"description": "A picture: PNG, JPEG, GIF, BMP, WebP, TIFF or PPM", "minItems": 1}


def _check_target(value: Any, service: Service) -> str:
    target, languages = check_string(value, service), service.language_pairs.captions
    if target not in languages:
        listed = ", ".join(languages) or "none"
        raise field_error(f"is {target[:40]}, a language in which no model writes captions; known: {listed}")
    return target


class CaptionRequest(ApiModel):
    file: Annotated[bytes, WithJsonSchema(PICTURE_SCHEMA)]
    target: Annotated[
        str,
        Checked(_check_target, lambda service: {**STRING, "enum": list(service.language_pairs.captions)}),
    ]


async def caption(request: ApiRequest) -> Response:
    """Write a caption for a picture."""
    fields = CaptionRequest.read(request, file=request.content.file)
    service = request.service
    picture = f"data:;base64,{base64.b64encode(fields.file).decode()}"
    pair = service.language_pairs.captions[fields.target]
    try:
        answer = await service.pipeline.ask(
            pair, Question("caption", {"picture": picture}), request.client_id
        )
    except DataError as error:
        raise bad_request(str(error)) from None
    return JSONResponse(scored_json(**json.loads(answer)))


ROUTES = [
    Route(
        "/v1/caption",
        Endpoint(
            caption,
            ScoredText,
            CaptionRequest,
            body_types=(MULTIPART,),
            is_offered=lambda service: bool(service.language_pairs.captions),
        ),
        methods=POST,
    )
]
