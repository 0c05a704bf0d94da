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


def test_code_and_link_targets_and_front_matter_stay() -> None:
    written = shout(read_document("a.md", TEXT.encode())[1]).decode()
    for expected in (
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
        assert expected in written


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


@pytest.mark.parametrize("unit", [" ", "{{", "{%", "<!--", "[a](<", "$^", "- ", "> ", "https://.", "$$x\n"])
def test_spaces_braces_and_comments_are_read_in_linear_time(unit: str) -> None:
    """An earlier version took quadratic time: one second for 20,000 spaces, and four seconds for 40,000."""
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
    """For example, the lines of a table cell or of an address are separate sentences."""
    text = f"| The *first* line{line_break}the second | `a<br>b` |\n| --- | --- |\n"
    _, document = read_document("a.md", text.encode())
    [segment, *_] = document.segments
    lines = [segment[start:end] for start, end in text_spans(segment)]
    assert lines == ["The first line", "the second"]
    assert identity(document) == text.encode()
    expected = f"| THE *FIRST* LINE{line_break}THE SECOND | `a<br>b` |\n| --- | --- |\n"
    assert shout(document).decode() == expected


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("- item\n\n| a | b |\n| --- | --- |\n\n    code here\n", ["item", " a ", " b "]),
        ("- item\n\n```\nx\n```\n\n    code here\n", ["item"]),
        ("- ```sh\n  make it\n  ```\n- go on\n\n1. ~~~\n   make\n   ~~~\n\nend\n", ["go on", "end"]),
        ("> - ```\n>   code\n>   ```\n>\n>   text\n\nend\n", ["text", "end"]),
        ("- ```sh\n  make\n  ```\n\n  more\n\n      code\n", ["more"]),
        ("- item\n\n<!-- x -->\n\n    code here\n", ["item"]),
        ("1. Run this:\n\n        pip install x\n\n   and go on\n", ["Run this:", "and go on"]),
        ("- a\n\n    - b\n\n        - c\n\n          text\n\n              code\n", ["a", "b", "c", "text"]),
        ("-\ttab\n\n\tmore\n\n\t\tcode\n", ["tab", "more"]),
        (">     code in quote\n>\n> text\n", ["text"]),
        ("> - item\n>\n>   text\n>\n>       code\n\n    code\n", ["item", "text"]),
        ("- item\n\n  > quote\n\n  text\n\n>     code\n", ["item", "quote", "text"]),
        ("    > code\n", []),
        ("[^a]: note\n\n    more of it\n\n        code\n", ["note", "more of it"]),
    ],
)
def test_indented_code_in_and_after_lists_and_quotes_stays(text: str, segments: list[str]) -> None:
    _, document = read_document("a.md", text.encode())
    assert document.segments == segments
    assert identity(document) == text.encode()


@pytest.mark.parametrize(
    "target",
    ["(<my file.md>)", "( x )", '(<u r l> "t")', "()", "(a(b)c 't')", "(x (t))", "(https://a.org/b_(c))"],
)
def test_every_form_of_a_link_target_stays(target: str) -> None:
    text = f"[the book]{target} and ![a picture]{target} here\n"
    _, document = read_document("a.md", text.encode())
    assert document.segments == ["the book and here"]
    expected = f"[THE BOOK]{target} AND ![a picture]{target} HERE\n"
    assert shout(document).decode() == expected


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("> [!NOTE]\n> I go home.\n", ["I go home."]),
        ("before\n:::note Title\nI go home.\n:::\nafter\n", ["before", "I go home.", "after"]),
        ('!!! note "Title"\n    I go\n    home.\n\n    More.\n\n        code\n', ["I go home.", "More."]),
        ("!!! warning, prose !!!\n", ["!!! warning, prose !!!"]),
        ("so\n$$\nE = mc^2\n$$\nthat is\n", ["so", "that is"]),
        ("$$ E = mc^2 $$\nthat is\n", ["that is"]),
        ("$$ unclosed\nformula\n\nthat is\n", ["that is"]),
        ("If $x^2$ is $a + b = c$, so is $y$.\n", ["If is , so is ."]),
        ("함수 $f$는 크다\n", ["함수 는 크다"]),
        ("It is $5 for `a_b$` here\n", ["It is $5 for here"]),
        ("It is $5 or $6 (US$) in $HOME/$USER.\n", ["It is $5 or $6 (US$) in $HOME/$USER."]),
    ],
)
def test_formulas_and_the_marks_that_begin_or_end_an_admonition_stay(text: str, segments: list[str]) -> None:
    _, document = read_document("a.md", text.encode())
    assert document.segments == segments
    assert identity(document) == text.encode()
    once = shout(document)
    assert shout(read_document("a.md", once)[1]) == once


def test_a_formula_stays_at_its_word() -> None:
    _, document = read_document("a.md", b"> [!NOTE]\n> If $x^2$ is **big**,\n> go.\n\n$$\nx\n$$\n")
    assert shout(document).decode() == "> [!NOTE]\n> IF $x^2$ IS **BIG**, GO.\n\n$$\nx\n$$\n"


