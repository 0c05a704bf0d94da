"""A status line on the terminal, for commands that have no results to show yet."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """If standard error is a terminal, show a line on it within this block. Yield a function to change it."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console  # start-up

    with Console(stderr=True).status(text) as status:
        yield status.update
