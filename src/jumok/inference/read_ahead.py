"""Lines of any number, taken some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["read_ahead"]

Line = TypeVar("Line")


def read_ahead(
    lines: Iterator[Line], count: int, ready: Callable[[], bool] | None = None
) -> tuple[list[Line], Exception | None]:
    """The next lines, at most so many, and what went wrong after them, to be raised when they are done.

    A line that cannot be read must not take with it those that stand before it. Where `ready` says that the
    next one is not there yet, only the first is waited for.
    """
    ahead: list[Line] = []
    try:
        while len(ahead) < count and (not ahead or ready is None or ready()):
            ahead.append(next(lines))
    except StopIteration:
        return ahead, None
    except Exception as error:
        return ahead, error
    return ahead, None
