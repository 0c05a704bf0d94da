"""What a client sent, as fields: from JSON, a form, a multipart form or, as LibreTranslate allows, the query.

The body is counted while it arrives and is refused as soon as it is too large or too slow: nothing of it has
been parsed by then.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from jumok.serve.faults import Fault, busy, invalid

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

    from jumok.serve.limits import Limits

__all__ = ["ClientGoneError", "Held", "Sent", "read_body", "read_sent"]

MOST_FIELDS = 20
MOST_VALUES = 10_000
TOO_MUCH = "the body has too many values, or too long ones"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class ClientGoneError(Exception):
    """The client closed the connection."""


@dataclass(slots=True)
class Sent:
    """The fields of a request, a file if there is one, and the key that came with it."""

    fields: dict[str, Any] = field(default_factory=dict)
    file_name: str = ""
    file: bytes | None = None
    key: str = ""


class Held:
    """The bytes of all bodies in memory, so that many requests cannot be too large together."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.held_bytes
        self._bytes = 0

    def take(self, count: int) -> None:
        if self._bytes + count > self._most:
            raise busy(503, "The server is busy. Try again later.", 5)
        self._bytes += count

    def give_back(self, count: int) -> None:
        self._bytes -= count


async def read_sent(scope: Scope, body: bytes, limits: Limits) -> Sent:
    """The fields of a request whose body has been read."""
    request = Request(scope)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    asked = _pairs(scope["query_string"])
    asked.pop("api_key", None)  # addresses end up in logs and histories; a key must not
    sent = Sent()
    if kind == "application/json":
        sent.fields = _read_json(body, limits)
    elif kind == MULTIPART:
        sent = await _read_multipart(scope, body, limits)
        sent.fields = {**asked, **sent.fields}
    elif kind == FORM or not body:
        sent.fields = {**asked, **_pairs(body)}
    else:
        raise Fault(415, f"The content type is not supported. Send application/json, {FORM} or {MULTIPART}.")
    if _is_too_much(sent.fields, limits):
        raise invalid(TOO_MUCH)
    sent.fields = {name: _mend(value) for name, value in sent.fields.items()}
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    sent.key = token.strip() if scheme.lower() == "bearer" else ""
    given = sent.fields.pop("api_key", None)
    if given is not None and not isinstance(given, str):  # without a key, many clients send null
        raise invalid("api_key parameter is not a string")
    sent.key = given or sent.key
    return sent


async def read_body(scope: Scope, receive: Receive, limits: Limits, held: Held) -> bytes:
    """The whole body, counted in `held`: the caller gives its length back, save when this raises."""
    body = bytearray()
    try:
        await _read_into(body, Request(scope), receive, limits, held)
    except BaseException:
        held.give_back(len(body))
        raise
    return bytes(body)


async def _read_into(body: bytearray, request: Request, receive: Receive, limits: Limits, held: Held) -> None:
    too_large = Fault(413, f"The request is too large. It may have {limits.body_bytes:,} bytes.")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 18 or int(length) > limits.body_bytes:
        raise too_large
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                chunk = message.get("body", b"")
                if len(body) + len(chunk) > limits.body_bytes:
                    raise too_large
                held.take(len(chunk))
                body += chunk
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        raise Fault(408, "The request did not arrive in time.") from None


def _read_json(body: bytes, limits: Limits) -> dict[str, Any]:
    """An object of a bounded number of values: an empty one takes 3 bytes of a body, and 72 of memory."""
    # Parsing stops everybody else. These marks stand between values or in a text, which has a limit too.
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > limits.characters + MOST_VALUES:
        raise invalid(TOO_MUCH)
    try:
        found = _JSON.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON") from None
    if not isinstance(found, dict):
        raise invalid("the body is not a JSON object")
    return found


def _is_too_much(fields: dict[str, Any], limits: Limits) -> bool:
    """Whether there are more values, or more text beside `q`, whose size is told apart, than anybody needs.

    All of it stays in memory until the answer, a character in up to four times the bytes that were sent.
    """
    q = fields.get("q")
    texts = [text for text in (q if isinstance(q, list) else [q]) if isinstance(text, str)]
    values, characters = MOST_VALUES, MOST_VALUES + limits.characters + sum(map(len, texts))
    left: list[Any] = [fields]
    while left and min(values, characters) >= 0:
        inside = left.pop()
        if isinstance(inside, dict):
            characters -= sum(map(len, inside))
            inside = inside.values()
        values -= len(inside)
        characters -= sum(len(value) for value in inside if isinstance(value, str))
        left.extend(value for value in inside if isinstance(value, dict | list))
    return min(values, characters) < 0


def _number(written: str) -> float:
    """To JSON Schema 2.0 is an integer, as JavaScript and others write it."""
    found = float(written)
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_JSON = json.JSONDecoder(parse_float=_number, parse_constant=_refuse_constant)


def _pairs(data: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            data.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise invalid("the fields are not encoded as UTF-8, or there are too many") from None
    return dict(pairs)


async def _read_multipart(scope: Scope, body: bytes, limits: Limits) -> Sent:
    async def replay() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    sent = Sent()
    request = Request({name: value for name, value in scope.items() if name != "app"}, replay)
    try:
        async with request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=limits.body_bytes) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    sent.file_name, sent.file = value.filename or "", await value.read()
                elif name == "file":  # sent without a name: plain text
                    sent.file = value.encode("utf-8", "replace")
                else:
                    sent.fields[name] = value
    except (MultiPartException, ValueError, LookupError):
        raise invalid("the multipart form is malformed") from None
    return sent


def _mend(value: Any) -> Any:
    """Half a character, which JSON can write and UTF-8 cannot, becomes U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mend(item) if isinstance(item, str) else item for item in value]
    return value
