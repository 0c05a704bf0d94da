"""The fields of a request: from JSON, a form, a multipart form or, as LibreTranslate allows, the query.

The query is ignored if the body is JSON. A field of a form takes precedence over the same field of the query.
The bytes of a body are counted while they arrive. A body that is too large or too slow is not parsed.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from jumok.server.http_errors import bad_request, retry_later

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Message, Receive, Scope

    from jumok.server.limits import Limits
    from jumok.server.thread_slot import ThreadSlot

LARGE_FORM_BYTES = 64 * 2**10
"""Larger urlencoded forms are decoded in a thread: 2 MB of `%41` take a third of a second."""
MAX_FIELDS = 20
MAX_VALUES = 10_000
"""Maximum number of values in a body: of strings, numbers, arrays and objects together."""
MAX_EXTRA_CHARACTERS = 10_000
"""Field names, and values of fields other than `q`, may have this many characters in addition to
`Limits.max_characters`."""
BODY_TOO_LARGE = "the body has too many values, or too long ones"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class ClientDisconnectedError(Exception):
    """The client closed the connection."""


@dataclass(slots=True)
class RequestFields:
    """The fields of a request by name, its file if it has one, and its API key."""

    by_name: dict[str, Any] = field(default_factory=dict)
    file_name: str = ""
    file: bytes | None = None
    api_key: str = ""


class BodyMemoryBudget:
    """Limits the bytes of all bodies in memory together."""

    def __init__(self, limits: Limits) -> None:
        self._max_bytes = limits.max_total_body_bytes
        self._reserved_bytes = 0

    def reserve(self, num_bytes: int) -> None:
        if self._reserved_bytes + num_bytes > self._max_bytes:
            raise retry_later(503, "The server is busy. Try again later.", 5)
        self._reserved_bytes += num_bytes

    def release(self, num_bytes: int) -> None:
        self._reserved_bytes -= num_bytes


async def parse_request(
    scope: Scope,
    body: bytes,
    limits: Limits,
    thread_slot: ThreadSlot,
) -> RequestFields:
    """Return the fields of a request whose body has been read."""
    headers = Headers(scope=scope)
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    query = _parse_urlencoded(scope["query_string"])
    query.pop("api_key", None)  # a key in a URL would be stored in logs, so it is not accepted
    fields = RequestFields()
    if content_type == "application/json":
        fields.by_name = _parse_json(body, limits)
    elif content_type == MULTIPART:
        fields = await _parse_multipart(scope, body, limits)
        fields.by_name = {**query, **fields.by_name}
    elif content_type == FORM or not body:
        if len(body) > LARGE_FORM_BYTES:
            fields.by_name = {**query, **await thread_slot.run(_parse_urlencoded, body)}
        else:
            fields.by_name = {**query, **_parse_urlencoded(body)}
    else:
        raise HTTPException(
            415, f"The content type is not supported. Send application/json, {FORM} or {MULTIPART}."
        )
    # A body and a query of together at most MAX_EXTRA_CHARACTERS bytes cannot exceed the limits.
    if len(body) + len(scope["query_string"]) > MAX_EXTRA_CHARACTERS and _is_too_large(
        fields.by_name, limits
    ):
        raise bad_request(BODY_TOO_LARGE)
    if b"\\u" in body or not body.isascii():
        fields.by_name = {name: _replace_surrogates(value) for name, value in fields.by_name.items()}
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer_token = token.strip() if scheme.lower() == "bearer" else ""
    api_key = fields.by_name.pop("api_key", None)
    if api_key is not None and not isinstance(api_key, str):  # clients without a key send null
        raise bad_request("api_key parameter is not a string")
    fields.api_key = api_key or bearer_token
    return fields


async def read_body(scope: Scope, receive: Receive, limits: Limits, budget: BodyMemoryBudget) -> bytes:
    """Read the body and reserve its bytes in `budget`.

    The caller must release the bytes, except if this function raises an exception.
    """
    body = bytearray()
    try:
        await _read_into(body, Headers(scope=scope), receive, limits, budget)
    except BaseException:
        budget.release(len(body))
        raise
    return bytes(body)


async def _read_into(
    body: bytearray, headers: Headers, receive: Receive, limits: Limits, budget: BodyMemoryBudget
) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 18 or int(length) > limits.max_body_bytes:
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.body_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnectedError
                chunk = message.get("body", b"")
                if len(body) + len(chunk) > limits.max_body_bytes:
                    raise _too_large(limits)
                budget.reserve(len(chunk))
                body += chunk
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        # Only a client that is too slow is disconnected. After other errors the connection stays open, and
        # the rest of a body that is too large is read for a while and discarded: a client that is still
        # sending when its connection is closed would not see the response.
        reason = "The request did not arrive in time."
        raise HTTPException(408, reason, {"Connection": "close"}) from None


def _too_large(limits: Limits) -> HTTPException:
    return HTTPException(
        413, f"The request is too large. At most {limits.max_body_bytes:,} bytes are allowed."
    )


def _parse_json(body: bytes, limits: Limits) -> dict[str, Any]:
    """Parse a JSON object if it is not too large: `{},` has 3 bytes in a body and takes 72 in memory."""
    # Parsing blocks all other requests, so the size is checked first: each "," "[" and "{" either starts a
    # value (MAX_VALUES are allowed) or is a character of a text (`max_characters` are allowed).
    if sum(body.count(separator) for separator in (b",", b"[", b"{")) > limits.max_characters + MAX_VALUES:
        raise bad_request(BODY_TOO_LARGE)
    try:
        decoded = _JSON.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise bad_request("the body is not JSON") from None
    if not isinstance(decoded, dict):
        raise bad_request("the body is not a JSON object")
    return decoded


def _is_too_large(fields: dict[str, Any], limits: Limits) -> bool:
    """Return whether the fields have too many values, or too many characters without counting `q`.

    The fields stay in memory until the response, in up to four times the bytes that were sent. The route
    checks the size of `q`, with an error message of its own.
    """
    q = fields.get("q")
    texts = [text for text in (q if isinstance(q, list) else [q]) if isinstance(text, str)]
    remaining_values = MAX_VALUES
    remaining_characters = MAX_EXTRA_CHARACTERS + limits.max_characters + sum(map(len, texts))
    stack: list[Any] = [fields]
    while stack and min(remaining_values, remaining_characters) >= 0:
        container = stack.pop()
        if isinstance(container, dict):
            remaining_characters -= sum(map(len, container))
            container = container.values()
        remaining_values -= len(container)
        remaining_characters -= sum(len(value) for value in container if isinstance(value, str))
        stack.extend(value for value in container if isinstance(value, dict | list))
    return min(remaining_values, remaining_characters) < 0


def _parse_number(text: str) -> float:
    """Return an int if the number is integral: JSON Schema treats 2.0 as an integer."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_JSON = json.JSONDecoder(parse_float=_parse_number, parse_constant=_refuse_constant)


