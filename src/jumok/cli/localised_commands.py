"""Commands of typer whose help and usage errors are in the language of the user.

typer has English texts of its own, and assumes that every character takes one column of the terminal, but a
Hangul syllable takes two. In English, this module does not change what typer prints.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from jumok.cli.arguments import FILE_OPTIONS, repeat_file_options
from jumok.cli.language import is_english, localise, localise_help, localise_text
from jumok.cli.wrapped_text import fill_columns, unfill_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

_UsageError: Any = typer.BadParameter.__mro__[1]  # typer does not export it
_WORDS = r"(?m)^(?:Usage|Options|Arguments|Commands):|(?<=[\[ ])default:|(?<=[\[ ])required(?=\])"
"""The headings and marks that typer itself writes into a page of help."""


class _LocalisedHelp:
    """Translates the help of a command before typer formats it, and typer's own words afterwards."""

    def get_help(self, ctx: Any) -> str:
        command: Any = self
        if not is_english():
            for entry in (command, *command.get_params(ctx)):
                entry.help = entry.help and localise_columns(entry.help)
            command.epilog = command.epilog and localise_columns(command.epilog)
        return _localise_own_words(super().get_help(ctx))  # type: ignore[misc]

    def get_usage(self, ctx: Any) -> str:
        return _localise_own_words(super().get_usage(ctx))  # type: ignore[misc]


class LocalisedCommand(_LocalisedHelp, TyperCommand):
    """A command of the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments in which a file option may have two files."""
        repeatable_by_name = {  # option with a value → whether it may be repeated
            name: getattr(option, "multiple", False)
            for option in self.params
            if not getattr(option, "is_flag", True)  # a positional argument has no such attribute
            for name in option.opts
        }
        files = [name for name in FILE_OPTIONS if repeatable_by_name.get(name)]
        return super().parse_args(ctx, repeat_file_options(args, files, with_value=repeatable_by_name))


class LocalisedGroup(_LocalisedHelp, TyperGroup):
    """The command line itself, in which every usage error is raised."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _localised_usage_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _localised_usage_errors():
            return super().invoke(ctx)


def localise_columns(text: str) -> str:
    """Return a help text in the language of the user, with one character per column for typer's layout."""
    if is_english():
        return text
    return fill_columns(localise_help(unfill_columns(text)))


def _localise_own_words(page: str) -> str:
    """Return a page of help with typer's own words in the language of the user."""
    if is_english():
        return page
    return re.sub(_WORDS, lambda match: localise_text(match[0]), unfill_columns(page))


@contextmanager
def _localised_usage_errors() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if not is_english() and type(error).show is _UsageError.show:
            error.show = partial(_show_usage_error, error)
        raise


def _show_usage_error(error: Any) -> None:
    if error.ctx is not None:
        help_command = f"{error.ctx.command_path} {error.ctx.help_option_names[0]}"
        typer.echo(error.ctx.get_usage(), err=True)
        typer.echo(localise("Try '{command}' for help.", command=help_command) + "\n", err=True)
    message = localise_text(error.format_message())
    typer.echo(localise("Error: {message}", message=message), err=True)
