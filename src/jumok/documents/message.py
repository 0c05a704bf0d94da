"""A message of a program: text with placeholders, tags and choices, which translation must preserve.

    Hello, {name}!                 one segment "Hello, !", and a placeholder
    {n, plural, one {# file} other {# files}}          one segment per form
    no files | one file | {n} files                    one segment per form, as in vue-i18n and Laravel

A placeholder is an atomic element of its segment, so it is never lost and never translated. Word alignment
places it in the translation.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from html import escape, unescape
from typing import TYPE_CHECKING

from jumok.documents.marked_template import MarkedSegment, MarkedTemplate, render_tags
from jumok.documents.segment import Element, SegmentBuilder, has_letters
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.segment import Tag

# Without the space flag of printf: "100% sure" has no placeholder.
_PRINTF = (
    r"%(?:\(\w++\))?+(?:\d++\$)?+[-#0+']*+(?:\d++|\*)?+(?:\.(?:\d++|\*))?+(?:hh?|ll?|[Lqzjt])?[@a-zA-Z%]"
)
_LINK = (
    r"(?<!\w)@(?:\.\w++)?+:(?:\{[^{}]*+\}|\([^()]*+\)|\w++(?:[.-]\w++)*+)"  # of vue-i18n: @:key, @.lower:key
)
_TEMPLATE_PLACEHOLDER = _LINK + r"|\{\{[^{}]*+\}\}|[$%#]?\{[^{}]*+\}|\$t\([^()]*+\)|\$[A-Z][A-Z0-9_]*+\$"
_TAG = r"</?[a-zA-Z0-9][^<>]*+>"
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,10}|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
_PLACEHOLDER = re.compile(f"{_TEMPLATE_PLACEHOLDER}|{_PRINTF}")
_SURE_PLACEHOLDER = re.compile(rf"{_TEMPLATE_PLACEHOLDER}|(?<![\d%]){_PRINTF}")  # "20%off" has no placeholder
_CODE = re.compile(f"({_TEMPLATE_PLACEHOLDER}|{_PRINTF}|{_TAG})")
# In a plural form, "#" stands for the number.
_PLURAL_CODE = re.compile(f"({_TEMPLATE_PLACEHOLDER}|{_PRINTF}|{_TAG}|#)")
_CODE_OR_BAR = re.compile(rf"{_TEMPLATE_PLACEHOLDER}|{_PRINTF}|{_TAG}|(?P<bar>\|++)")
# In Laravel, an interval before a plural form gives the numbers for which the form is used: [2,*].
_INTERVAL = re.compile(r"\[[\d*]++,\s*+[\d*]++\]\s*+")
_LINE_BREAK_TAG = re.compile(r"(<br\s*/?>)", re.IGNORECASE)
_CHOICE = re.compile(r"\{\s*[\w.]+\s*,\s*(plural|select|selectordinal)\s*,")
_ADDRESS = re.compile(
    r"\s*+(?:[a-z][a-z0-9+.-]*+://\S++|[^\s@]++@[^\s@.]++(?:\.[^\s@.]++)++|\.{0,2}/\S++)\s*+", re.IGNORECASE
)
_MAX_CHOICE_DEPTH = 8


class Message:
    """The text of a message as a template. `fill` returns the text with its segments translated.

    In a message with <br>, each line is a segment. In a message with bars, each text between bars is a
    segment, because a file does not say whether bars separate plural forms or independent texts, as in
    "Home | News". A message with entities is read as HTML.
    """

    def __init__(self, text: str) -> None:
        self.text = text = join_surrogates(text)
        self._template = MarkedTemplate()
        is_html = _ENTITY.search(text) is not None
        self._decode: Callable[[str], str] = unescape if is_html else str
        self._render = partial(render_tags, encode=partial(escape, quote=False) if is_html else str)
        if "\0" in text:
            raise DataError("A message contains the character U+0000, which no text has. Remove it.")
        if is_address(text):
            self._template.markup = text
        else:
            self._template.markup = "".join(map(self._read_forms, _LINE_BREAK_TAG.split(text)))

    @property
    def segments(self) -> list[str]:
        return self._template.segments

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        return self._template.fill(translations)

    def _read_forms(self, text: str) -> str:
        """Return a text with marks for the segments of each form between bars."""
        forms = _split_forms(text)
        if len(forms) == 1:
            return self._read(text)
        pieces = []
        for form in forms:
            start = len(form) - len(form.lstrip())
            interval = _INTERVAL.match(form, start)
            start = interval.end() if interval else start
            end = max(start, len(form.rstrip()))
            pieces.append(form[:start] + self._read(form[start:end], is_form="|" not in form) + form[end:])
        return "|".join(pieces)

    def _read(self, text: str, *, depth: int = 0, in_plural: bool = False, is_form: bool = False) -> str:
        """Return the text with marks for its segments.

        If `is_form` is true, bars in translations become spaces, because a bar would end the form. A form
        that contains "||" is read with `is_form` false, so that these bars stay.
        """
        builder = SegmentBuilder()
        verbatim = []
        position = 0
        for start, end in _choices(text) if depth < _MAX_CHOICE_DEPTH else ():
            choice = self._read_choice(text[start:end], depth, in_plural=in_plural)
            add_message(builder, text[position:start], decode=self._decode, in_plural=in_plural)
            builder.add_atomic(choice)
            verbatim += [text[position:start], choice]
            position = end
        add_message(builder, text[position:], decode=self._decode, in_plural=in_plural)
        raw = "".join([*verbatim, text[position:]])
        segment = builder.finish(raw)
        if not has_letters(segment.text):
            return raw
        render = self._render
        return self._template.add(
            MarkedSegment(segment, (lambda pieces: render(_without_bars(pieces))) if is_form else render)
        )

    def _read_choice(self, choice: str, depth: int, *, in_plural: bool) -> str:
        """Return `{n, plural, one {…} other {…}}` with marks in its forms."""
        head = _CHOICE.match(choice)
        if head is None:
            return choice
        in_plural = in_plural or head[1] != "select"
        pieces = [head[0]]
        position = head.end()
        for start, end in _braces(choice, head.end(), len(choice) - 1):
            form = self._read(choice[start + 1 : end - 1], depth=depth + 1, in_plural=in_plural)
            pieces += [choice[position : start + 1], form, "}"]
            position = end
        return "".join([*pieces, choice[position:]])


def _without_bars(pieces: Iterable[str | Tag]) -> list[str | Tag]:
    return [piece.replace("|", " ") if isinstance(piece, str) else piece for piece in pieces]


def _split_forms(text: str) -> list[str]:
    """Split a message at its single bars, unless brackets or tags begin in one form and end in another.

    Several bars in a row, such as "||", are text.
    """
    if "|" not in text or _CHOICE.search(text):
        return [text]
    forms, start = [], 0
    open_tags = 0
    for match in _CODE_OR_BAR.finditer(text):
        if match["bar"] == "|":
            forms.append((text[start : match.start()], open_tags))
            start = match.end()
        elif not match["bar"] and (tag := _tag_of(match[0])):
            open_tags += 1 if tag[1] else -1
    bar_is_inside_brackets = any(
        depth or any(form.count(left) != form.count(right) for left, right in ("()", "[]"))
        for form, depth in forms
    )
    return [text] if bar_is_inside_brackets else [*(form for form, _ in forms), text[start:]]


def is_address(text: str) -> bool:
    """Return whether a text is a URL, an e-mail address or a path. These are not translated."""
    return _ADDRESS.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """A message as it is written in its file, and the function that encodes its translation for the file."""

    raw: str
    message: Message
    encode: Callable[[str], str]

    @property
    def segments(self) -> list[str]:
        return self.message.segments

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        text = self.message.fill(translations)
        return self.raw if text == self.message.text else self.encode(text)


def add_message(
    builder: SegmentBuilder,
    text: str,
    *,
    decode: Callable[[str], str] = str,
    encode: Callable[[str], str] = str,
    in_plural: bool = False,
) -> None:
    """Add text to a segment.

    Placeholders and single tags are added as atomic elements, and pairs of tags as elements around their
    text. `decode` decodes the text between placeholders and tags. `encode` returns a placeholder or tag as it
    is written in the file.
    """
    pieces = (_PLURAL_CODE if in_plural else _CODE).split(text)  # text, code, text, …, text
    codes = pieces[1::2]
    partners = pair_up([_tag_of(code) for code in codes])
    for index, piece in enumerate(pieces):
        code_index = index // 2
        if index % 2 == 0:
            builder.add_text(decode(piece))
        elif code_index not in partners:
            builder.add_atomic(encode(piece))
        elif partners[code_index] > code_index:
            builder.open_element(Element(encode(piece), encode(codes[partners[code_index]])))
        else:
            builder.close_element()


def join_surrogates(text: str) -> str:
    """Join pairs of surrogates from escapes such as \\ud83d. Replace lone surrogates with U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _tag_of(code: str) -> tuple[str, bool] | None:
    """Return the name of a tag, and whether it is a start tag.

    Return None for an empty tag such as <br/>, and for a placeholder.
    """
    match = re.match(r"<(/?)([a-zA-Z0-9][^\s/>]*)", code)
    if match is None or code.endswith("/>"):
        return None
    return match[2], not match[1]


