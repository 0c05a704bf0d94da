"""Read an iterator in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["read_ahead"]

Line = TypeVar("Line")


def read_ahead(
    lines: Iterator[Line], count: int, ready: Callable[[], bool] | None = None
) -> tuple[list[Line], Exception | None]:
    """Return a block of at most `count` lines, and the error that ended it, if any.

    The caller raises the error after it has processed the lines before it. `ready` says whether the next line
    can be read without waiting; if not, the block ends, but it has at least one line.
    """
    block: list[Line] = []
    try:
        while len(block) < count and (not block or ready is None or ready()):
            block.append(next(lines))
    except StopIteration:
        return block, None
    except Exception as error:
        return block, error
    return block, None
