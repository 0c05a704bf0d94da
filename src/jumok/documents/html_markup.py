"""HTML with its text exchanged: blocks stay as they are, inline tags move with the words they stand around.

    document = read_markup("<p>I <b>go</b> home.</p>")
    document.texts                                 ["I go home."]: what is to be translated
    document.write([translated], [links])          <p>나는 집에 <b>간다</b>.</p>

An element that marks words of the source marks the words of the translation that stand for them, as often as
they stand apart; an element whose words have no counterpart stays, empty, where it would have been. What
comes out is balanced because it is written from a tree, whatever came in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import takewhile
from typing import TYPE_CHECKING

from jumok.serve.tags import Kind, Token, tokens
from jumok.text.words import word_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.serve.translating import SpanLink
    from jumok.text import Span

    Path = tuple["Element", ...]

__all__ = ["Markup", "read_markup", "read_tokens"]

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
KEPT = frozenset(["script", "style", "code", "pre", "textarea", "svg", "math", "noscript", "template"])
"""Elements whose inside is not translated; nor is that of translate="no" and class="notranslate"."""
FOREIGN = frozenset(["svg", "math"])
"""Only in these does a slash at the end of a tag mean that nothing follows; HTML itself ignores it."""
_CELLS = frozenset(["td", "th", "tr", "tbody", "tfoot"])
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup"])
_LISTS = frozenset(["ul", "ol", "menu", "dl", "li", "dt", "dd"])
_SECTIONS = frozenset(["address", "article", "aside", "div", "footer", "main", "nav", "search", "section"])
_STANDING = frozenset(["blockquote", "details", "fieldset", "figcaption", "figure", "form", "hr", "p", "pre"])
ENDED_BY = {
    "p": _CELLS | _HEADINGS | _LISTS | _SECTIONS | _STANDING | {"table"},
    "li": frozenset(["li"]),
    "dt": frozenset(["dt", "dd"]),
    "dd": frozenset(["dt", "dd"]),
    "td": _CELLS,
    "th": _CELLS,
    "tr": _CELLS - {"td", "th"},
    "option": frozenset(["option", "optgroup"]),
}
"""Elements that may lack an end, and the tags at which they then end."""
DEEPEST = 32
_MARK = re.compile(
    r"""\stranslate\s*=\s*["']?no["'\s>]|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate\b)""",
    re.IGNORECASE,
)


@dataclass(eq=False, slots=True)
class Element:
    """An inline element around characters of a segment, or at one place of it if it is void or kept."""

    opening: str
    closing: str
    start: int
    end: int = 0
    whole: bool = False
    """To be written at one place, never around words."""
    spaced: bool = False
    """A space behind it is not in the text, which begins there or has one before it: it is to be written."""


@dataclass(slots=True)
class Segment:
    """A stretch of text between two block tags, with the inline elements inside it."""

    text: str = ""
    elements: list[tuple[Element, Path]] = field(default_factory=list)  # each with those around it


@dataclass(frozen=True, slots=True)
class Markup:
    """A document: its text to be translated, and everything else verbatim."""

    parts: list[str | Segment]

    @property
    def texts(self) -> list[str]:
        return [part.text for part in self.parts if isinstance(part, Segment)]

    def write(self, translated: Sequence[str], links: Sequence[Sequence[SpanLink]]) -> str:
        """The document with its texts exchanged, in the order of `texts`."""
        pairs = iter(zip(translated, links, strict=True))
        return "".join(part if isinstance(part, str) else _place(part, *next(pairs)) for part in self.parts)


def read_markup(document: str) -> Markup:
    """Any document or fragment; faulty HTML is read as well as it goes."""
    return read_tokens(tokens(document))


def read_tokens(row: Iterable[Token]) -> Markup:
    """What has been cut into tokens, however its tags are written."""
    reader = _Reader()
    for token in row:
        reader.take(token)
    return reader.finish()


