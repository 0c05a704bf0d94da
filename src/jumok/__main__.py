"""The program `jumok`, and `python -m jumok`. Ctrl-C ends it with one line, even during the imports."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED, BROKEN_PIPE = 130, 141  # exit codes, as a shell reports Ctrl-C and a closed pipe


def main() -> None:
    """Run the command line. Ctrl-C is also handled while the modules of the command line are imported."""
    try:
        from jumok.cli import main as run  # start-up

        run()
    except KeyboardInterrupt:
        sys.stderr.write(_interruption_message())
        _exit_now(INTERRUPTED)
    except SystemExit as end:
        if end.code in (INTERRUPTED, BROKEN_PIPE):
            _exit_now(int(end.code))
        raise


def _interruption_message() -> str:
    language = sys.modules.get("jumok.cli.language")  # no import here: a second Ctrl-C could interrupt it
    localise = getattr(language, "localise", str)
    return str(localise("jumok: interrupted.\n"))


def _exit_now(code: int) -> NoReturn:
    """Exit at once. A normal exit would wait until CTranslate2 has finished all translations in its queue."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
