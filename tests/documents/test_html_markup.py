"""HTML stays HTML: tags balanced, and around the words that stand for theirs."""

from __future__ import annotations

import html
import random
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.corpus.english_korean import generate
from jumok.serve.markup import VOID, read_markup
from jumok.serve.translating import Candidate, Rendering
from jumok.text import split_words, word_spans

if TYPE_CHECKING:
    from jumok.values import Pair


class Balance(HTMLParser):
    """Which elements stand around each word of a document."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[tuple[str, frozenset[str]]] = []
        self.balanced = True
        self.seen: list[str] = []
        self.feed(document)
        self.close()
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        name = dict(attributes).get("id") or tag
        self.seen.append(name)
        if tag not in VOID:
            self.open.append(f"{tag}#{name}")

    def handle_endtag(self, tag: str) -> None:
        self.balanced = self.balanced and bool(self.open) and self.open.pop().startswith(f"{tag}#")

    def handle_data(self, data: str) -> None:
        around = frozenset(name.partition("#")[2] for name in self.open)
        self.words += [(word, around) for word in split_words(data)]


def mark_up(pair: Pair, generator: random.Random) -> tuple[str, dict[str, set[int]]]:
    """The source with nested inline elements, and which of its words each one holds."""
    words = split_words(pair.source)
    spans: list[tuple[int, int]] = []
    low, high = 0, len(words)
    while high - low > 1 and len(spans) < 4:
        low = generator.randint(low, high - 1)
        high = generator.randint(low + 1, high)
        spans.append((low, high))
    cuts = word_spans(pair.source)
    held, opening, closing = {}, {}, {}
    for number, (start, end) in enumerate(spans):
        tag = generator.choice(["b", "i", "em", "span", "a", "u"])
        held[f"t{number}"] = set(range(start, end))
        opening.setdefault(cuts[start][0], []).append(f'<{tag} id="t{number}">')
        closing.setdefault(cuts[end - 1][1], []).insert(0, f"</{tag}>")
    out, last = [], 0
    for place in sorted({*opening, *closing}):
        out += [pair.source[last:place], *closing.get(place, ()), *opening.get(place, ())]
        last = place
    return "<p>" + "".join([*out, pair.source[last:]]) + "</p>", held


def test_fifty_documents_keep_nested_tags_balanced_and_around_the_right_words() -> None:
    generator = random.Random(7)
    pairs = list(generate("test", 50, polite=0.0))
    assert len(pairs) == 50
    for pair in pairs:
        assert pair.alignment is not None
        document, held = mark_up(pair, generator)
        markup = read_markup(document)
        assert markup.texts == [pair.source]
        source, target = word_spans(pair.source), word_spans(pair.target)
        links = [(source[i], target[j]) for i, j in sorted(pair.alignment.sure)]
        written = markup.write([pair.target], [links])
        balance = Balance(written)
        assert balance.balanced, written
        assert set(balance.seen) >= held.keys(), written
        assert [word for word, _ in balance.words] == split_words(pair.target), written
        behind = {j: {i for i, k in pair.alignment.sure if k == j} for j in range(len(target))}
        for j, (_, around) in enumerate(balance.words):
            for name, words in held.items():
                if behind[j] and behind[j] <= words:
                    assert name in around, (written, j, name)
                if behind[j] and not behind[j] & words:
                    assert name not in around, (written, j, name)


def keep(document: str) -> str:
    """Written with every text 'translated' into itself."""
    markup = read_markup(document)
    links = [[(span, span) for span in word_spans(text)] for text in markup.texts]
    return markup.write(markup.texts, links)


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
    ],
)
def test_a_document_translated_into_itself_is_itself(document: str) -> None:
    assert keep(document) == document


def test_a_picture_stays_in_its_link() -> None:
    assert keep('<p><a href="x"><img src=y></a> one</p>') == '<p><a href="x"><img src=y> </a>one</p>'


def test_what_is_not_to_be_translated_is_not_among_the_texts() -> None:
    document = "<p>one <code>two</code></p><script>three</script><p class='x notranslate'>four</p><p>five</p>"
    assert [text.strip() for text in read_markup(document).texts] == ["one", "five"]


def test_an_inline_time_does_not_cut_its_sentence() -> None:
    assert read_markup("<p>at <time>noon</time> sharp</p>").texts == ["at noon sharp"]


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
def test_what_is_not_translated_ends_where_its_element_does(document: str, written: str) -> None:
    assert read_markup(document).texts == ["two"]
    assert keep(document) == written


def test_an_element_whose_words_have_no_counterpart_stays_empty() -> None:
    markup = read_markup('<p><a name="x">The</a> house</p>')
    source, target = word_spans("The house"), word_spans("집")
    assert markup.write(["집"], [[(source[1], target[0])]]) == '<p><a name="x"></a>집</p>'


@pytest.mark.parametrize(
    ("first", "second"), [("你好。", "2024 年"), ("好", "abc"), ("<x>", "い"), ("b", "\u0301c")]
)
def test_sentences_that_meet_without_a_space_keep_their_words_apart(first: str, second: str) -> None:
    """As Chinese and Japanese are written: the last word of one and the first of the next look like one."""
    source = "One two. Three."
    spans = ((0, 8), (9, 15))
    sentences = ((Candidate(first, 0.0, ((0, 0),)),), (Candidate(second, 0.0, ((0, 0),)),))
    rendering = Rendering(source, spans, sentences, "zh")
    written = read_markup("One two. <b>Three</b>.").write([rendering.text()], [rendering.links()])
    begin, end = word_spans(second)[0]
    assert f"<b>{second[begin:end]}</b>" in written
    assert written.startswith(html.escape(first))


def test_faulty_html_comes_out_balanced() -> None:
    for document in ("<b>one <i>two</b> three</i>", "<p><b>one", "one</b></p>", "<b>one<p>two</b>three</p>"):
        written = keep(document)
        names = [name for name in Balance(written).seen if name != "p"]
        assert written.count("<b>") == written.count("</b>"), written
        assert written.count("<i>") == written.count("</i>"), written
        assert len(names) <= 4


def test_a_character_with_a_number_of_thousands_of_digits_is_none() -> None:
    document = f"&#{'9' * 5000}; &#{'0' * 5000}65; &#{'0' * 5000}; &#66; &#x43; &#"
    assert read_markup(document).texts == ["\ufffd A \ufffd B C &#"]


@given(st.text(alphabet="<>/&;!-='\" ab\n", max_size=60))
def test_any_text_is_read_and_written(document: str) -> None:
    keep(document)


@pytest.mark.parametrize(
    "unit", ["<b>a</b> ", "a <img> ", "<b>", "<!--", "<a ", "&", "</b>", "<", "<p>", "<![", "<?"]
)
def test_hostile_documents_cost_little(unit: str) -> None:
    """Four times as much costs about four times as much, not sixteen times."""

    def cost(characters: int) -> float:
        begin = time.process_time()
        keep(unit * (characters // len(unit)))
        return time.process_time() - begin

    few, many = cost(10_000), cost(40_000)
    assert many < 8 * few + 0.2


@pytest.mark.parametrize(("begin", "unit", "end"), [("<", "a", ""), ("</", "a", ""), ("", "<b><p>", "</i>")])
def test_long_hostile_documents_cost_little(begin: str, unit: str, end: str) -> None:
    """Reading them: whatever has no end, or stands around everything, is not gone through again and again."""

    def cost(characters: int) -> float:
        times = characters // len(unit + end)
        document = begin + unit * times + end * times
        started = time.process_time()
        read_markup(document)
        return time.process_time() - started

    few, many = cost(50_000), cost(200_000)
    assert many < 8 * few + 0.2
