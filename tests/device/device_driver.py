"""Compares every family of models on the CPU and on the toy device; `test_toy_device.py` runs it.

    python device_driver.py BUILD_FOLDER OUT_FOLDER > result.json

This is a separate program, because torch can register only one device of an extension per process, and never
removes it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import torch

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import explain
from jumok.config.recipe import (
    AttentionSettings,
    DecoderOnlySettings,
    EncoderOnlySettings,
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from jumok.data.batching import class_batch, padded_batch
from jumok.data.masking import mask_tokens, random_uint64_by_sentence
from jumok.evaluation.text_scores import score_batch
from jumok.inference.loading import load
from jumok.inference.text_model import TextModel
from jumok.models.build import build_model
from jumok.models.kernels.dropout import Dropout
from jumok.system.device import DeviceConfig
from jumok.training.events import Saved, Started
from jumok.training.loop.update import Worker
from jumok.training.parallel.single import SingleProcess
from jumok.training.run import factories
from jumok.training.run.training_run import training_events
from jumok.types import Batch, PatchGrid
from support.digits import TINY, digit_corpus
from support.random_translators import SENTENCE, SMALL, SMALL_MODELS, TARGET, make_translator, tokenizers
from support.toy_device import register_toy_device

if TYPE_CHECKING:
    from jumok.models.model import Model

VOCAB_SIZE = 310
TOY = DeviceConfig("toy", "fp32")
# The models are not trained, so that a sentence in the target language is a source like any other.
SENTENCES = [SENTENCE, "a small river.", TARGET, "the house and the tree near the river"]

MORE_MODELS: dict[str, Any] = {
    "lstm": RecurrentSettings(width=16, embedding=12, cell="lstm", encoder_layers=2, decoder_layers=2),
    "rnn without attention": RecurrentSettings(
        width=16, embedding=12, cell="rnn", attention=AttentionSettings(kind="none")
    ),
    "rotary": TransformerSettings(positions="rotary", **SMALL),
    "alibi": TransformerSettings(positions="alibi", **SMALL),
    "relative keys": TransformerSettings(positions="relative-keys", **SMALL),
    "relative bias": TransformerSettings(positions="relative-bias", **SMALL),
    "learned positions": TransformerSettings(positions="learned", **SMALL),
    "rms norm": TransformerSettings(norm_kind="rms", **SMALL),
    "batch norm": TransformerSettings(norm_kind="batch", **SMALL),
    "language model": DecoderOnlySettings(layers=2, task="language-model", **SMALL),
    "encoder-only": EncoderOnlySettings(layers=2, **SMALL),
    "classifier": EncoderOnlySettings(layers=2, task="classify", **SMALL),
    "captions": TransformerSettings(encoder_layers=2, decoder_layers=2, **SMALL),
}
GRID = PatchGrid(2, 2, 12)


class OneBatch:
    """Training data that give the same batch to every update."""

    def __init__(self, batch: Batch) -> None:
        self.only = batch

    def batch(self, number: int) -> Batch:
        return self.only


def make_model(name: str, settings: Any) -> tuple[Model, Batch]:
    """Return a model and a batch for this model, both on the CPU."""
    torch.manual_seed(3)
    sizes = {"source_vocab_size": VOCAB_SIZE, "target_vocab_size": VOCAB_SIZE, "shared": True}
    generator = torch.Generator().manual_seed(5)
    lengths = [5, 9, 7, 1]
    sources, targets = (
        [torch.randint(4, VOCAB_SIZE, (length,), generator=generator).tolist() for length in lengths]
        for _ in range(2)
    )
    if name in ("captions", "classifier"):
        shape = (4, len(GRID), GRID.values_per_patch)
        patches = numpy.random.default_rng(1).integers(0, 256, shape, dtype=numpy.uint8)
        batch = padded_batch(list(patches), targets if name == "captions" else [[4], [5], [6], [4]])
        model = build_model(settings, **{**sizes, "source_vocab_size": 0, "shared": False}, grid=GRID)
        return model, batch if name == "captions" else class_batch(batch)
    model = build_model(settings, **sizes)
    if name in ("language model", "encoder-only"):
        batch = padded_batch([[] for _ in targets], targets)
        if name == "encoder-only":
            batch = mask_tokens(batch, random_uint64_by_sentence(batch), vocab_size=VOCAB_SIZE)
        return model, batch
    return model, padded_batch(sources, targets)


def make_worker(model: Model, batch: Batch) -> Worker:
    return Worker(model, OneBatch(batch), TrainingSettings(batch_tokens=64), SingleProcess(model))  # type: ignore[arg-type]


def set_dropout(model: Model, probability: float) -> None:
    for module in model.modules():
        if isinstance(module, Dropout):
            module.probability = probability


def gradients(model: Model, batch: Batch) -> list[torch.Tensor]:
    worker = make_worker(model, batch)
    model.train()
    worker._compute_gradients(1, part=0, parts=1)
    return [p.grad.cpu() for p in model.parameters() if p.grad is not None]


def compare_training(name: str, settings: Any, extension: Any) -> dict[str, Any]:
    model, batch = make_model(name, settings)
    set_dropout(model, 0.0)
    on_toy = TOY.place(copy.deepcopy(model))
    num_parameters = [len({id(p) for p in m.parameters()}) for m in (model, on_toy)]
    expected, received = gradients(model, batch), gradients(on_toy, batch)
    largest = max(float(gradient.abs().max()) for gradient in expected)
    differences = [float((a - b).abs().max()) for a, b in zip(expected, received, strict=True)]
    set_dropout(on_toy, 0.1)
    worker = make_worker(on_toy, batch)
    worker.update(1, 1e-3)
    extension.reset_counts()
    update = worker.update(2, 1e-3)
    return {
        "parameters": num_parameters,
        "devices": sorted({p.device.type for p in on_toy.parameters()}),
        "difference": max(differences) / largest,
        "waits": extension.waits(),
        "uploads": extension.uploads(),  # for people who read result.json; no test checks this number
        "applied": update.applied,
    }


def compare_autocast(name: str, settings: Any, precision: str) -> dict[str, Any]:
    model, batch = make_model(name, settings)
    set_dropout(model, 0.0)
    on_toy = DeviceConfig("toy", precision).place(copy.deepcopy(model))
    exact = make_worker(model, batch).update(1, 1e-3)
    worker = make_worker(on_toy, batch)
    first, second = (worker.update(step, 1e-3) for step in (1, 2))
    finite = all(bool(p.isfinite().all()) for p in on_toy.parameters())
    return {
        "finite": finite and math.isfinite(second.gradient_norm) and second.applied,
        "loss ratio": first.loss / exact.loss,
    }


def compare_translation(name: str) -> dict[str, Any]:
    cpu, toy = (make_translator(SMALL_MODELS[name]) for _ in range(2))
    TOY.place(toy.model)
    results = []
    for translator in (cpu, toy):
        beam = translator.translate(SENTENCES, beam=3)
        greedy = translator.translate(SENTENCES, beam=1)
        results.append([[t.text for t in beam], [t.text for t in greedy], [t.score for t in beam]])
    scores = [abs(a - b) for a, b in zip(results[0][2], results[1][2], strict=True)]
    return {
        "same texts": results[0][:2] == results[1][:2],
        "score difference": max(scores),
        "explanation difference": compare_explanations(cpu, toy),
    }


def compare_explanations(cpu: Any, toy: Any) -> float:
    """Return the largest difference of weights, log-probabilities, effects and steps.

    A difference is divided by the largest value that is compared, if this value is above 1.
    """
    differences = []

    def compare(left: Any, right: Any) -> None:
        differences.append(float(abs(left - right).max() / max(1.0, abs(left).max())))

    for edit in (None, Silence("cross", 0, 0)):
        one, other = (explain(translator, SENTENCE, edit=edit) for translator in (cpu, toy))
        assert one.target.text == other.target.text
        for site, attention in one.attention.items():
            compare(attention.weights, other.attention[site].weights)
        compare(one.log_probs, other.log_probs)
    # `one` and `other` are now the explanations with the edit.
    steps = [explanation.steps("cross", 0, 0, 1, 1).steps for explanation in (one, other)]
    for left, right in zip(*steps, strict=True):
        compare(left.values, right.values)
    effects = [explanation.effects()[0] for explanation in (one, other)]
    for site in effects[0]:
        compare(effects[0][site], effects[1][site])
    return max(differences)


def compare_text_models() -> dict[str, Any]:
    results = []
    for on_toy in (False, True):
        model, batch = make_model("language model", MORE_MODELS["language model"])
        model = TOY.place(model) if on_toy else model
        text_model = TextModel(model, tokenizers().target, task="language-model", max_tokens=20)
        results.append(
            [
                text_model.complete(["the old house", "a"]),
                score_batch(model.eval(), batch).loss,
                text_model.attention("the old tree")["decoder"].weights,
            ]
        )
    (texts, loss, weights), (toy_texts, toy_loss, toy_weights) = results
    return {
        "same texts": texts == toy_texts,
        "loss difference": abs(loss - toy_loss),
        "weight difference": float(abs(weights - toy_weights).max()),
    }


def whole_run(folder: Path) -> dict[str, Any]:
    """Train two runs on the toy device, one of them with an interruption; then translate."""
    factories.device_config = lambda settings: TOY
    settings = {**TINY, "training.steps": 12, "training.validate_every": 6, "training.warmup_steps": 2}
    corpus = digit_corpus(300)
    list(training_events(corpus, out=folder / "uninterrupted", **settings))
    for event in training_events(corpus, out=folder / "resumed", **settings):
        if isinstance(event, Saved):
            break
    events = list(training_events(corpus, out=folder / "resumed", **settings))
    started = next(event for event in events if isinstance(event, Started))
    translator = load(folder / "uninterrupted" / "model", engine="torch")
    return {
        "resumed_from": started.resumed_from,
        "translations": [translation.text for translation in translator.translate(["one two", "three"])],
        **{
            name: hashlib.sha256((folder / name / "model" / "weights.safetensors").read_bytes()).hexdigest()
            for name in ("uninterrupted", "resumed")
        },
    }


def main() -> None:
    extension = register_toy_device(Path(sys.argv[1]))
    torch.set_num_threads(1)
    models = {**SMALL_MODELS, **MORE_MODELS}
    result = {
        "training": {name: compare_training(name, settings, extension) for name, settings in models.items()},
        "bf16": {name: compare_autocast(name, settings, "bf16") for name, settings in models.items()},
        "fp16": {name: compare_autocast(name, settings, "fp16") for name, settings in models.items()},
        "translation": {name: compare_translation(name) for name in SMALL_MODELS},
        "text": compare_text_models(),
        "run": whole_run(Path(sys.argv[2])),
    }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
