"""How a contender reads its arguments and tells what it measured."""

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
    """`parse(run=Path, seconds=float)` reads `--run FOLDER --seconds 5`; all of them must be there."""
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args()


def report(**measures: float) -> None:
    """Print the measures; an underscore in a name is read as a space, `_per_` as a slash."""
    named = {name.replace("_per_", "/").replace("_", " "): value for name, value in measures.items()}
    print(json.dumps(named), flush=True)


def repeat(work: Callable[[], object], seconds: float) -> float:
    """The median time that something takes: once at least, then again and again for so many seconds."""
    times: list[float] = []
    while not times or sum(times) < seconds:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times)
