"""Messages in JSON, ARB, YAML, .strings and .xcstrings: placeholders survive, files keep their form."""

from __future__ import annotations

import json
import time

import pytest

from jumok.documents.document import SegmentTranslation
from jumok.documents.message import Message, has_same_placeholders
from jumok.documents.registry import read_document
from jumok.errors import DataError
from jumok.text.words import word_spans
from support.office_files import identity, reverse, shout


def shout_message(text: str) -> str:
    """Return a message with its segments in capitals, aligned word for word."""
    message = Message(text)
    return message.fill(
        [
            SegmentTranslation(segment.upper(), [(span, span) for span in word_spans(segment)])
            for segment in message.segments
        ]
    )


@pytest.mark.parametrize(
    ("text", "segments", "filled"),
    [
        ("Hello, {name}!", ["Hello, !"], "HELLO, {name}!"),
        ("%1$s of %2$d files", ["of files"], "%1$s OF %2$d FILES"),
        ("{{count}} items in ${cart}", ["items in "], "{{count}} ITEMS IN ${cart}"),
        ("100% sure, %d%% done", ["100% sure, done"], "100% SURE, %d%% DONE"),
        ("Go <b>home</b> now<br>or later", ["Go home now", "or later"], "GO <b>HOME</b> NOW<br>OR LATER"),
        ("You &amp;&nbsp;I", ["You &\xa0I"], "YOU &amp;\xa0I"),
        ("%@ is %lld", ["is "], "%@ IS %lld"),
        ("%(user)s said %-5.2f", ["said "], "%(user)s SAID %-5.2f"),
        ("$t(other.key) text", ["text"], "$t(other.key) TEXT"),
        ("<1>one</1> two", ["one two"], "<1>ONE</1> TWO"),
        (
            "{n, plural, =0 {no files} one {# file} other {# files}}",
            ["no files", "file", "files"],
            "{n, plural, =0 {NO FILES} one {# FILE} other {# FILES}}",
        ),
        (
            "You have {n, plural, one {a {kind} file} other {files}} here",
            ["a file", "files", "You have here"],
            "YOU HAVE {n, plural, one {A {kind} FILE} other {FILES}} HERE",
        ),
        ("{n, plural, one {", ["{n, plural, one {"], "{N, PLURAL, ONE {"),
        (
            "no apples | one apple | {count} apples",
            ["no apples", "one apple", "apples"],
            "NO APPLES | ONE APPLE | {count} APPLES",
        ),
        ("car|cars", ["car", "cars"], "CAR|CARS"),
        (
            "{0} There are none|[1,19] There are some|[20,*] Many",
            ["There are none", "There are some", "Many"],
            "{0} THERE ARE NONE|[1,19] THERE ARE SOME|[20,*] MANY",
        ),
        (
            "<b>one</b> file | files {'|'} more",
            ["one file", "files more"],
            "<b>ONE</b> FILE | FILES {'|'} MORE",
        ),
        ("{{ name | upper }} says", ["says"], "{{ name | upper }} SAYS"),
        ("<b>on | off</b>", ["on | off"], "<b>ON | OFF</b>"),
        ("one | a || b", ["one", "a || b"], "ONE | A || B"),
        ("of P(a|b) and a || b", ["of P(a|b) and a || b"], "OF P(A|B) AND A || B"),
        ("See @:the.key-1, or @.lower:{'x'} now", ["See , or now"], "SEE @:the.key-1, OR @.lower:{'x'} NOW"),
        ("https://example.org/a", [], "https://example.org/a"),
        ("%s", [], "%s"),
        ("42", [], "42"),
    ],
)
def test_placeholders_tags_and_choices_survive(text: str, segments: list[str], filled: str) -> None:
    assert Message(text).segments == segments
    assert shout_message(text) == filled
    # A plural form such as {no files} looks like a placeholder, and it is translated.
    assert has_same_placeholders(text, filled) or "plural" in text


def test_plural_forms_between_bars_stay_apart() -> None:
    """A bar inside a translated form becomes a space, because the bar would begin another form."""
    text = '{"apples": "no apples | one apple | {count} apples"}'
    _, document = read_document("en.json", text.encode())
    assert identity(document).decode() == text
    written = document.write([SegmentTranslation(word) for word in ("없음", "a|b", "사과 개")]).decode()
    assert json.loads(written)["apples"] == "없음 | a b | {count} 사과 개"


