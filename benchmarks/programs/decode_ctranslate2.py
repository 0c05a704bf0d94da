"""Translate token ids with CTranslate2 alone, with one setting of workers, threads and batch size.

If the option `vectors` is 1, CTranslate2 uses the vector instructions that jumok requests. If it is 0,
CTranslate2 chooses them itself.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.programs.report import parse, repeat, report
from benchmarks.settings import VOCAB_SIZE
from jumok.inference.engines.ctranslate2_engine import require_ctranslate2
from jumok.inference.engines.ctranslate2_tokens import token_names

WARM_UP_LINES = 64


def main() -> None:
    options = parse(
        model=Path,
        tokens=Path,
        beam=int,
        length=int,
        workers=int,
        threads=int,
        batch=int,
        vectors=int,
        seconds=float,
    )
    if options.vectors:
        require_ctranslate2()  # requests AVX-512, before CTranslate2 is imported
    from ctranslate2 import Translator

    translator = Translator(
        str(options.model), device="cpu", inter_threads=options.workers, intra_threads=options.threads
    )
    names = token_names(VOCAB_SIZE)
    sentences = json.loads(options.tokens.read_text(encoding="utf-8"))
    sources = [[names[token] for token in tokens] for tokens in sentences]

    def translate(limit: int | None = None) -> None:
        translator.translate_batch(
            sources[:limit],
            beam_size=options.beam,
            max_batch_size=options.batch,
            batch_type="tokens",
            min_decoding_length=options.length,
            max_decoding_length=options.length,
        )

    translate(WARM_UP_LINES)
    report(tokens_per_s=options.length * len(sources) / repeat(translate, options.seconds))


if __name__ == "__main__":
    main()
