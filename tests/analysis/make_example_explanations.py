"""Write one explanation per small random model, and two more, as examples for work on the page.

    PYTHONPATH=src:tests python tests/analysis/make_example_explanations.py FOLDER

`given.json` explains a given translation. In `changed.json` one head is silenced. To write an explanation by
a trained model: `jumok look MODEL "I go home." --out x.json`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import ExplanationOptions, explain
from jumok.analysis.explanation_files import save_explanation
from jumok.types import Alignment
from support.random_translators import SENTENCE, SMALL_MODELS, TARGET, small_translator


def write_examples(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    gold = Alignment(frozenset({(0, 3), (1, 4), (6, 5)}))
    examples = {name: explain(small_translator(name), SENTENCE) for name in SMALL_MODELS}
    examples["given"] = explain(
        small_translator("transformer"), SENTENCE, target=TARGET, options=ExplanationOptions(gold=gold)
    )
    examples["changed"] = explain(small_translator("transformer"), SENTENCE, edit=Silence("cross", 1, 0))
    paths = []
    for name, explanation in examples.items():
        paths.append(folder / f"{name}.json")
        save_explanation(explanation.with_effects().with_steps(), paths[-1])
    return paths


if __name__ == "__main__":
    write_examples(Path(sys.argv[1]))
