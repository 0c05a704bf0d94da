"""The model of a segment in every format: text to translate, and inline elements that move with its words.

    segment = Segment("I go home.", [(Element("<b>", "</b>", 2, 4), ())])
    place(segment, SegmentTranslation("나는 집에 간다.", links))     나는 집에 <b>간다</b>.

An inline element around source words is placed around the target words that are aligned to the source words.
If these target words are not adjacent, the element is written once for each run of adjacent words, except for
runs of punctuation. An element without aligned words is placed empty, next to the word that follows or
precedes it. `place` returns text and tags. The format decides how they are written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from jumok.documents.segment_codes import Code, TextWithCodes
from jumok.text.words import word_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.documents.document import SegmentTranslation, SpanLink
    from jumok.text.words import Span

MAX_DEPTH = 32
"""Maximum depth of nested inline elements. It bounds the time that the elements around one word take."""
LINE_BREAK = "\n"
TAB = "\v"
PAGE_BREAK = "\f"
COLUMN_BREAK = "\x1c"
"""The characters for breaks and tabs inside a paragraph. A sentence ends at each of them
(`text/sentences.py`), so lines and columns are translated separately. A tab is not stored as "\\t", which
would be a space within a sentence."""
Ancestors = tuple["Element", ...]
"""The elements around a position, outermost first."""


@dataclass(eq=False, slots=True)
class Element:
    """An inline element around characters of a segment. An atomic element is at a single position."""

    opening: str
    closing: str
    start: int = 0
    end: int = 0
    atomic: bool = False
    """Whether the element is written as a whole, and no words are placed inside it. Void elements, comments
    and protected elements are atomic."""
    space_after: bool = False
    """Whether a space after the element was left out of the segment's text. The space is left out if it would
    be the first character of the text, or if another space is before the element."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A text, and its inline elements in source order. Each element is stored with its ancestors."""

    text: str
    elements: list[tuple[Element, Ancestors]]
    raw: str | None = None
    """The markup of the segment in the file. None if this markup must not be written back."""
    indent: str = ""
    """White space before the text. It is visible after some elements, such as <input> and <br>."""

    @property
    def source(self) -> str:
        """The text to translate, with its codes if it has any."""
        if not self.elements:
            return self.text
        tags = self.tags()
        indices = {tag: index for index, (_, tag) in enumerate(tags)}
        codes: list[Code] = []
        pieces: list[str] = []
        written, space = 0, ""  # `space` follows an atomic element, and is not written yet
        for position, (element, begins) in tags:
            partner = None if element.atomic else indices[Tag(element, not begins)]
            codes.append(Code(element.opening if begins else element.closing, partner))
            if begins or position > written:
                pieces.append(space)
                space = ""
            pieces += [self.text[written:position], codes[-1].text]
            written, space = position, space or " " * element.space_after
        with_codes = "".join([*pieces, space, self.text[written:]])
        # A NUL marks a choice or a nested segment. The text of such a segment is returned without codes.
        return self.text if "\0" in with_codes else TextWithCodes(self.text, with_codes, codes)

    def tags(self) -> list[tuple[int, Tag]]:
        """Return the tags of the elements and their positions in the text, in the order of the file."""
        tags: list[tuple[int, Tag]] = []
        open_elements: list[Element] = []

        def close_to(depth: int) -> None:
            while len(open_elements) > depth:
                element = open_elements.pop()
                tags.append((element.end, Tag(element, begins=False)))

        for element, ancestors in self.elements:
            close_to(len(ancestors))
            tags.append((element.start, Tag(element, begins=True)))
            if not element.atomic:
                open_elements.append(element)
        close_to(0)
        return tags


class Tag(NamedTuple):
    """The start tag or the end tag of an element. An atomic element has only a start tag."""

    element: Element
    begins: bool


