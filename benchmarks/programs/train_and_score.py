"""Train with jumok from sentence pairs to a model, as `jumok train` does, and score it on a test set."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.contenders.report import parse, report
from benchmarks.settings import multi30k


def main() -> None:
    from jumok.corpus import open_corpus
    from jumok.engines import load
    from jumok.evaluation import evaluate_translator
    from jumok.training import train

    given = parse(data=Path, out=Path, minutes=float, quick=int)
    pairs, valid = multi30k(given.data)
    length: dict[str, Any] = {"training.steps": 3} if given.quick else {"training.minutes": given.minutes}
    started = time.perf_counter()
    model = train(pairs, out=given.out, valid=valid, **{"model.size": "tiny", **length})
    minutes = (time.perf_counter() - started) / 60
    tests = open_corpus([given.data / f"test_2016_flickr.{language}" for language in ("en", "de")])
    scores = evaluate_translator(load(model), list(tests.pairs()), beam=4, tokenize="none").scores
    report(BLEU=scores.bleu, chrF=scores.chrf, TER=scores.ter, minutes=minutes)


if __name__ == "__main__":
    main()