def _parse_urlencoded(data: bytes) -> dict[str, Any]:
    if not data:
        return {}
    try:
        pairs = parse_qsl(
            data.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise bad_request("the fields are not encoded as UTF-8, or there are too many") from None
    return _fields_of_form(pairs)


def _fields_of_form(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields by name. If a name is repeated, its last value is used. `tags` keeps all values."""
    fields: dict[str, Any] = dict(pairs)
    tags = [value for name, value in pairs if name == "tags"]
    return {**fields, "tags": tags} if len(tags) > 1 else fields


async def _parse_multipart(scope: Scope, body: bytes, limits: Limits) -> RequestFields:
    async def replay() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    fields = RequestFields()
    texts: list[tuple[str, str]] = []
    # If the scope had an `app`, Starlette would raise an HTTPException instead of the MultiPartException.
    request = Request({name: value for name, value in scope.items() if name != "app"}, replay)
    try:
        async with request.form(
            max_files=1, max_fields=MAX_FIELDS, max_part_size=limits.max_body_bytes
        ) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    fields.file_name, fields.file = value.filename or "", await value.read()
                elif name == "file":  # sent without a file name: plain text
                    fields.file = value.encode("utf-8", "replace")
                else:
                    texts.append((name, value))
    except (MultiPartException, ValueError, LookupError):
        raise bad_request("the multipart form is malformed") from None
    fields.by_name = _fields_of_form(texts)
    return fields


def _replace_surrogates(value: Any) -> Any:
    """Replace unpaired surrogates in a string, or in the strings of a list, with U+FFFD.

    JSON can contain such surrogates as escapes; UTF-8 cannot encode them.
    """
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(item) if isinstance(item, str) else item for item in value]
    return value
