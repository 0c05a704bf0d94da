"""The OpenAPI document: what each route takes and gives, with the languages and limits of this server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.serve.files import FILE_TYPES
from jumok.serve.views import Question
from jumok.storage import jumok_version

if TYPE_CHECKING:
    from jumok.serve.service import Service

    Schema = dict[str, Any]

__all__ = ["openapi_document"]

_ERRORS = {
    "400": "What was asked for is wrong or not supported",
    "403": "The key, the host or the origin is not allowed",
    "404": "There is nothing here",
    "409": "This model, or its attention to this sentence, has no such place",
    "408": "The request did not arrive in time",
    "413": "The request, or the markup of its file, is too large",
    "415": "The content type is not supported",
    "429": "Too many requests of this client",
    "503": "The server is busy",
}
_COMPONENT = "#/components/schemas/{model}"
_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}


def openapi_document(service: Service) -> Schema:
    """For this server, as it is now."""
    paths = {**_contract_paths(service), **_version_one_paths(service)}
    document: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "jumok",
            "version": jumok_version(),
            "description": "The contract of LibreTranslate, and more under /v1/.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": Question.model_json_schema(ref_template=_COMPONENT)["$defs"]},
    }
    if service.keys:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for operations in paths.values():
            if "post" in operations:
                operations["post"]["security"] = [{"key": []}]
        paths["/metrics"]["get"]["security"] = [{"key": []}]
    return document


def _contract_paths(service: Service) -> Schema:
    """What LibreTranslate has, too."""
    form = ("application/x-www-form-urlencoded", "multipart/form-data")
    ask = _translate_fields(service)
    detect = _object({"q": _text(service), "api_key": _STRING}, ["q"])
    return {
        "/translate": {"post": _post("translate", "Translate text", _bodies(ask, form), _json(_ANSWER))},
        "/detect": {"post": _post("detect", "Detect a language", _bodies(detect, form), _json(_DETECTED))},
        "/languages": {"get": _get("languages", "List languages", _json(_LANGUAGES))},
        "/translate_file": {
            "post": _post(
                "translateFile",
                "Translate a file: " + ", ".join(FILE_TYPES),
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
            "get": _get("frontendSettings", "What a page needs to know", _json({"type": "object"}))
        },
        "/health": {
            "get": _get(
                "health", "Whether it can translate", _json(_object({"status": _STRING}, ["status"])), "503"
            )
        },
        "/metrics": {"get": _get("metrics", "Counts for Prometheus", {"text/plain": {"schema": _STRING}})},
    }


def _version_one_paths(service: Service) -> Schema:
    ask = _version_one_fields(service)
    return {
        "/v1/translate": {
            "post": _post(
                "translateWithScores",
                "Translate with scores, n-best lists and word alignments",
                {"application/json": {"schema": ask}},
                _json(_SCORED_ANSWER),
            )
        },
        "/v1/translate/stream": {
            "post": _post(
                "translateAsStream",
                "As /v1/translate, piece by piece and sentence by sentence, as server-sent events",
                {"application/json": {"schema": ask}},
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
                "Explain a translation: attention, search, alignments; with changes of attention",
                {"application/json": {"schema": _explain_fields(service)}},
                _json(_EXPLANATION),
                "409",
            )
        },
    }


# --- What is sent -------------------------------------------------------------------------------------------


def _translate_fields(service: Service) -> Schema:
    many = {"type": "array", "items": _STRING, "minItems": 1, "maxItems": service.limits.texts}
    fields = {
        "q": {"anyOf": [_text(service), many]},
        **_languages(service),
        "format": {"enum": ["text", "html", ""]},
        "alternatives": _count(0, service.limits.alternatives),
        "api_key": _STRING,
    }
    return {**_object(fields, ["q", "source", "target"]), "anyOf": _ways(service)}


def _version_one_fields(service: Service) -> Schema:
    fields = {
        **_translate_fields(service)["properties"],
        "n_best": _count(1, service.limits.alternatives + 1),
        "alignment": _FLAG,
        "greedy": _FLAG,
        "api_key": _or_null(_STRING),
    }
    del fields["format"], fields["alternatives"]
    one_if_greedy = [
        {"properties": {"greedy": {"enum": [False, "false"]}}},
        {"properties": {"n_best": {"enum": [1, "1"]}}},
    ]
    asked = _object(fields, ["q", "source", "target"])
    return {**asked, "allOf": [{"anyOf": _ways(service)}, {"anyOf": one_if_greedy}]}


def _explain_fields(service: Service) -> Schema:
    asked = Question.model_json_schema(ref_template=_COMPONENT)
    codes = service.directions.codes
    languages = {"source": {"enum": codes}, "target": {"enum": codes}, "api_key": _or_null(_STRING)}
    ways = [
        {"properties": {"source": {"const": one.source}, "target": {"const": one.target}}}
        for one in service.directions.all
    ]
    fields = {**asked["properties"], **languages}
    return {**_object(fields, ["q", "source", "target"]), "additionalProperties": False, "anyOf": ways}


def _file_fields(service: Service) -> Schema:
    # Whatever stands in a multipart form is text, so no type is wrong; only nothing at all is.
    file = {"description": "A file in UTF-8 with a name that tells its type", "minItems": 1}
    fields = {"file": file, **_languages(service), "api_key": {}}
    return {**_object(fields, ["file", "source", "target"]), "anyOf": _ways(service)}


def _text(service: Service) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": service.limits.characters}


def _languages(service: Service) -> Schema:
    codes = service.directions.codes
    return {"source": {"enum": ["auto", *codes]}, "target": {"enum": codes}}


def _ways(service: Service) -> list[Schema]:
    """Which target goes with which source."""
    directions = service.directions
    sources = {"auto": directions.codes, **{code: directions.targets(code) for code in directions.codes}}
    return [
        {"properties": {"source": {"const": source}, "target": {"enum": targets}}}
        for source, targets in sources.items()
    ]


def _count(least: int, most: int) -> Schema:
    digits = "|".join(str(number) for number in range(least, most + 1))
    return {
        "anyOf": [
            {"type": "integer", "minimum": least, "maximum": most},
            {"type": "string", "pattern": f"^({digits})$"},
        ]
    }


def _bodies(schema: Schema, forms: tuple[str, ...]) -> Schema:
    """The same fields as JSON and as a form, where there are no arrays and nothing is null."""
    properties = dict(schema["properties"])
    in_json = {name: one if name in schema["required"] else _or_null(one) for name, one in properties.items()}
    if "anyOf" in properties["q"]:
        properties["q"] = properties["q"]["anyOf"][0]
    in_form = {**schema, "properties": properties}
    return {
        "application/json": {"schema": {**schema, "properties": in_json}},
        **{form: {"schema": in_form} for form in forms},
    }


def _or_null(schema: Schema) -> Schema:
    """As clients send what they leave out."""
    return {"anyOf": [schema, {"type": "null"}]}


# --- What comes back ----------------------------------------------------------------------------------------


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _either(schema: Schema) -> Schema:
    """One for a string, an array for an array."""
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


_LANGUAGE = _object({"confidence": _NUMBER, "language": _STRING}, ["confidence", "language"])
_DETECTED = _list(_LANGUAGE)
_LANGUAGES = _list(
    _object({"code": _STRING, "name": _STRING, "targets": _list(_STRING)}, ["code", "name", "targets"])
)
_ANSWER = _object(
    {
        "translatedText": _either(_STRING),
        "detectedLanguage": _either(_LANGUAGE),
        "alternatives": _either(_list(_STRING)),
        "pivot": _list(_STRING),
    },
    ["translatedText"],
)
_SCORED = {"text": _STRING, "score": {"type": ["number", "null"]}, "confidence": _NUMBER}
_SPAN = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_SCORED_ANSWER = _object(
    {
        "target": _STRING,
        "translations": _list(
            _object(
                {
                    **_SCORED,
                    "source": _STRING,
                    "detectedLanguage": _LANGUAGE,
                    "pivot": _list(_STRING),
                    "alternatives": _list(_object(_SCORED, list(_SCORED))),
                    "alignment": _list(_object({"source": _SPAN, "target": _SPAN}, ["source", "target"])),
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
    again = {"Retry-After": {"schema": {"type": "string"}, "required": True}}
    return {
        "200": {"description": "The answer", "content": content},
        **{
            status: {
                "description": _ERRORS[status],
                "content": error,
                **({"headers": again} if status in ("429", "503") else {}),
            }
            for status in errors
        },
    }


def _get(name: str, summary: str, content: Schema, *more: str) -> Schema:
    return {"operationId": name, "summary": summary, "responses": _responses(content, "403", "429", *more)}


def _post(name: str, summary: str, body: Schema, content: Schema, *more: str) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": body},
        "responses": _responses(content, "400", "403", "408", *more, "413", "415", "429", "503"),
    }


def _download() -> Schema:
    kinds = [kind.partition(";")[0] for kind in FILE_TYPES.values()]
    named = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    return {
        **_get("downloadFile", "Fetch a translated file", {kind: {"schema": _STRING} for kind in kinds}),
        "parameters": [named],
        "responses": _responses({kind: {"schema": _STRING} for kind in kinds}, "403", "404"),
    }
