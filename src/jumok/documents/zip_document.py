"""Documents that are zip archives of XML files: parts with text, or with a declared language, are replaced.

Every other part is copied in its compressed form. The sizes of the parts are read from the directory of the
archive and checked before any part is inflated.
"""

from __future__ import annotations

import copy
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from jumok.documents.xml_reader import remove_invalid_characters
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.text_document import TextTemplate

MAX_DIRECTORY_BYTES = 2**20
"""Maximum size of the archive's directory. A part takes about a hundred bytes, so the limit allows about
10,000 parts."""
MAX_PART_BYTES = 128 * 2**20
MAX_TOTAL_BYTES = 2**30
"""Maximum sizes of one part and of all parts together, without compression."""
MAX_RATIO = 200
"""A part of more than MAX_SAFE_BYTES may inflate to at most this many times its compressed size. XML of
office programs inflates to 5 to 50 times its size. A zip bomb inflates to a thousand times its size."""
MAX_SAFE_BYTES = 16 * 2**20
_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0"


class LanguageSetter(Protocol):
    """Returns the data of a part with the language declared."""

    def __call__(self, data: bytes, language: str) -> bytes: ...


class PartWithText(Protocol):
    """A part with segments. The part may be an archive."""

    @property
    def segments(self) -> list[str]: ...

    def write(self, translations: Sequence[SegmentTranslation]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ArchivePart:
    """A part with text: its template, and the encoding of its text."""

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
    """An archive, and its parts with segments by their names."""

    data: bytes
    parts: Mapping[str, PartWithText]
    language_setter: Callable[[str], LanguageSetter | None] | None = None
    """Takes the name of a part. Returns the function that sets the language of the part, or None if the part
    declares no language."""
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
        with open_archive(self.data) as archive, zipfile.ZipFile(output, "w") as new_archive:
            new_archive.comment = archive.comment
            for info in archive.infolist():
                data = self._new_part(archive, info.filename, filled, language)
                if data is None:
                    _copy_part(self.data, info, new_archive)
                else:
                    changed = True
                    new_archive.writestr(info, data, compress_type=info.compress_type)
        return output.getvalue() if changed else self.data

    def _new_part(
        self, archive: zipfile.ZipFile, name: str, filled: Mapping[str, bytes], language: str
    ) -> bytes | None:
        """Return the new data of a part, or None if the part does not change.

        A part is inflated only if it may change.
        """
        setter_of_part = self.language_setter
        set_language = setter_of_part(name) if language and setter_of_part is not None else None
        if name not in filled and set_language is None:
            return None
        original = read_part(archive, name)
        data = filled.get(name, original)
        if set_language is not None:
            data = set_language(data, language)
        return None if data == original else data

    def _fill(self, translations: Sequence[SegmentTranslation]) -> dict[str, bytes]:
        filled = {}
        start = 0
        for name, part in self.parts.items():
            end = start + len(part.segments)
            filled[name] = part.write(translations[start:end])
            start = end
        return filled


def _copy_part(data: bytes, info: zipfile.ZipInfo, new_archive: zipfile.ZipFile) -> None:
    """Copy the compressed data of a part. The name and the dates are taken from the archive's directory."""
    start = _data_start(data, info)
    new_info = copy.copy(info)
    # Bit 3 means that the sizes are in a descriptor after the data. Here they are in the header.
    new_info.flag_bits &= ~8
    output = cast("io.BytesIO", new_archive.fp)
    new_info.header_offset = output.tell()
    output.write(new_info.FileHeader(zip64=False))
    output.write(data[start : start + info.compress_size])
    new_archive.start_dir = output.tell()
    new_archive.filelist.append(new_info)
    new_archive.NameToInfo[new_info.filename] = new_info


def _data_start(data: bytes, info: zipfile.ZipInfo) -> int:
    """Return the offset of a part's data, which follows a header of 30 bytes, the name and an extra field."""
    header = data[info.header_offset : info.header_offset + 30]
    if not header.startswith(b"PK\3\4") or len(header) < 30:
        raise DataError(f"The file is damaged: the part {info.filename[:60]} has no header.")
    name_length, extra_length = struct.unpack("<2H", header[26:])
    return info.header_offset + 30 + int(name_length) + int(extra_length)


def open_archive(data: bytes) -> zipfile.ZipFile:
    """Open an archive. Raise an error if it has too many parts, or parts that are too large or encrypted."""
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
    if sum(info.compress_size for info in infos) > len(data):
        raise DataError("The archive is damaged: its parts overlap.")
    if len({info.filename for info in infos}) < len(infos):
        raise DataError("The archive is damaged: it has two parts of the same name.")
    for info in infos:
        _check_part(info)
    return archive


def _check_directory(data: bytes) -> None:
    """Raise an error if the archive is ZIP64, or if its directory is too large.

    The last record of the archive contains the size of the directory.
    """
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
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"The part {info.filename[:60]} is compressed in a way that office programs do not use. Save the "
            "file again in an office program."
        )
    is_suspicious = info.file_size > max(MAX_SAFE_BYTES, MAX_RATIO * info.compress_size)
    if info.file_size > MAX_PART_BYTES or is_suspicious:
        raise DataError(
            f"The part {info.filename[:60]} would inflate from {info.compress_size:,} to {info.file_size:,} "
            "bytes. No real document does; it is not read."
        )


def read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Inflate one part, up to the size that the directory declares."""
    try:
        return archive.read(name)
    except KeyError:
        raise DataError(f"The file is damaged: the archive has no part {name[:60]}.") from None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, EOFError, ValueError) as error:
        raise DataError(f"The file is damaged: the part {name[:60]} cannot be inflated ({error}).") from None


def unpack_parts(data: bytes, is_parsed: Callable[[str], bool]) -> Iterator[bytes]:
    """Yield the data of the parts for whose names `is_parsed` returns true."""
    with open_archive(data) as archive:
        for name in archive.namelist():
            if is_parsed(name):
                yield read_part(archive, name)
