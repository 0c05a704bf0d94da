"""Fine-tuning on Tatoeba English–French, from short to long sentences.

The start model is trained on pairs of at most 8 English words. It is fine-tuned on a new domain: 2,000 pairs
of at least 12 words. The gain in BLEU is measured on 500 other pairs of the new domain, and what is forgotten
on test pairs of at most 8 words. Each round uses another seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, System

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result, Row
    from benchmarks.workbench import Workbench

__all__ = ["NEEDS_IDLE_MACHINE", "ROUNDS", "TATOEBA_FILES", "comparisons", "remarks", "write_split"]

ROUNDS = 2
NEEDS_IDLE_MACHINE = False  # steps and epochs limit training, so other load changes no score
TATOEBA_FILES = ("train.en", "train.fr", "dev.en", "dev.fr", "test.en", "test.fr")
MAX_OLD_WORDS, MIN_NEW_WORDS = 8, 12
NEW_PAIRS, NEW_VALIDATION_PAIRS, NEW_TEST_PAIRS = 2000, 300, 500
START_STEPS, EPOCHS = 3000, 24  # an epoch is a pass over the new pairs, with or without replay
LAYERS, VOCAB_SIZE = 2, 4000  # a small start model learns short sentences in fewer minutes
BATCH_TOKENS = {"start": 1024, "scratch": 512}  # fine-tuning derives 512 for this number of pairs
MAX_LOST_BLEU, MIN_GAIN_IN_SPREADS = 1.0, 3.0
SYSTEMS = {
    "start": "the start model",
    "scratch": "from nothing, on the new pairs",
    "plain": "plain fine-tuning",
    "ours": "`--start-from` with `--replay` and `--keep`",
}


def comparisons(bench: Workbench) -> list[Comparison]:
    split = bench.work / "split"
    write_split(bench.data, split)
    options = {"split": split, "out": bench.work / "runs", "quick": int(bench.quick)}
    titles = {
        "new": f"New domain: {NEW_TEST_PAIRS} test pairs of at least {MIN_NEW_WORDS} words",
        "keep": f"What was kept: test pairs of at most {MAX_OLD_WORDS} words",
    }
    return [
        Comparison(
            title,
            "BLEU",
            [
                System(name, "fine_tune", {**options, "system": system, "test": test}, seed_per_round=True)
                for system, name in SYSTEMS.items()
            ],
            has_ratios=False,
        )
        for test, title in titles.items()
    ]


def write_split(data: Path, out: Path) -> None:
    """Write the pairs of each role, such as `old-valid`, as two parallel files.

    No source sentence of a training set is in the validation set or the test set of the same domain.
    """
    from jumok.data.hold_out import sentence_key

    pairs = {
        part: list(
            zip(
                *((data / f"{part}.{side}").read_text("utf-8").split("\n") for side in ("en", "fr")),
                strict=True,
            )
        )
        for part in ("train", "dev", "test")
    }
    short = {
        part: [pair for pair in rows if 0 < _count_words(pair) <= MAX_OLD_WORDS]
        for part, rows in pairs.items()
    }
    distinct = {sentence_key(pair[0]): pair for pair in pairs["train"] if _count_words(pair) >= MIN_NEW_WORDS}
    long = list(distinct.values())
    stride = len(long) // (NEW_PAIRS + NEW_VALIDATION_PAIRS + NEW_TEST_PAIRS)
    long = long[::stride]  # the file is sorted by length
    # A fixed permutation, so that all sets have sentences of all lengths.
    order = sorted(range(len(long)), key=lambda index: (index * 7919) % len(long))
    mixed = [long[index] for index in order]
    held_out = NEW_TEST_PAIRS + NEW_VALIDATION_PAIRS
    excluded = {sentence_key(pair[0]) for part in ("dev", "test") for pair in short[part]}
    roles = {
        "old": [pair for pair in short["train"] if sentence_key(pair[0]) not in excluded],
        "old-valid": short["dev"],
        "old-test": short["test"],
        "new-test": mixed[:NEW_TEST_PAIRS],
        "new-valid": mixed[NEW_TEST_PAIRS:held_out],
        "new": mixed[held_out : held_out + NEW_PAIRS],
    }
    out.mkdir(parents=True, exist_ok=True)
    for role, rows in roles.items():
        for index, side in enumerate(("en", "fr")):
            text = "".join(f"{pair[index]}\n" for pair in rows)
            (out / f"{role}.{side}").write_text(text, encoding="utf-8")


def _count_words(pair: Sequence[str]) -> int:
    return len(pair[0].split())


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    new, keep = ({row.name: row for row in result.rows} for result in results)
    start, plain, ours = (SYSTEMS[system] for system in ("start", "plain", "ours"))
    spread = {"new": max(map(_spread, new.values())), "keep": max(map(_spread, keep.values()))}
    gain, lost = _bleu(new[ours]) - _bleu(new[start]), _bleu(keep[start]) - _bleu(keep[ours])
    advantage = _bleu(keep[ours]) - _bleu(keep[plain])
    verdicts = [
        (advantage > spread["keep"], f"keeps {advantage:.1f} BLEU more than plain fine-tuning"),
        (lost <= MAX_LOST_BLEU, f"loses {lost:.1f} BLEU of what the start model knew"),
        (gain >= MIN_GAIN_IN_SPREADS * spread["new"], f"gains {gain:.1f} BLEU over it on the new domain"),
    ]
    listed = "; ".join(f"{what}{'' if met else ' (NOT as required)'}" for met, what in verdicts)
    return [
        f"A round is a seed; the start models were trained for {START_STEPS:,} steps, everything else for "
        f"{EPOCHS} passes over the new pairs, all of size tiny with {LAYERS} layers per side. Plain "
        "fine-tuning has no replay and no interpolation. Scores with the recipe's beam and sacreBLEU's "
        "tokenizer 13a.",
        f"With old pairs, `--start-from` {listed}. The largest difference between two seeds of one system is "
        f"{spread['new']:.1f} BLEU on the new domain and {spread['keep']:.1f} on what was kept. Required: an "
        f"advantage above that difference, a loss of at most {MAX_LOST_BLEU:g}, a gain of at least "
        f"{MIN_GAIN_IN_SPREADS:g} times it. Part of that difference is in the start models already; compared "
        f"with the start model of its own seed, the new domain gains {_paired(new[ours], new[start])} BLEU, "
        f"and what was kept changes by {_paired(keep[ours], keep[start])}.",
    ]


def _bleu(row: Row) -> float:
    return row.measures["BLEU"]


def _spread(row: Row) -> float:
    return max(row.rounds) - min(row.rounds)


def _paired(row: Row, start: Row) -> str:
    """Return the difference of each round, between a system and the start model of the same seed."""
    rounds = zip(row.rounds, start.rounds, strict=True)
    return " and ".join(f"{bleu - start_bleu:+.1f}" for bleu, start_bleu in rounds)
