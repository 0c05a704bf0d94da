"""CTranslate2 itself on ready-made pieces, with one setting of its workers, threads and batches.

`vectors` is 1 for the instructions that jumok asks it to use, 0 for those it takes by itself.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.contenders.report import parse, repeat, report
from benchmarks.settings import PIECES
from jumok.engines import require_ctranslate2
from jumok.engines.tokens import token_names

WARM_UP_LINES = 64


def main() -> None:
    given = parse(
        model=Path,
        pieces=Path,
        beam=int,
        length=int,
        workers=int,
        threads=int,
        batch=int,
        vectors=int,
        seconds=float,
    )
    if given.vectors:
        require_ctranslate2()
    from ctranslate2 import Translator

    translator = Translator(
        str(given.model), device="cpu", inter_threads=given.workers, intra_threads=given.threads
    )
    names = token_names(PIECES)
    every = json.loads(given.pieces.read_text(encoding="utf-8"))
    sources = [[names[piece] for piece in pieces] for pieces in every]

    def translate(most: int | None = None) -> None:
        translator.translate_batch(
            sources[:most],
            beam_size=given.beam,
            max_batch_size=given.batch,
            batch_type="tokens",
            min_decoding_length=given.length,
            max_decoding_length=given.length,
        )

    translate(WARM_UP_LINES)
    report(tokens_per_s=given.length * len(sources) / repeat(translate, given.seconds))


if __name__ == "__main__":
    main()
