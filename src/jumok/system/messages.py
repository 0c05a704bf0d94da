"""Messages between a process and its workers: JSON objects, each preceded by its length in four bytes.

The workers of the server, of training, of large corpora, of imports, of bulk translation and of comparisons
use this protocol over pipes. Nothing is pickled: a compromised worker can send wrong data but no code.
"""

from __future__ import annotations

import json
import struct
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_LENGTH = struct.Struct("<I")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Message = dict[str, Any]


def pack_message(message: Message) -> bytes:
    """Return a message as bytes, preceded by its length."""
    # A file name that is not UTF-8 has lone surrogates, which only "surrogatepass" can encode.
    data = _COMPACT.encode(message).encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(data)) + data


def read_message(stream: IO[bytes]) -> Message | None:
    """Return the next message of a pipe, or None if the pipe was closed before the end of the message."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack(head)
    data = stream.read(length)
    return json.loads(data) if len(data) == length else None


async def receive_message(stream: asyncio.StreamReader) -> Message:
    """Return the next message. If the pipe was closed before the end of the message, raise an error.

    The error is an IncompleteReadError.
    """
    [length] = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    message: Message = json.loads(await stream.readexactly(length))
    return message
