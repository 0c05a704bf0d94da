"""`python -m benchmarks large_corpus --pairs 10000000 --work FOLDER`: from large files to an update.

    make      distinct synthetic pairs, and tokenizers learnt on the first of them (not measured)
    encode    read, clean, deduplicate, hold out and encode the pairs: pairs per second, peaks of memory, disk
    resume    a new process opens the store of encoded pairs, plans the epoch and computes one update of a
              tiny model: seconds, peak of memory

Without --stage, all stages run, each in its own process; the folder keeps the files of `make` and `encode`.
Corpora of less than 64 MB, about 450,000 pairs, are read and encoded by one process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

SYLLABLES = ["ba", "do", "ki", "lo", "me", "nu", "pa", "ri", "so", "tu", "va", "we", "xi", "yo", "za", "fu"]
NUM_WORDS = 20_000
WORDS_PER_SENTENCE = (5, 15)  # at least 5 and fewer than 15
CHUNK = 100_000  # pairs that are generated together
SAMPLE_SECONDS = 0.5  # between two samples of memory and disk space
TOKENIZER_PAIRS = 50_000
VOCAB_SIZE = 8_000


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks large_corpus", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--stage", choices=["make", "encode", "resume"])
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.stage is not None:
        print(json.dumps(STAGES[options.stage](options)))
        return
    results: dict[str, Any] = {"pairs": options.pairs}
    for stage in STAGES:
        command = [sys.executable, "-m", "benchmarks", "large_corpus", "--stage", stage]
        command += ["--pairs", str(options.pairs), "--work", str(options.work)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"benchmarks: the stage {stage} failed.\n{done.stderr}")
        results[stage] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(results, indent=1))


def corpus_file(options: argparse.Namespace) -> Path:
    return Path(options.work / f"pairs-{options.pairs}.en-de.tsv")


def make(options: argparse.Namespace) -> dict[str, Any]:
    """Write the corpus, unless its file exists, and learn tokenizers. The words follow Zipf's law."""
    from jumok.config.recipe import TextSettings
    from jumok.text.tokenizer_files import tokenizers_to_files
    from jumok.text.tokenizer_training import train_tokenizers

    path = corpus_file(options)
    generator = np.random.default_rng(1)
    sides = [_make_words(generator), _make_words(generator)]
    weights = 1 / np.arange(1, NUM_WORDS + 1)
    cumulative = np.cumsum(weights) / weights.sum()
    if not path.exists():
        temporary = path.with_suffix(".part")
        with temporary.open("w", encoding="ascii") as file:
            for first in range(0, options.pairs, CHUNK):
                file.writelines(
                    _make_lines(first, min(CHUNK, options.pairs - first), sides, cumulative, generator)
                )
        temporary.rename(path)
    with path.open(encoding="ascii") as file:
        pairs = [next(file).rstrip("\n").split("\t") for _ in range(min(TOKENIZER_PAIRS, options.pairs))]
    sources, targets = zip(*pairs, strict=True)
    tokenizers = train_tokenizers(sources, targets, TextSettings(), VOCAB_SIZE)
    for name, data in tokenizers_to_files(tokenizers).items():
        (options.work / name).write_bytes(data)
    return {"bytes": path.stat().st_size, "shared": tokenizers.shared}


def _make_words(generator: np.random.Generator) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < NUM_WORDS:
        words["".join(generator.choice(SYLLABLES, generator.integers(1, 5)))] = None
    return list(words)


def _make_lines(
    first: int, count: int, sides: list[list[str]], cumulative: Any, generator: np.random.Generator
) -> list[str]:
    lengths = generator.integers(*WORDS_PER_SENTENCE, count)
    ranks = np.searchsorted(cumulative, generator.random(int(lengths.sum()))).tolist()
    lines, position = [], 0
    for number, length in enumerate(lengths.tolist(), first):
        chosen, position = ranks[position : position + length], position + length
        source, target = (" ".join([words[rank] for rank in chosen]) for words in sides)
        lines.append(f"{source} {number}\t{target} {number}\n")  # the number makes each pair distinct
    return lines


