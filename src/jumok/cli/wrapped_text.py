"""Long lines on a terminal: wrapped at its width, with an indent."""

from __future__ import annotations

import shutil
import sys
import textwrap

import typer

__all__ = ["echo_wrapped"]


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
