"""Malicious and damaged files are refused, or cost little time and memory."""

from __future__ import annotations

import random
import time
import tracemalloc
import zipfile
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from jumok.documents.document import SegmentTranslation
from jumok.documents.registry import DocumentTooLargeError, read_document
from jumok.documents.xml_reader import MAX_PARAGRAPH_DEPTH
from jumok.errors import DataError
from support.office_files import (
    make_docx,
    make_epub,
    make_opendocument,
    make_zip,
    parts_of,
    run,
    shout,
    word_part,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# "Billion laughs": every entity is ten times the previous one.
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + "]><resources><string>&i;</string></resources>"
)
EXTERNAL = (
    '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><resources><string>a &a;</string></resources>'
)


FIELD_LINK = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
)


def xml_with_spaces(size: int) -> bytes:
    return b"<a>" + b" " * size + b"</a>"


def many_parts() -> bytes:
    output = BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for number in range(20_001):  # more than MAX_DIRECTORY_BYTES allows
            archive.writestr(f"word/header{number}.xml", b"")
    return output.getvalue()


def zip_of(name: str, data: bytes) -> bytes:
    output = BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(name, data)
    return output.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "xml.docx": lambda: zip_of("word/document.xml", xml_with_spaces(60 * 2**20)),
    "picture.docx": lambda: zip_of("word/media/a.png", bytes(60 * 2**20)),
    "parts.docx": many_parts,
    "laughs.xml": LAUGHS.encode,
    "laughs.docx": lambda: zip_of("word/document.xml", LAUGHS.encode()),
    "external.xml": EXTERNAL.encode,
    "deep.xml": lambda: b"<a>" * 2_000 + b"</a>" * 2_000,
    "deep.docx": lambda: make_docx("<w:p>" + "<w:ins>" * 300 + "</w:ins>" * 300 + "</w:p>"),
    "deep.json": lambda: b'{"a":' * 200_000,
}


