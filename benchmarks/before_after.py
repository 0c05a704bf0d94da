"""Whether a change made jumok slower: `python -m benchmarks.before_after OLD_TREE [NEW_TREE]`.

Two source trees (git worktrees) take turns (old, new, new, old, …) in one run, on the same data, with the
same model folder and the same Python. Each figure is reported as new / old: the median of the ratios of the
rounds, their range, and the ratio of the best rounds. To see the noise, give the same tree twice.

Exit code 0: nothing is slower. 1: something is slower, or over its absolute limit. 2: there is no result.

Of the trees, it uses only `import jumok` and the command line, because modules can have different names.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.measure import BusyMachineError, Measures, run_and_measure, wait_until_idle
from benchmarks.serve_load import Load, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROUNDS, SLOWER_PERCENT = 5, 5.0
HELP, COLD = "jumok --help, s", "one sentence, cold, s"
MAX_SECONDS = {HELP: 0.3, COLD: 1.0}
"""Absolute limits, which do not depend on the old tree."""
SENTENCE = "I go home.\n"
CLIENTS = 64
REQUEST_TIMEOUT, PROGRAM_TIMEOUT = 60.0, 1800.0  # seconds

# The settings that `jumok demo` derives. They are given explicitly, because the trees may derive different
# settings. The names of the settings are old names, which both trees can read.
CORES = len(os.sched_getaffinity(0))
TRAINING = {
    "text.pieces": 4000,
    "model.dropout": 0.0,
    "training.batch_tokens": 512,
    "training.processes": CORES,
}
FAMILIES: dict[str, dict[str, object]] = {
    "Transformer": {
        "model.family": "transformer",
        "model.encoder_layers": 2,
        "model.decoder_layers": 2,
        "model.width": 128,
        "model.feed_forward": 256,
        "model.heads": 4,
    },
    "Bahdanau": {"model.family": "recurrent", "model.size": "tiny", "model.attention": "bahdanau"},
}


class NotMeasuredError(Exception):
    """There is no result: the wrong jumok was imported, or a program or the server failed."""


@dataclass(frozen=True, slots=True)
class Workload:
    """How much work each measurement does."""

    pairs: int
    model_steps: int  # of the model that both trees translate with
    steps: Mapping[str, int]  # by family
    sentences: Mapping[str, int]  # by engine
    passes: int  # how often the sentences are translated
    starts: int  # how often each program of the topic `startup` is run, per round and tree
    requests: int  # of the one client on one connection
    load_seconds: float  # with many clients


FULL = Workload(
    pairs=20_000,
    model_steps=1000,
    steps={"Transformer": 300, "Bahdanau": 220},
    sentences={"ctranslate2": 4000, "torch": 1500},
    passes=2,
    starts=15,
    requests=500,
    load_seconds=15.0,
)
QUICK = Workload(
    pairs=2_000,
    model_steps=20,
    steps={"Transformer": 60, "Bahdanau": 60},
    sentences={"ctranslate2": 200, "torch": 50},
    passes=1,
    starts=2,
    requests=20,
    load_seconds=2.0,
)
WARM_UP = 0.2  # share of the steps of a training, and of the requests to a server


@dataclass(frozen=True, slots=True)
class Tree:
    """A source tree, and the folder in which it caches converted models."""

    name: str
    path: Path
    cache: Path

    @contextlib.contextmanager
    def activated(self, work: Path) -> Iterator[None]:
        """Within this block, new Python programs import this tree; they start in a folder without modules."""
        before = dict(os.environ)
        for name in ("JUMOK_CACHE", "PYTHONDONTWRITEBYTECODE"):
            os.environ.pop(name, None)
        os.environ |= {"PYTHONPATH": str(self.path / "src"), "XDG_CACHE_HOME": str(self.cache)}
        try:
            with contextlib.chdir(work):
                self.verify()
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def verify(self) -> None:
        """Check that programs import this tree and not an installed jumok."""
        file = run_program("-c", "import jumok; print(jumok.__file__)").strip()
        if not Path(file).resolve().is_relative_to(self.path / "src"):
            raise NotMeasuredError(f"jumok comes from {file}, not from {self.path / 'src'}")


def run_program(*arguments: str, text: str = "") -> str:
    """Run Python with these arguments and return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PROGRAM_TIMEOUT,
    )
    if done.returncode:
        output = done.stdout[-2000:] + done.stderr[-2000:]
        raise NotMeasuredError(f"python {' '.join(arguments)} ended with {done.returncode}:\n{output}")
    return done.stdout


