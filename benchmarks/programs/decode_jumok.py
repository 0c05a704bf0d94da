"""Translate a file as `jumok translate` does, from text to text. All translations have the same length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.programs.report import parse, repeat, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.inference.search.plan import SearchPlan

WARM_UP_LINES = 64


def force_length(plan: Callable[..., SearchPlan], length: int) -> Callable[..., SearchPlan]:
    """Return a function that plans searches whose hypotheses all end at this length."""
    return lambda *options: replace(
        plan(*options), min_length=length, max_length_ratio=0.0, extra_tokens=length
    )


def main() -> None:
    from jumok.inference.loading import load

    options = parse(model=Path, source=Path, engine=str, beam=int, length=int, seconds=float)
    translator = load(options.model, engine=options.engine)
    # jumok has no setting that forces a length, so a private method is replaced. All else is unchanged.
    setattr(translator, "_plan", force_length(translator._plan, options.length))  # noqa: B010
    written = options.source.with_suffix(f".{options.engine}.{options.beam}.out")

    def translate(limit: int | None = None) -> None:
        with options.source.open(encoding="utf-8") as lines, written.open("w", encoding="utf-8") as out:
            texts = [line.rstrip("\n") for line in lines][:limit]
            for translation in translator.stream(texts, beam=options.beam, scores=False):
                out.write(translation.text + "\n")

    translate(WARM_UP_LINES)
    with options.source.open(encoding="utf-8") as lines:
        tokens = options.length * sum(1 for _ in lines)
    report(tokens_per_s=tokens / repeat(translate, options.seconds))


if __name__ == "__main__":
    main()
