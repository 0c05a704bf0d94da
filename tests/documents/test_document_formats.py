"""Files: text, subtitles, pages and catalogues come back as what they were."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from itertools import accumulate

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
TIME = "00:00:01,000 --> 00:00:02,500\n"
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


def backwards(document: Document) -> str:
    """Every text in capitals, its words from last to first."""
    translated, links = [], []
    for text in document.texts:
        words = word_spans(text)[::-1]
        ends = list(accumulate(1 + end - start for start, end in words))
        places = [(end - 1 - (right - left), end - 1) for end, (left, right) in zip(ends, words, strict=True)]
        translated.append(" ".join(text[start:end].upper() for start, end in words))
        links.append(list(zip(words, places, strict=True)))
    return document.write(translated, links)


def cue(text: str) -> Document:
    return read_document("a.srt", f"1\n{TIME}{text}\n".encode())[1]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        (r"{\an8}Where is he?", ["Where is he?"], r"{\an8}? HE IS WHERE"),
        (r"{\an8}<i>Where is he?</i>", ["Where is he?"], r"{\an8}<i>? HE IS WHERE</i>"),
        (r"<i>{\an8}Where is he?</i>", ["Where is he?"], r"<i>{\an8}? HE IS WHERE</i>"),
        (r"{\pos(192,230)}STATION", ["STATION"], r"{\pos(192,230)}STATION"),
        (r"{\fad(200,200)\an8}Ten years later", ["Ten years later"], r"{\fad(200,200)\an8}LATER YEARS TEN"),
        (r"I {\i1}really{\i0} like it.", ["I really like it."], r". IT LIKE {\i1}REALLY{\i0} I"),
        ("I {b}really{/b} like it.", ["I really like it."], ". IT LIKE {b}REALLY{/b} I"),
        ("{y:i}Come here", ["Come here"], "{y:i}HERE COME"),
        ("{laughs} here", ["{laughs} here"], "HERE } LAUGHS {"),
        (
            '<font color="#ffff00">JOHN:</font> Come',
            ["JOHN: Come"],
            'COME <font color="#ffff00">: JOHN</font>',
        ),
        ("<b>one <i>two</i></b> three", ["one two three"], "THREE <b><i>TWO</i> ONE</b>"),
        ("<c.yellow>Come</c> here", ["Come here"], "HERE <c.yellow>COME</c>"),
        ("<laughs> Come here", ["Come here"], "<laughs> HERE COME"),
        ("<00:00:19.039>Come <00:00:20.039>here", ["Come here"], "<00:00:19.039><00:00:20.039>HERE COME"),
        (r"{\an8}", [], r"{\an8}"),
        (r"{\an8", [r"{\an8"], r"AN8 \ {"),
        ("I <3 you", ["I <3 you"], "YOU 3 < I"),
    ],
)
def test_what_tells_players_how_to_show_a_subtitle_is_no_text(
    text: str, said: list[str], expected: str
) -> None:
    document = cue(text)
    assert document.texts == said
    assert shout(document) == f"1\n{TIME}{''.join(_shouted(text))}\n"
    assert backwards(document) == f"1\n{TIME}{expected}\n"


def _shouted(text: str) -> list[str]:
    """In capitals, save what stands in tags."""
    kept = r"(<[^<>]*>|\{\\[^{}]*\}|\{/?b\}|\{y:i\})"
    return [part if re.fullmatch(kept, part) else part.upper() for part in re.split(kept, text)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- Where is he?\n- At home.", ["Where is he?", "At home."]),
        ("-Where is he?\n-At home.", ["Where is he?", "At home."]),
        ("– Where\n– At home", ["Where", "At home"]),
        ("Where is he?\n- At home.", ["Where is he?", "At home."]),
        ("- Where\nis he?\n<i>- At\nhome.</i>", ["Where is he?", "At home."]),
        ("- <b>Where</b> is he?\n- <i>At</i> home.", ["Where is he?", "At home."]),
        ("{\\an8}- Where is he?\n- At home.", ["Where is he?", "At home."]),
        ("♪ I walk the line ♪\n♪ Because you are ♪", ["I walk the line ", "Because you are "]),
        ("I thought\n- no, I knew -\nthat it", ["I thought - no, I knew - that it"]),
        ("It is -5 by day.\n-10 at night.", ["It is -5 by day. -10 at night."]),
        ("Come\n-", ["Come -"]),
    ],
)
def test_each_speaker_of_a_subtitle_is_translated_alone(text: str, said: list[str]) -> None:
    document = cue(text)
    assert document.texts == said
    lines = shout(document).splitlines()[2:]
    shouted = "".join(_shouted(text)).splitlines()
    assert len(said) == 1 or [line.split()[0] for line in lines] == [line.split()[0] for line in shouted]
    assert " ".join(lines).split() == " ".join(shouted).split()


@pytest.mark.parametrize(("begin", "end"), [("<i>", "</i>"), (r"{\i1}", r"{\i0}")])
def test_what_two_speakers_stand_in_stands_around_each(begin: str, end: str) -> None:
    assert backwards(cue(f"{begin}- I go.\n- You stay.{end}")) == (
        f"1\n{TIME}{begin}- . GO I{end}\n{begin}- . STAY YOU{end}\n"
    )


def test_lines_of_a_subtitle_are_as_long_as_they_are_seen() -> None:
    colour = '<font color="#ffffff" face="a very long name">'
    assert shout(cue(f"{colour}one</font> two\nthree four")).splitlines()[2:] == [
        f"{colour}ONE</font> TWO",
        "THREE FOUR",
    ]
    assert shout(cue("one two<br>three four")).splitlines()[2:] == ["ONE TWO", "THREE FOUR"]


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
        ("a.srt", TIME, "a ", "\nb"),
        ("a.srt", TIME, "{\\i1}", "\nb"),
        ("a.srt", TIME, "{\\", "\nb"),
        ("a.srt", TIME, "<x>- a.\n", "</x>"),
        ("a.srt", TIME, "<x></x>", "b"),
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


@pytest.mark.parametrize("unit", ["<b>", "<p>", "<!>", "<br>a", "&#1;", "<", "\n", "\r", "a&b<i>\n", "{\\"])
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
