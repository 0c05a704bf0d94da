"""From a model folder to a Translator. Torch is imported where the model itself is built, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumok.decoding.translator import Translator
from jumok.storage import read_stored_model
from jumok.text import Subwords, Vocabularies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.decoding.engine import Engine
    from jumok.decoding.translator import Deferred
    from jumok.models import TranslationModel
    from jumok.storage import ModelCard

__all__ = ["load", "load_vocabularies", "make_translator"]


def load(folder: str | Path) -> Translator:
    """The translator in a model folder. Every file is verified first, and loading runs no code from it."""
    from jumok.decoding.building import load_model

    stored = read_stored_model(Path(folder))
    vocabularies = load_vocabularies(stored.vocabularies)
    return make_translator(load_model(stored, vocabularies), vocabularies, stored.card)


def make_translator(
    model: TranslationModel | Deferred,
    vocabularies: Vocabularies,
    card: ModelCard,
    *,
    engine: Engine | None = None,
) -> Translator:
    """A translator that searches and reads alignments as the card of its model says."""
    recipe = card.recipe
    return Translator(
        model,
        vocabularies,
        engine=engine,
        search=recipe.search,
        read_out=card.read_out,
        source_language=recipe.languages.source,
        target_language=recipe.languages.target,
        longest_source=recipe.training.longest,
    )


def load_vocabularies(files: Mapping[str, bytes]) -> Vocabularies:
    """The vocabulary files of a model folder."""
    if "pieces.model" in files:
        pieces = Subwords.from_bytes(files["pieces.model"])
        return Vocabularies(source=pieces, target=pieces, shared=True)
    source, target = (Subwords.from_bytes(files[f"{side}.model"]) for side in ("source", "target"))
    return Vocabularies(source=source, target=target, shared=False)