@pytest.mark.parametrize(
    ("text", "segment", "expected"),
    [
        ("\\# not a heading", "# not a heading", "\\# NOT A HEADING"),
        ("1\\. no item", "1. no item", "1\\. NO ITEM"),
        ("2\\) no item", "2) no item", "2\\) NO ITEM"),
        ("\\- no item", "- no item", "\\- NO ITEM"),
        ("\\+ no item", "+ no item", "\\+ NO ITEM"),
        ("\\> no quote", "> no quote", "\\> NO QUOTE"),
        ("\\:::note", ":::note", "\\:::NOTE"),
        ("\\!!! note", "!!! note", "\\!!! NOTE"),
        ("\\$$x is no formula", "$$x is no formula", "\\$$X IS NO FORMULA"),
        ("- \\# in an item", "# in an item", "- \\# IN AN ITEM"),
        ("## 1. a number", "1. a number", "## 1. A NUMBER"),
        ("#hashtag is -5 > 3", "#hashtag is -5 > 3", "#HASHTAG IS -5 > 3"),
        ("\\~~not old\\~~", "~~not old~~", "\\~\\~NOT OLD\\~\\~"),
        ("from 5~6", "from 5~6", "FROM 5~6"),
        ("cost \\$x\\$", "cost $x$", "COST \\$X\\$"),
        ("Tom &amp; AT&T", "Tom & AT&T", "TOM & AT&T"),
        ("a&nbsp;b &lt;c> &#42;", "a\u00a0b <c> *", "A\u00a0B \\<C> \\*"),
        ("write &amp;lt; here", "write &lt; here", "WRITE \\&LT; HERE"),
        ("a &#13; b", "a   b", "A   B"),
    ],
)
def test_escaped_characters_and_entities_are_text(text: str, segment: str, expected: str) -> None:
    """The model reads the characters without escapes. The written Markdown shows the same characters.

    None of them begins a heading, a list item or another block.
    """
    _, document = read_document("a.md", text.encode())
    assert document.segments == [segment]
    assert identity(document) == text.encode()
    assert shout(document).decode() == expected


@pytest.mark.parametrize("mark", [".", ",", "!", "?:", "..."])
def test_punctuation_after_an_address_belongs_to_the_sentence(mark: str) -> None:
    text = f"See https://x.org/a.b?c=d{mark} I go home.\n"
    _, document = read_document("a.md", text.encode())
    assert document.segments == [f"See {mark} I go home."]
    assert shout(document).decode() == f"SEE https://x.org/a.b?c=d{mark} I GO HOME.\n"


def test_sentences_and_emphasis_end_after_an_address() -> None:
    _, document = read_document("a.md", b"See https://x.org/a. I go home.\n\n**Go to https://x.org** now\n")
    [first, second] = document.segments
    assert [first[start:end] for start, end in text_spans(first)] == ["See .", "I go home."]
    assert second == "Go to now"
    assert b"**GO TO** https://x.org NOW" in shout(document)


def test_emphasis_without_an_aligned_word_is_left_out() -> None:
    _, document = read_document("a.md", b"I go **home**.\n")
    assert document.write([SegmentTranslation("집으로!")]).decode() == "집으로!\n"


def test_a_badge_which_is_a_link_around_a_picture_stays() -> None:
    text = "[![build](https://a.org/b.svg)](https://a.org) [![b][c]](d) some words\n"
    _, document = read_document("README.md", text.encode())
    assert document.segments == ["some words"]
    assert shout(document).decode() == text.replace("some words", "SOME WORDS")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("A <u>long red</u> car.", ". CAR <u>RED LONG</u> A"),
        ("see <a href='x'>the *long* way</a> home", "HOME <a href='x'>WAY *LONG* THE</a> SEE"),
        (
            "press <kbd>Ctrl</kbd> to go <code>x y</code> home",
            "<code>x y</code> HOME GO <kbd>Ctrl</kbd> TO PRESS",
        ),
        ("the way<sup>1</sup> home", "HOME WAY<sup>1</sup> THE"),
        # The picture stays before "long", so the emphasis is written once on each side of the picture.
        ("a <img src=x> *long way* home", "HOME *WAY* <img src=x> *LONG* A"),
    ],
)
def test_inline_tags_move_with_the_words_they_enclose(text: str, written: str) -> None:
    _, document = read_document("a.md", text.encode())
    assert reverse(document).decode() == written


def test_definitions_and_abbreviations_keep_their_marks() -> None:
    text = "term\n:   its meaning\n    goes on\n\n*[WWW]: World Wide Web\n"
    _, document = read_document("a.md", text.encode())
    assert document.segments == ["term", "its meaning goes on"]
    assert shout(document).decode() == "TERM\n:   ITS MEANING GOES ON\n\n*[WWW]: World Wide Web\n"
