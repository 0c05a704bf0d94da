"""The command line: `jumok VERB …`. One verb a file, each thin over plain functions of the other rooms.

Only the module of the verb that was asked for is imported, and torch only inside it, so `jumok --help`
answers at once.
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

from jumok.cli.arguments import spread_options
from jumok.errors import JumokError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

__all__ = ["main"]

VERBS = {
    "demo": "Train on the built-in corpus, translate, score and draw: everything at once.",
    "check": "Say what is in your sentence pairs and what is wrong with them.",
    "train": "Train a translator on your sentence pairs, or a language model on a text. No config file.",
    "translate": "Translate lines from a file or standard input.",
    "complete": "Go on with lines, with a language model trained on plain text.",
    "evaluate": "Score a model on a test set: BLEU, chrF, TER, alignment error, perplexity.",
    "shortlist": "Learn from the training pairs which pieces go with which, to translate faster.",
    "compare": "Train several models on the same pairs with the same budget and compare them.",
    "serve": "Serve models over HTTP, as LibreTranslate does, with a page to translate on.",
    "look": "Draw what a model attends to while it translates a sentence.",
    "info": "Say what a model folder holds.",
    "models": "List families of models, attention mechanisms, and what goes with what.",
    "bench": "Measure what attention costs as a sequence grows: time, memory, steps, paths.",
    "corpus": "Print the built-in corpus as a file of sentence pairs.",
}

EPILOG = "Two commands: jumok train pairs.tsv --out runs/mine · jumok translate runs/mine/model < in.txt"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb. Errors that jumok raises on purpose end with one paragraph and exit code 2."""
    # A thread that waits for another spins this long, then sleeps. The default, to spin for good, makes two
    # threads many times slower as soon as anything else runs. OpenMP reads it when torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    output_closed = _fill_closed_streams()
    _write_utf8()
    words = spread_options(list(sys.argv[1:] if arguments is None else arguments))
    verb = next((word for word in words if not word.startswith("-")), "")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warn, verb, warnings.showwarning)
            _run(verb, words)
    except JumokError as error:
        _complain(verb, str(error))
    except BrokenPipeError:
        _discard(sys.stdout, sys.stderr)  # the reader (`head`, say) has left
        sys.exit(141)  # as a shell reports SIGPIPE
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        if error.errno == errno.EBADF and output_closed:
            _complain(verb, "standard output is closed, so there is nowhere to print to.")
        place = f" ({error.filename})" if error.filename else ""
        _complain(verb, f"the system said: {error.strerror or error}{place}.")


def _run(verb: str, words: list[str]) -> None:
    try:
        _application(verb)(args=words, prog_name="jumok", standalone_mode=True)
    except SystemExit as end:
        # The parser, and rich where it prints, turn a closed pipe into exit code 1; its context tells.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        sys.stdout.flush()  # if the last lines cannot be written, it must show while it can be told
        raise


def _fill_closed_streams() -> bool:
    """Put what cannot be used in place of standard streams that are closed (`>&-`). Was it the output?

    Python leaves such a stream None, which printing trips over, and the next file that is opened takes its
    number: what is meant for the terminal would be written into that file.
    """
    while (number := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(number)
    if sys.stdout is not None:
        return False
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")))
    return True


def _write_utf8() -> None:
    """Sentences are UTF-8 on their way out as on their way in, whatever the locale says.

    The name of a file that is not UTF-8 leaves as the bytes that it came in with.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")


def _application(verb: str) -> typer.Typer:
    application = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="jumok (주목, attention): train a translator on your own pairs and see what it attends to.",
        epilog=EPILOG,
    )
    application.callback(invoke_without_command=True)(_options)
    for name, summary in VERBS.items():
        function = _function(name) if name == verb else _not_asked
        application.command(name, help=function.__doc__ or summary, short_help=summary)(function)
    return application


def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True),
) -> None:
    if version:
        from jumok import __version__

        typer.echo(f"jumok {__version__}")
        raise typer.Exit


def _function(verb: str) -> Callable[..., None]:
    module = importlib.import_module(f"jumok.cli.{verb}")
    function: Callable[..., None] = getattr(module, verb)
    return function


def _not_asked() -> None:
    """Stand for a verb that this call did not ask for, so that only its summary is needed."""


def _warn(
    verb: str, usual: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any
) -> None:
    """Warnings of jumok are for whoever typed the command: without a place in the code."""
    if category.__module__.startswith("jumok."):
        typer.echo(f"jumok {verb}: {message}", err=True)
    else:
        usual(message, category, *where)


def _complain(verb: str, message: str) -> None:
    name = f"jumok {verb}" if verb in VERBS else "jumok"
    typer.echo(f"{name}: {message}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    sys.exit(2)


def _discard(*streams: TextIO) -> None:
    """Point streams at nothing, or Python's last flush would complain of what cannot be written."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nothing, stream.fileno())