def test_a_translation_with_a_nul_harms_nothing() -> None:
    """In a template, a number between two U+0000 marks a segment. Number 0 marks the first segment."""
    assert Message("one").fill([SegmentTranslation(f"a {chr(0)}0{chr(0)} b")]) == "a  0  b"
    _, document = read_document("a.xml", b"<resources><string>one</string></resources>")
    assert b"\0" not in document.write([SegmentTranslation(f"{chr(0)}0{chr(0)}")])


def test_a_number_sign_in_a_choice_within_a_plural_stays() -> None:
    text = "{n, plural, other {{who, select, other {# files}}}}"
    assert Message(text).segments == ["files"]
    assert shout_message(text) == text.replace("files", "FILES")


def test_a_placeholder_moves_with_its_word() -> None:
    message = Message("{name} goes to {place} often")
    assert message.segments == ["goes to often"]
    source, target = word_spans("goes to often"), word_spans("자주 간다")
    links = [(source[0], target[1]), (source[2], target[0])]
    # {name} stays at the beginning. {place} stays before "often" (자주).
    assert message.fill([SegmentTranslation("자주 간다", links)]) == "{name} {place} 자주 간다"


JSON_FILE = """{
  "title" : "My name <b>is</b> Michael",
\t"nested": {"list": ["one", 2, true, null, "caf\\u00e9 \\"x\\""], "empty": {}},
  "url": "https://example.org",   "count": "{n} files"
}
"""


def test_json_keeps_its_form() -> None:
    _, document = read_document("en.json", JSON_FILE.encode())
    assert document.segments == ["My name is Michael", "one", 'café "x"', "files"]
    assert identity(document) == JSON_FILE.encode()
    written = reverse(document).decode()
    assert '"title" : "MICHAEL <b>IS</b> NAME MY",\n\t"nested"' in written
    assert '["ONE", 2, true, null, "\\" X \\" CAFÉ"], "empty": {}}' in written
    assert json.loads(written)["count"] == "{n} FILES"


