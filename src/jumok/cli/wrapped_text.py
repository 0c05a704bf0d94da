"""Text on a terminal: paragraphs wrapped at its width, and sentences shortened to one printable line."""

from __future__ import annotations

import shutil
import sys
import textwrap

import typer


def echo_wrapped(text: str, *, indent: int = 0) -> None:
    """Print one paragraph. On a terminal wrap it, and indent all lines but the first."""
    if sys.stdout.isatty():
        text = textwrap.fill(
            text,
            shutil.get_terminal_size().columns,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    typer.echo(text)


def shorten(text: str, max_length: int = 70) -> str:
    """Return one printable line; control characters are escaped, not sent to the terminal."""
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return printable if len(printable) <= max_length else printable[: max_length - 1] + "…"
