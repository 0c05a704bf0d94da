"""Measure the time of single sentences in a process that has already translated a sentence."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from benchmarks.programs.report import parse, report


def main() -> None:
    from jumok.inference.loading import load

    options = parse(model=Path, source=Path, engine=str)
    translator = load(options.model, engine=options.engine)
    first, *others = options.source.read_text(encoding="utf-8").splitlines()
    translator.translate([first])
    times = []
    for sentence in others:
        started = time.perf_counter()
        translator.translate([sentence])
        times.append(time.perf_counter() - started)
    report(
        ms=1000 * median(times), **{"second sentence, ms": 1000 * times[0], "slowest, ms": 1000 * max(times)}
    )


if __name__ == "__main__":
    main()