class _Reader:
    """Sorts tokens into segments, what is kept, and what stands between."""

    def __init__(self) -> None:
        self._parts: list[str | Segment] = []
        self._segment = Segment()
        self._text: list[str] = []  # of the segment; joined when it ends, since a sum copies all there is
        self._length = 0
        self._spaces: list[str] = []  # the text of the segment as it was written
        self._indent = ""  # the spaces before it: behind a box to tick, <br> and the like they are seen
        self._whole: Element | None = None  # the last element, if it is whole and no text stands behind it
        self._names: list[str] = []  # of the elements that are open
        self._open: Path = ()
        # Elements around blocks, as <a><div>…</div></a>, and their ends.
        self._around: list[tuple[str, str]] = []
        self._names_around: Counter[str] = Counter()
        self._kept: list[str] = []  # the names of elements inside what is not translated
        self._verbatim: list[str] = []
        self._kept_is_inline = False

    def take(self, token: Token) -> None:
        if self._kept:
            self._keep(token)
        elif token.kind is Kind.TEXT:
            self._add_text(token.raw)
        elif token.kind is Kind.OPENING:
            self._begin(token)
        elif token.kind is Kind.CLOSING:
            self._end(token)
        elif self._text:
            self._add_whole(token.raw)
        else:
            self._add_block(token.raw)

    def finish(self) -> Markup:
        if self._kept:
            self._end_kept()
        self._end_segment()
        self._parts.extend(closing for _, closing in reversed(self._around))
        return Markup(self._parts)

    def _begin(self, token: Token) -> None:
        name = token.name
        alone = name in VOID or (name in FOREIGN and token.raw.endswith("/>"))
        if not alone and (name in KEPT or _is_marked(token.raw)):
            self._kept, self._verbatim = [name], [token.raw]
            self._kept_is_inline = name in INLINE | {"code"}
        elif name in VOID_INLINE:
            self._add_whole(token.raw)
        elif name not in INLINE:
            self._add_block(token.raw)
        elif len(self._open) < DEEPEST:
            element = Element(token.raw, token.closing or f"</{name}>", self._length)
            self._segment.elements.append((element, self._open))
            self._names.append(name)
            self._open = (*self._open, element)

    def _end(self, token: Token) -> None:
        name = token.name
        if name in self._names:  # those opened inside it end here too
            place = _last(self._names, name)
            for element in self._open[place:]:
                element.end = self._length
            del self._names[place:]
            self._open = self._open[:place]
        elif self._names_around[name]:
            self._end_segment()
            inside = ""
            while inside != name:
                inside, closing = self._around.pop()
                self._names_around[inside] -= 1
                self._parts.append(closing)
        elif name not in INLINE and name not in VOID:
            self._add_block(token.raw)

    def _keep(self, token: Token) -> None:
        if self._ends_what_is_kept(token):
            self._end_kept()
            self.take(token)
            return
        self._verbatim.append(token.raw)
        alone = token.name in VOID or (token.raw.endswith("/>") and not FOREIGN.isdisjoint(self._kept))
        if token.kind is Kind.OPENING and not alone and len(self._kept) < DEEPEST:
            self._kept.append(token.name)
        elif token.kind is Kind.CLOSING and token.name in self._kept:
            del self._kept[_last(self._kept, token.name) :]
            if not self._kept:
                self._end_kept()

    def _ends_what_is_kept(self, token: Token) -> bool:
        """Whether an element that lacks its own end is over, with nothing but inline elements open in it."""
        enders = ENDED_BY.get(self._kept[0])
        if enders is None or not INLINE.issuperset(self._kept[1:]):
            return False
        if token.kind is Kind.CLOSING:  # of what stands around it
            return token.name not in INLINE and token.name not in VOID and token.name != self._kept[0]
        return token.kind is Kind.OPENING and token.name in enders

    def _end_kept(self) -> None:
        raw = "".join([*self._verbatim, *(f"</{tag}>" for tag in reversed(self._kept))])
        self._kept, self._verbatim = [], []
        if self._kept_is_inline:
            self._add_whole(raw)
        else:
            self._add_block(raw)

    def _add_text(self, raw: str) -> None:
        self._spaces.append(raw)
        # In HTML a line break is a space, and several are one.
        text = re.sub(r"[ \t\r\n\f]+", " ", _unescape(raw))
        if text[:1] == " " and (not self._text or self._ends_in_space()):
            text = text[1:]
            if self._whole is not None:
                self._whole.spaced = True
            elif not self._text:
                self._indent += raw[: len(raw) - len(raw.lstrip(" \t\r\n\f"))]
        if text:
            self._text.append(text)
            self._length += len(text)
            self._whole = None

    def _ends_in_space(self) -> bool:
        return bool(self._text) and self._text[-1][-1] == " "

    def _add_whole(self, raw: str) -> None:
        self._whole = Element(raw, "", self._length, self._length, whole=True)
        self._segment.elements.append((self._whole, self._open))

    def _add_block(self, raw: str) -> None:
        """What ends a segment. Inline elements that are open stand around it from here on."""
        still_open = list(zip(self._names, self._open, strict=True))
        self._end_segment()
        for name, element in still_open:
            self._parts.append(element.opening)
            self._around.append((name, element.closing))
            self._names_around[name] += 1
        self._parts.append(raw)

    def _end_segment(self) -> None:
        segment, self._segment = self._segment, Segment()
        segment.text = "".join(self._text)
        for element in self._open:
            element.end = self._length
        spaces, indent = "".join(self._spaces), self._indent
        self._names, self._open, self._text, self._length, self._spaces = [], (), [], 0, []
        self._indent, self._whole = "", None
        if segment.text.strip() or any(element.whole for element, _ in segment.elements):
            self._parts.extend([indent, segment])
        else:
            self._parts.append(spaces)  # the indentation of the source