def encode(options: argparse.Namespace) -> dict[str, Any]:
    from jumok.data.corpora import open_corpora
    from jumok.data.store import write_store
    from jumok.text.tokenizer_files import read_tokenizers
    from jumok.training.run.corpus_reader import read_sentences

    tokenizers = read_tokenizers(options.work, shared=(options.work / "pieces.model").exists())
    with _PeakSampler(options.work) as peaks:
        started = time.perf_counter()
        corpora = open_corpora([str(corpus_file(options))])
        sentences = read_sentences(corpora, [], held_out_pairs=2_000, work=options.work / "reading")
        reading_ended = time.perf_counter()
        store = write_store(options.work / "data", sentences.corpus_pairs(), tokenizers, max_tokens=200)
        ended = time.perf_counter()
    return {
        "pairs": len(store),
        "held out": len(sentences.validation_pairs),
        "skipped": {**sentences.skipped, **store.skipped},
        "seconds to read, clean and deduplicate": round(reading_ended - started, 1),
        "seconds to encode": round(ended - reading_ended, 1),
        "pairs per second": round(options.pairs / (ended - started)),
        "CPU µs per pair": _cpu_microseconds(options.pairs),
        "peak MB": peaks.memory_megabytes,
        "peak MB on disk": peaks.disk_megabytes,
    }


def resume(options: argparse.Namespace) -> dict[str, Any]:
    with _PeakSampler(options.work) as peaks:
        facts = _first_update(options)
    return {**facts, "peak MB": peaks.memory_megabytes}


def _first_update(options: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()
    from jumok.config.recipe import TrainingSettings, TransformerSettings
    from jumok.data.batching import Batches
    from jumok.data.store import open_store
    from jumok.models.build import build_model
    from jumok.text.tokenizer_files import read_tokenizers
    from jumok.training.loop.update import Worker
    from jumok.training.parallel.single import SingleProcess

    tokenizers = read_tokenizers(options.work, shared=(options.work / "pieces.model").exists())
    store = open_store(options.work / "data")
    opened = time.perf_counter()
    batches = Batches(store, batch_tokens=4_096, seed=1, tokenizers=tokenizers)
    planned = time.perf_counter()
    model = build_model(
        TransformerSettings(width=128, heads=4, feed_forward=512, encoder_layers=2, decoder_layers=2),
        source_vocab_size=tokenizers.source.vocab_size,
        target_vocab_size=tokenizers.target.vocab_size,
        shared=tokenizers.shared,
    )
    worker = Worker(model, batches, TrainingSettings(batch_tokens=4_096), SingleProcess(model))
    worker.update(3 * batches.per_epoch + 1, 1e-3)  # resumed after three epochs
    ended = time.perf_counter()
    return {
        "seconds to open": round(opened - started, 1),
        "seconds to plan": round(planned - opened, 1),
        "seconds to the first update": round(ended - started, 1),
        "batches per epoch": batches.per_epoch,
    }


def _cpu_microseconds(pairs: int) -> dict[str, float]:
    """Return the CPU time per pair, of this process and of its workers.

    Unlike the elapsed time, the CPU time changes little on a busy machine.
    """
    kinds = {"this process": resource.RUSAGE_SELF, "workers": resource.RUSAGE_CHILDREN}
    usages = {name: resource.getrusage(kind) for name, kind in kinds.items()}
    return {name: round(1e6 * (usage.ru_utime + usage.ru_stime) / pairs, 2) for name, usage in usages.items()}


class _PeakSampler:
    """Samples the memory of this process and its workers together, and the disk space of a folder."""

    def __init__(self, folder: Path) -> None:
        self.memory_megabytes = self.disk_megabytes = 0
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            memory = sum(map(_memory_bytes, _with_descendants("self")))
            self.memory_megabytes = max(self.memory_megabytes, memory // 2**20)
            self.disk_megabytes = max(self.disk_megabytes, _disk_bytes(self._folder) // 2**20)
            if self._ended.wait(SAMPLE_SECONDS):
                return


def _with_descendants(process: str) -> list[str]:
    processes = [process]
    with suppress(OSError):
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            for child in children.read_text().split():
                processes += _with_descendants(child)
    return processes


def _memory_bytes(process: str) -> int:
    """Return the memory of a process as PSS: a page that n processes share counts as 1/n of a page."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _disk_bytes(folder: str | Path) -> int:
    total = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # a worker may have removed it
                total += _disk_bytes(entry.path) if entry.is_dir() else entry.stat().st_size
    return total


STAGES = {"make": make, "encode": encode, "resume": resume}
