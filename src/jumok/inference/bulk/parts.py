"""Part files. A part file has the translation of one block of lines.

The name of a part file is a digest of everything that its content depends on (its key), and a suffix.

    out.txt.parts/3f0c…e1.part      a line of JSON (counts, notes, sha256 of the rest), then lines of output
    out.txt.parts/joined.json       sha256 of the output, and a digest of the settings of this translation

A block has the lines that `Translator.stream` would search together. So the joined parts have the same bytes
as the output of a single process, for any order and number of workers. Parts are written atomically, and
existing parts are reused. The key of a part depends only on the lines of its block, on the settings and on
the version of jumok: after a change of the input, only the changed blocks are translated. (If a line is
inserted or removed, its block and all blocks after it change.)
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from jumok.errors import JumokError, StorageError
from jumok.inference.read_ahead import block_sizes, read_ahead
from jumok.inference.search.plan import Sampling
from jumok.storage.folders import (
    checksum,
    disk_errors,
    is_leftover,
    json_with_checksum,
    make_folder,
    read_json_with_checksum,
    read_regular_file,
    write_file,
)
from jumok.storage.model_folder import jumok_version, model_digest
from jumok.text.glossary import Glossary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from jumok.inference.text_options import TextOptions
    from jumok.inference.translation import Translation

SUFFIX = ".part"
JOINED = "joined.json"
MAX_PART_NOTES = 10
"""The maximum number of notes that a part stores; `Part.num_notes` counts all."""
MAX_PART_BYTES = 2**30
"""A larger file is not read, so its block is translated again."""
MIN_LEFTOVER_SECONDS = 3600.0
"""Another process or machine may still be writing a half-written part that is younger than this."""
_PART_NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}")

Output = Literal["text", "json", "json with alignment", "string"]
"""What a line of output has: the text of a translation; a JSON object of the translation, without or with its
word alignment; or the text as a JSON string, which keeps line breaks."""


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """The model and the options with which workers translate blocks. All fields can be sent as JSON."""

    model: str  # the folder, which must be at this path on every machine
    digest: str  # of the model
    loading: dict[str, Any]  # engine, shortlist, device, precision
    options: dict[str, Any]  # of the texts and of the search
    glossary: dict[str, str] | None = None  # `Glossary.terms`
    sampling: dict[str, Any] | None = None  # the fields of `Sampling`, with the seed of the first block
    n_best: int = 1
    prefix: str = ""
    output: Output = "text"

    def for_block(self, number: int) -> BulkSettings:
        """Return the settings for a block. Each block is sampled with its own seed, as in a stream."""
        if self.sampling is None:
            return self
        return replace(self, sampling=asdict(Sampling(**self.sampling).with_next_seed(number)))

    def key(self, texts: Sequence[str]) -> str:
        """Return the key of the part with the translations of these texts: its name without the suffix."""
        fields = asdict(self)
        del fields["model"]  # the folder may have moved; the digest identifies the model
        return checksum({**fields, "jumok": jumok_version(), "texts": list(texts)})


def bulk_settings(
    model: Path,
    loading: dict[str, Any],
    options: TextOptions,
    sampling: Sampling | None = None,
    *,
    output: Output = "text",
    n_best: int = 1,
    prefix: str = "",
) -> BulkSettings:
    """Return the settings for the model in a folder."""
    other_options = {name: value for name, value in options.items() if value is not None}
    glossary = other_options.pop("glossary", None)
    return BulkSettings(
        str(model.absolute()),
        model_digest(model),
        loading,
        other_options,
        glossary.terms if isinstance(glossary, Glossary) else None,
        None if sampling is None else asdict(sampling),
        n_best,
        prefix,
        output,
    )


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are translated together."""

    number: int  # counted from 0
    first_line: int  # the number of the block's first line in the file, counted from 1
    texts: Sequence[str]
    job: int = 0  # the index of the job that the block belongs to

    def __str__(self) -> str:
        return f"lines {self.first_line:,} to {self.first_line + len(self.texts) - 1:,}"


def blocks(texts: Iterable[str]) -> Iterator[Block]:
    """Yield the blocks of a stream. If reading a line fails, the lines before it are yielded first."""
    source, first_line = iter(texts), 1
    for number, size in enumerate(block_sizes()):
        block, error = read_ahead(source, size)
        if block:
            yield Block(number, first_line, block)
        first_line += len(block)
        if error is not None:
            raise error
        if not block:
            return


