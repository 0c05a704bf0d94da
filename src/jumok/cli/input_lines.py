"""Lines from a file or standard input, and whether the next line is already available."""

from __future__ import annotations

import io
import select
import sys
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from jumok.cli.language import localise, localise_text
from jumok.data.input_files import InputFile, read_blocks, standard_input
from jumok.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.data.encodings import Encoding

BLOCK_BYTES = 2**16


class InputLines(Iterator[str]):
    """Yields the lines of a text, split at \\n only, so that n input lines always give n output lines.

    A user who types, or a program that waits for each answer, sends the next line only after it has read
    the previous result. Standard output is therefore flushed before waiting for input. `command` is the
    command that reads the lines, for messages.
    """

    def __init__(
        self, path: Path | None, *, stream: IO[bytes] | None = None, command: str = "translate"
    ) -> None:
        self._path, self._name = path, localise("standard input") if path is None else str(path)
        try:
            self._stream: Any = stream or (standard_input() if path is None else path.open("rb"))
        except FileNotFoundError:
            raise _no_file_error(str(path), command) from None
        except IsADirectoryError:
            raise DataError(localise("{folder} is a folder. Name a file in it.", folder=path)) from None
        self._complete_lines: deque[bytes] = deque()
        self._incomplete: list[bytes] = []  # parts of the next line, whose end has not been read
        self._ended = False
        self._line_number = 0

    @classmethod
    def of_text(cls, text: str) -> InputLines:
        """Return the lines of a string."""
        return cls(None, stream=io.BytesIO(text.encode("utf-8", "surrogateescape")))

    @property
    def is_terminal(self) -> bool:
        """Whether the input is a terminal."""
        return bool(self._stream.isatty())

    def ready(self) -> bool:
        """Whether the next line, or the end, can be read without waiting."""
        return bool(self._complete_lines) or self._ended or _readable(self._stream)

    def close(self) -> None:
        self._stream.close()

    def __next__(self) -> str:
        while not self._complete_lines:
            if self._ended:
                raise StopIteration
            self._read()
        line, self._line_number = self._complete_lines.popleft(), self._line_number + 1
        if self._line_number == 1:
            line = line.removeprefix(BOM_UTF8)
        try:
            return line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            from jumok.data.encodings import encoding_advice  # start-up

            advice = encoding_advice(line, line, list(self._complete_lines), self._conversion_advice)
            message = localise(
                "{name}, line {line:,}, byte {byte}: this is not UTF-8. {advice}",
                name=self._name,
                line=self._line_number,
                byte=error.start + 1,
                advice=localise_text(advice),
            )
            raise DataError(message) from None

    def _conversion_advice(self, encoding: Encoding) -> str:
        file = "" if self._path is None else f" {self._path}"
        return localise(
            "convert it: iconv -f {codec} -t utf-8{file} | jumok …", codec=encoding.codec, file=file
        )

    def _read(self) -> None:
        if not _readable(self._stream):
            sys.stdout.flush()
        block = self._stream.read1(BLOCK_BYTES)
        if b"\0" in block and not self._line_number:
            from jumok.cli.encoded_input import refuse_unmarked_utf16  # start-up

            refuse_unmarked_utf16(block, self._name)
        first, *others = block.split(b"\n")
        self._incomplete.append(first)
        if others or not block:
            line = b"".join(self._incomplete)
            self._complete_lines.extend([line, *others[:-1]] if others or line else ())
            self._incomplete = others[-1:]
        self._ended = not block


def count_lines(path: Path) -> int:
    """Return how many lines a text has, decompressed if needed. The last line may have no line end."""
    count, last_block = 0, b"\n"
    for block in read_blocks(InputFile(path)):
        count, last_block = count + block.count(b"\n"), block
    return count + (not last_block.endswith(b"\n"))


def _no_file_error(name: str, command: str) -> DataError:
    """Return the error for a missing file, with advice if its name may be a sentence (a space, or no dot)."""
    if " " not in name and "." in name:
        return DataError(localise("There is no file {name}.", name=name))
    return DataError(
        localise(
            "There is no file {name!r}. A sentence is read from standard input: "
            'echo "{name}" | jumok {command} MODEL',
            name=name,
            command=command,
        )
    )


def _readable(stream: IO[bytes]) -> bool:
    """Whether a read returns at once; True for files and for streams that cannot be polled."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):
        return True
