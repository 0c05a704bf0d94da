"""The OpenAPI document: the requests and responses of each API route that clients use.

It contains the languages and the limits of this server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.documents import DOCUMENT_FORMATS
from jumok.server.api import API_ROUTES
from jumok.server.api.attention import ExplainRequest
from jumok.storage import jumok_version

if TYPE_CHECKING:
    from jumok.server.service import Service

    Schema = dict[str, Any]

__all__ = ["openapi_document"]

_ERRORS = {
    "400": "The request is invalid or not supported",
    "403": "The key, the host or the origin is not allowed",
    "404": "There is nothing here",
    "409": "This model has no such head, this sentence no such position, or the answer is too large",
    "408": "The request did not arrive in time",
    "413": "The request is too large to be read, or to be answered in time",
    "415": "The content type is not supported",
    "429": "Too many requests from this client",
    "503": "The server is busy",
}
_COMPONENT = "#/components/schemas/{model}"
_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_TERM = r"^\S+( \S+)*$"
_FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}


def openapi_document(service: Service) -> Schema:
    """Return the document for this server."""
    paths = {**_libretranslate_paths(service), **_v1_paths(service)}
    document: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "jumok",
            "version": jumok_version(),
            "description": "The API of LibreTranslate, and more under /v1/.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": ExplainRequest.model_json_schema(ref_template=_COMPONENT)["$defs"]},
    }
    if service.api_keys:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for route in API_ROUTES:
            if route.guarded and route.path in paths:  # the document leaves out the live page's requests
                paths[route.path][route.method.lower()]["security"] = [{"key": []}]
    return document


def _libretranslate_paths(service: Service) -> Schema:
    forms = ("application/x-www-form-urlencoded", "multipart/form-data")
    translate = _translate_fields(service)
    detect = _object({"q": _text(service), "api_key": _STRING}, ["q"])
    return {
        "/translate": {
            "post": _post("translate", "Translate text", _bodies(translate, forms), _json(_TRANSLATION))
        },
        "/detect": {"post": _post("detect", "Detect a language", _bodies(detect, forms), _json(_DETECTIONS))},
        "/languages": {"get": _get("languages", "List languages", _json(_SUPPORTED_LANGUAGES))},
        "/translate_file": {
            "post": _post(
                "translateFile",
                "Translate a file: "
                + ", ".join(document_format.suffix for document_format in DOCUMENT_FORMATS),
                {
                    "multipart/form-data": {
                        "schema": _file_fields(service),
                        "encoding": {"file": {"contentType": "text/plain"}},
                    }
                },
                _json(_object({"translatedFileUrl": _STRING}, ["translatedFileUrl"])),
            )
        },
        "/download_file/{name}": {"get": _download()},
        "/frontend/settings": {
            "get": _get("frontendSettings", "Settings of the web page", _json({"type": "object"}))
        },
        "/health": {
            "get": _get(
                "health",
                "Whether the server can translate",
                _json(_object({"status": _STRING}, ["status"])),
                "503",
            )
        },
        "/metrics": {
            "get": _get("metrics", "Metrics for Prometheus", {"text/plain": {"schema": _STRING}}, "429")
        },
    }


def _v1_paths(service: Service) -> Schema:
    fields = _v1_fields(service)
    return {
        "/v1/translate": {
            "post": _post(
                "translateWithScores",
                "Translate with scores, n-best lists and word alignments",
                {"application/json": {"schema": fields}},
                _json(_SCORED_TRANSLATIONS),
            )
        },
        "/v1/translate/stream": {
            "post": _post(
                "translateAsStream",
                "Like /v1/translate, as server-sent events: token by token and sentence by sentence",
                {"application/json": {"schema": fields}},
                {
                    "text/event-stream": {
                        "schema": _object({"event": _STRING, "data": _STRING}, ["event", "data"])
                    }
                },
            )
        },
        "/v1/explain": {
            "post": _post(
                "explain",
                "Explain a translation: attention, search, alignments; optionally with changed attention",
                {"application/json": {"schema": _explain_fields(service)}},
                _json(_EXPLANATION),
                "409",
            )
        },
    }


# --- Requests -----------------------------------------------------------------------------------------------


def _translate_fields(service: Service) -> Schema:
    array = {"type": "array", "items": _STRING, "minItems": 1, "maxItems": service.limits.max_texts}
    fields = {
        "q": {"anyOf": [_text(service), array]},
        **_languages(service),
        "format": {"enum": ["text", "html", ""]},
        "alternatives": _integer(0, service.limits.max_alternatives),
        "glossary": _glossary(service),
        "api_key": _STRING,
    }
    return {**_object(fields, ["q", "source", "target"]), "anyOf": _allowed_pairs(service)}


def _glossary(service: Service) -> Schema:
    """Return the schema of terms with their translations, or of the name of a glossary."""
    term = {"type": "string", "pattern": _TERM}
    terms = {"type": "object", "propertyNames": term, "additionalProperties": term}
    names = service.glossaries.names
    return {"anyOf": [terms, {"enum": names}]} if names else terms


def _v1_fields(service: Service) -> Schema:
    fields = {
        **_translate_fields(service)["properties"],
        "n_best": _integer(1, service.limits.max_alternatives + 1),
        "alignment": _FLAG,
        "greedy": _FLAG,
        "api_key": _or_null(_STRING),
    }
    del fields["format"], fields["alternatives"]
    one_if_greedy = [
        {"properties": {"greedy": {"enum": [False, "false"]}}},
        {"properties": {"n_best": {"enum": [1, "1"]}}},
    ]
    schema = _object(fields, ["q", "source", "target"])
    return {**schema, "allOf": [{"anyOf": _allowed_pairs(service)}, {"anyOf": one_if_greedy}]}


def _explain_fields(service: Service) -> Schema:
    request = ExplainRequest.model_json_schema(ref_template=_COMPONENT)
    codes = service.language_pairs.codes
    languages = {"source": {"enum": codes}, "target": {"enum": codes}, "api_key": _or_null(_STRING)}
    pairs = [
        {"properties": {"source": {"const": pair.source}, "target": {"const": pair.target}}}
        for pair in service.language_pairs.all
    ]
    fields = {**request["properties"], **languages}
    return {**_object(fields, ["q", "source", "target"]), "additionalProperties": False, "anyOf": pairs}


def _file_fields(service: Service) -> Schema:
    # The file and the key have no type: a multipart form sends every value as text, so no type is wrong.
    # `minItems`: schemathesis sends an array as one part per item, so an empty one would be a missing file.
    file = {
        "description": "A file whose name has a known suffix; text in UTF-8 (.strings also in UTF-16)",
        "minItems": 1,
    }
    fields = {"file": file, **_languages(service), "api_key": {}}
    return {**_object(fields, ["file", "source", "target"]), "anyOf": _allowed_pairs(service)}


def _text(service: Service) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": service.limits.max_characters}


def _languages(service: Service) -> Schema:
    codes = service.language_pairs.codes
    return {"source": {"enum": ["auto", *codes]}, "target": {"enum": codes}}


def _allowed_pairs(service: Service) -> list[Schema]:
    """Return the allowed targets for each source."""
    pairs = service.language_pairs
    targets_of = {"auto": pairs.codes, **{code: pairs.targets(code) for code in pairs.codes}}
    return [
        {"properties": {"source": {"const": source}, "target": {"enum": targets}}}
        for source, targets in targets_of.items()
    ]


def _integer(minimum: int, maximum: int) -> Schema:
    numbers = "|".join(str(number) for number in range(minimum, maximum + 1))
    return {
        "anyOf": [
            {"type": "integer", "minimum": minimum, "maximum": maximum},
            {"type": "string", "pattern": f"^({numbers})$"},
        ]
    }


def _bodies(schema: Schema, forms: tuple[str, ...]) -> Schema:
    """Return the fields as JSON and as a form, which has no arrays and no null."""
    properties = dict(schema["properties"])
    in_json = {
        name: field if name in schema["required"] else _or_null(field) for name, field in properties.items()
    }
    if "anyOf" in properties["q"]:
        properties["q"] = properties["q"]["anyOf"][0]
    if "glossary" in properties:  # an object is sent as JSON
        properties["glossary"] = {"const": ""}
    in_form = {**schema, "properties": properties}
    return {
        "application/json": {"schema": {**schema, "properties": in_json}},
        **{form: {"schema": in_form} for form in forms},
    }


def _or_null(schema: Schema) -> Schema:
    """Also allow null, which clients send for fields that they leave out."""
    return {"anyOf": [schema, {"type": "null"}]}


# --- Responses ----------------------------------------------------------------------------------------------


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _value_or_array(schema: Schema) -> Schema:
    """Allow a single value, the answer to a string, and an array, the answer to an array."""
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


_DETECTED_LANGUAGE = _object({"confidence": _NUMBER, "language": _STRING}, ["confidence", "language"])
_DETECTIONS = _list(_DETECTED_LANGUAGE)
_SUPPORTED_LANGUAGES = _list(
    _object({"code": _STRING, "name": _STRING, "targets": _list(_STRING)}, ["code", "name", "targets"])
)
_TRANSLATION = _object(
    {
        "translatedText": _value_or_array(_STRING),
        "detectedLanguage": _value_or_array(_DETECTED_LANGUAGE),
        "alternatives": _value_or_array(_list(_STRING)),
        "pivot": _list(_STRING),
    },
    ["translatedText"],
)
_SCORED = {"text": _STRING, "score": {"type": ["number", "null"]}, "confidence": _NUMBER}
_SPAN = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_SCORED_TRANSLATIONS = _object(
    {
        "target": _STRING,
        "translations": _list(
            _object(
                {
                    **_SCORED,
                    "source": _STRING,
                    "detectedLanguage": _DETECTED_LANGUAGE,
                    "pivot": _list(_STRING),
                    "alternatives": _list(_object(_SCORED, list(_SCORED))),
                    "alignment": _list(_object({"source": _SPAN, "target": _SPAN}, ["source", "target"])),
                    "notes": _list(_STRING),
                },
                [*_SCORED, "source", "pivot", "alternatives"],
            )
        ),
    },
    ["target", "translations"],
)


_EXPLANATION = _object(
    {"format": {"const": "jumok-explanation"}, "version": {"type": "integer"}}, ["format", "version"]
)


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _responses(content: Schema, *errors: str) -> Schema:
    error = _json(_object({"error": _STRING}, ["error"]))
    retry_after = {"Retry-After": {"schema": {"type": "string"}, "required": True}}
    return {
        "200": {"description": "Success", "content": content},
        **{
            status: {
                "description": _ERRORS[status],
                "content": error,
                **({"headers": retry_after} if status in ("429", "503") else {}),
            }
            for status in errors
        },
    }


def _get(name: str, summary: str, content: Schema, *more_errors: str) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "responses": _responses(content, "403", *more_errors),
    }


def _post(name: str, summary: str, body: Schema, content: Schema, *more_errors: str) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": body},
        "responses": _responses(content, "400", "403", "408", *more_errors, "413", "415", "429", "503"),
    }


def _download() -> Schema:
    media_types = [document_format.media_type.partition(";")[0] for document_format in DOCUMENT_FORMATS]
    content = {media_type: {"schema": _STRING} for media_type in media_types}
    parameter = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    return {
        **_get("downloadFile", "Download a translated file", content),
        "parameters": [parameter],
        "responses": _responses(content, "403", "404"),
    }
