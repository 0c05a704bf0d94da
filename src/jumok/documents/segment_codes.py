"""The codes of a segment are its placeholders and tags. The texts of a translation memory contain codes.

    text = TextWithCodes("Hello, !", "Hello, {name}!", (Code("{name}"),))
    split_at_codes(text, "{name} 님, 안녕하세요!")   [0, " 님, 안녕하세요!"], where 0 is the first code

The model translates text without codes, and word alignment places the codes. A translation from the memory
already contains the codes at the right positions.
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
    """A placeholder or a tag. For a tag, `partner` is the index of the other tag of the pair."""

    text: str
    partner: int | None = None


class TextWithCodes(str):
    """The text of a segment that has codes. Only a translation memory uses the codes.

    Another process receives the text as a `str` without codes.
    """

    __slots__ = ("codes", "with_codes")
    with_codes: str
    codes: tuple[Code, ...]

    def __new__(cls, text: str, with_codes: str, codes: Sequence[Code]) -> TextWithCodes:
        self = super().__new__(cls, text)
        self.with_codes, self.codes = with_codes, tuple(codes)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return str, (str(self),)


def split_at_codes(source: TextWithCodes, target: str) -> list[Piece] | None:
    """Split a translation of the segment at its codes. Each code is replaced by its index in the source.

    Return None if `target` does not have exactly the codes of the source, or if its tags are not nested.
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
            index = next(
                (i for i, other in unused.items() if other.text == code and _may_begin(i, other)), -1
            )
            if index < 0:
                return None
            if source.codes[index].partner is not None:
                open_tags.append(index)
        del unused[index]
        result.append(index)
    return None if open_tags else result


def _may_begin(index: int, code: Code) -> bool:
    """Return whether a code is a placeholder or a start tag."""
    return code.partner is None or code.partner > index
