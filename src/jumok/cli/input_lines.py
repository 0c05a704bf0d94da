"""Lines from a file or from standard input, and whether the next one is there already."""

from __future__ import annotations

import select
import sys
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from jumok.errors import DataError
from jumok.storage import standard_input

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["InputLines"]

BLOCK = 2**16


class InputLines(Iterator[str]):
    """Lines split at \\n only, so that n lines in are n lines out whatever the text holds.

    A person who types, and a program that asks again only when it was answered, give no further line before
    they have read what became of the last one. Before waiting for them, what was written is sent off.
    """

    def __init__(self, path: Path | None) -> None:
        self._name = "standard input" if path is None else str(path)
        try:
            self._stream: Any = standard_input() if path is None else path.open("rb")
        except FileNotFoundError:
            raise DataError(f"there is no file {path}.") from None
        self._whole: deque[bytes] = deque()
        self._begun: list[bytes] = []  # of the next line, which has not ended yet
        self._ended = False
        self._number = 0

    @property
    def typed(self) -> bool:
        """Whether a person writes them at a terminal."""
        return bool(self._stream.isatty())

    def ready(self) -> bool:
        """Whether the next line, or the end, can be had without waiting for whoever writes it."""
        return bool(self._whole) or self._ended or _readable(self._stream)

    def close(self) -> None:
        self._stream.close()

    def __next__(self) -> str:
        while not self._whole:
            if self._ended:
                raise StopIteration
            self._read()
        line, self._number = self._whole.popleft(), self._number + 1
        if self._number == 1:
            line = line.removeprefix(BOM_UTF8)
        try:
            return line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self._name}, line {self._number:,}, byte {error.start + 1}: this is not UTF-8. "
                "Convert the file (iconv -f latin1 -t utf-8, say) and run again."
            ) from None

    def _read(self) -> None:
        if not _readable(self._stream):
            sys.stdout.flush()
        block = self._stream.read1(BLOCK)
        first, *others = block.split(b"\n")
        self._begun.append(first)
        if others or not block:
            whole = b"".join(self._begun)
            self._whole.extend([whole, *others[:-1]] if others or whole else ())
            self._begun = others[-1:]
        self._ended = not block


def _readable(stream: IO[bytes]) -> bool:
    """False only where reading would wait; files never do, and what is no file cannot be asked."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):
        return True
