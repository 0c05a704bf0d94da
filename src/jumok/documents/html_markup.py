"""Translate the text of HTML: block tags stay in place, inline tags move with the words they enclose.

    markup = read_markup("<p>I <b>go</b> home.</p>")
    markup.segments                                ["I go home."]
    markup.fill([SegmentTranslation(text, links)]) <p>나는 집에 <b>간다</b>.</p>

An inline element around source words is written around the target words that are aligned to them: once per
run of adjacent words. An element without aligned words is written empty, next to the word that follows or
precedes it. Inline tags of the output are balanced even if those of the input are not, because they are
written from a tree. Inline tags nested deeper than MAX_DEPTH are dropped; their text is translated.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from html import escape, unescape
from itertools import islice, takewhile, zip_longest
from typing import TYPE_CHECKING

from jumok.documents.html_tokenizer import HtmlToken, TokenKind, tokenize
from jumok.text.words import word_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jumok.documents.document import SegmentTranslation, SpanLink
    from jumok.text import Span

    Ancestors = tuple["Element", ...]  # the elements around a position, outermost first

__all__ = ["INLINE", "MAX_DEPTH", "VOID", "HtmlMarkup", "OpenNames", "read_markup", "read_tokens"]

INLINE = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
    ]
)
VOID_INLINE = frozenset(("img", "wbr"))
VOID = (
    frozenset(
        ["area", "base", "br", "col", "embed", "hr", "input", "link", "meta", "param", "source", "track"]
    )
    | VOID_INLINE
)
PROTECTED = frozenset(["script", "style", "code", "pre", "textarea", "svg", "math", "noscript", "template"])
"""Elements whose content is copied, not translated, like that of translate="no" and class="notranslate"."""
FOREIGN = frozenset(["svg", "math"])
"""Only inside these does a "/" at the end of a tag make the element empty; HTML itself ignores it."""
_TABLE_PARTS = frozenset(["td", "th", "tr", "tbody", "tfoot"])
_HEADERS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup"])
_LISTS = frozenset(["ul", "ol", "menu", "dl", "li", "dt", "dd"])
_SECTIONS = frozenset(["address", "article", "aside", "div", "footer", "main", "nav", "search", "section"])
_OTHER_BLOCKS = frozenset(
    ["blockquote", "details", "fieldset", "figcaption", "figure", "form", "hr", "p", "pre"]
)
IMPLICIT_END = {
    "p": _TABLE_PARTS | _HEADERS | _LISTS | _SECTIONS | _OTHER_BLOCKS | {"table"},
    "li": frozenset(["li"]),
    "dt": frozenset(["dt", "dd"]),
    "dd": frozenset(["dt", "dd"]),
    "td": _TABLE_PARTS,
    "th": _TABLE_PARTS,
    "tr": _TABLE_PARTS - {"td", "th"},
    "option": frozenset(["option", "optgroup"]),
}
"""Elements whose end tag may be omitted, and the tags that then end them."""
MAX_DEPTH = 32
"""Inline elements inside each other in a segment: each word is compared with all elements around it."""
_PROTECTED_ATTRIBUTE = re.compile(
    r"""\stranslate\s*=\s*["']?no["'\s>]|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate\b)""",
    re.IGNORECASE,
)


@dataclass(eq=False, slots=True)
class Element:
    """An inline element around characters of a segment; an atomic one is at a single position."""

    opening: str
    closing: str
    start: int
    end: int = 0
    atomic: bool = False
    """Void, a comment, or protected: it is written as a whole, and no words are put into it."""
    space_after: bool = False
    """Whether a space follows it in the source. The text of the segment lacks this space, because there it
    would be the first character, or the second of two spaces."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The text between two block tags, and its inline elements in source order, each with its ancestors."""

    text: str
    elements: list[tuple[Element, Ancestors]]


