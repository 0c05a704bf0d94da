"""Runs comparisons: in each round, every system is measured once, in a process of its own.

The medians over the rounds are compared. If the machine becomes slower for several rounds, all systems are
affected alike, because they take turns. Before every measurement and after the last measurement, the machine
must be idle. The option `--anyway` and the topics with `NEEDS_IDLE_MACHINE = False` allow a busy machine.
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
    "Comparison",
    "Measures",
    "Result",
    "Row",
    "System",
    "make_result",
    "module_command",
    "run_and_measure",
    "run_comparison",
    "wait_until_idle",
]

ROOT = Path(__file__).parent.parent
MAX_BUSY_SHARE, MAX_WAIT_SECONDS = 0.10, 120.0

Measures = dict[str, float]


class BusyMachineError(Exception):
    """Something else is running, so a measurement would be wrong."""


@dataclass(frozen=True, slots=True)
class System:
    """One of the compared systems: its name, and the program in `programs/` that measures it."""

    name: str
    program: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed_per_round: bool = False  # the program gets the number of the round as its option `seed`


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems, and the measure that is compared. Ratios are relative to the first system, which is jumok."""

    title: str
    measure: str
    systems: Sequence[System]
    lower_is_better: bool = False
    has_ratios: bool = True  # False if the measure is not a speed


@dataclass(frozen=True, slots=True)
class Row:
    """The median of each measure of a system; `rounds` has the compared measure in every round."""

    name: str
    measures: Measures
    rounds: list[float]
    ratio: float | None  # speed of the first system, which is jumok, divided by the speed of this system


@dataclass(frozen=True, slots=True)
class Result:
    title: str
    measure: str
    rows: list[Row]
    has_ratios: bool = True
    lower_is_better: bool = False


def module_command(program: str, options: Mapping[str, object]) -> list[str]:
    """Return the command that runs a program: `{"seconds": 5}` becomes `--seconds 5`."""
    arguments = [argument for name, value in options.items() for argument in (f"--{name}", str(value))]
    return [sys.executable, "-m", f"benchmarks.programs.{program}", *arguments]


def run_and_measure(program: str, options: Mapping[str, object]) -> Measures:
    """Run a program and return the measures in its last line of output, which is JSON."""
    done = subprocess.run(module_command(program, options), cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{program} {dict(options)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    measures: dict[str, Any] = json.loads(lines[-1])
    return {name: float(value) for name, value in measures.items()}


def run_comparison(
    comparison: Comparison, *, rounds: int, log: Callable[[str], None], require_idle: bool = True
) -> Result:
    """Run every system once per round. Each round starts with the next system of the list."""
    measured: dict[str, list[Measures]] = {system.name: [] for system in comparison.systems}
    for round_index in range(rounds):
        first = round_index % len(comparison.systems)
        for system in (*comparison.systems[first:], *comparison.systems[:first]):
            if require_idle:
                wait_until_idle()
            seed = {"seed": round_index + 1} if system.seed_per_round else {}
            measures = run_and_measure(system.program, {**system.options, **seed})
            measured[system.name].append(measures)
            listed = ", ".join(f"{value:,.4g} {name}" for name, value in measures.items())
            log(f"{comparison.title}, round {round_index + 1}/{rounds}: {system.name}: {listed}")
    if require_idle:
        wait_until_idle()
    return make_result(comparison, measured)


def wait_until_idle() -> None:
    """Wait until the machine is idle; raise BusyMachineError after `MAX_WAIT_SECONDS`."""
    end = time.monotonic() + MAX_WAIT_SECONDS
    while (share := busy_share()) > MAX_BUSY_SHARE:
        if time.monotonic() >= end:
            raise BusyMachineError(
                f"The machine is busy: something else uses {share:.0%} of its cores' time. At most "
                f"{MAX_BUSY_SHARE:.0%} is accepted. An unfinished measurement is not reported. Try later, "
                "or add --anyway."
            )


def make_result(comparison: Comparison, measured: Mapping[str, Sequence[Measures]]) -> Result:
    """Return the medians over the rounds, and the ratios to the first system."""
    first = _median(measured[comparison.systems[0].name], comparison.measure)
    return Result(
        comparison.title,
        comparison.measure,
        [_row(comparison, system.name, measured[system.name], first) for system in comparison.systems],
        comparison.has_ratios,
        comparison.lower_is_better,
    )


def _row(comparison: Comparison, system: str, rounds: Sequence[Measures], first: float | None) -> Row:
    value = _median(rounds, comparison.measure)
    ratio = None
    if value and first and comparison.has_ratios:
        ratio = value / first if comparison.lower_is_better else first / value
    return Row(
        system,
        {name: middle for name in rounds[0] if (middle := _median(rounds, name)) is not None},
        [measures[comparison.measure] for measures in rounds if comparison.measure in measures],
        ratio,
    )


def _median(rounds: Sequence[Measures], measure: str) -> float | None:
    values = [measures[measure] for measures in rounds if measure in measures]
    return median(values) if values else None
