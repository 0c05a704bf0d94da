"""The OpenAPI document: the requests and answers of the API routes that this server offers.

A route that does not declare the type of its answer, such as that of the live page, is left out. Pydantic
generates the document from the types of requests and answers. It contains the languages and the limits of
this server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter

from jumok.server.api import API_ROUTES
from jumok.server.api.fields import STRING, documented_service
from jumok.server.request_body import MULTIPART
from jumok.server.routes import JSON_TYPE
from jumok.storage.model_folder import jumok_version

if TYPE_CHECKING:
    from starlette.routing import Route

    from jumok.server.routes import Endpoint
    from jumok.server.service import Service

    Schema = dict[str, Any]

_ERRORS = {
    "400": "The request is invalid or not supported",
    "403": "The key, the host or the origin is not allowed",
    "404": "There is nothing here",
    "409": "The request is valid, but this model cannot answer it for this sentence; `error` says why",
    "408": "The request did not arrive in time",
    "413": "The request is too large to be read, or to be answered in time",
    "415": "The content type is not supported",
    "429": "Too many requests from this client",
    "503": "The server is busy",
}
_POST_ERRORS = ("400", "408", "413", "415", "429", "503")
_ERROR = {"type": "object", "properties": {"error": STRING}, "required": ["error"]}
_RETRY_AFTER = {"Retry-After": {"schema": STRING, "required": True}}


def openapi_document(service: Service) -> Schema:
    """Return the document for this server. Making it takes 15 ms, so it is cached until the next reload."""
    if service.openapi_document is None:
        service.openapi_document = _make_document(service)
    return service.openapi_document


def _make_document(service: Service) -> Schema:
    documented_service.set(service)
    components: Schema = {"schemas": {}}
    paths: Schema = {}
    for route in API_ROUTES:
        endpoint = cast("Endpoint", route.endpoint)
        if endpoint.answer is not None and endpoint.is_offered(service):
            operation = _operation(route, endpoint, components["schemas"])
            if service.api_keys and endpoint.guarded:
                operation["security"] = [{"key": []}]
            paths[route.path] = {"post" if endpoint.request else "get": operation}
    if service.api_keys:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jumok",
            "version": jumok_version(),
            "description": "The API of LibreTranslate, and more under /v1/.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": components,
    }


def _operation(route: Route, endpoint: Endpoint, schemas: Schema) -> Schema:
    """Return the OpenAPI operation of one route. Types that have a name are added to `schemas`."""
    answer = _schema(endpoint.answer, schemas)
    first, *more = endpoint.handler.__name__.split("_")
    errors = ("403", *endpoint.more_errors, *(_POST_ERRORS if endpoint.request else ()))
    operation: Schema = {
        "operationId": first + "".join(word.capitalize() for word in more),
        "summary": (endpoint.handler.__doc__ or "").partition("\n")[0].rstrip("."),
        "responses": {
            "200": {
                "description": "Success",
                "content": {media_type: {"schema": answer} for media_type in endpoint.answer_types},
            },
            **{status: _error_response(status) for status in sorted(errors)},
        },
    }
    if endpoint.request is not None:
        fields = _schema(endpoint.request, schemas)
        content = {media_type: _body(fields, media_type, endpoint) for media_type in endpoint.body_types}
        operation["requestBody"] = {"required": True, "content": content}
    if route.param_convertors:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {**STRING, "minLength": 1}}
            for name in route.param_convertors
        ]
    return operation


def _error_response(status: str) -> Schema:
    response: Schema = {"description": _ERRORS[status], "content": {JSON_TYPE: {"schema": _ERROR}}}
    return {**response, "headers": _RETRY_AFTER} if status in ("429", "503") else response


def _schema(described_type: Any, schemas: Schema) -> Schema:
    """Return the schema of a type. Types in it that have a name are added to `schemas`."""
    schema = TypeAdapter(described_type).json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    return schema


def _body(fields: Schema, media_type: str, endpoint: Endpoint) -> Schema:
    """Return the schema of the body: the fields and `api_key`.

    In JSON, optional fields may be null. A form has no null, and of its fields only `tags` may be an array.
    """
    properties = dict(fields["properties"])
    if media_type == JSON_TYPE:
        properties["api_key"] = STRING
        for name in properties.keys() - set(fields["required"]):
            properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
        return {"schema": {**fields, "properties": properties}}
    if "glossary" in properties:
        # The field may also contain terms, as the text of a JSON object. Only the description says this,
        # because a schema cannot distinguish such a text from other texts.
        _, glossary_names = properties["glossary"]["anyOf"]
        description = "A name; or terms, as the text of a JSON object."
        properties["glossary"] = {**glossary_names, "description": description}
    if "anyOf" in properties.get("q", {}):
        properties["q"] = properties["q"]["anyOf"][0]
    if endpoint.body_types == (MULTIPART,):
        # A multipart form sends every value as text, so every value of the key is valid. A route that accepts
        # several content types describes the key as a string in each of them.
        schema = {**fields, "properties": {**properties, "api_key": {}}}
        return {"schema": schema, "encoding": {"file": {"contentType": "text/plain"}}}
    return {"schema": {**fields, "properties": {**properties, "api_key": STRING}}}
