"""Markdown: what is translated, where emphasis and links land, and that nothing else changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jumok.documents.document import SegmentTranslation
from jumok.documents.registry import read_document
from jumok.text.sentences import text_spans
from support.office_files import identity, reverse, shout

PROJECT = Path(__file__).parents[2]
TEXT = """---
title: front matter
---
# A heading #

My name **is** Michael
and I go home.

- first *item*
  goes on
- [ ] second item with `code here`
  1. third

> a quoted line
> goes on

```python
print("not translated")
```

    indented code

| Name | Value |
| --- | ---: |
| one cell | `x` |

See [this page](https://example.org/a_b "title") or [that one][ref] or [ref].
An ![image](a.png) and a footnote[^1].

<div align="center">
  <b>in HTML</b> words
</div>

[ref]: https://example.org
[^1]: the note

last line\\
with a hard break
"""


def test_every_place_with_text_is_translated_and_nothing_else() -> None:
    _, document = read_document("a.md", TEXT.encode())
    assert document.segments == [
        "A heading #",
        "My name is Michael and I go home.",
        "first item goes on",
        "second item with ",
        "third",
        "a quoted line goes on",
        " Name ",
        " Value ",
        " one cell ",
        "See this page or that one or ref. An and a footnote.",
        "in HTML words ",
        "the note",
        "last line",
        "with a hard break",
    ]
    assert identity(document) == TEXT.encode()
    assert (
        identity(read_document("a.md", TEXT.replace("\n", "\r\n").encode())[1])
        == TEXT.replace("\n", "\r\n").encode()
    )


def test_code_targets_and_front_matter_stay() -> None:
    written = shout(read_document("a.md", TEXT.encode())[1]).decode()
    for kept in (
        "---\ntitle: front matter\n---\n# A HEADING",
        "\nMY NAME **IS** MICHAEL AND I GO HOME.\n",
        "- FIRST *ITEM* GOES ON\n- [ ] SECOND ITEM WITH `code here`\n  1. THIRD\n",
        "> A QUOTED LINE GOES ON\n",
        '```python\nprint("not translated")\n```\n\n    indented code\n',
        "| NAME | VALUE |\n| --- | ---: |\n| ONE CELL | `x` |\n",
        'SEE [THIS PAGE](https://example.org/a_b "title") OR [THAT ONE][ref] OR [REF][ref].',
        "![image](a.png) AND A FOOTNOTE[^1].",
        '<div align="center">\n  <b>IN HTML</b> WORDS',
        "[ref]: https://example.org\n[^1]: THE NOTE\n",
        "LAST LINE\\\nWITH A HARD BREAK\n",
    ):
        assert kept in written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name **is** Michael", "MICHAEL **IS** NAME MY"),
        ("go [home *now*](x) please", "PLEASE [*NOW* HOME](x) GO"),
        ("a snake_case_name here", "HERE SNAKE_CASE_NAME A"),
        ("2 * 3 is six", "SIX IS 3 \\* 2"),
        ("~~old~~ new", "NEW ~~OLD~~"),
    ],
)
def test_emphasis_and_links_move_with_their_words(text: str, expected: str) -> None:
    assert reverse(read_document("a.md", text.encode())[1]).decode() == expected


def test_only_the_translated_paragraph_changes() -> None:
    _, document = read_document("a.md", TEXT.encode())
    translations = [SegmentTranslation(text) for text in document.segments]
    translations[4] = SegmentTranslation("셋째")
    assert document.write(translations).decode() == TEXT.replace("1. third", "1. 셋째")


@pytest.mark.parametrize(
    "name", ["README.md", "README.ko.md", "docs/design.md", "docs/tutorial.md", "CONTRIBUTING.md"]
)
def test_the_documents_of_this_project_come_back_byte_for_byte(name: str) -> None:
    data = (PROJECT / name).read_bytes()
    _, document = read_document(name, data)
    assert document.segments
    assert identity(document) == data


def test_a_blank_line_after_html_stays() -> None:
    text = "<div>\nHello\n\n**Bold** para\n\n</div>"
    _, document = read_document("a.md", text.encode())
    assert shout(document).decode() == text.replace("Hello", "HELLO").replace("Bold** para", "BOLD** PARA")
    assert identity(document) == text.encode()


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<script>", "</script>"),
        ('<style type="x">', "</style>"),
        ("<pre>", "</pre>"),
        ("<textarea>", "</textarea>"),
        ("<!--", "-->"),
    ],
)
def test_html_that_is_not_translated_ends_at_its_end_mark(begin: str, end: str) -> None:
    text = f"{begin}\none\n\ntwo words\n{end}\nlast\n"
    _, document = read_document("a.md", text.encode())
    assert document.segments == ["last"]
    assert shout(document).decode() == text.replace("last", "LAST")
    unclosed = text.replace(end, "three")
    assert identity(read_document("a.md", unclosed.encode())[1]) == unclosed.encode()


def test_an_escaped_bar_in_a_table_cell_stays_escaped() -> None:
    text = "| a |\n| --- |\n| b \\| c |\n"
    assert shout(read_document("a.md", text.encode())[1]).decode() == text.upper()


@pytest.mark.parametrize("unit", [" ", "{{", "{%", "<!--"])
def test_spaces_braces_and_comments_are_read_in_linear_time(unit: str) -> None:
    """20,000 spaces took one second, and four times as long with twice as many."""
    text = f"a{unit * 40_000}b"
    started = time.process_time()
    _, document = read_document("a.md", text.encode())
    assert time.process_time() - started < 1
    assert identity(document) == text.encode()


def test_hard_breaks_and_template_codes_stay() -> None:
    text = "one  \ntwo {{ a }} and {% b %}   \nthree\\\nfour\n"
    _, document = read_document("a.md", text.encode())
    assert document.segments == ["one", "two and ", "three", "four"]
    assert shout(document).decode() == "ONE  \nTWO {{ a }} AND {% b %}   \nTHREE\\\nFOUR\n"


@pytest.mark.parametrize("line_break", ["<br>", "<br />", " <BR/> "])
def test_a_line_break_of_html_ends_a_sentence(line_break: str) -> None:
    """As it does in HTML: the lines of a table cell or an address are no one sentence."""
    text = f"| The *first* line{line_break}the second | `a<br>b` |\n| --- | --- |\n"
    _, document = read_document("a.md", text.encode())
    [segment, *_] = document.segments
    lines = [segment[start:end] for start, end in text_spans(segment)]
    assert lines == ["The first line", "the second"]
    assert identity(document) == text.encode()
    expected = f"| THE *FIRST* LINE{line_break}THE SECOND | `a<br>b` |\n| --- | --- |\n"
    assert shout(document).decode() == expected


def test_emphasis_without_a_word_is_left_out() -> None:
    _, document = read_document("a.md", b"I go **home**.\n")
    assert document.write([SegmentTranslation("집으로!")]).decode() == "집으로!\n"


def test_a_badge_is_a_link_around_a_picture() -> None:
    text = "[![build](https://a.org/b.svg)](https://a.org) [![b][c]](d) some words\n"
    _, document = read_document("README.md", text.encode())
    assert document.segments == ["some words"]
    assert shout(document).decode() == text.replace("some words", "SOME WORDS")
