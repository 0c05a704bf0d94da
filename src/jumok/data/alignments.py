"""Word alignments as people write them: `0-0 1-2` for sure links, `3?1` for possible ones."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.text.words import split_words
from jumok.values import Alignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.values import Link, Pair

__all__ = ["links_outside", "parse_alignment", "turned"]

_LINK = re.compile(r"(\d+)([-?p])(\d+)", re.ASCII)
_LAST_MARK = re.compile(r"(?<=\w)[.,!?](?=\s|\Z)")


def parse_alignment(text: str, *, one_based: bool = False) -> Alignment:
    """Pharaoh's form, `source-target` and so on: `0-0 2-1 3?1`. `i?j` and `ipj` are only possible links."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for token in text.split():
        link, is_sure = _parse_link(token, one_based)
        (sure if is_sure else possible).add(link)
    return Alignment(frozenset(sure), frozenset(possible))


@lru_cache(maxsize=1 << 14)  # a corpus spells the same few thousand links again and again
def _parse_link(token: str, one_based: bool) -> tuple[Link, bool]:
    """The link, and whether it is sure."""
    match = _LINK.fullmatch(token)
    if match is None:
        raise DataError(f'"{token}" is no link. A link reads 3-1, or 3?1 if it is only possible.')
    link = (int(match[1]) - one_based, int(match[3]) - one_based)
    if min(link) < 0:
        raise DataError(f'"{token}" counts from 0, but the links were said to count from 1.')
    return link, match[2] == "-"


def links_outside(pair: Pair) -> str:
    """What is wrong with the links of a pair that name words which its sentences do not have; else ""."""
    if pair.alignment is None or not pair.alignment.possible:
        return ""
    last = [max(words) for words in zip(*pair.alignment.possible, strict=True)]
    if last[0] < _fewest_words(pair.source) and last[1] < _fewest_words(pair.target):
        return ""
    source, target = len(split_words(pair.source)), len(split_words(pair.target))
    outside = [f"{i}-{j}" for i, j in sorted(pair.alignment.possible) if i >= source or j >= target]
    if not outside:
        return ""
    more = f" and {len(outside) - 3} more" if len(outside) > 3 else ""
    return f"received {', '.join(outside[:3])}{more}; the source has {source} words, the target {target}"


def _fewest_words(text: str) -> int:
    """A sentence has at least so many words; counting them so is far quicker than cutting the words out."""
    return len(text.split()) + len(_LAST_MARK.findall(text))


def turned(alignment: Alignment) -> Alignment:
    """The same links seen from the target side."""
    return Alignment(_swapped(alignment.sure), _swapped(alignment.possible))


def _swapped(links: Iterable[Link]) -> frozenset[Link]:
    return frozenset((j, i) for i, j in links)