def _unescape(raw: str) -> str:
    """Numbers of characters cut to eight digits, which no character has: Python refuses to read thousands."""
    return unescape(re.sub(r"&#(?=[0-9])0*+([0-9]*+)", lambda found: f"&#{found[1][:8] or 0}", raw))


def _last(names: Sequence[str], name: str) -> int:
    return len(names) - 1 - names[::-1].index(name)


def _is_marked(tag: str) -> bool:
    return bool(_MARK.search(tag))


# --- Placing ------------------------------------------------------------------------------------------------


def _place(segment: Segment, text: str, links: Sequence[SpanLink]) -> str:
    """The translation of a segment with its inline elements around the words that stand for theirs."""
    words = _words(text, links)
    paths = _paths(segment, words, links)
    before, behind = _anchors(segment, words, links, {element for path in paths for element in path})
    writer = _Writer()
    last = 0
    for number, (start, end) in enumerate(words):
        path = paths[number]
        writer.close_to(_shared(writer.open, path))
        writer.write(text[last:start])
        writer.put_all(before.get(number, ()), path)
        writer.go_to(path)
        writer.write(text[start:end])
        writer.put_all(behind.get(number, ()), path)
        last = end
    final = before.get(len(words), [])
    if final and final[-1][0].start == len(segment.text) > len(segment.text.rstrip()):
        # It stands behind the last space, and that behind the last word.
        writer.close_to(_shared(writer.open, final[-1][1]))
        writer.write(text[last:])
        last = len(text)
    writer.put_all(final, writer.open)
    writer.close_to(())
    writer.write(text[last:])
    return "".join(writer.out)


def _words(text: str, links: Sequence[SpanLink]) -> list[Span]:
    """The words that are linked, and those between.

    Where sentences meet without a space ("。2024"), the words of each are others than those of the whole.
    """
    words: list[Span] = []
    last = 0
    for start, end in [*sorted({target for _, target in links}), (len(text), len(text))]:
        words += [(left + last, right + last) for left, right in word_spans(text[last:start])]
        words += [(start, end)] * (start < end)
        last = end
    return words


