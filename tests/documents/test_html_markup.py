"""Translated HTML: tags are balanced. A tag encloses the words aligned to the source words inside the tag."""

from __future__ import annotations

import html
import random
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumok.datasets.english_korean import generate
from jumok.documents.document import SegmentTranslation
from jumok.documents.html_markup import INLINE, VOID, read_markup
from jumok.documents.html_tokenizer import TokenKind, tokenize
from jumok.documents.segment import MAX_DEPTH
from jumok.text.words import split_words, word_spans

if TYPE_CHECKING:
    from jumok.types import Pair


class BalanceChecker(HTMLParser):
    """Records the elements around each word of a document, and whether the tags are balanced."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[tuple[str, frozenset[str]]] = []
        self.balanced = True
        self.started: list[str] = []  # ids, or tag names, of all start tags
        self.feed(document)
        self.close()
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        name = dict(attributes).get("id") or tag
        self.started.append(name)
        if tag not in VOID:
            self.open.append(f"{tag}#{name}")

    def handle_endtag(self, tag: str) -> None:
        self.balanced = self.balanced and bool(self.open) and self.open.pop().startswith(f"{tag}#")

    def handle_data(self, data: str) -> None:
        around = frozenset(name.partition("#")[2] for name in self.open)
        self.words += [(word, around) for word in split_words(data)]


def mark_up(pair: Pair, generator: random.Random) -> tuple[str, dict[str, set[int]]]:
    """Return the source with nested inline elements, and the indices of the words in each element."""
    words = split_words(pair.source)
    elements: list[tuple[int, int]] = []  # first word, and the word after the last
    low, high = 0, len(words)
    while high - low > 1 and len(elements) < 4:
        low = generator.randint(low, high - 1)
        high = generator.randint(low + 1, high)
        elements.append((low, high))
    spans = word_spans(pair.source)
    inside, opening, closing = {}, {}, {}
    for number, (start, end) in enumerate(elements):
        tag = generator.choice(["b", "i", "em", "span", "a", "u"])
        inside[f"t{number}"] = set(range(start, end))
        opening.setdefault(spans[start][0], []).append(f'<{tag} id="t{number}">')
        closing.setdefault(spans[end - 1][1], []).insert(0, f"</{tag}>")
    out, last = [], 0
    for position in sorted({*opening, *closing}):
        out += [pair.source[last:position], *closing.get(position, ()), *opening.get(position, ())]
        last = position
    return "<p>" + "".join([*out, pair.source[last:]]) + "</p>", inside


def test_nested_tags_stay_balanced_and_around_the_aligned_words() -> None:
    generator = random.Random(7)
    pairs = list(generate("test", 50, polite=0.0))
    assert len(pairs) == 50
    for pair in pairs:
        assert pair.alignment is not None
        document, inside = mark_up(pair, generator)
        markup = read_markup(document)
        assert markup.segments == [pair.source]
        source, target = word_spans(pair.source), word_spans(pair.target)
        links = [(source[i], target[j]) for i, j in sorted(pair.alignment.sure)]
        written = markup.fill([SegmentTranslation(pair.target, links)])
        balance = BalanceChecker(written)
        assert balance.balanced, written
        assert set(balance.started) >= inside.keys(), written
        assert [word for word, _ in balance.words] == split_words(pair.target), written
        aligned = {j: {i for i, k in pair.alignment.sure if k == j} for j in range(len(target))}
        for j, (_, around) in enumerate(balance.words):
            for name, words in inside.items():
                if aligned[j] and aligned[j] <= words and any(map(str.isalnum, split_words(pair.target)[j])):
                    assert name in around, (written, j, name)
                if aligned[j] and not aligned[j] & words:
                    assert name not in around, (written, j, name)


def test_a_full_stop_does_not_become_a_second_link() -> None:
    """The final full stop of the translation is aligned with "here", which is inside the <a> element."""
    markup = read_markup('<p>Read it <a href="x">here</a>.</p>')
    source, target = word_spans("Read it here."), word_spans("여기에서 읽으세요.")
    links = [(source[2], target[0]), (source[0], target[1]), (source[2], target[2])]
    assert markup.fill([SegmentTranslation("여기에서 읽으세요.", links)]) == (
        '<p><a href="x">여기에서</a> 읽으세요.</p>'
    )
    # Punctuation next to the words of an element stays in the element. So does punctuation in an element
    # without words.
    for document in ("<p>Go <b>home now!</b></p>", "<p>Go<b>!</b> Now.</p>", "<p><b>A, B</b> or C</p>"):
        assert translate_into_itself(document) == document


def translate_into_itself(document: str) -> str:
    markup = read_markup(document)
    return markup.fill(
        [SegmentTranslation(text, [(span, span) for span in word_spans(text)]) for text in markup.segments]
    )


@pytest.mark.parametrize(
    "document",
    [
        "plain",
        "<p>one <b>two</b> three</p>",
        "<!doctype html>\n<html>\n <body>\n  <h1>a</h1>\n  <p>b</p>\n </body>\n</html>\n",
        '<a href="x?a=1&amp;b=2">one &lt;two&gt; &amp; three</a>',
        "<ul><li>one</li><li><i>two</i></li></ul>",
        "<p>one<br>two<img src=x alt='y'> three</p>",
        "<script>if (a < b && c) { x = '</p>' }</script><style>p > a { }</style>",
        '<p>say <span translate="no">one <b>two</b></span> now</p>',
        "<pre>  one\n   two</pre>",
        "one <!-- a comment --> two",
        "<p>one <code>x &lt; y</code> two</p>",
        "<p><a href=http://example.org/>one</a> two</p>",
        "<p>one <b/>two</b> three</p>",
        '<p translate="no">one <a href=x/>two</a></p><p>three</p>',
        "<p>one</p><svg/><p>two</p><svg><svg/><path/></svg><p>three</p>",
        "<p>at <time>noon</time> sharp</p>",
        '<label><input type="checkbox"> I agree</label>',
        "<p>one <br>\n  two <button>three</button> or <svg></svg> four</p>",
        "<p>\n  <img src=x> one <b>two</b></p>",
        "<p><img src=x> <b>one</b></p>",
        "<p>one <img src=x><img src=y> two</p>",
        "<p>one two <img src=x></p>",
        "<p>one <b>two.</b> <img src=x><img src=y> </p>",
        "<p>one <b>two. <img src=x></b></p>",
        '<p>one<a href="x"><i><img src=y></i><wbr></a> two<a href="z"></a><b></b></p>',
        '<h2><a id="x"></a></h2>\n<p> <i class="fa"></i> </p><p>one</p><span id="y"></span>',
        f"<p>{'<b>' * (MAX_DEPTH + 1)}{'</b>' * (MAX_DEPTH + 1)}</p>",
    ],
)
def test_a_document_translated_into_itself_is_unchanged(document: str) -> None:
    assert translate_into_itself(document) == document


def test_an_image_stays_in_its_link() -> None:
    assert (
        translate_into_itself('<p><a href="x"><img src=y></a> one</p>')
        == '<p><a href="x"><img src=y></a> one</p>'
    )


def test_protected_elements_are_not_among_the_segments() -> None:
    document = "<p>one <code>two</code></p><script>three</script><p class='x notranslate'>four</p><p>five</p>"
    assert [text.strip() for text in read_markup(document).segments] == ["one", "five"]


def test_keyboard_input_program_output_and_variables_stay() -> None:
    markup = read_markup(
        "<p>press <kbd>Ctrl</kbd> to see <samp>not <b>found</b></samp> in <var>name</var></p>"
    )
    assert markup.segments == ["press to see in "]
    [text] = markup.segments
    filled = markup.fill([SegmentTranslation(text.upper(), [(span, span) for span in word_spans(text)])])
    assert filled == ("<p>PRESS <kbd>Ctrl</kbd> TO SEE <samp>not <b>found</b></samp> IN <var>name</var></p>")


@pytest.mark.parametrize(
    "reference",
    [
        "<sup>1</sup>",
        '<sup class="x">[1, 2]</sup>',
        '<a href="#n1"><sup>1</sup></a>',
        '<sup><a href="#n1">1</a></sup>',
        '<a epub:type="noteref" href="#n1">1</a>',
        '<a role="doc-noteref" href="#n1">*</a>',
    ],
)
def test_the_number_of_a_note_is_no_part_of_a_word(reference: str) -> None:
    markup = read_markup(f"<p>I go home{reference} now.</p>")
    assert markup.segments == ["I go home now."]
    source, target = word_spans("I go home now."), word_spans("지금 집에 간다.")
    filled = markup.fill(
        [SegmentTranslation("지금 집에 간다.", [(source[2], target[1]), (source[3], target[0])])]
    )
    assert filled == f"<p>지금 집에{reference} 간다.</p>"


@pytest.mark.parametrize(
    "copied",
    [
        "<sup>1 </sup>",
        "<sup> 1</sup>",
        "<sup>&nbsp;1 </sup>",
        "<sup>[<a role='doc-noteref'>1</a>]\n</sup>",
        "<a role='doc-noteref'>[1] </a>",
        "<code>x </code>",
        "<span translate=no> <b>x</b></span>",
    ],
)
def test_a_space_at_the_start_or_end_of_copied_markup_separates_words(copied: str) -> None:
    assert read_markup(f"<p>The cat{copied}sleeps.</p>").segments == ["The cat sleeps."]
    assert read_markup(f"<p>The cat {copied} sleeps.</p>").segments == ["The cat sleeps."]
    assert translate_into_itself(f"<p>The cat{copied} sleeps.</p>") == f"<p>The cat{copied} sleeps.</p>"
    assert translate_into_itself(f"<p>{copied}Word</p>") == f"<p>{copied}Word</p>"


def test_a_superscript_with_words_is_translated() -> None:
    assert read_markup("<p>the 2<sup>nd</sup> <a>3</a></p>").segments == ["the 2nd 3"]
    assert read_markup("<p>the 2<sup>n<sup>1</sup>d</sup>").segments == ["the 2nd"]
    assert read_markup("<p>the 2<sup>1<sup>2</sup>n").segments == ["the 21n"]


def test_attributes_of_a_note_mark_are_translated() -> None:
    markup = read_markup('<p>home<sup title="A note"><a title="Go">1</a></sup><b title="Bold">x</b></p>')
    assert markup.segments == ["homex", "A note", "Go", "Bold"]
    written = markup.fill([SegmentTranslation(text, ()) for text in ("집", "주석", "가기", "굵게")])
    assert '<sup title="주석"><a title="가기">1</a></sup>' in written
    assert '<b title="굵게">' in written


def test_an_inline_element_does_not_split_its_sentence() -> None:
    assert read_markup("<p>at <time>noon</time> sharp</p>").segments == ["at noon sharp"]


@pytest.mark.parametrize(
    ("document", "written"),
    [
        ('<p translate="no">one <p>two</p>', '<p translate="no">one </p><p>two</p>'),
        ('<p translate="no">one <b>x<div>two</div>', '<p translate="no">one <b>x</b></p><div>two</div>'),
        ('<ul><li translate="no">one<li>two</ul>', '<ul><li translate="no">one</li><li>two</ul>'),
        ('<ul><li translate="no">one</ul>two', '<ul><li translate="no">one</li></ul>two'),
        (
            '<ul><li translate="no"><ul><li>one</ul></li><li>two</ul>',
            '<ul><li translate="no"><ul><li>one</ul></li><li>two</ul>',
        ),
    ],
)
def test_a_protected_element_without_an_end_tag_ends_where_html_ends_it(document: str, written: str) -> None:
    assert read_markup(document).segments == ["two"]
    assert translate_into_itself(document) == written


def test_an_element_whose_words_are_not_aligned_stays_empty() -> None:
    markup = read_markup('<p><a name="x">The</a> house</p>')
    source, target = word_spans("The house"), word_spans("집")
    filled = markup.fill([SegmentTranslation("집", [(source[1], target[0])])])
    assert filled == '<p><a name="x"></a>집</p>'


@pytest.mark.parametrize(
    ("first", "second"), [("你好。", "2024 年"), ("好", "abc"), ("<x>", "い"), ("b", "\u0301c")]
)
def test_sentences_that_meet_without_a_space_keep_their_words_apart(first: str, second: str) -> None:
    """In Chinese, the last word of a sentence and the first word of the next sentence look like one word."""
    begin, end = word_spans(second)[0]
    # "One" is characters 0 to 3 of the source, "Three" 9 to 14.
    links = [((0, 3), word_spans(first)[0]), ((9, 14), (begin + len(first), end + len(first)))]
    written = read_markup("One two. <b>Three</b>.").fill([SegmentTranslation(first + second, links)])
    assert f"<b>{second[begin:end]}</b>" in written
    assert written.startswith(html.escape(first))


def test_malformed_html_becomes_balanced() -> None:
    for document in ("<b>one <i>two</b> three</i>", "<p><b>one", "one</b></p>", "<b>one<p>two</b>three</p>"):
        written = translate_into_itself(document)
        inline_tags = [name for name in BalanceChecker(written).started if name != "p"]
        assert written.count("<b>") == written.count("</b>"), written
        assert written.count("<i>") == written.count("</i>"), written
        assert len(inline_tags) <= 4  # each document has at most two inline tags, written at most twice


def test_empty_elements_of_malformed_html_are_kept_and_become_balanced() -> None:
    assert translate_into_itself('<p><a id="x"><i></a></b></p>') == '<p><a id="x"><i></i></a></p>'
    assert (
        translate_into_itself('<b><a id="x"></i></a><p>one</p></b>')
        == '<b><a id="x"></a></b><b><p>one</p></b>'
    )


def nest(name: str, depth: int, text: str) -> str:
    return f"<{name}>" * depth + text + f"</{name}>" * depth


def test_inline_tags_that_are_nested_too_deeply_are_dropped() -> None:
    document = nest("b", MAX_DEPTH, "<b>one</b> two")
    assert translate_into_itself(document) == nest("b", MAX_DEPTH, "one two")


@pytest.mark.parametrize(
    "document",
    [
        f"<p>{nest('i', MAX_DEPTH + 8, 'one')} two</p>",
        f"<p><b>{nest('i', MAX_DEPTH - 1, '<b>one</b> two')}</b> three</p>",
        f"<b>{nest('i', MAX_DEPTH - 1, '<b>one<div>two</div></b> three')}</b> four",
    ],
)
def test_the_end_tag_of_a_dropped_tag_closes_no_outer_element(document: str) -> None:
    written = BalanceChecker(translate_into_itself(document))
    assert written.balanced
    assert written.words == BalanceChecker(document).words


def test_the_end_tag_of_an_element_also_closes_dropped_tags_inside_it() -> None:
    document = f"<b>{nest('i', MAX_DEPTH - 1, '<b>one')} two <b>three</b> four</b> five"
    expected = f"<b>{nest('i', MAX_DEPTH - 1, 'one')} two <b>three</b> four</b> five"
    assert translate_into_itself(document) == expected


@pytest.mark.parametrize("depth", [2, MAX_DEPTH, MAX_DEPTH + 8])
def test_a_protected_element_ends_at_its_own_end_tag_at_any_depth(depth: int) -> None:
    inner = nest("div", depth, "one") + " two"
    document = f'<div translate="no">{inner}</div><p>three</p>'
    assert read_markup(document).segments == ["three"]
    assert translate_into_itself(document) == document


def test_a_character_number_of_thousands_of_digits_is_replaced() -> None:
    document = f"&#{'9' * 5000}; &#{'0' * 5000}65; &#{'0' * 5000}; &#66; &#x43; &#"
    assert read_markup(document).segments == ["\ufffd A \ufffd B C &#"]


TAGS = [f"<{end}{name}>" for name in ("b", "i", "sup", "a role=noteref") for end in ("", "/")]


@given(
    st.text(alphabet="<>/&;!-='\" ab1\n", max_size=60)
    | st.lists(st.sampled_from([*TAGS, "<img>", "one", "1", " "]), max_size=20).map("".join)
)
@example("a!</b>")
@example("1<b>2<i>a</b>")
@example("a<sup>1</b></sup>")
@example("a<sup><b><i>1</b></sup>")
@example("a<sup>1<b></sup>2</b>")
def test_any_text_is_read_and_written_with_balanced_inline_tags(document: str) -> None:
    written = translate_into_itself(document)
    tags = [token for token in tokenize(written) if token.name in INLINE]
    opened = sum(token.kind is TokenKind.OPENING for token in tags)
    # A document without segments is copied, even if its tags are not balanced.
    assert 2 * opened == len(tags) or not read_markup(document).segments, written


@pytest.mark.parametrize(
    "document",
    [
        "!</b>",
        "<p>12</b></p>",
        "<td>1<b>2<i>3</b></td>",
        "<i>3.<br></i>&amp;",
        '1 <a id="x">2 <b>3<p>4</p></b>5</a> 6',
    ],
)
def test_text_without_letters_stays_as_it_was_written(document: str) -> None:
    assert read_markup(document).segments == []
    assert translate_into_itself(document) == document


@pytest.mark.parametrize("document", ["<p><sup> 1</sup> Word</p>", "home <img><sup> 1</sup> x"])
def test_a_space_inside_the_number_of_a_note_stays_inside(document: str) -> None:
    assert translate_into_itself(document) == document


@pytest.mark.parametrize(
    "unit",
    [
        "<b>a</b> ",
        "a <img> ",
        "<b>",
        "<!--",
        "<a ",
        "&",
        "</b>",
        "<",
        "<p>",
        "<![",
        "<?",
        "<i><b></i>",
        "<pre><b></b>",
    ],
)
def test_hostile_documents_cost_linear_time(unit: str) -> None:
    """Four times the size costs about four times the time, not sixteen times."""

    def cost(characters: int) -> float:
        started = time.process_time()
        translate_into_itself(unit * (characters // len(unit)))
        return time.process_time() - started

    # The minimum is the run that other processes disturbed least.
    small, large = (min(cost(size) for _ in range(3)) for size in (10_000, 40_000))
    assert large < 8 * small + 0.2


@pytest.mark.parametrize("text", ["a", "1", ""])
@pytest.mark.parametrize("end", ["</sup>", "", "a"])
def test_nested_numbers_of_notes_cost_linear_time(text: str, end: str) -> None:
    def cost(depth: int) -> float:
        started = time.process_time()
        read_markup(f"<sup>{text}" * depth + end * depth)
        return time.process_time() - started

    small, large = (min(cost(depth) for _ in range(3)) for depth in (4_000, 16_000))
    assert large < 8 * small + 0.05


@pytest.mark.parametrize(("begin", "unit", "end"), [("<", "a", ""), ("</", "a", ""), ("", "<b><p>", "</i>")])
def test_reading_long_hostile_documents_costs_linear_time(begin: str, unit: str, end: str) -> None:
    """The tag has no end, or the elements are nested. Scanning the rest for each tag would be quadratic."""

    def cost(characters: int) -> float:
        times = characters // len(unit + end)
        document = begin + unit * times + end * times
        started = time.process_time()
        read_markup(document)
        return time.process_time() - started

    # The minimum is the run that other processes disturbed least.
    small, large = (min(cost(size) for _ in range(3)) for size in (50_000, 200_000))
    assert large < 8 * small + 0.2


def test_a_word_for_two_words_is_inside_the_element_of_one_of_them() -> None:
    """Korean has no article, so "학생은" is aligned with "The" and with the bold "student", and is bold."""
    document = read_markup("<p>The <b>student</b> reads.</p>")
    links = (((0, 3), (0, 3)), ((4, 11), (0, 3)), ((12, 17), (4, 7)))
    translation = SegmentTranslation("학생은 읽는다.", links)
    assert document.fill([translation]) == "<p><b>학생은</b> 읽는다.</p>"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            '<p><img src="a house.png" alt="A house"> look</p>',
            '<p><img src="a house.png" alt="A HOUSE"> LOOK</p>',
        ),
        ("<p><a title='It&#39;s' href=x>go</a></p>", "<p><a title='IT&#39;S' href=x>GO</a></p>"),
        ('<img alt="say &quot;hi&quot; &amp; go">', '<img alt="SAY &#34;HI&#34; &amp; GO">'),
        ("<img alt=house src=house>", '<img alt="HOUSE" src=house>'),
        ('<input placeholder="your name" value="x">', '<input placeholder="YOUR NAME" value="x">'),
        ('<input type="submit" value="Send"/>', '<input type="submit" value="SEND"/>'),
        ('<option label="One" value="one">one</option>', '<option label="ONE" value="one">ONE</option>'),
        ('<button aria-label="Close">×</button>', '<button aria-label="CLOSE">×</button>'),
        (
            '<meta name="description" content="About us"><meta name="robots" content="none">',
            '<meta name="description" content="ABOUT US"><meta name="robots" content="none">',
        ),
        (
            '<meta property="og:title" content="About"><meta property="og:type" content="website">',
            '<meta property="og:title" content="ABOUT"><meta property="og:type" content="website">',
        ),
        ('<textarea placeholder="text">kept</textarea>', '<textarea placeholder="TEXT">kept</textarea>'),
        ('<img alt="two\n    lines">', '<img alt="TWO LINES">'),
    ],
)
def test_attributes_that_people_read_are_translated(document: str, expected: str) -> None:
    markup = read_markup(document)
    assert markup.fill([SegmentTranslation(text.upper()) for text in markup.segments]) == expected
    unchanged = [SegmentTranslation(text) for text in markup.segments]
    assert markup.fill(unchanged, keep_unchanged=True) == document


@pytest.mark.parametrize(
    "document",
    [
        '<img alt="Acme" translate="no">',
        '<div translate="no" title="Acme"><img alt="Acme"><input placeholder="Acme"></div>',
        '<span class="notranslate" title="Acme">Acme</span>',
        '<img alt="" title><img alt="123">',
        '<input placeholder="name@example.org"><img alt="https://example.org/a">',
        "<img data-x=\" alt='not an attribute' \">",
        '<img src="alt=house" :title="bound" data-title="data">',
        '<link rel="stylesheet" title="dark"><script title="x"></script>',
    ],
)
def test_other_attributes_are_not_translated(document: str) -> None:
    assert read_markup(document).segments == []


def test_an_attribute_moves_with_its_tag_and_a_nul_does_no_harm() -> None:
    markup = read_markup('<p>I <b title="walk">go</b> home.</p>')
    assert markup.segments == ["I go home.", "walk"]
    source, target = word_spans("I go home."), word_spans("나는 집에 간다.")
    links = [(source[0], target[0]), (source[1], target[2]), (source[2], target[1]), (source[3], target[3])]
    filled = markup.fill([SegmentTranslation("나는 집에 간다.", links), SegmentTranslation("걷다")])
    assert filled == '<p>나는 집에 <b title="걷다">간다</b>.</p>'
    # In Python, "\0000\0" is U+0000, "0" and U+0000, which looks like the mark of attribute 0.
    assert markup.fill([SegmentTranslation("\0000\0"), SegmentTranslation("\0000\0")]).count("\0") == 0
    with_nul = '<p>\0000\0 a</p><img alt="house">'
    assert read_markup(with_nul).segments == ["\0000\0 a"]


@pytest.mark.parametrize(
    "document",
    [
        '<label>Name: <input name="n"></label>',
        "<p>Go <b>home<br>now</b> or later</p>",
        '<a href="x">one<br>two</a>',
        '<a href="x"><b>one</b><br>two</a>',
        '<a href="x">one <b>two<br>three</b></a>',
    ],
)
def test_an_element_is_written_once_per_segment_unless_it_encloses_whole_segments(document: str) -> None:
    expected = document.replace("home<br>now", "home</b><b><br>now").replace(
        "two<br>three", "two</b><b><br>three"
    )
    assert translate_into_itself(document) == expected
