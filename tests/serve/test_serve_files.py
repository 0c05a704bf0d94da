"""Files: text, subtitles, pages and catalogues come back as what they were."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from jumok.errors import DataError
from jumok.serve.faults import Fault
from jumok.serve.files import Document, read_document
from jumok.serve.limits import Limits
from jumok.serve.shelf import Shelf
from jumok.text import word_spans

SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
The <i>old</i> man & the
sea are calm.

2
00:00:03,000 --> 00:00:04,000
I <3 you.
"""
CATALOGUE = r"""# A header
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
msgctxt "menu"
msgid "Open \"it\"\n"
msgstr ""

msgid "done"
msgstr "fertig"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
"""


def shout(document: Document) -> str:
    """Every text in capitals, word for word."""
    links = [[(span, span) for span in word_spans(text)] for text in document.texts]
    return document.write([text.upper() for text in document.texts], links)


def test_plain_text_is_one_text() -> None:
    suffix, document = read_document("a.TXT", "\ufeffone\r\ntwo\n".encode())
    assert (suffix, document.texts) == (".txt", ["one\r\ntwo\n"])
    assert read_document("README", b"one")[0] == ".txt"


def test_subtitles_keep_numbers_times_tags_and_the_count_of_lines() -> None:
    _, document = read_document("a.srt", SUBTITLES.encode())
    assert document.texts == ["The old man & the sea are calm.", "I <3 you."]
    lines = shout(document).splitlines()
    assert lines[:2] == SUBTITLES.splitlines()[:2]
    assert " ".join(lines[2:4]) == "THE <i>OLD</i> MAN & THE SEA ARE CALM."
    assert lines[4:] == ["", "2", "00:00:03,000 --> 00:00:04,000", "I <3 YOU."]


@pytest.mark.parametrize("between", ["\n", "\n\n", "\n \n\n"])
def test_catalogues_fill_what_is_empty_and_nothing_else(between: str) -> None:
    """However many empty lines stand between their entries, or none."""
    catalogue = CATALOGUE.replace("\n\n", between)
    _, document = read_document("de.po", catalogue.encode())
    assert document.texts == ['Open "it"\n', "%d file", "%d files"]
    expected = catalogue.replace(
        '"Open \\"it\\"\\n"\nmsgstr ""', '"Open \\"it\\"\\n"\nmsgstr "OPEN \\"IT\\"\\n"'
    )
    expected = expected.replace('#, c-format\nmsgid "%d file"', '#, c-format\n#, fuzzy\nmsgid "%d file"')
    expected = expected.replace('msgstr[0] ""', 'msgstr[0] "%D FILE"').replace(
        'msgstr[1] ""', 'msgstr[1] "%D FILES"'
    )
    assert shout(document) == expected


def test_a_language_with_one_form_takes_the_plural() -> None:
    """As Korean: what is said of one file would be said of all numbers of files."""
    catalogue = 'msgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    _, document = read_document("ko.po", catalogue.encode())
    assert document.write(["%d 파일"], [[]]) == catalogue.replace('msgstr[0] ""', 'msgstr[0] "%d 파일"')


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "one\n\ntwo\n"),
        ("a.srt", SUBTITLES),
        ("a.po", CATALOGUE),
        ("a.html", "<p>one</p>\n<p>two</p>\n"),
    ],
)
def test_line_ends_and_a_byte_order_mark_stay_as_they_were(
    name: str, text: str, line_end: str, begin: str
) -> None:
    _, plain = read_document(name, text.encode())
    _, document = read_document(name, (begin + text.replace("\n", line_end)).encode())
    assert shout(document) == begin + shout(plain).replace("\n", line_end)
    assert begin not in document.texts[0] or not begin


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<meta charset="{}"><p>one</p>'),
        ("a.html", "<meta http-equiv='Content-Type' content='text/html; charset={}'><p>one</p>"),
        ("a.po", 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\nmsgid "a"\nmsgstr "b"\n'),
    ],
)
def test_what_comes_back_says_that_it_is_utf_8(name: str, text: str) -> None:
    for encoding in ("iso-8859-1", "CHARSET", "UTF-8"):
        _, document = read_document(name, text.format(encoding).encode())
        assert shout(document) == text.format("UTF-8").replace("one", "ONE")


def test_pages_keep_their_tags() -> None:
    _, document = read_document("a.htm", b"<h1>one</h1>\n<p>two <b>three</b></p>")
    assert shout(document) == "<h1>ONE</h1>\n<p>TWO <b>THREE</b></p>"


@pytest.mark.parametrize(
    ("name", "begin", "unit", "end"),
    [
        ("a.srt", "00:00:01,000 --> 00:00:02,500\n", "a ", "\nb"),
        ("a.po", 'msgid "%', "0", '"\nmsgstr ""\n'),
        ("a.html", "", "<meta ", ""),
        ("a.html", "<meta ", "charset=", ""),
        ("a.po", "", '"Content-Type:', ""),
    ],
)
def test_hostile_files_cost_little(name: str, begin: str, unit: str, end: str) -> None:
    """Four times as much costs about four times as much, not sixteen times."""

    def cost(characters: int) -> float:
        data = (begin + unit * (characters // len(unit)) + end).encode()
        started = time.process_time()
        shout(read_document(name, data)[1])
        return time.process_time() - started

    few, many = cost(10_000), cost(40_000)
    assert many < 8 * few + 0.2


@pytest.mark.parametrize("unit", ["<b>", "<p>", "<!>", "<br>a", "&#1;", "<", "\n", "\r", "a&b<i>\n"])
@pytest.mark.parametrize("name", ["a.html", "a.srt", "a.po"])
def test_a_file_full_of_marks_is_refused_or_costs_little(name: str, unit: str) -> None:
    started = time.process_time()
    with suppress(Fault):
        read_document(name, unit.encode() * (2**20 // len(unit)), most_marks=1_000)
    assert time.process_time() - started < 0.3


def test_only_a_line_break_ends_a_line() -> None:
    """And none of the other characters that Unicode counts among them."""
    _, catalogue = read_document("a.po", 'msgid "one\u2028two\x0b"\nmsgstr ""\n'.encode())
    assert catalogue.texts == ["one\u2028two\x0b"]
    _, subtitles = read_document("a.srt", "0:00:01,0 --> 0\r\none\x85two\r\rx\r".encode())
    assert shout(subtitles) == "0:00:01,0 --> 0\r\nONE TWO\r\n\r\nx\r\n"


@pytest.mark.parametrize(("name", "words"), [("a.pdf", "Known types"), ("a", "not UTF-8")])
def test_what_cannot_be_read_is_told(name: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_document(name, b"\xff")


def test_the_shelf_has_an_end_in_number_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("jumok.serve.shelf.time.monotonic", lambda: now[0])
    shelf = Shelf(Limits(kept_files=3, kept_file_bytes=100, kept_file_seconds=10))
    names = [shelf.put(b"x" * 10, ".txt") for _ in range(4)]
    assert [shelf.get(name) is not None for name in names] == [False, True, True, True]
    large = shelf.put(b"x" * 85, ".txt")
    assert [shelf.get(name) is not None for name in [*names, large]] == [False, False, False, True, True]
    now[0] = 11
    assert shelf.get(large) is None
