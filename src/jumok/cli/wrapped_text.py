"""Text on a terminal: paragraphs wrapped at its width, and sentences shortened to one printable line."""

from __future__ import annotations

import shutil
import sys
import textwrap
from unicodedata import east_asian_width

import typer

from jumok.plots.text_width import terminal_columns

_FILLER = "\ue000"
"""A private-use character of Unicode: the second column of a wide character, while text is wrapped."""


def fill_columns(text: str) -> str:
    """Return a text in which each wide character, such as Hangul, is two characters.

    Code that counts characters to wrap or pad text, such as textwrap and typer, then counts columns. A
    character without a width, such as a combining character, still counts as one column.
    """
    if text.isascii():
        return text
    return "".join(c + _FILLER if east_asian_width(c) in "WF" else c for c in text)


def unfill_columns(text: str) -> str:
    """Undo `fill_columns`."""
    return text.replace(_FILLER, "")


def pad(text: str, columns: int) -> str:
    """Return a text with spaces up to this many columns of a terminal."""
    return text + " " * (columns - terminal_columns(text))


def echo_wrapped(text: str, *, indent: int = 0) -> None:
    """Print one paragraph. On a terminal wrap it, and indent all lines but the first."""
    if sys.stdout.isatty():
        filled = textwrap.fill(
            fill_columns(text),
            shutil.get_terminal_size().columns,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        text = unfill_columns(filled)
    typer.echo(text)


def shorten(text: str, max_length: int = 70) -> str:
    """Return at most `max_length` characters on one line. Characters that are not printable are escaped."""
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return printable if len(printable) <= max_length else printable[: max_length - 1] + "…"
