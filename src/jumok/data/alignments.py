"""Word alignments in Pharaoh format: `0-0 1-2` for sure links, `3?1` for a possible link."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.text.words import split_words
from jumok.types import Alignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.types import Link, Pair

_LINK = re.compile(r"(\d+)([-?p])(\d+)", re.ASCII)
_FINAL_PUNCTUATION = re.compile(r"(?<=\w)[.,!?](?=\s|\Z)")


def parse_alignment(text: str) -> Alignment:
    """Parse links `source-target`: `0-0 2-1 3?1`. `i?j` and `ipj` are links that are only possible."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for link_text in text.split():
        link, is_sure = _parse_link(link_text)
        (sure if is_sure else possible).add(link)
    return Alignment(frozenset(sure), frozenset(possible))


@lru_cache(maxsize=1 << 14)  # a corpus repeats the same few thousand links
def _parse_link(text: str) -> tuple[Link, bool]:
    """Return the link, and whether it is sure."""
    match = _LINK.fullmatch(text)
    if match is None:
        raise DataError(f'"{text}" is not a link. A link is 3-1, or 3?1 if it is only possible.')
    return (int(match[1]), int(match[3])), match[2] == "-"


def describe_links_out_of_range(pair: Pair) -> str:
    """Describe the alignment links of a pair that name words beyond the end of its sentences.

    Return "" if there are no such links.
    """
    if pair.alignment is None or not pair.alignment.possible:
        return ""
    # The possible links include the sure links.
    last_source, last_target = (max(words) for words in zip(*pair.alignment.possible, strict=True))
    if last_source < _min_words(pair.source) and last_target < _min_words(pair.target):
        return ""
    source_words, target_words = len(split_words(pair.source)), len(split_words(pair.target))
    links = sorted(pair.alignment.possible)
    outside = [f"{i}-{j}" for i, j in links if i >= source_words or j >= target_words]
    if not outside:
        return ""
    more = f" and {len(outside) - 3} more" if len(outside) > 3 else ""
    return (
        f"received {', '.join(outside[:3])}{more}; "
        f"the source has {source_words} words, the target {target_words}"
    )


def _min_words(text: str) -> int:
    """Return a lower bound on the number of words, much faster than splitting the sentence."""
    return len(text.split()) + len(_FINAL_PUNCTUATION.findall(text))


def swap_alignment(alignment: Alignment) -> Alignment:
    """Return the links with source and target swapped."""
    return Alignment(_swap(alignment.sure), _swap(alignment.possible))


def _swap(links: Iterable[Link]) -> frozenset[Link]:
    return frozenset((j, i) for i, j in links)