@pytest.mark.parametrize("text", ["{", '{"a": 1,}', "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="JSON"):
        read_document("a.json", text.encode())


def test_arb_metadata_stays_and_its_locale_is_set() -> None:
    text = (
        '{"@@locale": "en", "hi": "Hello {name}", "@hi": {"description": "a greeting", '
        '"placeholders": {"name": {"example": "Ann"}}}}'
    )
    _, document = read_document("app_en.arb", text.encode())
    assert document.segments == ["Hello "]
    assert identity(document) == text.encode()
    expected = text.replace("Hello", "HELLO").replace('"en"', '"ko"')
    assert shout(document, "ko").decode() == expected


CATALOGUE = """{
  "sourceLanguage" : "en",
  "strings" : {
    "" : {

    },
    "Hello %@" : {

    },
    "greeting" : {
      "comment" : "shown first",
      "localizations" : {
        "en" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Good day"
          }
        }
      }
    },
    "known" : {
      "localizations" : {
        "ko" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "알려진"
          }
        }
      }
    },
    "noted" : {
      "comment" : "no localisation yet"
    },
    "Secret" : {
      "shouldTranslate" : false
    }
  },
  "version" : "1.0"
}
"""


def test_a_string_catalogue_gains_the_language() -> None:
    _, document = read_document("Localizable.xcstrings", CATALOGUE.encode())
    assert document.segments == ["Hello ", "Good day", "known", "noted"]
    assert identity(document) == CATALOGUE.encode()
    strings = json.loads(shout(document, "ko"))["strings"]
    values = {
        key: string["localizations"]["ko"]["stringUnit"]["value"]
        for key, string in strings.items()
        if "ko" in string.get("localizations", {})
    }
    assert values == {"Hello %@": "HELLO %@", "greeting": "GOOD DAY", "known": "알려진", "noted": "NOTED"}
    assert strings["greeting"]["localizations"]["en"]["stringUnit"]["value"] == "Good day"
    assert (strings["greeting"]["comment"], strings["Secret"]) == ("shown first", {"shouldTranslate": False})
    written = shout(document, "ko").decode().splitlines()
    assert [line for line in CATALOGUE.splitlines() if line not in written] == []


YAML_FILE = """# Messages
en:
  plain: My name is Michael # a comment
  single: 'It''s %{count} files'
  "double": "Line one\\nline two"
  number: 12
  flag: true
  empty:
  list:
    - first item
    - "second item"
    - name: third item
  block: |
    One line.
    Another line.

  folded: >-
    Some words
    go on here.
  colon: a time of 12:30 here
  last: end"""


def test_yaml_keeps_its_form() -> None:
    _, document = read_document("en.yml", YAML_FILE.encode())
    assert document.segments == [
        "My name is Michael",
        "It's files",
        "Line one\nline two",
        "first item",
        "second item",
        "third item",
        "One line.\nAnother line.",
        "Some words go on here.",
        "a time of 12:30 here",
        "end",
    ]
    assert identity(document) == YAML_FILE.encode()
    written = shout(document, "ko").decode()
    assert "\nko:\n  plain: MY NAME IS MICHAEL # a comment\n  single: 'IT''S %{count} FILES'\n" in written
    assert '"double": "LINE ONE\\nLINE TWO"\n  number: 12\n  flag: true\n  empty:\n' in written
    assert (
        "  block: |\n    ONE LINE.\n    ANOTHER LINE.\n\n  folded: >-\n    SOME WORDS GO ON HERE.\n"
        in written
    )
    assert written.endswith("  last: END")


@pytest.mark.parametrize(
    ("key", "written"), [("app", "app"), ("faq", "faq"), ("fr", "fr"), ("en", "ko"), ("en_US", "ko")]
)
def test_only_the_language_of_the_source_is_renamed_in_yaml(key: str, written: str) -> None:
    _, document = read_document("a.yml", f"{key}:\n  title: Hello world\n".encode())
    assert shout(document, "ko").decode() == f"{written}:\n  title: HELLO WORLD\n"


def test_yaml_symbols_stay() -> None:
    text = "en:\n  order:\n    - :year\n    - :month # a comment\n  first: :monday\n  said: ':word'\n"
    _, document = read_document("a.yml", text.encode())
    assert document.segments == [":word"]
    assert shout(document).decode() == text.replace("word", "WORD")


@pytest.mark.parametrize(
    "line",
    [
        "a: &x text",
        "a: *x",
        "a: !tag text",
        "a: {b: c}",
        "a: [b, c]",
        "? a",
        "just text",
        "a: b: c",
        "\ta: b",
        'a: "x',
    ],
)
def test_yaml_that_is_not_understood_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(DataError, match="Line 2 is not understood"):
        read_document("a.yml", f"first: one\n{line}\n".encode())


@pytest.mark.parametrize("line", ["a: text", "a: 'text'", "- text", "a: 12", "- a: text"])
def test_a_yaml_text_that_continues_on_the_next_line_is_refused(line: str) -> None:
    """A dash at the beginning of such a line is not the dash of a list item."""
    for next_line in ("     - more", "     more"):
        with pytest.raises(DataError, match="Line 3 is not understood"):
            read_document("a.yml", f"first:\n {line}\n{next_line}\n".encode())


def test_yaml_lists_and_keys_may_follow_a_text() -> None:
    text = (
        "a: one\nb:\n  - two\n  - c: three\n    d: four\n# comment\n     # comment\ne: # comment\n  f: five\n"
    )
    _, document = read_document("a.yml", text.encode())
    assert document.segments == ["one", "two", "three", "four", "five"]


def test_only_dates_and_times_of_yaml_are_no_text() -> None:
    dates = ["2024-01-01", "2024-1-1", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00.5 +01:00"]
    texts = ["2024-01-01 is the day we meet", "2024-01-01, Monday"]
    lines = "".join(f"- {line}\n" for line in (*dates, *texts))
    _, document = read_document("a.yml", lines.encode())
    assert document.segments == texts


@pytest.mark.parametrize("text", ["12", "true", "- not a list", "a: b", "# x", "yes", ""])
def test_a_yaml_translation_that_would_mean_something_else_is_quoted(text: str) -> None:
    _, document = read_document("a.yml", b"key: word\n")
    assert document.write([SegmentTranslation(text)]).decode() == f'key: "{text}"\n'


STRINGS_FILE = '/* a = "comment"; */\n"greeting" = "Hello \\"%@\\"\\n";\n// more\nbare.key="Good day" ;\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_strings_files_keep_their_form_and_encoding(encoding: str) -> None:
    data = STRINGS_FILE.encode(encoding)
    _, document = read_document("Localizable.strings", data)
    assert [text.strip() for text in document.segments] == ['Hello ""', "Good day"]
    assert identity(document) == data
    written = shout(document).decode(encoding)
    assert written == STRINGS_FILE.replace("Hello", "HELLO").replace("Good day", "GOOD DAY")


def test_a_strings_file_that_is_not_understood_is_refused() -> None:
    with pytest.raises(DataError, match="Line 2 is not understood"):
        read_document("a.strings", b'"a" = "b";\n"c" = d;\n')


def test_an_address_is_recognised_in_linear_time() -> None:
    """An earlier version took cubic time: half a second for 400 repetitions, four seconds for 800."""
    started = time.process_time()
    assert Message("@." * 20_000 + " x").segments
    assert time.process_time() - started < 0.5
    for address in ("me@example.org", " a.b@c.d.org ", "../a/b", "HTTPS://x.org"):
        assert Message(address).segments == []
    for text in ("mail me@example.org now", "me@home", "a@b. c"):
        assert Message(text).segments == [text]


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("- key: |\n    some text\n  other: more\n", ["some text", "more"]),
        ("- |\n text\n- other\n", ["text", "other"]),
        ("- - key: >\n      text\n    other: more\n", ["text", "more"]),
        ("a:\n  - |\n    text\n  - other\nb: more\n", ["text", "other", "more"]),
    ],
)
def test_a_yaml_block_in_a_list_item_ends_at_the_next_key(text: str, segments: list[str]) -> None:
    _, document = read_document("a.yml", text.encode())
    assert document.segments == segments
    assert identity(document) == text.encode()


@pytest.mark.parametrize(
    "text", ["a: |\n  one", "a: >-\n  one\n  two", "a: |", "a: |\n  one\n\n", "- |\n a\n"]
)
def test_a_yaml_file_that_ends_with_a_block_keeps_its_end(text: str) -> None:
    _, document = read_document("a.yml", text.encode())
    assert identity(document) == text.encode()
    assert shout(document).decode().endswith("\n") == text.endswith("\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"a": "hi %s"}'),
        ("a.strings", '"a" = "hi %s";'),
        ("a.yml", 'a: "hi %s"\n'),
        ("a.xml", "<resources><string>hi %s</string></resources>"),
    ],
)
def test_escaped_surrogates_are_joined_or_replaced(name: str, text: str) -> None:
    for escaped, character in (("\\ud83d\\ude00", "\U0001f600"), ("\\ud83d", "\ufffd")):
        _, document = read_document(name, (text % escaped).encode())
        assert document.segments == [f"hi {character}"]
        assert f"HI {character}" in shout(document).decode()
        assert identity(document) == (text % escaped).encode()


