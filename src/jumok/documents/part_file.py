"""What is done of a long translation: `report.ko.docx.part`, until the document is written.

    part = PartFile(path, key)          the key says what is translated: input, model, options
    part.done                           results by name, as an earlier process left them
    part.add("3", result)               appended, and flushed to the disk
    part.remove()                       at the end

The file has one JSON value per line: the key, then [name, result]. A killed process leaves at most half a
line at its end, which is cut off. A file with another key belongs to another translation: it is begun again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jumok.storage.folders import disk_errors, make_folder

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIX = ".part"
_KEY_NAME = "jumok translate"


def make_key(*content: Any) -> str:
    """Return a digest of values that JSON can hold."""
    text = json.dumps(content, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class PartFile:
    """The results of a translation that is not complete, beside the file or folder that it will be."""

    def __init__(self, target: Path, key: str) -> None:
        self.path = part_path(target)
        self._header = json.dumps({_KEY_NAME: key}) + "\n"
        self.done, self._length = self._read()

    def add(self, name: str, result: Any) -> None:
        """Store a result."""
        line = json.dumps([name, result]).encode() + b"\n"
        with disk_errors(self.path, "What was stored before is intact."):
            make_folder(self.path.parent)
            with self.path.open("ab") as file:
                if file.tell() > self._length:  # half a line, or another translation
                    file.truncate(self._length)
                if not self._length:
                    line = self._header.encode() + line
                self._length += file.write(line)
                file.flush()
                os.fsync(file.fileno())
        self.done[name] = result

    def remove(self) -> None:
        with disk_errors(self.path, "Everything is translated."):
            self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, Any], int]:
        """Return the results and the length of what is intact."""
        done: dict[str, Any] = {}
        try:
            header, *lines = self.path.read_bytes().splitlines(keepends=True)
        except (OSError, ValueError):
            return done, 0
        if header != self._header.encode():
            return done, 0
        length = len(header)
        with suppress(ValueError, TypeError):
            for line in lines:
                name, result = json.loads(line)
                if not line.endswith(b"\n"):
                    break
                done[name] = result
                length += len(line)
        return done, length


def part_path(target: Path) -> Path:
    """Return the path of the part file of a translation."""
    return target.with_name(target.name + _SUFFIX)
