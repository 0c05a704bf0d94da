"""Word alignments as people write them: `0-0 1-2` for sure links, `3?1` for possible ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.values import Alignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.values import Link

__all__ = ["parse_alignment", "turned"]


def parse_alignment(text: str) -> Alignment:
    """Read the Pharaoh form. Raises ValueError with the link that is none."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for link in text.split():
        mark = "-" if "-" in link else "?"
        left, _, right = link.partition(mark)
        if not (left.isdecimal() and right.isdecimal()):
            raise ValueError(link)
        (sure if mark == "-" else possible).add((int(left), int(right)))
    return Alignment(frozenset(sure), frozenset(possible))


def turned(alignment: Alignment) -> Alignment:
    """The same links seen from the target side."""
    return Alignment(_swapped(alignment.sure), _swapped(alignment.possible))


def _swapped(links: Iterable[Link]) -> frozenset[Link]:
    return frozenset((j, i) for i, j in links)
