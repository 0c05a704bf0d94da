"""Read an iterator in blocks. The blocks do not depend on how many processes translate them."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOK_AHEAD = 4096
"""The maximum number of lines of a stream that are in memory."""
# Blocks have 1/2 of `look_ahead` lines; the first has fewer, so that the search starts at once.
_FIRST_BLOCK_DIVISOR, _BLOCK_DIVISOR = 16, 2

Line = TypeVar("Line")


def block_sizes(look_ahead: int = LOOK_AHEAD) -> Iterator[int]:
    """Yield the number of lines of each block of a stream, without end."""
    divisors = chain([_FIRST_BLOCK_DIVISOR], repeat(_BLOCK_DIVISOR))
    return (max(1, look_ahead // divisor) for divisor in divisors)


def read_ahead(
    lines: Iterator[Line], count: int, ready: Callable[[], bool] | None = None
) -> tuple[list[Line], Exception | None]:
    """Return a block of at most `count` lines, and the error that ended the block, if any.

    The caller first processes the lines and then raises the error. `ready` says whether the next line can be
    read without waiting. If it cannot, the block ends, but not before it has one line. So a block is empty
    only at the end of the input or at an error.
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