@dataclass
class Bench:
    """Files and a model that are prepared once, with the old tree, and used in all rounds of both trees.

    `remarks` are printed at the end.
    """

    trees: Sequence[Tree]
    work: Path
    workload: Workload
    model: Path | None
    remarks: list[str] = field(default_factory=list)
    _ready: Path | None = None
    _first_values: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def in_old_tree(self) -> Iterator[None]:
        with self.trees[0].activated(self.work):
            yield

    def corpus(self, split: str, count: int) -> Path:
        """Return a table of the built-in corpus. Its name contains the languages."""
        path = self.work / f"{split}.en-ko.tsv"
        if not path.exists():
            arguments = ("corpus", "english-korean", "--split", split, "--count", str(count), "--no-align")
            with self.in_old_tree():
                path.write_text(run_program("-m", "jumok", *arguments), encoding="utf-8")
        return path

    def texts(self) -> Path:
        """Return a file of sentences to translate, one per line."""
        path = self.work / "test.en"
        if not path.exists():
            table = self.corpus("test", max(self.workload.sentences.values()))
            _, *lines = table.read_text("utf-8").splitlines()  # without the header
            path.write_text("".join(line.split("\t")[0] + "\n" for line in lines), encoding="utf-8")
        return path

    def train(self, run: Path, family: str, steps: int) -> None:
        """Run `jumok train` with fixed settings and only one validation, at the end."""
        fixed = {**TRAINING, **FAMILIES[family], "training.validate_every": steps}
        settings = [option for name, value in fixed.items() for option in ("--set", f"{name}={value}")]
        pairs, valid = str(self.corpus("train", self.workload.pairs)), str(self.corpus("valid", 100))
        files = ("--valid", valid, "--out", str(run), "--steps", str(steps))
        run_program("-m", "jumok", "train", pairs, *files, *settings)

    def ready_model(self) -> Path:
        """Return the model that both trees translate with.

        The option --model names this model. Without the option, the old tree trains it.
        """
        if self._ready is None:
            model = self.model or self._train_model()
            for tree in self.trees:  # convert the model now, so that no measured translation converts it
                with tree.activated(self.work):
                    run_program("-m", "jumok", "translate", str(model), text=SENTENCE)
            self._ready = model
        return self._ready

    def _train_model(self) -> Path:
        log("training a model with the old tree")
        with self.in_old_tree():
            self.train(self.work / "run", "Transformer", self.workload.model_steps)
        return self.work / "run" / "model"

    def check_same(self, what: str, value: float) -> None:
        """Add a remark if a value is not the same in all runs. Then the trees do not do the same work."""
        if self._first_values.setdefault(what, value) != value:
            self.remark(f"{what}: not the same in every run, so the speeds may not be comparable")

    def remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement of a tree. Each round has `times` runs; their median is the result of the round."""

    run: Callable[[Bench, Tree], Measures]
    times: Callable[[Workload], int] = lambda _: 1


def training(family: str) -> Measurement:
    """Return the measurement of target tokens/s of `jumok train`, from its own metrics."""

    def run(bench: Bench, tree: Tree) -> Measures:
        steps, folder = bench.workload.steps[family], bench.work / f"training-{tree.name}"
        bench.train(folder, family, steps)
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        shutil.rmtree(folder)
        records = [json.loads(line) for line in lines]
        (loss,) = [record["loss"] for record in records if record["kind"] == "validation"]
        bench.check_same(f"training, {family}, validation loss", loss)
        return {f"training, {family}, target tokens/s": steady_rate(records, WARM_UP * steps)}

    return Measurement(run)


def steady_rate(records: Sequence[Mapping[str, Any]], warm_up: float) -> float:
    """Return target tokens/s after `warm_up` steps; each report is weighted by the time it covers."""
    reports = [record for record in records if record["kind"] == "train"]
    intervals = [
        (after["seconds"] - before["seconds"], after["tokens_per_second"])
        for before, after in pairwise(reports)
        if before["step"] >= warm_up
    ]
    if not intervals:
        raise NotMeasuredError("the training has too few reports after its warm-up")
    return float(
        sum(seconds * rate for seconds, rate in intervals) / sum(seconds for seconds, _ in intervals)
    )


def decoding(engine: str) -> Measurement:
    """Return the measurement of sentences/s of a process that has already translated some sentences."""

    def run(bench: Bench, tree: Tree) -> Measures:
        options = {
            "tree": tree.path,
            "model": bench.ready_model(),
            "source": bench.texts(),
            "engine": engine,
            "sentences": bench.workload.sentences[engine],
            "times": bench.workload.passes,
        }
        measures = run_and_measure("translate_texts", options)
        for search in ("beam", "greedy"):
            checksum = measures.pop(f"{search} checksum")
            bench.check_same(f"decoding, {engine}, {search}, translations", checksum)
        return {f"decoding, {engine}, {name}": value for name, value in measures.items()}

    return Measurement(run)


def startup(name: str, *arguments: str, takes_model: bool = False) -> Measurement:
    """Return the measurement of the wall-clock seconds of a program.

    If `takes_model`, the path of the model is added as the last argument.
    """

    def run(bench: Bench, tree: Tree) -> Measures:
        model_argument = (str(bench.ready_model()),) if takes_model else ()
        begin = time.perf_counter()
        run_program(*arguments, *model_argument, text=SENTENCE)
        return {name: time.perf_counter() - begin}

    return Measurement(run, lambda workload: workload.starts)


def measure_server(bench: Bench, tree: Tree) -> Measures:
    """Measure `jumok serve` with one client on one connection, then with many clients."""
    model = str(bench.ready_model())
    texts = bench.texts().read_text(encoding="utf-8").splitlines()[:500]
    try:
        started = Server(model, bench.work)
    except (IndexError, ValueError):  # the server printed no port
        raise NotMeasuredError(f"the {tree.name} tree's `jumok serve` did not start") from None
    with contextlib.ExitStack() as stack:
        if started.process.stdout:  # otherwise open pipes would accumulate over the rounds
            stack.callback(started.process.stdout.close)
        server = stack.enter_context(started)
        alone = median_milliseconds(server.port, min(texts, key=len), bench.workload.requests)
        # The expected translations are not known here; only the speed counts.
        load = Load(server.port, dict.fromkeys(texts, ""), bench.workload.load_seconds)
        seconds = asyncio.run(
            asyncio.wait_for(load.run(CLIENTS), bench.workload.load_seconds + REQUEST_TIMEOUT)
        )
    if load.unexpected or load.unanswered or load.not_connected or not load.translated_sentences:
        raise NotMeasuredError(
            f"the {tree.name} tree's server: statuses {dict(load.statuses)}, {load.unanswered} unanswered"
        )
    return {
        "server, one connection, ms": alone,
        f"server, {CLIENTS} clients, sentences/s": load.translated_sentences / seconds,
    }


def median_milliseconds(port: int, text: str, requests: int) -> float:
    """Return the median milliseconds of one sentence after the warm-up."""
    body = json.dumps({"q": text, "source": "en", "target": "ko"})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_TIMEOUT)
    times = []
    with contextlib.closing(connection):
        for _ in range(requests):
            begin = time.perf_counter()
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            times.append(1000 * (time.perf_counter() - begin))
            if answer.status != 200:
                raise NotMeasuredError(f"the server answered with {answer.status}")
    return median(times[int(WARM_UP * requests) :])


TOPICS: dict[str, list[Measurement]] = {
    "training": [training(family) for family in FAMILIES],
    "decoding": [decoding(engine) for engine in ("ctranslate2", "torch")],
    "startup": [
        startup(HELP, "-m", "jumok", "--help"),
        startup(COLD, "-m", "jumok", "translate", takes_model=True),
        startup("import jumok, s", "-c", "import jumok"),
        startup("from jumok import load, s", "-c", "from jumok import load"),
    ],
    "server": [Measurement(measure_server)],
}


def turn_order(trees: Sequence[Tree], times: int, first: int = 0) -> list[Tree]:
    """Return the order old, new, new, old, …; if `first` is odd, the order new, old, old, new, …"""
    return [tree for turn in range(times) for tree in (trees if (turn + first) % 2 == 0 else trees[::-1])]


def run_round(bench: Bench, measurement: Measurement, index: int, anyway: bool) -> dict[str, Measures]:
    """Return the median measures of each tree, by the name of the tree."""
    measured: dict[str, list[Measures]] = {tree.name: [] for tree in bench.trees}
    times = measurement.times(bench.workload)
    if not anyway:
        wait_until_idle()
    for tree in turn_order(bench.trees, times, index):
        if times == 1 and not anyway:
            wait_until_idle()
        with tree.activated(bench.work):
            measured[tree.name].append(measurement.run(bench, tree))
    return {
        name: {measure: median(run[measure] for run in runs) for measure in runs[0]}
        for name, runs in measured.items()
    }


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of both trees in every round.

    If its name ends in "/s", it is a speed, and higher is better. Otherwise lower is better.
    """

    name: str
    old: list[float]
    new: list[float]

    @property
    def ratios(self) -> list[float]:
        return [new / old for old, new in zip(self.old, self.new, strict=True)]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def best_ratio(self) -> float:
        """The best value of the new tree in any round, divided by the best value of the old tree."""
        best = max if self.higher_is_better else min
        return best(self.new) / best(self.old)

    @property
    def higher_is_better(self) -> bool:
        return self.name.endswith("/s")

    def verdict(self, percent: float) -> str:
        """Return the problems of the new tree, such as "slower in the best rounds", or an empty string."""
        ratios = {"in the median": self.ratio, "in the best rounds": self.best_ratio}
        losses = {name: 1 - ratio if self.higher_is_better else ratio - 1 for name, ratio in ratios.items()}
        too_slow = [name for name, loss in losses.items() if loss > percent / 100]
        problems = [f"slower {' and '.join(too_slow)}"] if too_slow else []
        limit = MAX_SECONDS.get(self.name)
        if limit is not None and median(self.new) >= limit:
            problems.append(f"over {limit:g} s")
        return ", ".join(problems)