@dataclass(frozen=True, slots=True)
class HtmlMarkup:
    """A document or fragment: segments to translate, and everything else verbatim."""

    parts: list[str | Segment]

    @property
    def segments(self) -> list[str]:
        return [part.text for part in self.parts if isinstance(part, Segment)]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        """Return the document with each segment replaced by its translation."""
        remaining = iter(translations)
        return "".join(
            part if isinstance(part, str) else _fill_segment(part, next(remaining)) for part in self.parts
        )


def read_markup(document: str) -> HtmlMarkup:
    """Parse a document or fragment. Malformed HTML raises no error."""
    return read_tokens(tokenize(document))


def read_tokens(tokens: Iterable[HtmlToken]) -> HtmlMarkup:
    """Parse tokens, which may be tags of another syntax than HTML."""
    reader = _Reader()
    for token in tokens:
        reader.add(token)
    return reader.finish()


# --- Reading ------------------------------------------------------------------------------------------------


class _Reader:
    """Groups tokens into segments with their inline elements, and verbatim text between the segments."""

    def __init__(self) -> None:
        self._parts: list[str | Segment] = []
        self._segment = _SegmentBuilder()
        self._protected: _ProtectedElement | None = None
        # Names and end tags of inline elements around blocks, as in <a><div>…</div></a>.
        self._names_around = OpenNames()
        self._closings_around: list[str] = []

    def add(self, token: HtmlToken) -> None:
        if self._protected is not None:
            self._add_protected(self._protected, token)
        elif token.kind is TokenKind.TEXT:
            self._segment.add_text(token.raw)
        elif token.kind is TokenKind.OPENING:
            self._open(token)
        elif token.kind is TokenKind.CLOSING:
            self._close(token)
        elif self._segment.has_text:
            self._segment.add_atomic(token.raw)
        else:
            self._add_block(token.raw)

    def finish(self) -> HtmlMarkup:
        if self._protected is not None:
            self._end_protected(self._protected)
        self._end_segment()
        self._parts.extend(reversed(self._closings_around))
        return HtmlMarkup(self._parts)

    def _open(self, token: HtmlToken) -> None:
        name = token.name
        is_empty = name in VOID or (name in FOREIGN and token.raw.endswith("/>"))
        if not is_empty and (name in PROTECTED or _PROTECTED_ATTRIBUTE.search(token.raw)):
            self._protected = _ProtectedElement(token)
        elif name in VOID_INLINE:
            self._segment.add_atomic(token.raw)
        elif name in INLINE:
            self._segment.open_element(token)
        else:
            self._add_block(token.raw)

    def _close(self, token: HtmlToken) -> None:
        name = token.name
        if self._segment.close_element(name):
            return
        if self._names_around.close(name):
            self._end_segment()
            while len(self._closings_around) > len(self._names_around):
                self._parts.append(self._closings_around.pop())
        elif name not in INLINE and name not in VOID:
            self._add_block(token.raw)

    def _add_protected(self, element: _ProtectedElement, token: HtmlToken) -> None:
        if element.ends_before(token):
            self._end_protected(element)
            self.add(token)
            return
        element.add(token)
        if element.has_ended:
            self._end_protected(element)

    def _end_protected(self, element: _ProtectedElement) -> None:
        self._protected = None
        if element.is_inline:
            self._segment.add_atomic(element.to_text())
        else:
            self._add_block(element.to_text())

    def _add_block(self, raw: str) -> None:
        """End the segment. Inline elements that are open enclose the blocks from here on."""
        segment = self._segment
        self._end_segment()
        for name, element in zip_longest(segment.names, segment.open):
            self._names_around.push(name)
            self._closings_around.append("" if element is None else element.closing)
            self._parts.append("" if element is None else element.opening)
        self._parts.append(raw)

    def _end_segment(self) -> None:
        self._parts.extend(self._segment.finish())
        self._segment = _SegmentBuilder()


