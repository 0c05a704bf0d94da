"""Train Hugging Face's MarianMT, as large as jumok's model, in a plain PyTorch loop on jumok's batches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from benchmarks.programs.marianmt import make_marianmt
from benchmarks.programs.report import parse, report
from benchmarks.settings import DROPOUT, SMOOTHING
from jumok.data.store import open_store
from jumok.text.tokenizer_files import read_tokenizers
from jumok.training.run.factories import make_batches
from jumok.training.run.run_folder import RunFolder
from jumok.types import PAD, Batch

WARM_UP = 5  # updates


def update(model: Any, optimiser: torch.optim.Optimizer, batch: Batch) -> int:
    """Update the weights with one batch, and return the number of target tokens in the batch."""
    target: Any = batch.target
    labels = target[:, 1:]
    logits = model(
        input_ids=batch.source, attention_mask=batch.source != PAD, decoder_input_ids=target[:, :-1]
    ).logits
    loss: Any = cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    return int((labels != PAD).sum())


def main() -> None:
    options = parse(run=Path, seconds=float)
    folder = RunFolder(options.run)
    record = folder.record()
    if record is None:
        raise SystemExit(f"{options.run} is not a run folder")
    tokenizers = read_tokenizers(folder.path, shared=record.recipe.text.shared)
    batches = make_batches(record.recipe, open_store(folder.data), tokenizers)
    model = make_marianmt("tiny", vocab_size=tokenizers.target.vocab_size, dropout=DROPOUT).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    for position in range(WARM_UP):
        update(model, optimiser, batches.batch(position))
    tokens, position, started = 0, WARM_UP, time.perf_counter()
    while (seconds := time.perf_counter() - started) < options.seconds:
        tokens += update(model, optimiser, batches.batch(position))
        position += 1
    report(target_tokens_per_s=tokens / seconds)


if __name__ == "__main__":
    main()
