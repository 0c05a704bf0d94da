"""Decoding 1,000 sentences of Multi30k with random weights. All translations are forced to one length.

jumok reads and writes text; the other systems read and write token ids. CTranslate2 runs the same weights in
int8. First, a grid search chooses CTranslate2's settings and Hugging Face's batch size.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Comparison, System, run_and_measure
from benchmarks.settings import SIZES, VOCAB_SIZE, multi30k
from jumok.system.processes import available_cores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench
    from jumok.text.tokenizer import Tokenizer

__all__ = ["comparisons", "remarks"]

MEASURE = "tokens/s"
SENTENCES, LENGTH, BEAMS = 1000, 16, (1, 4)
SECONDS = 6.0
BATCHES_CTRANSLATE2, BATCHES_MARIANMT = (128, 256, 512, 1024, 2048), (16, 32, 64, 128, 256)
NUM_BEST_SETTINGS = 2
TORCH, HUGGING_FACE = "jumok, engine torch", "Hugging Face generate"
SENTENCES_TO_TUNE_MARIANMT = 512


def comparisons(bench: Workbench) -> list[Comparison]:
    sentences = SENTENCES // 50 if bench.quick else SENTENCES
    texts = (bench.data / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()[:sentences]
    source, tokens = bench.work / "source.txt", bench.work / "tokens.json"
    source.write_text("\n".join(texts) + "\n", encoding="utf-8")
    tokenizer = learn_vocabulary(bench)
    tokens.write_text(json.dumps(tokenizer.encode_batch(texts)), encoding="utf-8")
    folders = {size: write_models(bench.work / size, size, tokenizer) for size in SIZES}
    return [
        comparison(bench, size, folders[size], source, tokens, beam) for size, beam in product(SIZES, BEAMS)
    ]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    """Return a remark that compares jumok's torch engine with Hugging Face, which also uses torch."""
    ratios = []
    for result in results:
        ours, theirs = (
            next(row.measures[MEASURE] for row in result.rows if row.name.startswith(name))
            for name in (TORCH, HUGGING_FACE)
        )
        ratios.append(f"{result.title.rpartition(',')[0]} {ours / theirs:.2f} ×")
    return [f"jumok's engine torch compared with Hugging Face generate: {'; '.join(ratios)}."]


def learn_vocabulary(bench: Workbench) -> Tokenizer:
    """Return a tokenizer with a joint vocabulary, learnt from Multi30k."""
    from jumok.config.recipe import TextSettings
    from jumok.text.tokenizer_training import train_tokenizer

    (english, german), _ = multi30k(bench.data)
    lines = [line for file in (english, german) for line in file.read_text(encoding="utf-8").splitlines()]
    return train_tokenizer(lines, TextSettings(), vocab_size=VOCAB_SIZE)


def write_models(folder: Path, size: str, tokenizer: Tokenizer) -> tuple[Path, Path]:
    """Write a model with random weights twice: as a model folder of jumok, and for CTranslate2 in int8.

    The card of the model folder, `jumok.json`, says that int8 costs no quality, so jumok uses int8 too.
    """
    from jumok.config.recipe import make_recipe
    from jumok.inference.engines.ctranslate2_export import export
    from jumok.inference.loading import INT8_COSTS, max_positions_for
    from jumok.models.build import build_model
    from jumok.storage.model_folder import ModelCard, save_model
    from jumok.storage.tensors import module_weights
    from jumok.training.loop.update import seed_step

    recipe = make_recipe({"model": SIZES[size]})
    seed_step(1, 0)
    model: Any = build_model(
        recipe.model,
        source_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        shared=True,
    )
    model_folder, converted = folder / "jumok", folder / "ctranslate2"
    converted.mkdir(parents=True, exist_ok=True)
    card = ModelCard(recipe, facts={INT8_COSTS: 0.0})
    tokenizers = {"pieces.model": tokenizer.to_bytes()}
    save_model(model_folder, card, module_weights(model), tokenizers, replace=True)
    for name, data in export(model, max_positions=max_positions_for(recipe), quantization="int8").items():
        (converted / name).write_bytes(data)
    return model_folder, converted


def comparison(
    bench: Workbench, size: str, folders: tuple[Path, Path], source: Path, tokens: Path, beam: int
) -> Comparison:
    model_folder, converted = folders
    common = {"beam": beam, "length": LENGTH, "seconds": bench.seconds(SECONDS)}
    jumok = [
        System(
            f"jumok, engine {engine}",
            "decode_jumok",
            {"model": model_folder, "source": source, "engine": engine, **common},
        )
        for engine in ("ctranslate2", "torch")
    ]
    ctranslate2 = tune_ctranslate2(bench, {"model": converted, "tokens": tokens, **common})
    batch = tune_marianmt(bench, {"size": size, "tokens": tokens, **common})
    marianmt = {"size": size, "tokens": tokens, "sentences": 0, "batch": batch, **common}
    return Comparison(
        f"{size}, beam {beam}, {LENGTH} tokens per sentence",
        MEASURE,
        [
            *jumok,
            *ctranslate2,
            System(f"{HUGGING_FACE}, batches of {batch}", "decode_marianmt", marianmt),
        ],
    )


def tune_ctranslate2(bench: Workbench, options: dict[str, Any]) -> list[System]:
    """Return CTranslate2 with each of its fastest settings.

    All batch sizes are tried with all numbers of workers that divide the number of cores. The last system has
    the fastest settings, and in addition the vector instructions that jumok requests.
    """
    cores = available_cores()
    shares = [(workers, cores // workers) for workers in range(1, cores + 1) if cores % workers == 0]
    measured = []
    for (workers, threads), batch in product(shares, BATCHES_CTRANSLATE2[:: 3 if bench.quick else 1]):
        setting = {**options, "workers": workers, "threads": threads, "batch": batch, "vectors": 0}
        speed = run_and_measure("decode_ctranslate2", {**setting, "seconds": 0})[MEASURE]
        name = f"CTranslate2, {workers} × {threads} threads, batches of {batch}"
        bench.log(f"trying beam {options['beam']}: {name}: {speed:,.0f}")
        measured.append((speed, System(name, "decode_ctranslate2", setting)))
    measured.sort(key=lambda one: one[0], reverse=True)
    best = [system for _, system in measured[:NUM_BEST_SETTINGS]]
    with_jumoks_vectors = System(
        f"{best[0].name}, AVX-512, as in jumok", best[0].program, {**best[0].options, "vectors": 1}
    )
    return [*best, with_jumoks_vectors]


def tune_marianmt(bench: Workbench, options: dict[str, Any]) -> int:
    """Return the batch size, in sentences, with which Hugging Face `generate` is fastest."""
    few = {**options, "sentences": SENTENCES_TO_TUNE_MARIANMT, "seconds": 0}
    sizes = BATCHES_MARIANMT[:1] if bench.quick else BATCHES_MARIANMT
    return max(sizes, key=lambda batch: run_and_measure("decode_marianmt", {**few, "batch": batch})[MEASURE])
