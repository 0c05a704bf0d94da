"""`python -m benchmarks [TOPIC …]`: measure, print a table a contest, write results/TOPIC.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.machine import busy_share, machine_facts, package_versions
from benchmarks.measure import ROOT, BusyMachineError, check_quiet, hold_contest
from benchmarks.page import as_text, write_page
from benchmarks.workbench import Workbench

TOPICS = ("training", "decoding", "startup", "corpus", "quality")
ON_MULTI30K = {"training", "decoding", "quality"}
NEEDED = ("train.en", "train.de", "val.en", "val.de", "test_2016_flickr.en", "test_2016_flickr.de")
RESULTS = Path(__file__).parent / "results"
ROUNDS = 3


def main() -> None:
    given = _arguments()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        for topic in given.topics or TOPICS:
            content = measure(topic, given)
            if not given.quick:
                write(topic, content)
            print(json.dumps(content, ensure_ascii=False) if given.json else as_text(content), flush=True)
    except BusyMachineError as busy:
        raise SystemExit(f"benchmarks: {busy}") from None
    if not given.quick:
        write_page(RESULTS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC", help=f"{', '.join(TOPICS)}; all if none is named"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=ROOT.parent / "shared/data/multi30k/tok",
        help="folder with train.en, train.de, val.…, test_2016_flickr.en of Multi30k",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"turns of every contender (default {ROUNDS})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, a line a topic")
    parser.add_argument("--anyway", action="store_true", help="measure on a busy machine too, and say so")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only see that every contender runs: a round, short, nothing is kept",
    )
    given = parser.parse_args()
    for topic in given.topics:
        if topic not in TOPICS:
            parser.error(f"there is no topic {topic!r}; there are {', '.join(TOPICS)}")
    missing = [name for name in NEEDED if not (given.data / name).is_file()]
    if missing and not ON_MULTI30K.isdisjoint(given.topics or TOPICS):
        parser.error(
            f"{given.data} has no {', '.join(missing)}; name a folder with Multi30k in --data. It is found "
            "at https://github.com/multi30k/dataset in data/task1/tok, where train.en is called "
            "train.lc.norm.tok.en"
        )
    return given


def measure(topic: str, given: argparse.Namespace) -> dict[str, Any]:
    """All contests of a topic, with what is needed to judge them."""
    share = busy_share()
    check_quiet(not given.anyway)
    module = import_module(f"benchmarks.topics.{topic}")
    rounds = 1 if given.quick else getattr(module, "ROUNDS", given.rounds)
    with tempfile.TemporaryDirectory(prefix="jumok-bench-") as work:
        os.environ["JUMOK_CACHE"] = f"{work}/cache"
        bench = Workbench(given.data.resolve(), Path(work), given.quick, _tell)
        results = [
            hold_contest(contest, rounds=rounds, tell=_tell, refuse_busy=not given.anyway)
            for contest in module.contests(bench)
        ]
        remarks = module.remarks(bench, results)
    return {
        "topic": topic,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": f"python -m benchmarks {topic}",
        "machine": machine_facts(),
        "versions": package_versions(),
        "rounds": rounds,
        "busy": round(share, 3),
        "anyway": given.anyway,
        "results": [asdict(result) for result in results],
        "remarks": remarks,
    }


def write(topic: str, content: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=1)
    (RESULTS / f"{topic}.json").write_text(text + "\n", encoding="utf-8")


def _tell(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
