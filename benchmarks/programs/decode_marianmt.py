"""Translate token ids, sorted by length, with Hugging Face `generate` and MarianMT of the same size.

The option `sentences` is the number of sentences to translate; 0 means all.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from benchmarks.programs.marianmt import make_marianmt
from benchmarks.programs.report import parse, repeat, report
from benchmarks.settings import VOCAB_SIZE
from jumok.types import END, PAD


def main() -> None:
    options = parse(size=str, tokens=Path, sentences=int, beam=int, length=int, batch=int, seconds=float)
    model = make_marianmt(options.size, vocab_size=VOCAB_SIZE).eval()
    sentences = json.loads(options.tokens.read_text(encoding="utf-8"))
    sources = sorted(sentences[: options.sentences or None], key=len)
    batches = [sources[first : first + options.batch] for first in range(0, len(sources), options.batch)]

    def translate(num_batches: int | None = None) -> None:
        for batch in batches[:num_batches]:
            rows = [torch.tensor([*tokens, END]) for tokens in batch]
            padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
            model.generate(
                input_ids=padded,
                attention_mask=(padded != PAD).long(),
                num_beams=options.beam,
                do_sample=False,
                min_new_tokens=options.length,
                max_new_tokens=options.length,
            )

    with torch.inference_mode():
        translate(1)  # warm-up
        report(tokens_per_s=options.length * len(sources) / repeat(translate, options.seconds))


if __name__ == "__main__":
    main()
