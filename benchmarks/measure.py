"""Contenders take turns: a contest runs each of them once a round, in a process of its own.

What else the machine does from minute to minute then falls on all of them alike, and the median over the
rounds is compared. None of them begins on a busy machine, and none ends on one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.machine import busy_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "ROOT",
    "BusyMachineError",
    "Contender",
    "Contest",
    "Result",
    "Row",
    "call",
    "check_quiet",
    "hold_contest",
    "make_result",
    "module_command",
]

ROOT = Path(__file__).parent.parent
MOST_BUSY, PATIENCE = 0.10, 120.0

Measures = dict[str, float]


class BusyMachineError(Exception):
    """Something else is running: what would be measured is not what would be reported."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One row: a name, and the program in `contenders/` that measures it with these arguments."""

    name: str
    program: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contest:
    """Contenders for one measure. Ratios are to the first of them, which is jumok's."""

    title: str
    measure: str
    contenders: Sequence[Contender]
    fewer_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What a contender showed: the median of each measure, and the one that counts in every round."""

    name: str
    measures: Measures
    rounds: list[float]
    ratio: float | None  # how many times better jumok is


@dataclass(frozen=True, slots=True)
class Result:
    title: str
    measure: str
    rows: list[Row]


def module_command(program: str, arguments: Mapping[str, object]) -> list[str]:
    """The command that runs a contender: `seconds=5` becomes `--seconds 5`."""
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", f"benchmarks.contenders.{program}", *words]


def call(program: str, arguments: Mapping[str, object]) -> Measures:
    """Run one contender and read the line of JSON that it prints last."""
    done = subprocess.run(module_command(program, arguments), cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(
            f"{program} {dict(arguments)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        )
    measures: dict[str, Any] = json.loads(lines[-1])
    return {name: float(value) for name, value in measures.items()}


def hold_contest(
    contest: Contest, *, rounds: int, tell: Callable[[str], None], refuse_busy: bool = True
) -> Result:
    """Every contender once a round, in an order that turns with the rounds."""
    seen: dict[str, list[Measures]] = {contender.name: [] for contender in contest.contenders}
    for number in range(rounds):
        shift = number % len(contest.contenders)
        for contender in (*contest.contenders[shift:], *contest.contenders[:shift]):
            check_quiet(refuse_busy)
            measures = call(contender.program, contender.arguments)
            seen[contender.name].append(measures)
            told = ", ".join(f"{value:,.4g} {name}" for name, value in measures.items())
            tell(f"{contest.title}, round {number + 1}/{rounds}: {contender.name}: {told}")
    check_quiet(refuse_busy)
    return make_result(contest, seen)


def check_quiet(refuse_busy: bool) -> None:
    """Wait until the machine is quiet; refuse to go on if it is not within `PATIENCE` seconds."""
    end = time.monotonic() + PATIENCE
    while refuse_busy and (share := busy_share()) > MOST_BUSY:
        if time.monotonic() >= end:
            raise BusyMachineError(
                f"The machine is busy: {share:.0%} of its cores' time is used by something else (at most "
                f"{MOST_BUSY:.0%} is accepted). Nothing is reported. Try again later, or add --anyway."
            )


def make_result(contest: Contest, seen: Mapping[str, Sequence[Measures]]) -> Result:
    """Medians over the rounds, and ratios to the first contender."""
    first = _median(seen[contest.contenders[0].name], contest.measure)
    return Result(
        contest.title,
        contest.measure,
        [_row(contest, contender.name, seen[contender.name], first) for contender in contest.contenders],
    )


def _row(contest: Contest, name: str, seen: Sequence[Measures], first: float | None) -> Row:
    own = _median(seen, contest.measure)
    ratio = None
    if own and first:
        ratio = own / first if contest.fewer_is_better else first / own
    return Row(
        name,
        {measure: value for measure in seen[0] if (value := _median(seen, measure)) is not None},
        [one[contest.measure] for one in seen if contest.measure in one],
        ratio,
    )


def _median(seen: Sequence[Measures], measure: str) -> float | None:
    values = [one[measure] for one in seen if measure in one]
    return median(values) if values else None
