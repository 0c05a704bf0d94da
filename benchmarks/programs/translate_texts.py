"""Translate a file with the jumok of one source tree, by beam search and by greedy search.

The program reports sentences per second of both searches. Of jumok, it imports only the package `jumok`, so
that it also runs on trees whose modules have other names.
"""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from statistics import median

import jumok
from benchmarks.programs.report import parse, report

BEAM, GREEDY = 4, 1
WARM_UP_LINES = 64


def main() -> None:
    options = parse(tree=Path, model=Path, source=Path, engine=str, sentences=int, times=int)
    if not Path(jumok.__file__).resolve().is_relative_to(options.tree.resolve()):
        raise SystemExit(f"jumok comes from {jumok.__file__}, not from {options.tree}")
    texts = options.source.read_text(encoding="utf-8").splitlines()[: options.sentences]
    translator = jumok.load(options.model, engine=options.engine)
    measures: dict[str, float] = {}
    for name, beam in (("beam", BEAM), ("greedy", GREEDY)):
        translator.translate(texts[:WARM_UP_LINES], beam=beam)
        seconds = []
        for _ in range(options.times):
            started = time.perf_counter()
            translations = translator.translate(texts, beam=beam)
            seconds.append(time.perf_counter() - started)
        measures[f"{name}_sentences_per_s"] = len(texts) / median(seconds)
        # The speeds of two trees can be compared only if both trees produce the same text.
        measures[f"{name}_checksum"] = zlib.crc32("\n".join(one.text for one in translations).encode())
    report(**measures)


if __name__ == "__main__":
    main()
