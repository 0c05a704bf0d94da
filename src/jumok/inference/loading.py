"""From a model folder to a Translator, or to a model of plain text.

Torch is imported where the model itself is built, and only there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jumok.decoding.shortlist import Shortlist
from jumok.decoding.translator import Translator
from jumok.errors import UnsupportedError
from jumok.storage import read_stored_model
from jumok.text import Subwords, Vocabularies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.decoding.engine import Engine
    from jumok.decoding.texts import TextModel
    from jumok.decoding.translator import Deferred
    from jumok.models import TranslationModel
    from jumok.recipe import Recipe
    from jumok.storage import ModelCard, StoredModel

__all__ = [
    "choose_shortlist",
    "load",
    "load_text_model",
    "load_vocabularies",
    "make_translator",
    "refuse_text_model",
    "training_facts",
]


def load(folder: str | Path, *, shortlist: Shortlist | bool = False) -> Translator:
    """The translator in a model folder. Every file is verified first, and loading runs no code from it.

    With `shortlist` translations are limited to the pieces of the one in the folder, or of the one given.
    """
    from jumok.decoding.building import load_model

    stored = read_stored_model(Path(folder))
    refuse_text_model(stored)
    vocabularies = load_vocabularies(stored.vocabularies)
    chosen = choose_shortlist(shortlist, stored, vocabularies)
    model = cast("TranslationModel", load_model(stored, vocabularies))
    return make_translator(model, vocabularies, stored.card, shortlist=chosen)


def load_text_model(folder: str | Path) -> TextModel:
    """The language model, or the encoder alone, in a model folder; verified as `load` does."""
    from jumok.decoding.building import load_model
    from jumok.decoding.texts import TextModel

    stored = read_stored_model(Path(folder))
    recipe = stored.card.recipe
    if recipe.model.task == "translate":
        raise UnsupportedError(
            f"The model in {folder} translates, and a model of plain text is wanted. Load it with "
            "`jumok.load`, or use `jumok translate`."
        )
    vocabularies = load_vocabularies(stored.vocabularies)
    return TextModel(
        load_model(stored, vocabularies),
        vocabularies.target,
        task=recipe.model.task,
        language=recipe.languages.target,
        longest=recipe.training.longest,
    )


def refuse_text_model(stored: StoredModel) -> None:
    """A model of plain text is no translator; what it can do instead."""
    task, folder = stored.card.recipe.model.task, stored.folder
    if task == "translate":
        return
    able = "guesses hidden pieces" if task == "masked" else "goes on with a text"
    other = "" if task == "masked" else f"`jumok complete {folder}` goes on with lines, and "
    raise UnsupportedError(
        f"The model in {folder} was trained on plain text: it {able} and does not translate. "
        f"{other}`jumok evaluate {folder} text.txt` scores it; in Python it is loaded with "
        "`jumok.load_text_model`."
    )


def choose_shortlist(
    wanted: Shortlist | bool, stored: StoredModel, vocabularies: Vocabularies
) -> Shortlist | None:
    """The shortlist that was given, or the stored one where one is wanted; never another model's."""
    if not isinstance(wanted, bool):
        wanted.refuse_misfits(vocabularies)
        return wanted
    if not wanted:
        return None
    if stored.shortlist is None:
        raise UnsupportedError(
            f"The model in {stored.folder} has no shortlist. Learn one with `jumok shortlist {stored.folder} "
            "PAIRS`, from the pairs that it was trained on."
        )
    return Shortlist.from_bytes(stored.shortlist, vocabularies)


def make_translator(
    model: TranslationModel | Deferred,
    vocabularies: Vocabularies,
    card: ModelCard,
    *,
    engine: Engine | None = None,
    shortlist: Shortlist | None = None,
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
        training=_training(card),
        shortlist=shortlist,
    )


def _training(card: ModelCard) -> dict[str, Any]:
    """How the model was trained; nothing, where the number of steps is not known."""
    steps = card.facts.get("steps")
    return training_facts(card.recipe, steps, card.plan or ((0, steps),)) if isinstance(steps, int) else {}


def training_facts(recipe: Recipe, steps: int, plan: Sequence[tuple[int, int | None]]) -> dict[str, Any]:
    """What the learning rate of every step followed from, the revisions of the plan included."""
    told = recipe.training.model_dump(include={"schedule", "learning_rate", "warmup"})
    return {**told, "steps": steps, "plan": [list(revision) for revision in plan]}


def load_vocabularies(files: Mapping[str, bytes]) -> Vocabularies:
    """The vocabulary files of a model folder."""
    if "pieces.model" in files:
        pieces = Subwords.from_bytes(files["pieces.model"])
        return Vocabularies(source=pieces, target=pieces, shared=True)
    source, target = (Subwords.from_bytes(files[f"{side}.model"]) for side in ("source", "target"))
    return Vocabularies(source=source, target=target, shared=False)
