"""The time that a command takes from its start to its end, in a fresh process."""

from __future__ import annotations

import subprocess

from benchmarks.contenders.report import parse, repeat, report


def main() -> None:
    given = parse(command=str, input=str, seconds=float)

    def run() -> None:
        subprocess.run(
            given.command, shell=True, input=given.input, text=True, check=True, capture_output=True
        )

    run()  # files that are read for the first time are not what is measured
    report(seconds=repeat(run, given.seconds))


if __name__ == "__main__":
    main()
