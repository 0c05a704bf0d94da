"""Train on a file of pairs as a user does: how fast it is read, checked and encoded, in how much memory."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.contenders.report import parse, report
from benchmarks.contenders.train_jumok import WARM_UP, steady_rate, train_for
from jumok.processes import available_cores


def main() -> None:
    from jumok.corpus import check_up, open_corpus
    from jumok.training import Stage, training_events

    given = parse(pairs=Path, count=int, work=Path, seconds=float)
    stages: dict[str, float] = {}
    settings: dict[str, Any] = {
        "model.size": "tiny",
        "text.pieces": 2000,
        "training.batch_tokens": 4096,
        "training.steps": 1_000_000,
        "training.processes": available_cores(),
    }
    out = Path(tempfile.mkdtemp(dir=given.work)) / "run"
    events = training_events(given.pairs, out=out, **settings)
    while "encoding" not in stages:
        event = next(events)
        if isinstance(event, Stage):
            stages[event.name] = event.seconds
    train_for(events, given.seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # before the check-up below
    started = time.perf_counter()
    check_up([open_corpus([given.pairs])])
    checking = time.perf_counter() - started
    report(
        target_tokens_per_s=steady_rate(out / "metrics.jsonl", WARM_UP * given.seconds),
        pairs_read_and_encoded_per_s=given.count / (stages["reading"] + stages["encoding"]),
        pairs_read_per_s=given.count / stages["reading"],
        pairs_encoded_per_s=given.count / stages["encoding"],
        pairs_of_a_check_up_per_s=given.count / checking,
        seconds_to_learn_pieces=stages["learning pieces"],
        MB_at_the_peak=memory,
    )


if __name__ == "__main__":
    main()
