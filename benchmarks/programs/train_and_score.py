"""Train with jumok from sentence pairs to a model, as `jumok train` does, and score it on a test set."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.programs.report import parse, report
from benchmarks.settings import multi30k


def main() -> None:
    from jumok.data.corpora import open_corpus
    from jumok.evaluation.translator_scores import evaluate_translator
    from jumok.inference.loading import load
    from jumok.training.run.training_run import train

    options = parse(data=Path, out=Path, minutes=float, quick=int)
    pairs, valid = multi30k(options.data)
    budget: dict[str, Any] = {"training.steps": 3} if options.quick else {"training.minutes": options.minutes}
    started = time.perf_counter()
    model = train(pairs, out=options.out, valid=valid, **{"model.size": "tiny", **budget})
    minutes = (time.perf_counter() - started) / 60
    tests = open_corpus([options.data / f"test_2016_flickr.{language}" for language in ("en", "de")])
    scores = evaluate_translator(load(model), list(tests.pairs()), beam=4, tokenize="none").scores
    report(BLEU=scores.bleu, chrF=scores.chrf, TER=scores.ter, minutes=minutes)


if __name__ == "__main__":
    main()
