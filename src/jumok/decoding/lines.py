"""Lines of any number, taken some at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["read_ahead"]

Line = TypeVar("Line")


def read_ahead(lines: Iterator[Line], count: int) -> tuple[list[Line], Exception | None]:
    """The next lines, at most so many, and what went wrong after them, to be raised when they are done.

    A line that cannot be read must not take with it those that stand before it.
    """
    ahead: list[Line] = []
    try:
        ahead.extend(islice(lines, count))  # what comes before an error stays in the list
    except Exception as error:
        return ahead, error
    return ahead, None
