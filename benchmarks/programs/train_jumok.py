"""Train with jumok as a user does, in a prepared run folder, and read the speed from the run's metrics."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.programs.report import parse, report
from benchmarks.settings import multi30k, training_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.training.events import Event

WARM_UP = 0.2  # share of the time
MIN_REPORTS = 3  # in addition to the first report


def steady_rate(metrics: Path, warm_up_seconds: float) -> float:
    """Return target tokens per second after the warm-up. Each report is weighted by the time it covers."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    reports = [(line["seconds"], line["tokens_per_second"]) for line in lines if line["kind"] == "train"]
    begin = reports[0][0] + warm_up_seconds
    tokens = seconds = 0.0
    for (before, _), (after, rate) in pairwise(reports):
        if after > begin:
            tokens, seconds = tokens + rate * (after - before), seconds + after - before
    if not seconds:
        raise SystemExit(f"{metrics} has too few reports after the warm-up. Train longer.")
    return tokens / seconds


def train_for(events: Iterator[Event], seconds: float) -> None:
    """Train for this many seconds after the first report, and until `MIN_REPORTS` more; then stop."""
    from jumok.training.events import Progress

    first, reports = None, 0
    for event in events:
        if isinstance(event, Progress):
            first, reports = first or time.perf_counter(), reports + 1
            if time.perf_counter() - first > seconds and reports > MIN_REPORTS:
                break


def main() -> None:
    from jumok.training.run.training_run import training_events

    options = parse(run=Path, data=Path, family=str, quick=int, seconds=float)
    pairs, valid = multi30k(options.data)
    settings = training_settings(options.family, quick=bool(options.quick))
    train_for(training_events(pairs, out=options.run, valid=valid, **settings), options.seconds)
    report(target_tokens_per_s=steady_rate(options.run / "metrics.jsonl", WARM_UP * options.seconds))


if __name__ == "__main__":
    main()
