"""Symmetrisation: merge the word links of two directions (Koehn, Och & Marcu 2003, §4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jumok.errors import RecipeError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from jumok.types import Link

Symmetrisation = Literal["intersection", "union", "grow-diagonal", "grow-diagonal-final"]

# Steps (target, source) to the neighbours of a link, in Koehn's order: the four sides, then the corners.
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(
    forward: AbstractSet[Link], backward: AbstractSet[Link], method: Symmetrisation = "grow-diagonal-final"
) -> frozenset[Link]:
    """Merge the links of two directions into one set. All links are (source, target).

    The methods are those of Koehn, Och & Marcu 2003, §4.5. `grow-diagonal` starts from the links that both
    directions have. It repeatedly adds a link of either direction that is next to a link in the set, also
    diagonally, and reaches an unlinked word. `grow-diagonal-final` then adds every other link of either
    direction that reaches an unlinked word when its turn comes. A link reaches an unlinked word if its source
    word or its target word has no link yet, as in Moses' symal. Some programs require that both words have no
    link yet, and give fewer links.
    """
    if method not in _METHODS:
        suggestion = suggest(method, _METHODS)
        raise RecipeError(f'There is no symmetrisation "{method}".{suggestion} Known: {", ".join(_METHODS)}.')
    return frozenset(_METHODS[method](forward, backward))


def _grow_diagonal(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> set[Link]:
    either = forward | backward
    links = set(forward & backward)
    order = sorted(either, key=lambda link: (link[1], link[0]))
    growing = True
    while growing:
        growing = False
        for source, target in order:
            if (source, target) not in links:
                continue
            for target_step, source_step in _NEIGHBOURS:
                neighbour = (source + source_step, target + target_step)
                if neighbour in either and neighbour not in links and _reaches_unlinked(neighbour, links):
                    links.add(neighbour)
                    growing = True
    return links


def _grow_diagonal_final(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> set[Link]:
    links = _grow_diagonal(forward, backward)
    for direction in (forward, backward):
        for link in sorted(direction, key=lambda link: (link[1], link[0])):
            if _reaches_unlinked(link, links):
                links.add(link)
    return links


def _reaches_unlinked(link: Link, links: AbstractSet[Link]) -> bool:
    source, target = link
    return all(i != source for i, _ in links) or all(j != target for _, j in links)


_METHODS: dict[str, Callable[[AbstractSet[Link], AbstractSet[Link]], AbstractSet[Link]]] = {
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diagonal": _grow_diagonal,
    "grow-diagonal-final": _grow_diagonal_final,
}
