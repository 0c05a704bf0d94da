"""From a model folder to a Translator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumok.decoding.translator import Translator
from jumok.models import build_model
from jumok.storage import load_module_weights, read_model_folder
from jumok.text import Subwords, Vocabularies

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load"]


def load(folder: str | Path) -> Translator:
    """The translator in a model folder. Every file is verified first, and loading runs no code from it."""
    card, weights, files = read_model_folder(Path(folder))
    vocabularies = _vocabularies(files)
    recipe = card.recipe
    model = build_model(
        recipe.model,
        source_pieces=vocabularies.source.size,
        target_pieces=vocabularies.target.size,
        shared=vocabularies.shared,
    )
    load_module_weights(model, weights)
    return Translator(
        model,
        vocabularies,
        search=recipe.search,
        read_out=card.read_out,
        source_language=recipe.languages.source,
        target_language=recipe.languages.target,
        longest_source=recipe.training.longest,
    )


def _vocabularies(files: Mapping[str, bytes]) -> Vocabularies:
    if "pieces.model" in files:
        pieces = Subwords.from_bytes(files["pieces.model"])
        return Vocabularies(source=pieces, target=pieces, shared=True)
    source, target = (Subwords.from_bytes(files[f"{side}.model"]) for side in ("source", "target"))
    return Vocabularies(source=source, target=target, shared=False)
