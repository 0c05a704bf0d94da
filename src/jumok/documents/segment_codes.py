"""The codes of a segment: its placeholders and tags, which a translation memory has inside its texts.

    text = SegmentText("Hello, !", "Hello, {name}!", (Code("{name}"),))
    take_over(text, "{name} 님, 안녕하세요!")        [0, " 님, 안녕하세요!"], where 0 is the first code

The model does not see codes, and word alignment places them; a translation of the memory has its own places
for them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Piece = str | int
"""Text, or the index of a code of the segment."""


class Code(NamedTuple):
    """A placeholder, or one tag of a pair; `partner` is the index of the other tag."""

    text: str
    partner: int | None = None


class SegmentText(str):
    """The text of a segment that has codes. To everything but a translation memory it is a text."""

    __slots__ = ("codes", "with_codes")
    with_codes: str
    codes: tuple[Code, ...]

    def __new__(cls, text: str, with_codes: str, codes: Sequence[Code]) -> SegmentText:
        self = super().__new__(cls, text)
        self.with_codes, self.codes = with_codes, tuple(codes)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return str, (str(self),)


def take_over(source: SegmentText, target: str) -> list[Piece] | None:
    """Return a translation of the whole segment as text, with the index of each code in place of the code.

    None if `target` does not have exactly the codes of the source, or if its pairs of tags are not nested.
    """
    pattern = "|".join(
        re.escape(text) for text in sorted({code.text for code in source.codes}, key=len)[::-1]
    )
    pieces = re.split(f"({pattern})", target)  # text, code, text, …, text
    if Counter(pieces[1::2]) != Counter(code.text for code in source.codes):
        return None
    unused = dict(enumerate(source.codes))
    open_tags: list[int] = []
    result: list[Piece] = []
    for text, code in zip(pieces[::2], [*pieces[1::2], None], strict=True):
        result += [text] * bool(text)
        if code is None:
            continue
        closing = None if not open_tags else source.codes[open_tags[-1]].partner
        if closing is not None and source.codes[closing].text == code:
            index = closing
            open_tags.pop()
        else:
            index = next((i for i, one in unused.items() if one.text == code and _may_begin(i, one)), -1)
            if index < 0:
                return None
            if source.codes[index].partner is not None:
                open_tags.append(index)
        del unused[index]
        result.append(index)
    return None if open_tags else result


def _may_begin(index: int, code: Code) -> bool:
    """Return whether a code is a placeholder or a start tag, and no end tag."""
    return code.partner is None or code.partner > index