@dataclass(frozen=True, slots=True)
class Part:
    """The output for a block, the notes on its translations, and counts."""

    output: bytes
    lines: int
    notes: list[tuple[int, str]]  # (index of the line in the block, note)
    num_notes: int
    num_below_n_best: int  # lines with fewer than n_best translations

    @classmethod
    def of_translations(cls, translations: Sequence[Translation], settings: BulkSettings) -> Part:
        notes = [(i, note) for i, translation in enumerate(translations) for note in translation.notes]
        num_below_n_best = sum(
            bool(translation.source.strip()) and 1 + len(translation.alternatives) < settings.n_best
            for translation in translations
        )
        output = "".join(f"{_output_line(translation, settings.output)}\n" for translation in translations)
        data = output.encode("utf-8", "surrogateescape")
        return cls(data, len(translations), notes[:MAX_PART_NOTES], len(notes), num_below_n_best)

    def to_bytes(self) -> bytes:
        header = {
            "lines": self.lines,
            "notes": self.notes,
            "num_notes": self.num_notes,
            "num_below_n_best": self.num_below_n_best,
            "sha256": hashlib.sha256(self.output).hexdigest(),
        }
        return json.dumps(header, ensure_ascii=True).encode() + b"\n" + self.output

    @classmethod
    def from_bytes(cls, data: bytes) -> Part:
        """Parse the bytes of a part. Raise a StorageError if they are incomplete or damaged."""
        header, _, output = data.partition(b"\n")
        try:
            fields = json.loads(header)
            is_whole = fields.pop("sha256") == hashlib.sha256(output).hexdigest()
            notes = [(int(i), str(note)) for i, note in fields.pop("notes")]
            part = cls(output=output, notes=notes, **fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            is_whole = False
        if not is_whole:
            raise StorageError("A part is damaged. Run the same command again.")
        return part


def _output_line(translation: Translation, output: str) -> str:
    match output:
        case "text":
            return translation.as_line()
        case "string":
            return json.dumps(translation.text, ensure_ascii=False)
        case _:
            return translation.as_json(align=output == "json with alignment")


def _is_old(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - MIN_LEFTOVER_SECONDS
    except FileNotFoundError:  # another process has renamed the finished file, or removed it
        return False


class PartFolder:
    """The folder with the parts of one output file. It is beside the output file: `out.txt.parts`."""

    def __init__(self, out: Path) -> None:
        self.path = out.with_name(f"{out.name}.parts")

    def write(self, key: str, part: Part) -> None:
        with disk_errors(self.path, "Existing parts are kept."):
            make_folder(self.path)
        write_file(self._file(key), part.to_bytes(), failure_note="Existing parts are kept.")

    def read(self, key: str) -> Part | None:
        """Return a part, or None if the part is missing or damaged. Its block is then translated again."""
        try:
            return Part.from_bytes(read_regular_file(self._file(key), max_bytes=MAX_PART_BYTES))
        except JumokError:
            return None

    def record_joined(self, sha256: str, settings: BulkSettings) -> None:
        """Store `sha256`, which is that of the joined output, and a digest of the settings."""
        record = {"sha256": sha256, "settings": settings.key(())}
        with disk_errors(self.path, "The output is complete."):
            make_folder(self.path)
        write_file(self.path / JOINED, json_with_checksum(record), failure_note="The output is complete.")

    def has_joined(self, out: Path, settings: BulkSettings) -> bool:
        """Whether `out` still has the bytes that were joined with these settings.

        The input is not checked: it may have changed since then.
        """
        try:
            record = read_json_with_checksum(self.path / JOINED)
            with out.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except (JumokError, OSError):
            return False
        return record == {"sha256": sha256, "settings": settings.key(())}

    def remove_all_except(self, keys: set[str]) -> None:
        """Remove parts of other inputs, models and options, and old half-written files."""
        with disk_errors(self.path, "The output is complete."):
            for path in self.path.iterdir():
                is_other = _PART_NAME.fullmatch(path.name) is not None and path.stem not in keys
                if is_other or (is_leftover(path.name) and _is_old(path)):
                    path.unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self.path / f"{key}{SUFFIX}"
