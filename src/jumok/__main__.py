"""The program `jumok`, and `python -m jumok`: Ctrl-C ends it with one line, from its first moment on."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED, READER_LEFT = 130, 141  # as a shell reports Ctrl-C and a closed pipe


def main() -> None:
    """Run the command line. Its import takes a tenth of a second, in which somebody may change their mind."""
    try:
        from jumok.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("jumok: interrupted.\n")
        _leave(INTERRUPTED)
    except SystemExit as end:
        if end.code in (INTERRUPTED, READER_LEFT):
            _leave(int(end.code))
        raise


def _leave(code: int) -> NoReturn:
    """End at once. A converted model would first translate whatever it was given, for nobody."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
