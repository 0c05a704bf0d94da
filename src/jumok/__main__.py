"""The program `jumok`, and `python -m jumok`: Ctrl-C ends it with one line, from its first moment on."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Its import takes a tenth of a second, in which somebody may change their mind."""
    try:
        from jumok.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("jumok: interrupted.\n")
        sys.exit(130)  # as a shell reports Ctrl-C


if __name__ == "__main__":
    main()
