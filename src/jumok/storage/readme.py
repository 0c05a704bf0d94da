"""The README.md of a model, for people, and for model hubs, which read its front matter.

The README names no path of the machine that made the model: a corpus appears with the name of its file.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.config.recipe import Recipe
    from jumok.storage.model_folder import ModelCard

LICENCE = "licence"
"""The fact of a model card that names the licence of the model."""
_PIPELINE_TAGS = {  # task of a model → the hub's name for it
    "translate": "translation",
    "language-model": "text-generation",
    "masked": "fill-mask",
    "classify": "image-classification",
}
_USAGE = """\
    jumok translate MODEL < in.txt        # MODEL is this folder
    jumok look MODEL "A sentence."
    jumok serve MODEL
"""


def describe_model(card: ModelCard, *, usage: str = _USAGE) -> str:
    """Return the text of README.md: front matter in YAML, then Markdown.

    `usage` is Markdown that says how to run the model.
    """
    recipe = card.recipe
    languages = [code for code in (recipe.languages.source, recipe.languages.target) if code]
    direction = " → ".join(languages) or "unknown languages"
    licence = str(card.facts.get(LICENCE) or "unknown")
    sections = [
        _front_matter(languages, licence, _pipeline_tag(recipe)),
        f"# {'Translator' if recipe.model.task == 'translate' else 'Model'}: {direction}",
        f"A {recipe.model.family} model of width {recipe.model.width}, in the format of "
        f"[jumok](https://pypi.org/project/jumok/) {card.created_by}. Licence: {licence}.",
        f"## Use\n\n{usage.rstrip()}",
        f"## Data\n\n{_data(card)}",
        f"## Scores\n\n{_scores(card)}",
    ]
    if source := card.facts.get("imported_from"):
        sections.append(f"## Origin\n\nImported from {source}. Positions: {_positions(card)}.")
    return "\n\n".join(sections) + "\n"


def _positions(card: ModelCard) -> str:
    return str(getattr(card.recipe.model, "positions", "none"))


def _pipeline_tag(recipe: Recipe) -> str:
    writes_captions = (recipe.source.kind, recipe.model.task) == ("pictures", "translate")
    return "image-to-text" if writes_captions else _PIPELINE_TAGS[recipe.model.task]


def _front_matter(languages: list[str], licence: str, pipeline_tag: str) -> str:
    # JSON strings are YAML strings, so no name can add a line of its own.
    lines = ["---"]
    if languages:
        lines += ["language:", *(f"- {json.dumps(code)}" for code in dict.fromkeys(languages))]
    lines += [
        f"license: {json.dumps(licence)}",
        f"pipeline_tag: {pipeline_tag}",
        "library_name: jumok",
        "---",
    ]
    return "\n".join(lines)


def _data(card: ModelCard) -> str:
    rows = [
        f"- {PurePath(corpus.name).name}: {corpus.pairs:,} pairs (fingerprint {corpus.fingerprint[:16]})"
        for corpus in card.corpora
    ]
    return "\n".join(rows) or "Unknown."


def _scores(card: ModelCard) -> str:
    if not card.scores:
        return "None measured by jumok."
    rows = [f"| {name} | {score.value:.2f} | `{score.signature}` |" for name, score in card.scores.items()]
    return "\n".join(
        ["On held-out pairs:", "", "| score | value | signature |", "| --- | --- | --- |", *rows]
    )
