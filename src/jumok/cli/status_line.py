"""A status line on the terminal, for commands that have no results to show yet."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """Within this block, show a line on standard error if it is a terminal.

    Yield a function that changes the text of the line.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console  # start-up

    with Console(stderr=True).status(text) as status:
        yield status.update
