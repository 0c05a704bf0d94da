"""The command line: `jumok COMMAND …`. One module per command, each a thin layer over the other packages.

Of the modules of commands, only that of the requested command is imported. Torch is imported when the
command runs. So `jumok --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from jumok.cli.arguments import RENAMED_OPTIONS, complete_ray_option, rename_options
from jumok.cli.language import choose_language, localise, localise_text
from jumok.cli.localised_commands import LocalisedCommand, LocalisedGroup, localise_columns
from jumok.errors import JumokError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

__all__ = ["main"]

COMMANDS = {
    "demo": "Train on the built-in corpus, translate, score and draw: everything at once.",
    "check": "Report what is in your sentence pairs and what is wrong with them.",
    "clean": "Drop pairs whose sides do not translate each other, judged by one model per direction.",
    "train": "Train a translator on your sentence pairs, or a language model on a text. No config file.",
    "finish": "Make the final model of a training run that was stopped.",
    "translate": "Translate lines, documents with their formatting, or folders of documents.",
    "complete": "Complete lines with a language model trained on plain text.",
    "evaluate": "Score a model on a test set: BLEU, chrF, TER, alignment error, perplexity.",
    "shortlist": "Learn a vocabulary shortlist from the training pairs, to translate faster.",
    "compare": "Train several models on the same pairs with the same budget and compare them.",
    "serve": "Serve models over HTTP with the API of LibreTranslate and a web page.",
    "import": "Turn a model of another toolkit (OPUS-MT, Marian, Hugging Face) into a model folder.",
    "export": "Write a model for another toolkit: Hugging Face, ONNX, CTranslate2, Argos, safetensors.",
    "look": "Draw what a model attends to while it translates a sentence.",
    "info": "Describe a model folder, or a model of another toolkit.",
    "models": "List model families, attention mechanisms, and how they combine.",
    "bench": "Measure how the cost of attention grows with sequence length.",
    "cache": "List, cap or clear the converted models that are stored for you.",
    "corpus": "Print a built-in corpus as sentence pairs, or draw pictures with captions.",
}

_FUNCTIONS = {"import": "import_model"}
"""Command → name of its module and its function, if the command's own name is a keyword of Python."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command.

    A `JumokError` or an error of the system is printed as one paragraph. The exit code is then 2.
    """
    # A waiting OpenMP thread spins this many times, then sleeps. By default it spins so long that two threads
    # become many times slower when anything else runs. OpenMP reads the variable when torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    choose_language(os.environ)
    output_was_closed = _reopen_closed_streams()
    _use_utf8()
    argv = complete_ray_option(list(sys.argv[1:] if arguments is None else arguments))
    command = next((argument for argument in argv if not argument.startswith("-")), "")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, command, warnings.showwarning)
            _run(command, rename_options(argv))
    except JumokError as error:
        _exit_with_error(command, _message(error, argv))
    except BrokenPipeError:
        _discard(sys.stdout, sys.stderr)  # the reader, such as `head`, has ended
        sys.exit(141)  # as a shell reports SIGPIPE
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        if error.errno == errno.EBADF and output_was_closed:
            _exit_with_error(command, localise("Standard output is closed, so nothing can be printed."))
        if error.errno == errno.ENOSPC and not error.filename:
            _exit_with_error(
                command, localise("The output could not be written: the disk is full. Free some space.")
            )
        file = f" ({error.filename})" if error.filename else ""
        reason = f"{error.strerror or error}{file}"
        _exit_with_error(command, localise("The system reported an error: {reason}.", reason=reason))


def _message(error: JumokError, arguments: list[str]) -> str:
    """Return the message to print.

    If each setting with a fault was given as an option, the message names the options, not the settings.
    """
    faults = error.faults if isinstance(error, RecipeError) else {}
    options = {argument.partition("=")[0] for argument in arguments}
    options |= {RENAMED_OPTIONS[option] for option in options & RENAMED_OPTIONS.keys()}
    names = {name: f"--{name.partition('.')[2].replace('_', '-')}" for name in faults}
    if not faults or not options.issuperset(names.values()):
        return str(error)
    return "\n".join(f"{names[name]}: {fault}" for name, fault in faults.items())


def _run(command: str, arguments: list[str]) -> None:
    if command in COMMANDS:
        _import_function(command)  # outside of typer, which would exit silently on Ctrl-C during the import
    try:
        _app(args=arguments, prog_name="jumok", standalone_mode=True)
    except SystemExit as end:
        # typer and rich turn a BrokenPipeError into a SystemExit with code 1, whose context is this error.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        sys.stdout.flush()  # if this fails, the error can still be reported
        raise


def _reopen_closed_streams() -> bool:
    """Replace closed standard streams (`>&-`) by /dev/null. Return whether standard output was closed.

    Python sets a closed stream to None: text that is printed is lost without an error. Besides, the next file
    that is opened gets the descriptor of the closed stream, and output of C code would be written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(os.devnull, "w"))  # nobody reads what is written there
    if sys.stdout is not None:
        return False
    # The descriptor is read-only: printing fails with EBADF, which `main` reports.
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")))
    return True


def _use_utf8() -> None:
    """Write UTF-8 in every locale, because input is read as UTF-8 in every locale.

    Bytes of a file name that are not UTF-8 are written unchanged, unless the library has replaced them.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")


class LazyCommands(LocalisedGroup):
    """Imports the module of a command when it runs; the list of commands needs only their summaries."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # names, which typer suggests

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        app = typer.Typer(**_APP_SETTINGS)
        app.command(cmd_name, cls=LocalisedCommand)(_import_function(cmd_name))
        return typer.main.get_command(app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, localise_columns(summary)) for name, summary in COMMANDS.items()])


_APP_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
_app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    help="jumok (주목, attention): train a translator on your own pairs and see what it attends to.",
    epilog="Two commands: jumok train pairs.tsv --out runs/mine · jumok translate runs/mine/model < in.txt",
    **_APP_SETTINGS,
)


@_app.callback(invoke_without_command=True)
def _global_options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from jumok import __version__  # start-up

        typer.echo(f"jumok {__version__}")
        raise typer.Exit


def _import_function(command: str) -> Callable[..., None]:
    name = _FUNCTIONS.get(command, command)
    module = importlib.import_module(f"jumok.cli.{name}")
    function: Callable[..., None] = getattr(module, name)
    return function


def _show_warning(
    command: str, default: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any
) -> None:
    """Print a warning of jumok without the line of code that raised it."""
    if category.__module__.startswith("jumok."):
        _print_message(command, localise_text(str(message)))
    else:
        default(message, category, *where)


def _print_message(command: str, message: str) -> None:
    """Print a message on standard error, with the name of the command if there is a command of this name."""
    name = f"jumok {command}" if command in COMMANDS else "jumok"
    typer.echo(f"{name}: {message}", err=True)


def _exit_with_error(command: str, message: str) -> None:
    _print_message(command, message)
    try:
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    sys.exit(2)


def _discard(*streams: TextIO) -> None:
    """Redirect streams to /dev/null; otherwise Python's flush at exit would fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(null, stream.fileno())
