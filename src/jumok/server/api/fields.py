"""The fields of requests as pydantic models, which check them and describe them in the OpenAPI document.

Where LibreTranslate has the same check, the error message is that of LibreTranslate. A request is refused for
its first invalid field, in the same order as in LibreTranslate. A field that is null counts as missing,
because several clients send null. Conditions that involve several fields are checked by the handlers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from jumok.analysis.changes import first_error
from jumok.server.http_errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

    from jumok.server.limits import Limits
    from jumok.server.routes import ApiRequest
    from jumok.server.service import Service

    Schema = dict[str, Any]

__all__ = [
    "AUTO",
    "STRING",
    "ApiModel",
    "Checked",
    "Flag",
    "GlossaryField",
    "Language",
    "Source",
    "Tags",
    "Text",
    "TextOrTexts",
]
__all__ += ["allow_known_pairs", "bounded_integer", "check_string", "documented_service", "field_error"]

AUTO = "auto"
STRING: Schema = {"type": "string"}

documented_service: ContextVar[Service] = ContextVar("documented_service")
"""The service whose OpenAPI document is being made."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The check of a field and its schema. Both depend on the models and limits of the server."""

    check: Callable[[Any, Service], Any]
    describe: Callable[[Service], Schema]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            lambda value, info: self.check(value, info.context)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return self.describe(documented_service.get())


class ApiModel(BaseModel):
    """The fields of a request to one route. Unknown fields are ignored, unless the subclass forbids them."""

    model_config = ConfigDict(frozen=True, strict=True)

    @classmethod
    def read(cls, request: ApiRequest, **more_fields: Any) -> Self:
        """Return the checked fields. Raise an HTTP error 400 for the first invalid field."""
        fields = {**request.fields, **more_fields}
        non_null_fields = {name: value for name, value in fields.items() if value is not None}
        try:
            return cls.model_validate(non_null_fields, context=request.service)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            if first["type"] == "missing":
                raise bad_request(f"missing {first['loc'][0]} parameter") from None
            if first["type"] == "invalid":
                raise bad_request(f"{first['loc'][0]} parameter {first['msg']}") from None
            raise bad_request(first_error(error)) from None


def field_error(reason: str) -> PydanticCustomError:
    """Return the error for an invalid field. `ApiModel.read` puts the name of the field before the reason."""
    return PydanticCustomError("invalid", "{reason}", {"reason": reason})


def check_string(value: Any, service: Service) -> str:
    """Return a string. An empty string, array or object counts as a missing field."""
    if not value and not isinstance(value, int | float):
        raise PydanticCustomError("missing", "missing")
    if not isinstance(value, str):
        raise field_error("is not a string")
    return value


def _check_texts(value: Any, service: Service) -> str | list[str]:
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return value
    try:
        return check_string(value, service)
    except PydanticCustomError as error:
        if error.type == "missing":
            raise
        raise field_error("is not a string or an array of strings") from None


def _check_flag(value: Any, service: Service) -> bool:
    """Return a boolean. In a form, the value is the string "true" or "false"."""
    if not isinstance(value, bool) and value not in ("true", "false"):
        raise field_error("is not true or false")
    return value in (True, "true")


def bounded_integer(minimum: int, maximum: Callable[[Limits], int]) -> Checked:
    """Return the check of an integer field. In a form, the value is a string of digits."""

    def check(value: Any, service: Service) -> int:
        if isinstance(value, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,8}", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise field_error("is not a number")  # LibreTranslate's message, also for 2.5
        if not minimum <= value <= maximum(service.limits):
            raise field_error(f"must be from {minimum} to {maximum(service.limits)}")
        return value

    def describe(service: Service) -> Schema:
        numbers = range(minimum, maximum(service.limits) + 1)
        integer = {"type": "integer", "minimum": numbers[0], "maximum": numbers[-1]}
        return {"anyOf": [integer, {**STRING, "pattern": f"^({'|'.join(map(str, numbers))})$"}]}

    return Checked(check, describe)


def _describe_text(service: Service) -> Schema:
    return {**STRING, "minLength": 1, "maxLength": service.limits.max_characters}


def _describe_texts(service: Service) -> Schema:
    array = {"type": "array", "items": STRING, "minItems": 1, "maxItems": service.limits.max_texts}
    return {"anyOf": [_describe_text(service), array]}


Text = Annotated[str, Checked(check_string, _describe_text)]
TextOrTexts = Annotated[str | list[str], Checked(_check_texts, _describe_texts)]
Flag = Annotated[
    bool, Checked(_check_flag, lambda _: {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]})
]
MAX_TAGS = 8


def _check_tags(value: Any, service: Service) -> list[str]:
    """Return a list of tags. In a form, a single tag is a string, and no tag is an empty string."""
    if isinstance(value, str):
        return [value] if value else []
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value) or len(value) > MAX_TAGS:
        raise field_error(f"is not an array of at most {MAX_TAGS} tags")
    return value


def _describe_tags(service: Service) -> Schema:
    tags = service.all_tags
    items = {"items": {"enum": tags}, "maxItems": MAX_TAGS} if tags else {"maxItems": 0}
    return {"anyOf": [{"type": "array", **items}, {"enum": ["", *tags]}]}


Tags = Annotated[Sequence[str], Checked(_check_tags, _describe_tags)]
"""Tags such as `<polite>`, which are put before every sentence.

`parameters.check_tags` refuses a tag that the model does not have."""
Source = Annotated[
    str, Checked(check_string, lambda service: {"enum": [AUTO, *service.language_pairs.codes]})
]
Language = Annotated[str, Checked(check_string, lambda service: {"enum": service.language_pairs.codes})]


MAX_TERMS, MAX_TERM_CHARACTERS = 1_000, 200
"""Limits of the glossary in a request. Each of its terms is searched for in each text."""


def _describe_glossary(service: Service) -> Schema:
    """Describe an object of terms with their translations, and the names of the server's glossaries.

    The list of terms that `parameters.find_pivot_paths` also accepts is not described.
    """
    term = {**STRING, "pattern": r"^\S+( \S+)*$", "maxLength": MAX_TERM_CHARACTERS}
    terms = {
        "type": "object",
        "propertyNames": term,
        "additionalProperties": term,
        "maxProperties": MAX_TERMS,
    }
    return {"anyOf": [terms, {"enum": ["", *service.glossaries.names]}]}


GlossaryField = Annotated[Any, Checked(lambda value, _: value, _describe_glossary)]
"""`parameters.find_pivot_paths` checks the glossary, because the check needs the pivot paths of the texts."""


def allow_known_pairs(schema: Schema) -> None:
    """Make the schema of a request allow, for each source, only targets that it can be translated into.

    For the source `auto`, every language is allowed.
    """
    pairs = documented_service.get().language_pairs
    targets_of = {AUTO: pairs.codes, **{code: pairs.targets(code) for code in pairs.codes}}
    schema["anyOf"] = [
        {"properties": {"source": {"const": source}, "target": {"enum": targets}}}
        for source, targets in targets_of.items()
    ]