def as_table(comparisons: Sequence[FigureComparison], percent: float) -> str:
    """Return one line per figure: medians of both trees, then ratios."""
    rows = [("", "old", "new", "new/old", "rounds", "best/best", "")]
    for figure in comparisons:
        spread = f"{min(figure.ratios):.3f} to {max(figure.ratios):.3f}"
        old, new = (f"{median(values):,.4g}" for values in (figure.old, figure.new))
        ratios = (f"{figure.ratio:.3f}", spread, f"{figure.best_ratio:.3f}")
        rows.append((figure.name, old, new, *ratios, figure.verdict(percent)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells[:-1], widths[1:-1], strict=True)]
        lines.append("  ".join((name.ljust(widths[0]), *padded, cells[-1])).rstrip())
    return "\n".join(lines)


def measure(bench: Bench, topics: Sequence[str], rounds: int, anyway: bool) -> list[FigureComparison]:
    """Run all rounds of one measurement, then all rounds of the next.

    In this order, the two trees are measured shortly after each other.
    """
    compared: list[FigureComparison] = []
    for measurement in [measurement for topic in topics for measurement in TOPICS[topic]]:
        by_name: dict[str, FigureComparison] = {}
        for index in range(rounds):
            measures = run_round(bench, measurement, index, anyway)
            for name, old in measures["old"].items():
                figure = by_name.setdefault(name, FigureComparison(name, [], []))
                figure.old.append(old)
                figure.new.append(measures["new"][name])
                log(f"round {index + 1}/{rounds}: {name}: {old:,.4g} → {figure.new[-1]:,.4g}")
        compared += by_name.values()
    if not anyway:
        wait_until_idle()
    return compared


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.before_after",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", type=Path, metavar="OLD_TREE", help="the source tree before the change")
    parser.add_argument(
        "new",
        type=Path,
        metavar="NEW_TREE",
        nargs="?",
        default=Path(),
        help="the source tree after the change; the current folder if not given",
    )
    parser.add_argument("--topics", nargs="+", choices=TOPICS, default=list(TOPICS), metavar="TOPIC")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    parser.add_argument(
        "--limit",
        type=float,
        default=SLOWER_PERCENT,
        help=f"percent above which a figure counts as slower (default {SLOWER_PERCENT:g})",
    )
    parser.add_argument(
        "--model", type=Path, help="an English-Korean model folder; if not given, the old tree trains one"
    )
    parser.add_argument(
        "--quick", action="store_true", help="only check that everything runs: short and imprecise"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="measure even if the machine is busy; the output says so"
    )
    parser.add_argument("--json", action="store_true", help="print every round as JSON")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1. Received: {options.rounds}")
    for tree in (options.old, options.new):
        if not (tree / "src" / "jumok").is_dir():
            parser.error(f"{tree} has no src/jumok. Give the top folder of a source tree.")
    if options.model is not None and not options.model.is_dir():
        parser.error(f"{options.model} is not a model folder")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    with tempfile.TemporaryDirectory(prefix="jumok-before-after-") as folder:
        work = Path(folder).resolve()
        trees = [
            Tree(name, path.resolve(), work / f"cache-{name}")
            for name, path in (("old", options.old), ("new", options.new))
        ]
        model = options.model and options.model.resolve()
        bench = Bench(trees, work, QUICK if options.quick else FULL, model)
        try:
            compared = measure(bench, options.topics, options.rounds, options.anyway)
        except (
            BusyMachineError,
            NotMeasuredError,
            RuntimeError,
            OSError,
            subprocess.TimeoutExpired,
        ) as error:
            log(f"benchmarks: {error}")
            return 2
    if options.anyway:
        bench.remark("the machine may have been busy (--anyway)")
    verdicts = {figure.name: figure.verdict(options.limit) for figure in compared}
    if options.json:
        figures = [
            {
                **asdict(figure),
                "ratio": figure.ratio,
                "best": figure.best_ratio,
                "verdict": verdicts[figure.name],
            }
            for figure in compared
        ]
        print(json.dumps({"figures": figures, "remarks": bench.remarks}, ensure_ascii=False))
    else:
        print(as_table(compared, options.limit), *bench.remarks, sep="\n")
    return 1 if any(verdicts.values()) else 0


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
