"""Writes an example explanation of every family, by small random models: something to build a page on.

    PYTHONPATH=src:tests python tests/explain/make_example_explanations.py FOLDER

`changed.json` is one under a change. From a trained model: `jumok look MODEL "I go home." --out x.json`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from explain_translators import FAMILIES, SENTENCE, TARGET, family_translator
from jumok.explain import Silence
from jumok.values import Alignment


def write_examples(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    gold = Alignment(frozenset({(0, 3), (1, 4), (6, 5)}))
    examples = {name: family_translator(name).explain(SENTENCE) for name in FAMILIES}
    examples["given"] = family_translator("transformer").explain(SENTENCE, target=TARGET, gold=gold)
    examples["changed"] = family_translator("transformer").explain(SENTENCE, edit=Silence("cross", 1, 0))
    written = []
    for name, explanation in examples.items():
        written.append(folder / f"{name}.json")
        explanation.with_effects().with_steps().save(written[-1])
    return written


if __name__ == "__main__":
    write_examples(Path(sys.argv[1]))
