"""Documents that are zip archives of XML files: only the parts that hold text are read and replaced.

Every other part is copied. Sizes are checked in the directory of the archive, before anything is inflated.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jumok.documents.xml_reader import remove_invalid_characters
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.text_document import TextTemplate

MAX_DIRECTORY_BYTES = 2**20
"""Limit of the archive's directory, which has about a hundred bytes per part (10,000 parts)."""
MAX_PART_BYTES = 128 * 2**20
MAX_TOTAL_BYTES = 2**30
MAX_RATIO = 200
"""A part of more than MAX_SAFE_BYTES may inflate to at most this many times its compressed size. XML of
office programs inflates to 5 to 50 times its size, a zip bomb to a thousand times."""
MAX_SAFE_BYTES = 16 * 2**20
_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0"


class SetLanguage(Protocol):
    """Returns the part `name` with the language declared, or unchanged if this part declares none."""

    def __call__(self, name: str, data: bytes, language: str) -> bytes: ...


class PartWithText(Protocol):
    """A part with segments; it may be an archive itself."""

    @property
    def segments(self) -> list[str]: ...

    def write(self, translations: Sequence[SegmentTranslation]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """A part with text: its template, and how its text is encoded."""

    template: TextTemplate
    encoding: str = "utf-8"

    @property
    def segments(self) -> list[str]:
        return self.template.segments

    def write(self, translations: Sequence[SegmentTranslation]) -> bytes:
        text = remove_invalid_characters(self.template.fill(translations))
        return text.encode(self.encoding, "xmlcharrefreplace")


@dataclass(frozen=True, slots=True)
class ZipDocument:
    """An archive, and those of its parts that have segments, by name."""

    data: bytes
    parts: Mapping[str, PartWithText]
    set_language: SetLanguage | None = None
    notes: Sequence[str] = ()

    @property
    def segments(self) -> list[str]:
        return [text for part in self.parts.values() for text in part.segments]

    def write(
        self, translations: Sequence[SegmentTranslation], language: str = "", source_language: str = ""
    ) -> bytes:
        filled = self._fill(translations)
        changed = False
        output = io.BytesIO()
        with open_archive(self.data) as archive, zipfile.ZipFile(output, "w") as written:
            written.comment = archive.comment
            for info in archive.infolist():
                original = read_part(archive, info.filename)
                data = filled.get(info.filename, original)
                if language and self.set_language is not None:
                    data = self.set_language(info.filename, data, language)
                changed = changed or data != original
                written.writestr(info, data, compress_type=info.compress_type)
        return output.getvalue() if changed else self.data

    def _fill(self, translations: Sequence[SegmentTranslation]) -> dict[str, bytes]:
        filled = {}
        start = 0
        for name, part in self.parts.items():
            end = start + len(part.segments)
            filled[name] = part.write(translations[start:end])
            start = end
        return filled


def open_archive(data: bytes) -> zipfile.ZipFile:
    """Open an archive whose parts are not too many, too large or encrypted."""
    if data.startswith(_OLE_SIGNATURE):
        raise DataError(
            "The file is protected by a password, or in the format of Office 97. Open it, save it without a "
            "password in the current format, and try again."
        )
    _check_directory(data)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"The file is damaged: it is no zip archive ({error}).") from None
    infos = archive.infolist()
    if sum(info.file_size for info in infos) > MAX_TOTAL_BYTES:
        raise DataError(f"The archive would inflate to more than {MAX_TOTAL_BYTES // 2**20:,} MB.")
    if len({info.filename for info in infos}) < len(infos):
        raise DataError("The archive is damaged: it has two parts of the same name.")
    for info in infos:
        _check_part(info)
    return archive


def _check_directory(data: bytes) -> None:
    """Refuse a large directory, by the size that the archive's last record gives, and ZIP64."""
    end = data.rfind(b"PK\5\6")
    num_bytes = int.from_bytes(data[end + 12 : end + 16], "little") if end >= 0 else 0
    is_zip64 = end >= 20 and data.startswith(b"PK\6\7", end - 20)
    if num_bytes > MAX_DIRECTORY_BYTES or is_zip64:
        raise DataError(
            "The archive has more parts than any document, or is in the ZIP64 format. It is not read."
        )


def _check_part(info: zipfile.ZipInfo) -> None:
    if info.flag_bits & 1:
        raise DataError("The archive is encrypted. Save it without a password and try again.")
    is_suspicious = info.file_size > max(MAX_SAFE_BYTES, MAX_RATIO * info.compress_size)
    if info.file_size > MAX_PART_BYTES or is_suspicious:
        raise DataError(
            f"The part {info.filename[:60]} would inflate from {info.compress_size:,} to {info.file_size:,} "
            "bytes. No real document does; it is not read."
        )


def read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Inflate one part; the size that the directory declares is not exceeded."""
    try:
        return archive.read(name)
    except KeyError:
        raise DataError(f"The file is damaged: the archive has no part {name[:60]}.") from None
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, OSError, EOFError) as error:
        raise DataError(f"The file is damaged: the part {name[:60]} cannot be inflated ({error}).") from None


def unpack_parts(data: bytes, has_text: Callable[[str], bool]) -> Iterator[bytes]:
    """Yield the parts that are parsed."""
    with open_archive(data) as archive:
        for name in archive.namelist():
            if has_text(name):
                yield read_part(archive, name)
