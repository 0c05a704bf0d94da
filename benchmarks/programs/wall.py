"""Measure the wall-clock time of a command in a new process."""

from __future__ import annotations

import subprocess

from benchmarks.programs.report import parse, repeat, report


def main() -> None:
    options = parse(command=str, input=str, seconds=float)

    def run() -> None:
        subprocess.run(
            options.command, shell=True, input=options.input, text=True, check=True, capture_output=True
        )

    run()  # This run is not measured. It fills the file cache.
    report(seconds=repeat(run, options.seconds))


if __name__ == "__main__":
    main()