class SegmentBuilder:
    """Builds a segment while a document is read. White space is preserved.

    HTML has a builder of its own, because it collapses white space.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._length = 0
        self._elements: list[tuple[Element, Ancestors]] = []
        self._open: Ancestors = ()
        self._last_atomic: Element | None = None  # if no text has followed it
        self._num_ignored = 0  # open elements deeper than MAX_DEPTH

    def add_text(self, text: str) -> None:
        atomic = self._last_atomic
        if atomic is not None and text.startswith(" ") and (not self._text or self._text[-1][-1] == " "):
            atomic.space_after = True
            text = text[1:]
        if text:
            self._text.append(text)
            self._length += len(text)
            self._last_atomic = None

    def add_atomic(self, raw: str) -> None:
        """Add markup that is written as a whole, next to the word that precedes or follows it."""
        self._last_atomic = Element(raw, "", self._length, self._length, atomic=True)
        self._elements.append((self._last_atomic, self._open))

    def open_element(self, element: Element) -> None:
        if len(self._open) == MAX_DEPTH:
            self._num_ignored += 1
            return
        element.start = self._length
        self._elements.append((element, self._open))
        self._open = (*self._open, element)

    def close_element(self) -> None:
        if self._num_ignored:
            self._num_ignored -= 1
            return
        self._open[-1].end = self._length
        self._open = self._open[:-1]

    def finish(self, raw: str | None = None) -> Segment:
        while self._open:
            self.close_element()
        return Segment("".join(self._text), self._elements, raw)


def is_unchanged(segment: Segment, translation: SegmentTranslation) -> bool:
    """Return whether the translation equals the source text and is not from a translation memory."""
    return translation.text == segment.text and translation.pieces is None


def has_letters(text: str) -> bool:
    """Return whether a text contains letters. Text without letters is not translated."""
    return any(map(str.isalpha, text))


# --- Placing ------------------------------------------------------------------------------------------------


def place(segment: Segment, translation: SegmentTranslation) -> list[str | Tag]:
    """Return the translation as text and tags.

    Each element encloses the target words that are aligned to the source words inside the element. Tags are
    balanced and nested.
    """
    if translation.pieces is not None:
        tags = [tag for _, tag in segment.tags()]
        return [piece if isinstance(piece, str) else tags[piece] for piece in translation.pieces]
    text, links = translation.text, translation.links
    words = _target_words(text, links)
    ancestors_of_words = _without_stray_punctuation(
        _target_ancestors(segment, words, links), [_has_letter_or_digit(text[slice(*word)]) for word in words]
    )
    placed_elements = {element for ancestors in ancestors_of_words for element in ancestors}
    before, after = _anchor_elements(segment, words, links, placed_elements)
    placer = _Placer()
    written = 0  # the number of characters of the text that have been written
    for index, ((start, end), ancestors) in enumerate(zip(words, ancestors_of_words, strict=True)):
        placer.close_to(_common_prefix(placer.open, ancestors))
        placer.add_text(text[written:start])
        placer.add_anchored(before.get(index, ()), ancestors)
        placer.go_to(ancestors)
        placer.add_text(text[start:end])
        placer.add_anchored(after.get(index, ()), ancestors)
        written = end
    trailing = before.get(len(words), [])
    if trailing and trailing[-1][0].start == len(segment.text) > len(segment.text.rstrip()):
        # In the source, the last element follows the final space, so it is written after the final space.
        placer.close_to(_common_prefix(placer.open, trailing[-1][1]))
        placer.add_text(text[written:])
        written = len(text)
    placer.add_anchored(trailing, placer.open)
    return placer.finish(text[written:])


def _target_words(text: str, links: Sequence[SpanLink]) -> list[Span]:
    """Return the target words of the links, and the words between them.

    Splitting the whole text into words could give different words. The links refer to words of single
    sentences, and two sentences can be joined without a space ("。2024").
    """
    words: list[Span] = []
    covered = 0  # the number of characters of the text before the next word
    for start, end in [*sorted({target for _, target in links}), (len(text), len(text))]:
        words += [(left + covered, right + covered) for left, right in word_spans(text[covered:start])]
        words += [(start, end)] * (start < end)
        covered = end
    return words


class _Placer:
    """Collects text and tags. It closes the open elements from the innermost to the outermost."""

    def __init__(self) -> None:
        self.output: list[str | Tag] = []
        self.open: Ancestors = ()
        self._space = ""  # the space after an atomic element; end tags are written before it

    def add_text(self, text: str) -> None:
        if text:
            self.output += [self._space] * bool(self._space) + [text]
            self._space = ""

    def add_anchored(self, elements: Sequence[tuple[Element, Ancestors]], around_word: Ancestors) -> None:
        """Add elements next to a word.

        An added element is placed inside an ancestor if that ancestor encloses the word as well, or if this
        call adds the ancestor.
        """
        added: set[Element] = set()
        for element, ancestors in elements:
            shared = _common_prefix(ancestors, around_word)
            enclosing = (*shared, *(ancestor for ancestor in ancestors[len(shared) :] if ancestor in added))
            self.go_to(enclosing)
            if element.atomic:
                self.add_text(self._take_space())
                self.output.append(Tag(element, begins=True))
                self._space = " " * element.space_after
            else:  # the element stays open for its content, and the next call closes it
                self.go_to((*enclosing, element))
                added.add(element)

    def go_to(self, ancestors: Ancestors) -> None:
        """Close and open elements until exactly the elements in `ancestors` are open."""
        self.close_to(_common_prefix(self.open, ancestors))
        if len(ancestors) > len(self.open):
            self.add_text(self._take_space())
        self.output.extend(Tag(element, begins=True) for element in ancestors[len(self.open) :])
        self.open = ancestors

    def finish(self, text: str) -> list[str | Tag]:
        """Close all elements, add `text`, which ends the segment, and return the text and tags."""
        self.close_to(())
        self.add_text(text)
        self.add_text(self._take_space())
        return self.output

    def _take_space(self) -> str:
        space, self._space = self._space, ""
        return space

    def close_to(self, ancestors: Ancestors) -> None:
        """Close the innermost elements until only `ancestors`, a prefix of the open elements, are open."""
        while len(self.open) > len(ancestors):
            self.output.append(Tag(self.open[-1], begins=False))
            self.open = self.open[:-1]


def _common_prefix(first: Ancestors, second: Ancestors) -> Ancestors:
    pairs = zip(first, second, strict=False)
    return tuple(element for element, _ in takewhile(lambda pair: pair[0] is pair[1], pairs))


def _target_ancestors(segment: Segment, words: Sequence[Span], links: Sequence[SpanLink]) -> list[Ancestors]:
    """Return the elements to write around each target word.

    These are the elements around most of the source words that are aligned to the target word. If one half of
    these source words is inside an element and one half is outside, the target word is placed inside, as in
    *The **student*** → **학생은**.
    """
    stripped_span = (len(segment.text) - len(segment.text.lstrip()), len(segment.text.rstrip()))
    ancestors_of_source = _source_ancestors(segment, {stripped_span, *(source for source, _ in links)})
    votes: dict[Span, Counter[Ancestors]] = {}
    for source, target in links:
        votes.setdefault(target, Counter())[ancestors_of_source[source]] += 1
    aligned_ancestors = [
        max(votes[word], key=lambda ancestors, of=votes[word]: (of[ancestors], len(ancestors)))  # type: ignore[misc]
        if word in votes
        else None
        for word in words
    ]
    previous_ancestors = _fill_forward(aligned_ancestors)
    next_ancestors = _fill_forward(aligned_ancestors[::-1])[::-1]
    return [
        # An unaligned word between aligned words is inside the elements that both neighbours share. Any other
        # unaligned word is inside the elements around the whole source text.
        ancestors
        if ancestors is not None
        else ancestors_of_source[stripped_span]
        if previous is None or following is None
        else _common_prefix(previous, following)
        for ancestors, previous, following in zip(
            aligned_ancestors, previous_ancestors, next_ancestors, strict=True
        )
    ]


def _without_stray_punctuation(
    ancestors_of_words: Sequence[Ancestors], has_letter_or_digit: Sequence[bool]
) -> list[Ancestors]:
    """Remove punctuation from an element if the element encloses words elsewhere.

    Without this step, a full stop at the end of a sentence could become a second link. Punctuation next to
    the words of an element stays inside the element. A word without a letter or a digit is punctuation.
    """
    around_words = {
        element
        for ancestors, is_word in zip(ancestors_of_words, has_letter_or_digit, strict=True)
        if is_word
        for element in ancestors
    }

    def connected_elements(indices: Iterable[int]) -> dict[int, set[Element]]:
        """Return the elements of each word, in the direction given by `indices`.

        For punctuation, return only the elements that also enclose the preceding word in this direction.
        """
        elements_by_index: dict[int, set[Element]] = {}
        previous: set[Element] = set()
        for index in indices:
            current = set(ancestors_of_words[index])
            previous = current if has_letter_or_digit[index] else previous & current
            elements_by_index[index] = previous
        return elements_by_index

    indices = range(len(ancestors_of_words))
    forward, backward = connected_elements(indices), connected_elements(reversed(indices))
    return [
        tuple(
            element
            for element in ancestors
            if element in forward[index] or element in backward[index] or element not in around_words
        )
        for index, ancestors in enumerate(ancestors_of_words)
    ]


def _has_letter_or_digit(text: str) -> bool:
    return any(map(str.isalnum, text))


def _fill_forward(values: Sequence[Ancestors | None]) -> list[Ancestors | None]:
    """Replace each None by the last value before it that is not None."""
    last: Ancestors | None = None
    return [last := value if value is not None else last for value in values]


def _source_ancestors(segment: Segment, spans: set[Span]) -> dict[Span, Ancestors]:
    """Return the elements around each span of the source. The sorted spans are visited once."""
    upcoming = [element for element, _ in reversed(segment.elements) if not element.atomic]
    around: list[Element] = []
    by_span: dict[Span, Ancestors] = {}
    for start, end in sorted(spans):
        while upcoming and upcoming[-1].start <= start:
            around.append(upcoming.pop())
        around = [element for element in around if element.end > start]
        by_span[start, end] = tuple(element for element in around if end <= element.end)
    return by_span


Anchors = dict[int, list[tuple[Element, Ancestors]]]
"""Elements by the index of the target word next to which they are written."""


def _anchor_elements(
    segment: Segment, words: Sequence[Span], links: Sequence[SpanLink], placed_elements: set[Element]
) -> tuple[Anchors, Anchors]:
    """Return where to write the atomic elements, and the other elements that enclose no target word.

    The first result has the elements to write before a word, the second result those to write after a word.

    An image stays before the word that follows it in the source. A footnote stays after the word to which it
    is attached. An atomic element at the start of the segment stays at the start. In the first result, the
    elements behind the last aligned word have the index `len(words)`.
    """
    indices = {word: index for index, word in enumerate(words)}
    first_target: dict[int, int] = {}  # start of a source word → index of the first word aligned to it
    last_target: dict[int, int] = {}  # end of a source word → index of the last word aligned to it
    for (start, end), target in links:
        first_target[start] = min(first_target.get(start, len(words)), indices[target])
        last_target[end] = max(last_target.get(end, 0), indices[target])
    starts = sorted(first_target)
    num_leading_spaces = len(segment.text) - len(segment.text.lstrip())
    before: Anchors = {}
    after: Anchors = {}
    for element, ancestors in segment.elements:
        if not element.atomic and element in placed_elements:
            continue
        if element.atomic and element.start <= num_leading_spaces:
            before.setdefault(0, []).append((element, ancestors))
            continue
        if element.start in last_target and element.start not in first_target:
            after.setdefault(last_target[element.start], []).append((element, ancestors))
            continue
        following = bisect_left(starts, element.start)
        index = first_target[starts[following]] if following < len(starts) else len(words)
        before.setdefault(index, []).append((element, ancestors))
    return before, after
