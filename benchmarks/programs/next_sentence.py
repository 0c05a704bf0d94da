"""How long one more sentence takes, in a process that has translated one already."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from benchmarks.contenders.report import parse, report


def main() -> None:
    from jumok.engines import load

    given = parse(model=Path, source=Path, engine=str)
    translator = load(given.model, engine=given.engine)
    first, *others = given.source.read_text(encoding="utf-8").splitlines()
    translator.translate([first])
    times = []
    for sentence in others:
        started = time.perf_counter()
        translator.translate([sentence])
        times.append(time.perf_counter() - started)
    report(ms=1000 * median(times), ms_the_second=1000 * times[0], ms_at_worst=1000 * max(times))


if __name__ == "__main__":
    main()