def test_a_string_with_plural_forms_gets_no_plain_translation_of_its_key() -> None:
    forms = {"plural": {"other": {"stringUnit": {"state": "new", "value": "%d files"}}}}
    strings = {"file count": {"localizations": {"en": {"variations": forms}}}, "plain": {}}
    text = json.dumps({"sourceLanguage": "en", "strings": strings})
    _, document = read_document("a.xcstrings", text.encode())
    assert document.segments == ["plain"]
    assert json.loads(shout(document, "ko"))["strings"]["file count"] == strings["file count"]


def test_an_empty_new_localisation_of_a_catalogue_is_filled() -> None:
    def localized(state: str, value: str) -> dict[str, object]:
        return {"localizations": {"ko": {"stringUnit": {"state": state, "value": value}}}}

    strings = {
        "Hello %@": localized("new", ""),
        "done": localized("new", "다 됨"),
        "gone": localized("translated", ""),
    }
    text = json.dumps({"sourceLanguage": "en", "strings": strings})
    _, document = read_document("a.xcstrings", text.encode())
    written = json.loads(shout(document, "ko"))["strings"]
    assert written == strings | {"Hello %@": localized("translated", "HELLO %@")}
    assert (
        json.loads(shout(document, "ja"))["strings"]["Hello %@"]["localizations"]["ko"]["stringUnit"]["value"]
        == ""
    )
