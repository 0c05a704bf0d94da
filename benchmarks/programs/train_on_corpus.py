"""Train on a file of pairs as a user does, and measure the stages, the training, `jumok check` and memory."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.programs.report import parse, report
from benchmarks.programs.train_jumok import WARM_UP, steady_rate, train_for
from jumok.system.processes import available_cores


def main() -> None:
    from jumok.data.corpora import open_corpus
    from jumok.data.corpus_report import check_corpora
    from jumok.training.events import StageDone
    from jumok.training.run.training_run import training_events

    options = parse(pairs=Path, count=int, work=Path, seconds=float)
    stages: dict[str, float] = {}
    settings: dict[str, Any] = {
        "model.size": "tiny",
        "text.vocab_size": 2000,
        "training.batch_tokens": 4096,
        "training.steps": 1_000_000,
        "training.processes": available_cores(),
    }
    out = Path(tempfile.mkdtemp(dir=options.work)) / "run"
    events = training_events(options.pairs, out=out, **settings)
    while "encoding" not in stages:
        event = next(events)
        if isinstance(event, StageDone):
            stages[event.name] = event.seconds
    train_for(events, options.seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB, without the check below
    started = time.perf_counter()
    check_corpora([open_corpus([options.pairs])])
    checking = time.perf_counter() - started
    report(
        target_tokens_per_s=steady_rate(out / "metrics.jsonl", WARM_UP * options.seconds),
        pairs_read_and_encoded_per_s=options.count / (stages["reading"] + stages["encoding"]),
        pairs_read_per_s=options.count / stages["reading"],
        pairs_encoded_per_s=options.count / stages["encoding"],
        pairs_checked_per_s=options.count / checking,
        seconds_to_learn_the_vocabulary=stages["learning vocabulary"],
        MB_peak=memory,
    )


if __name__ == "__main__":
    main()
