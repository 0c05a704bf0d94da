"""Decoding 1,000 sentences of Multi30k to forced equal lengths, with random weights.

jumok reads and writes text; the others are given ready-made pieces and give pieces back. CTranslate2 runs the
same weights in int8. Its settings and the batches of Hugging Face are the best of a grid that is tried
first.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Contender, Contest, call
from benchmarks.settings import PIECES, SIZES, multi30k
from jumok.processes import available_cores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench
    from jumok.text import Subwords

__all__ = ["contests", "remarks"]

MEASURE = "tokens/s"
SENTENCES, LENGTH, BEAMS = 1000, 16, (1, 4)
SECONDS = 6.0
BATCHES_CTRANSLATE2, BATCHES_MARIAN = (128, 256, 512, 1024, 2048), (16, 32, 64, 128, 256)
KEPT_OF_GRID = 2
TORCH, HUGGING_FACE = "jumok, engine torch", "Hugging Face generate"
SENTENCES_TO_TUNE_MARIAN = 512


def contests(bench: Workbench) -> list[Contest]:
    sentences = SENTENCES // 50 if bench.quick else SENTENCES
    texts = (bench.data / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()[:sentences]
    source, pieces = bench.work / "source.txt", bench.work / "pieces.json"
    source.write_text("\n".join(texts) + "\n", encoding="utf-8")
    subwords = learn(bench)
    pieces.write_text(json.dumps(subwords.encode_batch(texts)), encoding="utf-8")
    folders = {size: write_models(bench.work / size, size, subwords) for size in SIZES}
    return [contest(bench, size, folders[size], source, pieces, beam) for size, beam in product(SIZES, BEAMS)]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    """How jumok's torch engine compares with the other contender that runs on torch."""
    told = []
    for result in results:
        torch, theirs = (
            next(row.measures[MEASURE] for row in result.rows if row.name.startswith(name))
            for name in (TORCH, HUGGING_FACE)
        )
        told.append(f"{result.title.rpartition(',')[0]} {torch / theirs:.2f} ×")
    return [f"jumok's engine torch beside Hugging Face generate: {'; '.join(told)}."]


def learn(bench: Workbench) -> Subwords:
    """The joint pieces of Multi30k."""
    from jumok.recipe import TextSettings
    from jumok.text import learn_subwords

    (english, german), _ = multi30k(bench.data)
    lines = [line for file in (english, german) for line in file.read_text(encoding="utf-8").splitlines()]
    return learn_subwords(lines, TextSettings(), pieces=PIECES)


def write_models(folder: Path, size: str, subwords: Subwords) -> tuple[Path, Path]:
    """A model of random weights: as a folder of jumok's that may use eight bits, and for CTranslate2."""
    from jumok.engines import INT8_COSTS, places_for
    from jumok.engines.export import export
    from jumok.models import build_model
    from jumok.recipe import make_recipe
    from jumok.storage import ModelCard, module_weights, save_model
    from jumok.training.update import seed_step

    recipe = make_recipe({"model": SIZES[size]})
    seed_step(1, 0)
    model: Any = build_model(
        recipe.model, source_pieces=subwords.size, target_pieces=subwords.size, shared=True
    )
    own, converted = folder / "jumok", folder / "ctranslate2"
    converted.mkdir(parents=True)
    card = ModelCard(recipe, facts={INT8_COSTS: 0.0})
    save_model(own, card, module_weights(model), {"pieces.model": subwords.to_bytes()})
    for name, data in export(model, places=places_for(recipe), quantization="int8").items():
        (converted / name).write_bytes(data)
    return own, converted


def contest(
    bench: Workbench, size: str, folders: tuple[Path, Path], source: Path, pieces: Path, beam: int
) -> Contest:
    own, converted = folders
    same = {"beam": beam, "length": LENGTH, "seconds": bench.seconds(SECONDS)}
    jumok = [
        Contender(
            f"jumok, engine {engine}",
            "decode_jumok",
            {"model": own, "source": source, "engine": engine, **same},
        )
        for engine in ("ctranslate2", "torch")
    ]
    best = tune_ctranslate2(bench, {"model": converted, "pieces": pieces, **same})
    batch = tune_marian(bench, {"size": size, "pieces": pieces, **same})
    marian = {"size": size, "pieces": pieces, "sentences": 0, "batch": batch, **same}
    return Contest(
        f"{size}, beam {beam}, {LENGTH} pieces a sentence",
        MEASURE,
        [
            *jumok,
            *best,
            Contender(f"{HUGGING_FACE}, batches of {batch}", "decode_marian", marian),
        ],
    )


def tune_ctranslate2(bench: Workbench, arguments: dict[str, Any]) -> list[Contender]:
    """The best settings of a grid: all ways to share the cores among workers, and sizes of batches.

    And the best of all once more, with vectors as wide as jumok asks CTranslate2 to use.
    """
    cores = available_cores()
    shares = [(workers, cores // workers) for workers in range(1, cores + 1) if cores % workers == 0]
    found = []
    for (workers, threads), batch in product(shares, BATCHES_CTRANSLATE2[:: 3 if bench.quick else 1]):
        setting = {**arguments, "workers": workers, "threads": threads, "batch": batch, "vectors": 0}
        speed = call("decode_ctranslate2", {**setting, "seconds": 0})[MEASURE]
        name = f"CTranslate2, {workers} × {threads} threads, batches of {batch}"
        bench.tell(f"trying beam {arguments['beam']}: {name}: {speed:,.0f}")
        found.append((speed, Contender(name, "decode_ctranslate2", setting)))
    found.sort(key=lambda one: one[0], reverse=True)
    best = [contender for _, contender in found[:KEPT_OF_GRID]]
    wide = Contender(
        f"{best[0].name}, vectors as jumok", best[0].program, {**best[0].arguments, "vectors": 1}
    )
    return [*best, wide]


def tune_marian(bench: Workbench, arguments: dict[str, Any]) -> int:
    """How many sentences `generate` likes to be given at once."""
    few = {**arguments, "sentences": SENTENCES_TO_TUNE_MARIAN, "seconds": 0}
    sizes = BATCHES_MARIAN[:1] if bench.quick else BATCHES_MARIAN
    return max(sizes, key=lambda batch: call("decode_marian", {**few, "batch": batch})[MEASURE])
