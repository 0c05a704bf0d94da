"""Train one system of `topics/fine_tuning.py`, and score it on one of its test sets.

A finished run is not trained again, so scoring it on the second test set takes seconds.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.programs.report import parse, report
from benchmarks.topics.fine_tuning import BATCH_TOKENS, EPOCHS, LAYERS, START_STEPS, VOCAB_SIZE


def main() -> None:
    from jumok.data.corpora import open_corpus
    from jumok.evaluation.translator_scores import evaluate_translator
    from jumok.inference.loading import load

    options = parse(split=Path, out=Path, quick=int, system=str, test=str, seed=int)
    model = _train(options.system, options.split, options.out, seed=options.seed, quick=bool(options.quick))
    role = {"new": "new-test", "keep": "old-test"}[options.test]
    tests = list(open_corpus(_files(options.split, role)).pairs())
    scores = evaluate_translator(load(model), tests[:20] if options.quick else tests).scores
    report(BLEU=scores.bleu, chrF=scores.chrf)


def _files(split: Path, role: str) -> list[Path]:
    return [split / f"{role}.{side}" for side in ("en", "fr")]


def _train(system: str, split: Path, out: Path, *, seed: int, quick: bool) -> Path:
    """Train a system, unless its run is finished, and return its model folder."""
    from jumok.training.run.training_run import train

    suffix = f"{seed}-quick" if quick else str(seed)
    run = out / f"{system}-{suffix}"
    limit = {"training.steps": START_STEPS} if system == "start" else {"training.epochs": EPOCHS}
    settings: dict[str, Any] = {"training.seed": seed, "training.processes": 1}
    settings |= {"training.steps": 3} if quick else limit
    if system in ("start", "scratch"):
        role = "old" if system == "start" else "new"
        settings |= {"model.size": "tiny", "model.encoder_layers": LAYERS, "model.decoder_layers": LAYERS}
        settings |= {"text.vocab_size": VOCAB_SIZE, "training.batch_tokens": BATCH_TOKENS[system]}
        return train(_files(split, role), out=run, valid=_files(split, f"{role}-valid"), **settings)
    variants: dict[str, dict[str, Any]] = {
        "plain": {"fine_tuning.replay_share": 0, "fine_tuning.interpolate": False},
        "ours": {"replay": _files(split, "old"), "keep": _files(split, "old-valid")},
    }
    # The start model is copied out of its run folder. In the run folder, `train` would find the pairs of the
    # start model and replay them.
    start = split.parent / "start-models" / f"start-{suffix}"
    if not start.exists():
        start.parent.mkdir(exist_ok=True)
        shutil.copytree(_train("start", split, out, seed=seed, quick=quick), start)
    options: dict[str, Any] = {**variants[system], **settings, "start_from": start}
    return train(_files(split, "new"), out=run, valid=_files(split, "new-valid"), **options)


if __name__ == "__main__":
    main()