class OpenNames:
    """The names of all open elements, outermost first, also of those deeper than MAX_DEPTH.

    They are counted, so that an end tag without a start tag costs no search, however many are open.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._names)

    def push(self, name: str) -> None:
        self._names.append(name)
        self._counts[name] += 1

    def close(self, name: str) -> bool:
        """Close the innermost element of this name, and all inside it; return False if there is none."""
        if not self._counts[name]:
            return False
        closed = ""
        while closed != name:
            closed = self._names.pop()
            self._counts[closed] -= 1
        return True


class _SegmentBuilder:
    """The segment that is being read."""

    def __init__(self) -> None:
        self.names = OpenNames()
        self.open: Ancestors = ()  # the outermost MAX_DEPTH of them
        self._elements: list[tuple[Element, Ancestors]] = []
        self._text: list[str] = []  # joined at the end: repeated concatenation would be quadratic
        self._length = 0
        self._raw: list[str] = []  # the text as it is written in the document
        self._indent = ""  # white space before the text; it is visible after <input>, <br> and the like
        self._last_atomic: Element | None = None  # if no text has followed it

    @property
    def has_text(self) -> bool:
        return bool(self._text)

    def add_text(self, raw: str) -> None:
        self._raw.append(raw)
        # HTML collapses white space, line breaks too, to one space.
        text = re.sub(r"[ \t\r\n\f]+", " ", _unescape(raw))
        if text[:1] == " " and (not self._text or self._text[-1][-1] == " "):
            text = text[1:]
            if self._last_atomic is not None:
                self._last_atomic.space_after = True
            elif not self._text:
                self._indent += raw[: len(raw) - len(raw.lstrip(" \t\r\n\f"))]
        if text:
            self._text.append(text)
            self._length += len(text)
            self._last_atomic = None

    def add_atomic(self, raw: str) -> None:
        self._last_atomic = Element(raw, "", self._length, self._length, atomic=True)
        self._elements.append((self._last_atomic, self.open))

    def open_element(self, token: HtmlToken) -> None:
        self.names.push(token.name)
        if len(self.open) < MAX_DEPTH:
            element = Element(token.raw, token.closing or f"</{token.name}>", self._length)
            self._elements.append((element, self.open))
            self.open = (*self.open, element)

    def close_element(self, name: str) -> bool:
        """Close the innermost element of this name, and all inside it; return False if there is none."""
        if not self.names.close(name):
            return False
        for element in self.open[len(self.names) :]:
            element.end = self._length
        self.open = self.open[: len(self.names)]
        return True

    def finish(self) -> list[str | Segment]:
        for element in self.open:
            element.end = self._length
        text = "".join(self._text)
        if text.strip() or any(element.atomic for element, _ in self._elements):
            return [self._indent, Segment(text, self._elements)]
        return ["".join(self._raw)]  # white space between blocks


class _ProtectedElement:
    """An element that is copied verbatim, up to its end."""

    def __init__(self, opening: HtmlToken) -> None:
        self.is_inline = opening.name in INLINE or opening.name == "code"
        self._name = opening.name
        self._open_names = OpenNames()  # of this element and those in it
        self._open_names.push(opening.name)
        self._raw = [opening.raw]

    @property
    def has_ended(self) -> bool:
        return not self._open_names

    def add(self, token: HtmlToken) -> None:
        self._raw.append(token.raw)
        is_empty = token.name in VOID or (
            token.raw.endswith("/>") and not FOREIGN.isdisjoint(self._outermost_names())
        )
        if token.kind is TokenKind.OPENING and not is_empty:
            self._open_names.push(token.name)
        elif token.kind is TokenKind.CLOSING:
            self._open_names.close(token.name)

    def ends_before(self, token: HtmlToken) -> bool:
        """Return whether a token implies the omitted end tag of this element."""
        ending_tags = IMPLICIT_END.get(self._name)
        if ending_tags is None or not INLINE.issuperset(islice(self._outermost_names(), 1, None)):
            return False
        if token.kind is TokenKind.CLOSING:  # of an element around this one
            return token.name not in INLINE and token.name not in VOID and token.name != self._name
        return token.kind is TokenKind.OPENING and token.name in ending_tags

    def to_text(self) -> str:
        return "".join([*self._raw, *(f"</{name}>" for name in reversed(self._open_names))])

    def _outermost_names(self) -> Iterator[str]:
        """Yield at most MAX_DEPTH names, because every token is compared with them."""
        return islice(self._open_names, MAX_DEPTH)


def _unescape(raw: str) -> str:
    """Unescape entities. Character references are cut to eight digits: `int` refuses thousands of digits."""
    return unescape(re.sub(r"&#(?=[0-9])0*+([0-9]*+)", lambda match: f"&#{match[1][:8] or 0}", raw))


# --- Writing ------------------------------------------------------------------------------------------------


def _fill_segment(segment: Segment, translation: SegmentTranslation) -> str:
    """Return the translation with inline elements around the words aligned to those they enclosed."""
    text, links = translation.text, translation.links
    words = _target_words(text, links)
    ancestors_of_words = _target_ancestors(segment, words, links)
    placed = {element for ancestors in ancestors_of_words for element in ancestors}
    before, after = _anchor_elements(segment, words, links, placed)
    writer = _Writer()
    written = 0  # characters of the text
    for index, ((start, end), ancestors) in enumerate(zip(words, ancestors_of_words, strict=True)):
        writer.close_to(_common_prefix(writer.open, ancestors))
        writer.write(text[written:start])
        writer.write_anchored(before.get(index, ()), ancestors)
        writer.go_to(ancestors)
        writer.write(text[start:end])
        writer.write_anchored(after.get(index, ()), ancestors)
        written = end
    trailing = before.get(len(words), [])
    if trailing and trailing[-1][0].start == len(segment.text) > len(segment.text.rstrip()):
        # In the source, the last element follows the final space, so it is written after the final space.
        writer.close_to(_common_prefix(writer.open, trailing[-1][1]))
        writer.write(text[written:])
        written = len(text)
    writer.write_anchored(trailing, writer.open)
    writer.close_to(())
    writer.write(text[written:])
    return "".join(writer.output)


def _target_words(text: str, links: Sequence[SpanLink]) -> list[Span]:
    """Return the aligned words, as the links have them, and the words between them.

    Splitting the whole text into words could give others: each sentence was split by itself, and two
    sentences can meet without a space ("。2024").
    """
    words: list[Span] = []
    covered = 0  # characters of the text
    for start, end in [*sorted({target for _, target in links}), (len(text), len(text))]:
        words += [(left + covered, right + covered) for left, right in word_spans(text[covered:start])]
        words += [(start, end)] * (start < end)
        covered = end
    return words


class _Writer:
    """Writes text and tags, and closes what it has opened, innermost first."""

    def __init__(self) -> None:
        self.output: list[str] = []
        self.open: Ancestors = ()

    def write(self, text: str) -> None:
        self.output.append(escape(text, quote=False))

    def write_anchored(self, elements: Sequence[tuple[Element, Ancestors]], around_word: Ancestors) -> None:
        """Write elements next to a word, each inside those of its ancestors that are around the word too, or
        are written by this call.
        """
        written: set[Element] = set()
        for element, ancestors in elements:
            shared = _common_prefix(ancestors, around_word)
            enclosing = (*shared, *(ancestor for ancestor in ancestors[len(shared) :] if ancestor in written))
            self.go_to(enclosing)
            if element.atomic:
                self.output.append(element.opening + " " * element.space_after)
            else:  # it stays open for its own content; whatever comes next closes it
                self.go_to((*enclosing, element))
                written.add(element)

    def go_to(self, ancestors: Ancestors) -> None:
        """Close and open elements until exactly these are open."""
        self.close_to(_common_prefix(self.open, ancestors))
        for element in ancestors[len(self.open) :]:
            self.output.append(element.opening)
        self.open = ancestors

    def close_to(self, ancestors: Ancestors) -> None:
        """Close the innermost elements until only these, a prefix of the open ones, are open."""
        while len(self.open) > len(ancestors):
            self.output.append(self.open[-1].closing)
            self.open = self.open[:-1]


def _common_prefix(first: Ancestors, second: Ancestors) -> Ancestors:
    pairs = zip(first, second, strict=False)
    return tuple(element for element, _ in takewhile(lambda pair: pair[0] is pair[1], pairs))


def _target_ancestors(segment: Segment, words: Sequence[Span], links: Sequence[SpanLink]) -> list[Ancestors]:
    """Return the elements to write around each target word: those around most source words aligned to it."""
    stripped_span = (len(segment.text) - len(segment.text.lstrip()), len(segment.text.rstrip()))
    by_source = _source_ancestors(segment, {stripped_span, *(source for source, _ in links)})
    votes: dict[Span, Counter[Ancestors]] = {}
    for source, target in links:
        votes.setdefault(target, Counter())[by_source[source]] += 1
    of_aligned = [votes[word].most_common(1)[0][0] if word in votes else None for word in words]
    of_previous = _fill_forward(of_aligned)
    of_next = _fill_forward(of_aligned[::-1])[::-1]
    return [
        # An unaligned word is inside the elements that the aligned words on both sides share; without
        # aligned words on both sides, inside the elements around the whole source text.
        ancestors
        if ancestors is not None
        else by_source[stripped_span]
        if previous is None or following is None
        else _common_prefix(previous, following)
        for ancestors, previous, following in zip(of_aligned, of_previous, of_next, strict=True)
    ]


def _fill_forward(values: Sequence[Ancestors | None]) -> list[Ancestors | None]:
    """Replace each None by the last other value before it."""
    known: Ancestors | None = None
    return [known := value if value is not None else known for value in values]


def _source_ancestors(segment: Segment, spans: set[Span]) -> dict[Span, Ancestors]:
    """Return the elements around each span of the source, found in one sweep."""
    upcoming = [element for element, _ in reversed(segment.elements) if not element.atomic]
    around: list[Element] = []
    by_span: dict[Span, Ancestors] = {}
    for start, end in sorted(spans):
        while upcoming and upcoming[-1].start <= start:
            around.append(upcoming.pop())
        around = [element for element in around if element.end > start]
        by_span[start, end] = tuple(element for element in around if end <= element.end)
    return by_span


Anchors = dict[int, list[tuple[Element, "Ancestors"]]]
"""Elements by the index of the target word next to which they are written."""


def _anchor_elements(
    segment: Segment, words: Sequence[Span], links: Sequence[SpanLink], placed: set[Element]
) -> tuple[Anchors, Anchors]:
    """Return the elements that are around no target word, by the word that they precede or follow.

    An image stays before the word that it precedes; a footnote stays after the word that it is attached to.
    Elements before no aligned word have the index `len(words)`.
    """
    indices = {word: index for index, word in enumerate(words)}
    first_target: dict[int, int] = {}  # start of a source word → index of the first word aligned to it
    last_target: dict[int, int] = {}  # end of a source word → index of the last word aligned to it
    for (start, end), target in links:
        first_target[start] = min(first_target.get(start, len(words)), indices[target])
        last_target[end] = max(last_target.get(end, 0), indices[target])
    starts = sorted(first_target)
    before: Anchors = {}
    after: Anchors = {}
    for element, ancestors in segment.elements:
        if not element.atomic and element in placed:
            continue
        if element.start in last_target and element.start not in first_target:
            after.setdefault(last_target[element.start], []).append((element, ancestors))
            continue
        following = bisect_left(starts, element.start)
        index = first_target[starts[following]] if following < len(starts) else len(words)
        before.setdefault(index, []).append((element, ancestors))
    return before, after
