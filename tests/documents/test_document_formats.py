"""Plain text, subtitles, HTML and PO catalogues are read, translated and written in the same format."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest

from jumok.documents.document import Document, SegmentTranslation
from jumok.documents.languages import east_asian_font, is_right_to_left
from jumok.documents.registry import DOCUMENT_FORMATS, DocumentTooLargeError, find_format, read_document
from jumok.errors import DataError
from jumok.text.words import word_spans

SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
The <i>old</i> man & the
sea are calm.

2
00:00:03,000 --> 00:00:04,000
I <3 you.
"""
TIME = "00:00:01,000 --> 00:00:02,500\n"
PO_FILE = r"""# A header
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
    """Return the document with every segment in capitals, aligned word for word."""
    translations = [
        SegmentTranslation(text.upper(), [(span, span) for span in word_spans(text)])
        for text in document.segments
    ]
    return document.write(translations).decode()


def test_a_format_is_found_by_each_of_its_suffixes() -> None:
    for document_format in DOCUMENT_FORMATS:
        for suffix in document_format.suffixes:
            assert find_format(f"dir.d/A{suffix.upper()}") is document_format
    suffixes = [suffix for document_format in DOCUMENT_FORMATS for suffix in document_format.suffixes]
    assert len(set(suffixes)) == len(suffixes)


def test_plain_text_is_one_segment() -> None:
    document_format, document = read_document("a.TXT", "\ufeffone\r\ntwo\n".encode())
    assert (document_format.suffix, document.segments) == (".txt", ["one\r\ntwo\n"])


@pytest.mark.parametrize("name", ["README", "notes.d/readme", "notes.d\\readme", ""])
def test_a_name_without_a_suffix_is_plain_text(name: str) -> None:
    """The names of the folders in the path may contain dots."""
    assert find_format(name).suffix == ".txt"


def test_subtitles_keep_their_numbers_times_tags_and_number_of_lines() -> None:
    _, document = read_document("a.srt", SUBTITLES.encode())
    assert document.segments == ["The old man & the sea are calm.", "I <3 you."]
    lines = shout(document).splitlines()
    assert lines[:2] == SUBTITLES.splitlines()[:2]
    assert " ".join(lines[2:4]) == "THE <i>OLD</i> MAN & THE SEA ARE CALM."
    assert lines[4:] == ["", "2", "00:00:03,000 --> 00:00:04,000", "I <3 YOU."]


def reverse(document: Document) -> str:
    """Return the document with every segment in capitals and its words from last to first."""
    translations = []
    for text in document.segments:
        words, alignment, position = [], [], 0
        for start, end in reversed(word_spans(text)):
            length = end - start
            words.append(text[start:end].upper())
            alignment.append(((start, end), (position, position + length)))
            position += length + 1  # a space follows
        translations.append(SegmentTranslation(" ".join(words), alignment))
    return document.write(translations).decode()


def cue(text: str) -> Document:
    """Return a SubRip file that contains only this subtitle."""
    return read_document("a.srt", f"1\n{TIME}{text}\n".encode())[1]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_subrip_text_after_an_empty_line_is_translated(line_end: str) -> None:
    """In WebVTT, an empty line ends the subtitle, and the text after the empty line is not translated."""
    text = f"1\n{TIME}one\n\ntwo\nthree\n\n\n2\n{TIME}four\n\n3\n{TIME}\n\nfive\n\n4".replace("\n", line_end)
    _, document = read_document("a.srt", text.encode())
    assert document.segments == ["one", "two three", "four", "five"]
    assert document.write(list(map(SegmentTranslation, document.segments))).decode() == text
    assert shout(document) == text.upper()
    _, document = read_document("a.vtt", f"WEBVTT\n\n{TIME}one\n\nNOTE\ntwo\n".encode())
    assert document.segments == ["one"]


@pytest.mark.parametrize(
    ("text", "segments", "expected"),
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
def test_formatting_codes_are_not_translated(text: str, segments: list[str], expected: str) -> None:
    document = cue(text)
    assert document.segments == segments
    assert shout(document) == f"1\n{TIME}{_shout_text(text)}\n"
    assert reverse(document) == f"1\n{TIME}{expected}\n"


def _shout_text(text: str) -> str:
    """Return a text in capitals, except its tags and formatting codes."""
    code = r"(<[^<>]*>|\{\\[^{}]*\}|\{/?b\}|\{y:i\})"
    return "".join(part if re.fullmatch(code, part) else part.upper() for part in re.split(code, text))


@pytest.mark.parametrize(
    ("text", "segments"),
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
def test_each_speaker_of_a_subtitle_is_a_segment(text: str, segments: list[str]) -> None:
    document = cue(text)
    assert document.segments == segments
    lines = shout(document).splitlines()[2:]
    shouted = _shout_text(text).splitlines()
    assert len(segments) == 1 or [line.split()[0] for line in lines] == [line.split()[0] for line in shouted]
    assert " ".join(lines).split() == " ".join(shouted).split()


@pytest.mark.parametrize(("begin", "end"), [("<i>", "</i>"), (r"{\i1}", r"{\i0}")])
def test_tags_around_two_speakers_are_written_around_each(begin: str, end: str) -> None:
    assert reverse(cue(f"{begin}- I go.\n- You stay.{end}")) == (
        f"1\n{TIME}{begin}- . GO I{end}\n{begin}- . STAY YOU{end}\n"
    )


def test_end_tags_of_deeply_nested_codes_close_no_outer_code() -> None:
    """Codes nested deeper than MAX_DEPTH are ignored. Their end tags must not end the first code.

    The first code also encloses the words of the second speaker.
    """
    text = "<b>" + "<i>" * 40 + "Go." + "</i>" * 40 + "\n- I stay.</b>"
    assert shout(cue(text)).splitlines()[-1] == "<b>- I STAY.</b>"
    text = "<i>" * 40 + "Go." + "</i>" * 39 + "\n- I stay.</i>"
    assert shout(cue(text)).splitlines()[-1] == "<i>- I STAY.</i>"


def test_lines_of_a_subtitle_are_wrapped_by_visible_length() -> None:
    colour = '<font color="#ffffff" face="a very long name">'
    assert shout(cue(f"{colour}one</font> two\nthree four")).splitlines()[2:] == [
        f"{colour}ONE</font> TWO",
        "THREE FOUR",
    ]
    assert shout(cue("one two<br>three four")).splitlines()[2:] == ["ONE TWO", "THREE FOUR"]


@pytest.mark.parametrize("between", ["\n", "\n\n", "\n \n\n"])
def test_po_catalogues_fill_empty_entries_only(between: str) -> None:
    """Entries may have any number of empty lines between them, or none."""
    catalogue = PO_FILE.replace("\n\n", between)
    _, document = read_document("de.po", catalogue.encode())
    assert document.segments == ['Open "it"\n', "file", "files"]
    expected = catalogue.replace(
        '"Open \\"it\\"\\n"\nmsgstr ""', '"Open \\"it\\"\\n"\nmsgstr "OPEN \\"IT\\"\\n"'
    )
    expected = expected.replace('msgstr[0] ""', 'msgstr[0] "%d FILE"').replace(
        'msgstr[1] ""', 'msgstr[1] "%d FILES"'
    )
    assert shout(document) == expected


def test_a_language_with_one_plural_form_gets_the_plural() -> None:
    """Korean has one plural form. A translation of "One file" would be shown for every number of files."""
    catalogue = 'msgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    _, document = read_document("ko.po", catalogue.encode())
    expected = catalogue.replace('msgstr[0] ""', 'msgstr[0] "%d 파일"')
    assert document.segments == ["files"]
    assert document.write([SegmentTranslation("파일")]).decode() == expected


def test_an_entry_with_an_invented_placeholder_is_marked_for_review() -> None:
    catalogue = 'msgid "files"\nmsgstr ""\n'
    _, document = read_document("ko.po", catalogue.encode())
    written = document.write([SegmentTranslation("%d 파일")]).decode()
    assert written == '#, fuzzy\nmsgid "files"\nmsgstr "%d 파일"\n'


@pytest.mark.parametrize(
    "lines",
    [
        'msgid ""\nmsgstr ""\n"Language: {}\\n"',
        'msgid ""\nmsgstr "MIME-Version: 1.0\\nX-Source-Language: en\\nLanguage: {}\\n"',
    ],
)
def test_the_header_of_a_catalogue_names_the_language(lines: str) -> None:
    catalogue = lines + '\n\nmsgid "files"\nmsgstr ""\n'
    for declared, expected in (("", "ko"), ("ko_KR", "ko_KR"), ("en", "ko"), ("en_GB", "ko"), ("fr", "fr")):
        _, document = read_document("ko.po", catalogue.format(declared).encode())
        written = document.write([SegmentTranslation("파일")], "ko", "en").decode()
        assert written == catalogue.format(expected).replace('"files"\nmsgstr ""', '"files"\nmsgstr "파일"')


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "one\n\ntwo\n"),
        ("a.srt", SUBTITLES),
        ("a.po", PO_FILE),
        ("a.html", "<p>one</p>\n<p>two</p>\n"),
    ],
)
def test_line_ends_and_a_byte_order_mark_are_preserved(
    name: str, text: str, line_end: str, begin: str
) -> None:
    _, plain = read_document(name, text.encode())
    _, document = read_document(name, (begin + text.replace("\n", line_end)).encode())
    assert shout(document) == begin + shout(plain).replace("\n", line_end)
    assert not document.segments[0].startswith("\ufeff")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<meta charset="{}"><p>one</p>'),
        ("a.html", "<meta http-equiv='Content-Type' content='text/html; charset={}'><p>one</p>"),
        ("a.po", 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\nmsgid "a"\nmsgstr "b"\n'),
    ],
)
def test_the_translated_file_declares_utf_8(name: str, text: str) -> None:
    for encoding in ("iso-8859-1", "CHARSET", "UTF-8"):
        _, document = read_document(name, text.format(encoding).encode())
        assert shout(document) == text.format("UTF-8").replace("one", "ONE")


def test_a_charset_outside_the_header_of_a_catalogue_stays() -> None:
    header = '# A header\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n'
    entries = (
        'msgid "Content-Type: text/html; charset=latin1"\nmsgstr "Content-Type: text/html; charset=latin1"\n'
    )
    _, document = read_document("a.po", (header.format("latin1") + entries).encode())
    assert shout(document) == header.format("UTF-8") + entries


def test_html_files_keep_their_tags() -> None:
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
        ("a.po", 'msgid ""\nmsgstr ""\n', '"Content-Type:', ""),
    ],
)
def test_hostile_files_cost_linear_time(name: str, begin: str, unit: str, end: str) -> None:
    """Four times the size costs about four times the time, not sixteen times."""

    def cost(characters: int) -> float:
        data = (begin + unit * (characters // len(unit)) + end).encode()
        started = time.process_time()
        shout(read_document(name, data)[1])
        return time.process_time() - started

    # The minimum is the run that other processes disturbed least.
    small, large = (min(cost(size) for _ in range(3)) for size in (10_000, 40_000))
    assert large < 8 * small + 0.2


@pytest.mark.parametrize("unit", ["<b>", "<p>", "<!>", "<br>a", "&#1;", "<", "\n", "\r", "a&b<i>\n", "{\\"])
@pytest.mark.parametrize("name", ["a.html", "a.srt", "a.po"])
def test_a_file_full_of_syntax_characters_is_refused_or_parsed_in_little_time(name: str, unit: str) -> None:
    started = time.process_time()
    with suppress(DocumentTooLargeError):
        read_document(name, unit.encode() * (2**20 // len(unit)), max_syntax_characters=1_000)
    assert time.process_time() - started < 0.3


def test_unicode_line_separators_do_not_end_a_line() -> None:
    _, catalogue = read_document("a.po", 'msgid "one\u2028two\x0b"\nmsgstr ""\n'.encode())
    assert catalogue.segments == ["one\u2028two\x0b"]
    # In subtitles, a lone "\r" ends a line as well. It becomes the line end of the file, "\r\n".
    _, subtitles = read_document("a.srt", "0:00:01,0 --> 0\r\none\x85two\r\rx\r".encode())
    assert shout(subtitles) == "0:00:01,0 --> 0\r\nONE TWO\r\n\r\nX\r\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.pdf", "save it as .docx"),
        ("a.doc", "save it as .docx"),
        ("a.xls", "save it as .xlsx"),
        ("a.ppt", "save it as .pptx"),
        ("a.rtf", "save it as .docx"),
        ("a.exe", "Known types"),
        ("a", "not UTF-8"),
    ],
)
def test_an_unreadable_file_is_refused_with_a_reason(name: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_document(name, b"\xff")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<p>2024 &mdash; <b>12</b>%</p><p>words</p>"),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\n<i>20</i>24!\n\n2\n00:00:03,000 --> 00:00:04,000\nwords\n",
        ),
        ("a.md", "2024 12 %\n\nwords\n"),
        ("a.txt", "words"),
    ],
)
def test_text_without_letters_is_not_translated(name: str, text: str) -> None:
    _, document = read_document(name, text.encode())
    assert document.segments == ["words"]
    assert shout(document) == text.replace("words", "WORDS")


def test_a_language_code_may_have_a_hyphen_or_an_underscore() -> None:
    assert is_right_to_left("ar-EG")
    assert is_right_to_left("ar_EG")
    assert not is_right_to_left("en_US")
    assert east_asian_font("zh_TW") == east_asian_font("zh-TW") == "PMingLiU"
    assert east_asian_font("ko_KR") == "Malgun Gothic"
    assert east_asian_font("de_DE") == ""