class _Writer:
    """Writes text and tags; what it has opened it closes, inside out."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.open: Path = ()

    def write(self, text: str) -> None:
        self.out.append(escape(text, quote=False))

    def put_all(self, elements: Sequence[tuple[Element, Path]], path: Path) -> None:
        """What stands at one place, as deep as its surroundings go along with `path` or stand here too."""
        placed: set[Element] = set()
        for element, around in elements:
            shared = _shared(around, path)
            here = (*shared, *(one for one in around[len(shared) :] if one in placed))
            self.go_to(here)
            if element.whole:
                self.out.append(element.opening + " " * element.spaced)
            else:  # it is open for what it holds; whatever comes next closes it
                self.go_to((*here, element))
                placed.add(element)

    def go_to(self, path: Path) -> None:
        self.close_to(_shared(self.open, path))
        for element in path[len(self.open) :]:
            self.out.append(element.opening)
        self.open = path

    def close_to(self, path: Path) -> None:
        while len(self.open) > len(path):
            self.out.append(self.open[-1].closing)
            self.open = self.open[:-1]


def _shared(one: Path, other: Path) -> Path:
    pairs = zip(one, other, strict=False)
    return tuple(element for element, _ in takewhile(lambda pair: pair[0] is pair[1], pairs))


def _paths(segment: Segment, words: Sequence[Span], links: Sequence[SpanLink]) -> list[Path]:
    """For each word of the translation, the elements it stands in, outermost first."""
    everything = (len(segment.text) - len(segment.text.lstrip()), len(segment.text.rstrip()))
    at = _source_paths(segment, {everything, *(source for source, _ in links)})
    behind: dict[Span, Counter[Path]] = {}
    for source, target in links:
        behind.setdefault(target, Counter())[at[source]] += 1
    paths = [behind[word].most_common(1)[0][0] if word in behind else None for word in words]
    left = _last_known(paths)
    right = _last_known(paths[::-1])[::-1]
    return [
        # A word that no source word stands behind is in what its neighbours share.
        path if path is not None else at[everything] if one is None or other is None else _shared(one, other)
        for path, one, other in zip(paths, left, right, strict=True)
    ]


def _last_known(paths: Sequence[Path | None]) -> list[Path | None]:
    known: Path | None = None
    return [known := path if path is not None else known for path in paths]


def _source_paths(segment: Segment, spans: set[Span]) -> dict[Span, Path]:
    """The elements around stretches of the source, found in one sweep."""
    coming = [element for element, _ in reversed(segment.elements) if not element.whole]
    around: list[Element] = []
    found: dict[Span, Path] = {}
    for start, end in sorted(spans):
        while coming and coming[-1].start <= start:
            around.append(coming.pop())
        around = [element for element in around if element.end > start]
        found[start, end] = tuple(element for element in around if end <= element.end)
    return found


Places = dict[int, list[tuple[Element, "Path"]]]


def _anchors(
    segment: Segment, words: Sequence[Span], links: Sequence[SpanLink], used: set[Element]
) -> tuple[Places, Places]:
    """What stands at one place: by the word of the translation before which it stands, or right behind.

    An image stays before what it stood before, and a note behind the word that it was tied to.
    """
    numbers = {word: number for number, word in enumerate(words)}
    first: dict[int, int] = {}  # where a source word begins → the first word that stands for it
    last: dict[int, int] = {}  # where it ends → the last one
    for (start, end), target in links:
        first[start] = min(first.get(start, len(words)), numbers[target])
        last[end] = max(last.get(end, 0), numbers[target])
    starts = sorted(first)
    before: Places = {}
    behind: Places = {}
    for element, around in segment.elements:
        if not element.whole and element in used:
            continue
        if element.start in last and element.start not in first:
            behind.setdefault(last[element.start], []).append((element, around))
            continue
        place = bisect_left(starts, element.start)
        number = first[starts[place]] if place < len(starts) else len(words)
        before.setdefault(number, []).append((element, around))
    return before, behind
