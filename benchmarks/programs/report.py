"""The arguments and the output of the programs."""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parse", "repeat", "report"]


def parse(**kinds: Callable[[str], object]) -> argparse.Namespace:
    """`parse(run=Path, seconds=float)` reads `--run FOLDER --seconds 5`; all of them are required."""
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args()


def report(**measures: float) -> None:
    """Print the measures; in their names `_per_` becomes a slash, any other underscore a space."""
    named = {name.replace("_per_", "/").replace("_", " "): value for name, value in measures.items()}
    print(json.dumps(named), flush=True)


def repeat(work: Callable[[], object], seconds: float) -> float:
    """Return the median time of `work()`, which is repeated for this many seconds, at least once."""
    times: list[float] = []
    while not times or sum(times) < seconds:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times)
