"""What the front and its workers say to one another: JSON, each message after its length in four bytes.

Nothing is pickled: a worker that was taken over can send wrong text, but no code.
"""

from __future__ import annotations

import json
import struct
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["pack", "read_frame", "receive_frame"]

_LENGTH = struct.Struct("<I")
_AS_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Message = dict[str, Any]


def pack(message: Message) -> bytes:
    """A message as it travels."""
    data = _AS_JSON.encode(message).encode()
    return _LENGTH.pack(len(data)) + data


def read_frame(stream: IO[bytes]) -> Message | None:
    """The next message of a pipe; None when the other side has left."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack(head)
    data = stream.read(length)
    return json.loads(data) if len(data) == length else None


async def receive_frame(stream: asyncio.StreamReader) -> Message:
    """As `read_frame`, while others go on; raises IncompleteReadError when the other side has left."""
    [length] = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    message: Message = json.loads(await stream.readexactly(length))
    return message
