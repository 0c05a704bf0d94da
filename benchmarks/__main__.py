"""`python -m benchmarks [TOPIC …]`: measure, print one table per comparison, write results/TOPIC.json.

At the end, the pages of the documentation are filled from results/.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import busy_share, machine_facts, package_versions
from benchmarks.measure import BusyMachineError, run_comparison, wait_until_idle
from benchmarks.page import as_text, write_pages
from benchmarks.topics.fine_tuning import TATOEBA_FILES
from benchmarks.workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS = ("training", "decoding", "startup", "corpus", "quality", "pictures", "fine_tuning")
STANDALONE = ("device", "large_corpus", "scale")
"""Modules with their own options, which compare no systems: `python -m benchmarks device --help`."""
ON_TATOEBA = {"fine_tuning"}  # the topics whose --data is Tatoeba
ON_MULTI30K = {"training", "decoding", "quality"}  # the topics whose --data is Multi30k
MULTI30K_FILES = ("train.en", "train.de", "val.en", "val.de", "test_2016_flickr.en", "test_2016_flickr.de")
RESULTS = Path(__file__).parent / "results"
ROUNDS = 3


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in STANDALONE:
        import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
        return
    options = _arguments()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        for topic in options.topics:
            content = measure(topic, options)
            if not options.quick:
                write(topic, content)
            print(json.dumps(content, ensure_ascii=False) if options.json else as_text(content), flush=True)
    except BusyMachineError as busy:
        raise SystemExit(f"benchmarks: {busy}") from None
    if not options.quick:
        write_pages(RESULTS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help=f"{', '.join(TOPICS)}. Default: all except fine_tuning, which needs other data. "
        f"Modules with their own options: {', '.join(STANDALONE)}",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help=f"Multi30k, for the topics {', '.join(sorted(ON_MULTI30K))}: {', '.join(MULTI30K_FILES)}; "
        f"Tatoeba English–French, for the topic fine_tuning: {', '.join(TATOEBA_FILES)}",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        help=f"number of rounds (default {ROUNDS}). In each round, every system is measured once. The option "
        "is ignored with --quick, which has one round, and for the topics quality, pictures and fine_tuning, "
        "which have fixed numbers of rounds",
    )
    parser.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        help="use this working folder, and do not delete it. If a training of the topics quality, pictures "
        "and fine_tuning is finished in it, the training is not repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one line per topic")
    parser.add_argument(
        "--anyway", action="store_true", help="measure even if the machine is busy; the results say so"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only check that every system runs: one short round, no results are written",
    )
    options = parser.parse_args()
    for topic in options.topics:
        if topic not in TOPICS:
            parser.error(f"there is no topic {topic!r}; the topics are {', '.join(TOPICS)}")
    options.topics = options.topics or [topic for topic in TOPICS if topic not in ON_TATOEBA]
    if not ON_MULTI30K.isdisjoint(options.topics):
        _check_multi30k(parser, options.data)
    if not ON_TATOEBA.isdisjoint(options.topics):
        _check_tatoeba(parser, options.data)
    return options


def _check_multi30k(parser: argparse.ArgumentParser, folder: Path | None) -> None:
    missing = [name for name in MULTI30K_FILES if folder is None or not (folder / name).is_file()]
    if missing:
        reason = "--data is not given" if folder is None else f"{folder} has no {', '.join(missing)}"
        parser.error(
            f"{reason}. The topics {', '.join(sorted(ON_MULTI30K))} need --data FOLDER with Multi30k: "
            f"{', '.join(MULTI30K_FILES)}. Download it from https://github.com/multi30k/dataset "
            "(data/task1/tok) and rename train.lc.norm.tok.en to train.en, and so on. The topic fine_tuning "
            "needs other data; the remaining topics need no data."
        )


def _check_tatoeba(parser: argparse.ArgumentParser, folder: Path | None) -> None:
    missing = [name for name in TATOEBA_FILES if folder is None or not (folder / name).is_file()]
    if missing:
        reason = "--data is not given" if folder is None else f"{folder} has no {', '.join(missing)}"
        parser.error(
            f"{reason}. The topic fine_tuning needs --data FOLDER with English–French pairs of "
            f"https://tatoeba.org as parallel texts: {', '.join(TATOEBA_FILES)}."
        )


def measure(topic: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the results of all comparisons of a topic, and the conditions of the measurement."""
    module = import_module(f"benchmarks.topics.{topic}")
    require_idle = getattr(module, "NEEDS_IDLE_MACHINE", True) and not options.anyway
    if require_idle:
        wait_until_idle()
    share = busy_share()
    rounds = 1 if options.quick else getattr(module, "ROUNDS", options.rounds)
    with _working_folder(options.work) as work:
        os.environ["JUMOK_CACHE"] = f"{work}/cache"
        data = None if options.data is None else options.data.resolve()
        bench = Workbench(data, Path(work), options.quick, _log)
        results = [
            run_comparison(comparison, rounds=rounds, log=_log, require_idle=require_idle)
            for comparison in module.comparisons(bench)
        ]
        remarks = module.remarks(bench, results)
    return {
        "topic": topic,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": f"python -m benchmarks {topic}",
        "machine": machine_facts(),
        "versions": package_versions(),
        "rounds": rounds,
        "busy_share": round(share, 3),
        "may_have_been_busy": options.anyway,
        "results": [asdict(result) for result in results],
        "remarks": remarks,
    }


@contextmanager
def _working_folder(folder: Path | None) -> Iterator[str]:
    """Yield the folder that the user named, or a temporary folder, which is deleted afterwards."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="jumok-bench-") as work:
            yield work
    else:
        folder.mkdir(parents=True, exist_ok=True)
        yield str(folder.resolve())


def write(topic: str, content: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=1)
    (RESULTS / f"{topic}.json").write_text(text + "\n", encoding="utf-8")


def _log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
