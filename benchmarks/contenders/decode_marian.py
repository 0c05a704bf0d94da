"""Hugging Face `generate` with a MarianMT model of the same size, on ready-made pieces sorted by length."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from benchmarks.contenders.marian import make_marian
from benchmarks.contenders.report import parse, repeat, report
from benchmarks.settings import PIECES
from jumok.values import END, PAD


def main() -> None:
    given = parse(size=str, pieces=Path, sentences=int, beam=int, length=int, batch=int, seconds=float)
    model = make_marian(given.size, pieces=PIECES).eval()
    every = json.loads(given.pieces.read_text(encoding="utf-8"))
    sources = sorted(every[: given.sentences or None], key=len)
    batches = [sources[first : first + given.batch] for first in range(0, len(sources), given.batch)]

    def translate(most: int | None = None) -> None:
        for batch in batches[:most]:
            rows = [torch.tensor([*pieces, END]) for pieces in batch]
            padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
            model.generate(
                input_ids=padded,
                attention_mask=(padded != PAD).long(),
                num_beams=given.beam,
                do_sample=False,
                min_new_tokens=given.length,
                max_new_tokens=given.length,
            )

    with torch.inference_mode():
        translate(1)
        report(tokens_per_s=given.length * len(sources) / repeat(translate, given.seconds))


if __name__ == "__main__":
    main()
