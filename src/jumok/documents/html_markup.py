"""Translate the text of HTML: block tags stay in place, inline tags move with the words they enclose.

    markup = read_markup("<p>I <b>go</b> home.</p>")
    markup.segments                                ["I go home."]
    markup.fill([SegmentTranslation(text, links)]) <p>나는 집에 <b>간다</b>.</p>

`segment.py` describes how tags move. The inline tags of a translated segment are always balanced, because
they are written from a tree. Text without letters is copied. Inline tags nested deeper than MAX_DEPTH are
dropped, and their text is translated. In HTML files and pages of books, the values of attributes that people
read are segments as well. They come after the segments of the text (`html_attributes.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from html import escape, unescape
from itertools import islice, takewhile, zip_longest
from typing import TYPE_CHECKING

from jumok.documents.html_attributes import AttributeMarks, AttributeValue, fill_marks
from jumok.documents.html_tokenizer import HtmlToken, TokenKind, tokenize
from jumok.documents.segment import MAX_DEPTH, Ancestors, Element, Segment, has_letters, is_unchanged, place

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from jumok.documents.document import SegmentTranslation

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
VERBATIM = frozenset(["code", "kbd", "samp", "var"])
"""Inline elements for code, keyboard input, program output and variables."""
PROTECTED = VERBATIM | frozenset(
    ["script", "style", "pre", "textarea", "svg", "math", "noscript", "template"]
)
"""The content of these elements is copied and not translated. The same applies to any element with
translate="no" or class="notranslate"."""
FOREIGN = frozenset(["svg", "math"])
"""Inside these elements, a tag that ends in "/>" is an empty element. Elsewhere, HTML ignores the "/"."""
_TABLE_PARTS = frozenset(["td", "th", "tr", "tbody", "tfoot"])
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup"])
_LISTS = frozenset(["ul", "ol", "menu", "dl", "li", "dt", "dd"])
_SECTIONS = frozenset(["address", "article", "aside", "div", "footer", "main", "nav", "search", "section"])
_OTHER_BLOCKS = frozenset(
    ["blockquote", "details", "fieldset", "figcaption", "figure", "form", "hr", "p", "pre"]
)
IMPLICIT_END = {
    "p": _TABLE_PARTS | _HEADINGS | _LISTS | _SECTIONS | _OTHER_BLOCKS | {"table"},
    "li": frozenset(["li"]),
    "dt": frozenset(["dt", "dd"]),
    "dd": frozenset(["dt", "dd"]),
    "td": _TABLE_PARTS,
    "th": _TABLE_PARTS,
    "tr": _TABLE_PARTS - {"td", "th"},
    "option": frozenset(["option", "optgroup"]),
}
"""Elements whose end tag may be omitted, and the start tags that imply the omitted end tag."""
_PROTECTED_ATTRIBUTE = re.compile(
    r"""\stranslate\s*=\s*["']?no["'\s>]|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate\b)""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class HtmlMarkup:
    """A document or fragment: segments to translate, and everything else verbatim."""

    parts: list[str | Segment]
    attributes: Sequence[AttributeValue] = ()
    """The attribute values to translate. In `parts`, marks replace these values."""

    @property
    def segments(self) -> list[str]:
        texts = [part.source for part in self.parts if isinstance(part, Segment)]
        return [*texts, *(attribute.text for attribute in self.attributes)]

    def fill(self, translations: Sequence[SegmentTranslation], *, keep_unchanged: bool = False) -> str:
        """Return the document with each segment replaced by its translation.

        If `keep_unchanged` is true, a segment that equals its translation is copied from the source, even if
        the tags of the segment are not balanced.
        """
        if self.attributes:  # a model can produce a NUL, which would look like a mark
            translations = [
                replace(translation, text=translation.text.replace("\0", " ")) for translation in translations
            ]
        remaining = iter(translations)
        markup = "".join(
            part if isinstance(part, str) else _fill_segment(part, next(remaining), keep_unchanged)
            for part in self.parts
        )
        return fill_marks(markup, self.attributes, [translation.text for translation in remaining])


def read_markup(document: str) -> HtmlMarkup:
    """Parse a document or fragment. Malformed HTML raises no error."""
    return read_tokens(tokenize(document), with_attributes="\0" not in document)


def read_tokens(tokens: Iterable[HtmlToken], *, with_attributes: bool = False) -> HtmlMarkup:
    """Parse tokens. Their tags may have a syntax other than HTML.

    If `with_attributes` is true, the values of attributes are segments as well. In this case all tags must be
    HTML, and the text must not contain NUL characters.
    """
    reader = _Reader(AttributeMarks() if with_attributes else None)
    for token in tokens:
        reader.add(token)
    return reader.finish()


# --- Reading ------------------------------------------------------------------------------------------------


class _Reader:
    """Groups tokens into segments with their inline elements, and verbatim text between the segments."""

    def __init__(self, attribute_marks: AttributeMarks | None) -> None:
        self._attribute_marks = attribute_marks
        self._parts: list[str | Segment] = []
        self._segment = _SegmentBuilder()
        self._protected: _ProtectedElement | None = None
        self._note_mark: _PossibleNoteMark | None = None
        # Names and end tags of inline elements around blocks, as in <a><div>…</div></a>.
        self._names_around = OpenNames()
        self._closings_around: list[str] = []

    def add(self, token: HtmlToken) -> None:
        if self._protected is not None:
            self._add_protected(self._protected, token)
        elif self._note_mark is not None:
            self._add_to_note_mark(self._note_mark, token)
        elif token.kind is TokenKind.TEXT:
            self._segment.add_text(token.raw)
        elif _may_be_note_mark(token):
            self._note_mark = _PossibleNoteMark(token)
        elif token.kind is TokenKind.OPENING:
            self._open(token)
        elif token.kind is TokenKind.CLOSING:
            self._close(token)
        elif self._segment.has_text:
            self._segment.add_atomic(token.raw)
        else:
            self._add_block(token.raw)

    def finish(self) -> HtmlMarkup:
        if self._note_mark is not None:
            self._read_again(self._note_mark)
        if self._protected is not None:
            self._end_protected(self._protected)
        self._end_segment()
        self._parts.extend(reversed(self._closings_around))
        return HtmlMarkup(self._parts, () if self._attribute_marks is None else self._attribute_marks.values)

    def _open(self, token: HtmlToken) -> None:
        name = token.name
        is_empty = name in VOID or (name in FOREIGN and token.raw.endswith("/>"))
        is_protected = _is_protected(token)
        if not is_protected:
            token = self._mark_attributes(token)
        if not is_empty and (name in PROTECTED or is_protected):
            self._protected = _ProtectedElement(token)
        elif name in VOID_INLINE:
            self._segment.add_atomic(token.raw)
        elif name in INLINE:
            self._segment.open_element(token)
        else:
            self._add_block(token.raw)

    def _mark_attributes(self, token: HtmlToken) -> HtmlToken:
        if self._attribute_marks is None or token.kind is not TokenKind.OPENING:
            return token
        return token._replace(raw=self._attribute_marks.mark(token.raw, token.name, _unescape))

    def _close(self, token: HtmlToken) -> None:
        name = token.name
        if self._segment.close_element(token):
            return
        if self._names_around.close(name):
            self._end_segment()
            while len(self._closings_around) > len(self._names_around):
                self._parts.append(self._closings_around.pop())
        elif name not in INLINE and name not in VOID:
            self._add_block(token.raw)
        else:
            self._segment.drop(token.raw)

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
            self._segment.add_atomic(element.to_text(), element.text)
        else:
            self._add_block(element.to_text())

    def _add_to_note_mark(self, element: _PossibleNoteMark, token: HtmlToken) -> None:
        element.add(token)
        if element.is_no_note_mark:
            self._read_again(element)
        elif element.has_ended:
            self._note_mark = None
            raw = "".join(self._mark_attributes(inner).raw for inner in element.tokens)
            self._segment.add_atomic(raw, element.text)

    def _read_again(self, element: _PossibleNoteMark) -> None:
        """Read the tokens of an element that is not a note mark. Inner elements may still be note marks."""
        self._note_mark = None
        excluded = element.tokens_excluded_as_note_marks()
        for index, token in enumerate(element.tokens):
            if index in excluded and token.kind is TokenKind.OPENING:
                self._open(token)
            else:
                self.add(token)

    def _add_block(self, raw: str) -> None:
        """End the segment, and copy `raw`. Inline elements that are open enclose the blocks from here on."""
        segment, open_elements = self._segment, self._segment.open
        parts, written_elements = segment.finish_before_block()
        self._parts.extend(parts)
        self._segment = _SegmentBuilder()
        for name, element in zip_longest(segment.names, open_elements):
            self._names_around.push(name)
            self._closings_around.append("" if element is None else element.closing)
            self._parts.append("" if element is None or element in written_elements else element.opening)
        self._parts.append(raw)

    def _end_segment(self) -> None:
        self._parts.extend(self._segment.finish())
        self._segment = _SegmentBuilder()


class OpenNames:
    """The names of all open elements, outermost first. Elements deeper than MAX_DEPTH are included.

    The names are counted. For an end tag without a start tag, the count is 0, and no search is needed.
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
        """Close the innermost element of this name and all elements inside it.

        Return False if no open element has this name.
        """
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
        self.names = OpenNames()  # of the open inline elements, including those deeper than MAX_DEPTH
        self.open: Ancestors = ()  # the open inline elements, without those deeper than MAX_DEPTH
        self._elements: list[tuple[Element, Ancestors]] = []
        self._text: list[str] = []  # joined at the end: repeated concatenation would be quadratic
        self._length = 0
        self._raw: list[str] = []  # the text as it is written in the document
        self._markup: list[str] = []  # text and tags as they are written in the document
        self._well_nested = True  # whether each end tag so far ends the innermost element
        self._indent = ""  # white space before the text, as it is written in the document
        self._last_atomic: Element | None = None  # if no text has followed it

    @property
    def has_text(self) -> bool:
        return bool(self._text)

    def add_text(self, raw: str) -> None:
        self._raw.append(raw)
        self._markup.append(raw)
        # HTML collapses a run of spaces and line breaks to one space.
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

    def add_atomic(self, raw: str, text: str = "") -> None:
        """Add markup that is written as a whole. `text` is the text inside it, which is not translated."""
        self._markup.append(raw)
        self._last_atomic = Element(raw, "", self._length, self._length, atomic=True)
        self._elements.append((self._last_atomic, self.open))
        if text != text.strip() and self._text and not self._text[-1][-1].isspace():
            # A space at the start or end of `text` separates two words: "cat<sup>1 </sup>sleeps".
            self._text.append(" ")
            self._length += 1
            self._last_atomic = None

    def open_element(self, token: HtmlToken) -> None:
        self._markup.append(token.raw)
        self.names.push(token.name)
        if len(self.open) < MAX_DEPTH:
            element = Element(token.raw, token.closing or f"</{token.name}>", self._length)
            self._elements.append((element, self.open))
            self.open = (*self.open, element)

    def close_element(self, token: HtmlToken) -> bool:
        """Close the innermost element with the name of this end tag and all elements inside it.

        Return False if no open element has this name.
        """
        num_open = len(self.names)
        if not self.names.close(token.name):
            return False
        self._well_nested &= len(self.names) == num_open - 1
        self._markup.append(token.raw)
        for element in self.open[len(self.names) :]:
            element.end = self._length
        self.open = self.open[: len(self.names)]
        return True

    def drop(self, raw: str) -> None:
        """Leave out an end tag without a start tag, unless the segment is written back unchanged."""
        self._well_nested = False
        self._markup.append(raw)

    def finish_before_block(self) -> tuple[list[str | Segment], Ancestors]:
        """Return the parts of the segment, and the open elements whose start tags they contain."""
        is_shallow = len(self.names) == len(self.open)  # no open element is deeper than MAX_DEPTH
        if is_shallow and self._well_nested and not has_letters("".join(self._text)):
            return ["".join(self._markup)], self.open
        enclosing = self._take_enclosing()
        return [*(element.opening for element in enclosing), *self.finish()], enclosing

    def _take_enclosing(self) -> Ancestors:
        """Remove and return the open elements around the whole segment, to be written before the segment.

        For example, <label>Name: <input></label> remains one label, which encloses the words and the input.
        """
        if not has_letters("".join(self._text)):
            return ()
        first = [element for element, _ in self._elements[: len(self.open)]]
        pairs = zip(first, self.open, strict=True)
        enclosing = self.open[: sum(1 for _ in takewhile(lambda both: _is_enclosing(*both), pairs))]
        depth = len(enclosing)
        self._elements = [(element, ancestors[depth:]) for element, ancestors in self._elements[depth:]]
        self.open = self.open[depth:]
        return enclosing

    def finish(self) -> list[str | Segment]:
        for element in self.open:
            element.end = self._length
        text = "".join(self._text)
        has_visible_text = bool(text.strip())
        if not has_letters(text) and not self.names and (has_visible_text or self._well_nested):
            return ["".join(self._markup)]  # numbers, punctuation, empty anchors and icons stay as they are
        if has_visible_text or len(self._elements) > len(self.open):
            # An element that is still open also encloses the next block. Its tags are written once for each
            # block, so the original markup cannot be copied.
            raw = None if self.names else "".join(self._markup)
            return [Segment(text, self._elements, raw, self._indent)]
        return ["".join(self._raw)]  # white space between blocks


_NOTE_MARK_ATTRIBUTE = re.compile(r"""\s(?:epub:type|role)\s*=\s*["']?(?:doc-)?noteref\b""", re.IGNORECASE)


def _may_be_note_mark(token: HtmlToken) -> bool:
    if token.kind is not TokenKind.OPENING or token.name not in ("a", "sup") or _is_protected(token):
        return False
    return token.name == "sup" or _NOTE_MARK_ATTRIBUTE.search(token.raw) is not None


def _is_protected(token: HtmlToken) -> bool:
    return _PROTECTED_ATTRIBUTE.search(token.raw) is not None


def _is_enclosing(first: Element, open_element: Element) -> bool:
    """Return whether an open element begins at the start of the segment, before all closed elements."""
    return first is open_element and first.start == 0


class _PossibleNoteMark:
    """The tokens of an element that may be a note mark: the number of a footnote, or an exponent.

    An element with letters is not a note mark. A note mark is copied verbatim, so its tags must be balanced.
    """

    def __init__(self, opening: HtmlToken) -> None:
        self.tokens = [opening]
        self.is_no_note_mark = False
        self._open = [0]  # indices of the start tags of the open elements
        self._texts: list[str] = []

    @property
    def has_ended(self) -> bool:
        return not self._open

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def add(self, token: HtmlToken) -> None:
        self.tokens.append(token)
        if token.kind is TokenKind.TEXT:
            self._texts.append(_unescape(token.raw))
            self.is_no_note_mark = has_letters(self._texts[-1])
        elif token.kind is TokenKind.CLOSING and token.name == self.tokens[self._open[-1]].name:
            self._open.pop()
            self.is_no_note_mark = self.has_ended and not self.text.strip()
        elif token.kind is TokenKind.OPENING and token.name in INLINE and token.name not in PROTECTED:
            self._open.append(len(self.tokens) - 1)
            self.is_no_note_mark = _is_protected(token)
        else:
            self.is_no_note_mark = token.kind is not TokenKind.OTHER and token.name not in VOID_INLINE

    def tokens_excluded_as_note_marks(self) -> Container[int]:
        """Return the indices of tokens whose elements are certainly not note marks.

        If the element has ended, it has no text, so no inner element is a note mark. Otherwise the last
        token, or the end of the document, excludes all elements that are open there. Without this list, the
        tokens of nested elements would be read again for each element.
        """
        return range(len(self.tokens)) if self.has_ended else frozenset(self._open)


class _ProtectedElement:
    """An element that is copied verbatim, up to its end."""

    def __init__(self, opening: HtmlToken) -> None:
        self.is_inline = opening.name in INLINE or opening.name in VERBATIM
        self._name = opening.name
        self._open_names = OpenNames()  # this element and the open elements inside it
        self._open_names.push(opening.name)
        self._raw = [opening.raw]
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        return _unescape("".join(self._texts))

    @property
    def has_ended(self) -> bool:
        return not self._open_names

    def add(self, token: HtmlToken) -> None:
        self._raw.append(token.raw)
        if token.kind is TokenKind.TEXT:
            self._texts.append(token.raw)
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
        if token.kind is TokenKind.CLOSING:  # the end tag of an enclosing element
            return token.name not in INLINE and token.name not in VOID and token.name != self._name
        return token.kind is TokenKind.OPENING and token.name in ending_tags

    def to_text(self) -> str:
        return "".join([*self._raw, *(f"</{name}>" for name in reversed(self._open_names))])

    def _outermost_names(self) -> Iterator[str]:
        """Yield at most MAX_DEPTH names. Every token is compared with these names, so they must be few."""
        return islice(self._open_names, MAX_DEPTH)


def _unescape(raw: str) -> str:
    """Unescape entities. Decimal numbers are cut to eight digits: `int` rejects thousands of digits."""
    return unescape(re.sub(r"&#(?=[0-9])0*+([0-9]*+)", lambda match: f"&#{match[1][:8] or 0}", raw))


# --- Writing ------------------------------------------------------------------------------------------------


def _fill_segment(segment: Segment, translation: SegmentTranslation, keep_unchanged: bool) -> str:
    if keep_unchanged and segment.raw is not None and is_unchanged(segment, translation):
        return segment.raw
    return segment.indent + "".join(
        escape(piece, quote=False)
        if isinstance(piece, str)
        else piece.element.opening
        if piece.begins
        else piece.element.closing
        for piece in place(segment, translation)
    )
