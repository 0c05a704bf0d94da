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
    """Parse the command line. All options are required.

    For example, `parse(run=Path, seconds=float)` reads `--run FOLDER --seconds 5`.
    """
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args()


def report(**measures: float) -> None:
    """Print the measures as JSON. In their names, `_per_` becomes a slash, and other underscores spaces."""
    named = {name.replace("_per_", "/").replace("_", " "): value for name, value in measures.items()}
    print(json.dumps(named), flush=True)


def repeat(work: Callable[[], object], seconds: float) -> float:
    """Run `work()` repeatedly for this many seconds, at least once. Return the median time of a run."""
    times: list[float] = []
    while not times or sum(times) < seconds:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times)