def pair_up(tags: Sequence[tuple[str, bool] | None]) -> dict[int, int]:
    """Return the index of the partner of each paired tag. Pairs are properly nested.

    A tag is its name and whether it is a start tag. Unpaired tags are not in the result.
    """
    partners: dict[int, int] = {}
    unpaired: list[tuple[str, int]] = []
    for index, tag in enumerate(tags):
        if tag is None:
            continue
        name, opens = tag
        if opens:
            unpaired.append((name, index))
        elif unpaired and unpaired[-1][0] == name:
            partner = unpaired.pop()[1]
            partners |= {index: partner, partner: index}
    return partners


def has_all_placeholders(source: str, target: str) -> bool:
    """Return whether a translation has every placeholder of its source. It may have additional placeholders.

    A message with a choice is not checked, because its forms are translated.
    """
    if _CHOICE.search(source):
        return True
    in_source, in_target = (Counter(_SURE_PLACEHOLDER.findall(text)) for text in (source, target))
    return in_source <= in_target


def has_same_placeholders(source: str, target: str) -> bool:
    """Return whether a translation has exactly the placeholders of its source, in any order.

    A form of a choice, such as {no files}, looks like a placeholder, so the result for a translated choice
    is False.
    """
    return Counter(_PLACEHOLDER.findall(source)) == Counter(_PLACEHOLDER.findall(target))


def _choices(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of choices such as `{n, plural, …}`. Unbalanced braces are ordinary text."""
    position = 0
    while match := _CHOICE.search(text, position):
        span = next(_braces(text, match.start(), len(text)), None)
        if span is None:
            return
        yield span
        position = span[1]


def _braces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of balanced outermost braces."""
    depth, begin = 0, start
    for match in re.compile("[{}]").finditer(text, start, end):
        if match[0] == "{":
            if depth == 0:
                begin = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield begin, match.end()