@pytest.mark.medium
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_time_and_memory(name: str) -> None:
    data = BOMBS[name]()
    started = time.process_time()
    with pytest.raises(DataError) as refusal:
        read_document(name, data)
    assert time.process_time() - started < 1
    assert "etc/hostname" not in str(refusal.value)
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            read_document(name, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 2**20


def test_a_declared_size_that_is_too_small_is_not_exceeded() -> None:
    """The directory of the zip declares ten bytes for a part that would inflate to a megabyte."""
    data = zip_of("word/document.xml", xml_with_spaces(2**20))
    size = (2**20 + len("<a></a>")).to_bytes(4, "little")
    with pytest.raises(DataError, match="damaged"):
        read_document("a.docx", data.replace(size, (10).to_bytes(4, "little")))


@pytest.mark.parametrize(
    ("unit", "end"),
    [
        ('<w:r><w:fldChar w:fldCharType="begin"/></w:r>', ""),
        (FIELD_LINK, '<w:r><w:fldChar w:fldCharType="end"/></w:r>'),
        ('<w:r><w:fldChar w:fldCharType="end"/></w:r>', ""),
        ("<w:ins>", "</w:ins>"),
    ],
)
def test_hostile_paragraphs_cost_linear_time(unit: str, end: str) -> None:
    def cost(count: int) -> float:
        count = min(count, 150) if unit == "<w:ins>" else count  # deeper nesting is refused
        data = make_docx(f"<w:p>{unit * count}{run('one')}{end * count}</w:p>")
        started = time.process_time()
        shout(read_document("a.docx", data)[1])
        return time.process_time() - started

    # The minimum is the run that other processes disturbed least.
    small, large = (min(cost(count) for _ in range(3)) for count in (1_000, 4_000))
    assert large < 8 * small + 0.2


def test_the_tags_of_an_archive_are_counted_before_they_are_parsed() -> None:
    data = make_docx("<w:p/>" * 5_000)
    with pytest.raises(DocumentTooLargeError, match=r"has 5,00\d tags"):  # 5,000 in the body
        read_document("a.docx", data, max_syntax_characters=1_000)
    assert read_document("a.docx", data, max_syntax_characters=10_000)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.docx", b"PK\x03\x04 not really", "no zip archive"),
        ("a.docx", b"", "no zip archive"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "password"),
        ("a.docx", make_zip({"a": "b"}), r"no part \[Content_Types\].xml"),
        ("a.odt", make_zip({"a": "b"}), "no part mimetype"),
        ("a.epub", make_zip({"a": "b"}), "no part META-INF/container.xml"),
        ("a.xml", b"<resources><string>a</resources>", "not well-formed XML: mismatched tag, line 1"),
        ("a.xlf", b"\xff\xfe<", "not UTF-16"),
    ],
)
def test_a_damaged_file_is_refused_with_a_reason(name: str, data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_document(name, data)


def test_damaged_archives_raise_no_error_other_than_data_error() -> None:
    generator = random.Random(5)
    for name, data in (
        ("a.docx", make_docx(f"<w:p>{run('one two')}</w:p>")),
        ("a.odt", make_opendocument("<text:p>one</text:p>")),
    ):
        for _ in range(150):
            damaged = bytearray(data)
            for _ in range(generator.randint(1, 4)):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            with suppress(DataError):
                shout(read_document(name, bytes(damaged))[1])


@pytest.mark.parametrize(
    ("name", "begin", "unit", "end"),
    [
        ("a.md", "", "*a ", ""),
        ("a.md", "", "[", ""),
        ("a.md", "", "`a ", ""),
        ("a.md", "", "> ", ""),
        ("a.md", "", "<!--", ""),
        ("a.md", "", "a|", "\n--|--"),
        ("a.md", "", "![", ""),
        ("a.md", "", "a" + " " * 50, ""),
        ("a.yml", "a: ", " x#", ""),
        ("a.yml", "a: ", "'' ", ""),
        ("a.yml", "", "- ", "a"),
        ("a.json", '{"a": "', "{a, plural, ", '"}'),
        ("a.json", '{"a": "', "{n, plural, one {", '"}'),
        ("a.json", '{"a": "', "<b>", '"}'),
        ("a.json", '{"a": "', "%(", '"}'),
        ("a.strings", "", "/* ", ""),
        ("a.strings", '"a" = "', "\\\\", '";'),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n", "<c.", "\n"),
        ("a.xml", "<resources><string>", "&amp;", "</string></resources>"),
        ("a.xml", "<resources><string>", '\\"', "</string></resources>"),
        ("a.xlf", "<xliff><trans-unit><source>", '<bpt id="1"/>', "a</source></trans-unit></xliff>"),
    ],
)
@pytest.mark.medium
@pytest.mark.no_cover
def test_hostile_files_cost_linear_time(name: str, begin: str, unit: str, end: str) -> None:
    """Four times the size costs about four times the time, not sixteen times."""

    def cost(characters: int) -> float:
        data = (begin + unit * (characters // len(unit)) + end).encode()
        started = time.process_time()
        with suppress(DataError):
            shout(read_document(name, data)[1])
        return time.process_time() - started

    # The minimum is the run that other processes disturbed least.
    small, large = (min(cost(size) for _ in range(2)) for size in (5_000, 20_000))
    assert large < 8 * small + 0.2


def test_a_number_that_python_cannot_read_is_refused() -> None:
    with pytest.raises(DataError, match="thousands of digits"):
        read_document("a.json", b'{"a": ' + b"1" * 5_000 + b"}")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("unicode_escape", "\\ud800"),
        ("raw_unicode_escape", "\\ud800"),
        ("utf-7", "+2AA-"),
        ("idna", "a"),
        ("punycode", "a-"),
        ("undefined", "a"),
        ("no-such-encoding", "a"),
    ],
)
def test_an_encoding_that_is_no_encoding_of_xml_is_refused(encoding: str, text: str) -> None:
    """Python can decode most of these, but the text has lone surrogates or cannot be encoded again."""
    data = f'<?xml version="1.0" encoding="{encoding}"?><resources><string>{text}</string></resources>'
    with pytest.raises(DataError, match=f"declares the encoding {encoding}"):
        read_document("a.xml", data.encode())


def test_numbers_of_thousands_of_digits_in_archives_are_read() -> None:
    spaces = f'<text:p>one<text:s text:c="{"9" * 5_000}"/>two</text:p>'
    assert read_document("a.odt", make_opendocument(spaces))[1].segments == [f"one{' ' * 1_000}two"]
    parts = parts_of(make_docx(f"<w:p>{run('one')}</w:p>")) | {f"word/a{'9' * 5_000}.xml": b"<a/>"}
    assert read_document("a.docx", make_zip(parts))[1].segments == ["one"]


def test_a_wrong_offset_and_a_wrong_name_in_an_archive_are_refused() -> None:
    data = make_docx(f"<w:p>{run('one')}</w:p>")
    end = data.rindex(b"PK\5\6")
    offset = int.from_bytes(data[end + 16 : end + 20], "little")  # of the directory of the zip
    too_large = data[: end + 16] + (offset + 10_000).to_bytes(4, "little") + data[end + 20 :]
    name = b"word/document.xml"
    # Flags say that the names are UTF-8. The name in the header of the part is not.
    header, entry = data.index(name) - 30, data.rindex(name) - 46
    not_utf_8 = bytearray(data)
    not_utf_8[header + 7] = not_utf_8[entry + 9] = 8
    not_utf_8[header + 30] = 0xFF
    for damaged in (too_large, bytes(not_utf_8)):
        with pytest.raises(DataError, match="damaged"):
            read_document("a.docx", damaged)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_office_programs_do_not_use_is_refused(method: int) -> None:
    """1,000 bytes of bzip2 can inflate to 16 MB. Compressing these 16 MB again would take seconds."""
    output = BytesIO()
    with zipfile.ZipFile(output, "w", method) as archive:
        archive.writestr("word/document.xml", "<a/>")
    with pytest.raises(DataError, match="compressed in a way that office programs do not use"):
        read_document("a.docx", output.getvalue())


def test_the_compressed_data_of_parts_without_text_is_copied() -> None:
    """The limits allow 63 parts of 16 MB. To compress these again would take a minute."""
    big = bytes(2**20)
    output = BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", word_part("document", f"<w:p>{run('hello')}</w:p>"))
        archive.writestr("word/media/big.bin", big)
        archive.writestr(zipfile.ZipInfo("word/media/stored.bin"), b"stored")
    data = output.getvalue()
    document = read_document("a.docx", data)[1]
    written = document.write([SegmentTranslation(text.upper()) for text in document.segments])
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(BytesIO(written)) as new:
        assert new.testzip() is None
        assert new.read("word/media/big.bin") == big
        assert b"HELLO" in new.read("word/document.xml")
        before, after = (archive.getinfo("word/media/big.bin") for archive in (old, new))
        # The default level of zipfile would make the part smaller.
        assert before.compress_size == after.compress_size
        assert new.namelist() == old.namelist()


def test_parts_that_overlap_are_refused() -> None:
    output = BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        archive.writestr("word/document.xml", "<a/>" + " " * 1_000)
    data = output.getvalue()
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")  # the zip's directory, and the record after it
    entry = data[start:end]
    entries = entry + entry.replace(b"document", b"footnote") + entry.replace(b"document", b"endnotes")
    tail = bytearray(data[end:])
    tail[8:10] = tail[10:12] = (3).to_bytes(2, "little")  # the number of entries
    tail[12:16] = len(entries).to_bytes(4, "little")  # the size of the directory
    with pytest.raises(DataError, match="its parts overlap"):
        read_document("a.docx", data[:start] + entries + bytes(tail))


def test_a_page_of_many_levels_takes_little_memory() -> None:
    """In an earlier version, each element of a page stored a copy of everything inside the element."""
    page = "<div>" * 150 + " " * 2**20 + "</div>" * 150
    data = make_epub(f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{page}</body></html>")
    tracemalloc.start()
    try:
        read_document("a.epub", data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * 2**20


def test_the_depth_of_nested_paragraphs_is_limited() -> None:
    depth = 2 * MAX_PARAGRAPH_DEPTH + 2  # only every second of these <w:p> counts as a paragraph
    nested = "<w:p>" * depth + run("a") + "</w:p>" * depth
    with pytest.raises(DataError, match=f"nested more than {MAX_PARAGRAPH_DEPTH} deep"):
        read_document("a.docx", make_docx(nested))


@pytest.mark.parametrize("name", ["a.docx", "a.epub", "a.txt"])
def test_the_uncompressed_size_of_the_parsed_text_is_limited(name: str) -> None:
    space = " " * (2**20 + 1)
    data = {
        "a.docx": make_docx(f"<w:p>{space}</w:p>"),
        "a.epub": make_epub(f"<html xmlns='http://www.w3.org/1999/xhtml'>{space}</html>"),
        "a.txt": space.encode(),
    }[name]
    with pytest.raises(DocumentTooLargeError, match="more than 1 MB without compression"):
        read_document(name, data, max_parsed_bytes=2**20)
    read_document(name, data, max_parsed_bytes=2**21)  # raises no error
