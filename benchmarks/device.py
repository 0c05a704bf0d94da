"""`python -m benchmarks device [--device cuda]`: does jumok run on this accelerator, and how fast?

Every family of models is built on the CPU and copied to the device. Gradients without dropout are compared,
then updates are timed on the CPU and on the device. Larger Transformers are timed only on the device, in each
of its precisions.
The report is JSON. Please send it with a description of the machine, even if something failed.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.machine import machine_facts, package_versions
from jumok.config.derive import SIZES
from jumok.config.recipe import (
    AttentionSettings,
    DecoderOnlySettings,
    EncoderOnlySettings,
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from jumok.data.batching import padded_batch
from jumok.data.masking import mask_tokens, random_uint64_by_sentence
from jumok.models.build import build_model
from jumok.models.kernels.dropout import Dropout
from jumok.system.device import ACCELERATORS, DeviceConfig, choose_device
from jumok.training.loop.update import Worker
from jumok.training.parallel.single import SingleProcess
from jumok.types import PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.models.model import Model
    from jumok.types import Batch

VOCAB_SIZE = 8_000
LENGTH = 24  # tokens of the longest sentences; others are up to 4 tokens shorter
SMALL = {"width": 64, "heads": 4, "feed_forward": 128, "dropout": 0.1}
FAMILIES: dict[str, Any] = {
    "transformer": TransformerSettings(encoder_layers=2, decoder_layers=2, **SMALL),
    "transformer, post-norm": TransformerSettings(encoder_layers=2, decoder_layers=2, norm="post", **SMALL),
    "transformer, rotary": TransformerSettings(positions="rotary", **SMALL),
    "transformer, batch norm": TransformerSettings(norm_kind="batch", **SMALL),
    "gru, additive attention": RecurrentSettings(
        width=64, embedding=64, attention=AttentionSettings(kind="bahdanau")
    ),
    "lstm, luong attention": RecurrentSettings(
        width=64, embedding=64, cell="lstm", attention=AttentionSettings(kind="luong-general")
    ),
    "decoder-only": DecoderOnlySettings(layers=2, **SMALL),
    "encoder-only": EncoderOnlySettings(layers=2, **SMALL),
}
TIMED_SIZES = {"tiny": 4_096, "base": 25_000}  # size → target tokens per batch, about, with padding


class OneBatch:
    """Every update gets the same batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def batch(self, position: int) -> Batch:
        return self._batch


def main(arguments: Sequence[str]) -> None:
    options = _parse(arguments)
    chosen = choose_device(options.device, "fp32")
    device = options.device if options.device != "auto" else chosen.device
    families = {name: compare(name, DeviceConfig(device, "fp32"), options.seconds) for name in FAMILIES}
    precisions = ["fp32", "bf16", "fp16"] if device in ACCELERATORS else ["fp32"]
    speeds = {
        f"{size}, {precision}": speed(size, DeviceConfig(device, precision), options.seconds)
        for size in (TIMED_SIZES if device in ACCELERATORS else ["tiny"])
        for precision in precisions
    }
    facts = {
        "device": device,
        "name": torch.cuda.get_device_name() if device == "cuda" else device,
        "machine": machine_facts(),
        "versions": package_versions(),
        "families": families,
        "target tokens per second": speeds,
    }
    print(json.dumps(facts, ensure_ascii=False, indent=1))
    failed = [name for name, result in families.items() if not result.get("agrees")]
    print(f"{len(families) - len(failed)} of {len(families)} families agree with the CPU.", file=sys.stderr)
    if failed:
        raise SystemExit(f"benchmarks: these families do not agree with the CPU: {', '.join(failed)}.")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks device", description=__doc__)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", *ACCELERATORS])
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds per measurement")
    return parser.parse_args(arguments)


def compare(name: str, device: DeviceConfig, seconds: float) -> dict[str, Any]:
    """Compare the gradients on the device with the gradients on the CPU, and time updates on both."""
    model, batch = make_model(FAMILIES[name], rows=16)
    try:
        placed = device.place(copy.deepcopy(model))
        expected, received = gradients(model, batch), gradients(placed, batch)
        largest = max(float(gradient.abs().max()) for gradient in expected)
        differences = [float((a - b).abs().max()) for a, b in zip(expected, received, strict=True)]
        difference = max(differences) / largest
        return {
            "agrees": difference < 1e-3,
            "difference": difference,
            "ms per update": 1e3 * seconds_per_update(placed, batch, seconds),
            "ms per update on the CPU": 1e3 * seconds_per_update(model, batch, seconds),
        }
    except (RuntimeError, NotImplementedError) as error:  # an operation that the device lacks
        return {"agrees": False, "error": f"{type(error).__name__}: {error}"[:500]}


def make_model(settings: Any, rows: int) -> tuple[Model, Batch]:
    """Return a model and a batch for it, on the CPU."""
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(5)
    model = build_model(settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True)
    sources, targets = (
        [
            torch.randint(4, VOCAB_SIZE, (LENGTH - row % 5,), generator=generator).tolist()
            for row in range(rows)
        ]
        for _ in range(2)
    )
    if isinstance(settings, EncoderOnlySettings):
        batch = padded_batch([[] for _ in targets], targets)
        return model, mask_tokens(batch, random_uint64_by_sentence(batch), vocab_size=VOCAB_SIZE)
    return model, padded_batch(sources, targets)


def make_worker(model: Model, batch: Batch) -> Worker:
    settings = TrainingSettings(batch_tokens=1_000_000)
    return Worker(model, OneBatch(batch), settings, SingleProcess(model))  # type: ignore[arg-type]


def gradients(model: Model, batch: Batch) -> list[torch.Tensor]:
    """Return the gradients of a batch without dropout, copied to the CPU."""
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    probabilities = [dropout.probability for dropout in dropouts]
    for dropout in dropouts:
        dropout.probability = 0.0
    worker = make_worker(model, batch)
    model.train()
    worker._compute_gradients(1, part=0, num_parts=1)
    result = [p.grad.float().cpu().clone() for p in model.parameters() if p.grad is not None]
    for dropout, probability in zip(dropouts, probabilities, strict=True):
        dropout.probability = probability
    model.zero_grad(set_to_none=True)
    return result


def seconds_per_update(model: Model, batch: Batch, seconds: float) -> float:
    """Return the median time of an update, after a warm-up of two updates.

    An update returns after its loss is computed, so its time includes the work of the device.
    """
    worker = make_worker(model, batch)
    times: list[float] = []
    begin, step = time.perf_counter(), 0
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        step += 1
        started = time.perf_counter()
        update = worker.update(step, 1e-4)
        times.append(time.perf_counter() - started)
        if not math.isfinite(update.loss):
            raise RuntimeError(f"the loss is {update.loss} at update {step}")
    return sorted(times[2:])[len(times[2:]) // 2]


def speed(size: str, device: DeviceConfig, seconds: float) -> float | str:
    """Return target tokens per second of a Transformer, or the error if the device cannot train it."""
    encoder_layers, decoder_layers, width, feed_forward, heads = SIZES[size]
    shape = {"width": width, "feed_forward": feed_forward, "heads": heads}
    depth = {"encoder_layers": encoder_layers, "decoder_layers": decoder_layers}
    rows = TIMED_SIZES[size] // LENGTH
    try:
        model, batch = make_model(TransformerSettings(**depth, **shape, dropout=0.1), rows)
        tokens = int((batch.target[:, 1:] != PAD).sum())  # type: ignore[index]
        return round(tokens / seconds_per_update(device.place(model), batch, seconds))
    except (RuntimeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"[:300]
