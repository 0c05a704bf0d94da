"""Translate a file with jumok, text to text, as `jumok translate` does; every translation has one length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contenders.report import parse, repeat, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.decoding import SearchPlan

WARM_UP_LINES = 64


def force_length(plan: Callable[..., SearchPlan], length: int) -> Callable[..., SearchPlan]:
    """Plans of searches that end at this length and no other."""
    return lambda *choices: replace(plan(*choices), shortest=length, longest=0.0, extra=length)


def main() -> None:
    from jumok.engines import load

    given = parse(model=Path, source=Path, engine=str, beam=int, length=int, seconds=float)
    translator = load(given.model, engine=given.engine)
    # No setting of jumok's forces a length; everything else is the way of a user.
    setattr(translator, "_plan", force_length(translator._plan, given.length))  # noqa: B010
    written = given.source.with_suffix(f".{given.engine}.{given.beam}.out")

    def translate(most: int | None = None) -> None:
        with given.source.open(encoding="utf-8") as lines, written.open("w", encoding="utf-8") as out:
            texts = [line.rstrip("\n") for line in lines][:most]
            for translation in translator.stream(texts, beam=given.beam, scores=False):
                out.write(translation.text + "\n")

    translate(WARM_UP_LINES)
    pieces = given.length * len(given.source.read_text(encoding="utf-8").splitlines())
    report(tokens_per_s=pieces / repeat(translate, given.seconds))


if __name__ == "__main__":
    main()
