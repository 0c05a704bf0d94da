"""From a model folder to a Translator with the engine that suits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jumok.decoding.loading import choose_shortlist, load_vocabularies, make_translator, refuse_text_model
from jumok.decoding.loading import load as load_with_torch
from jumok.decoding.plan import SearchPlan
from jumok.decoding.translator import Deferred
from jumok.engines.cache import forget, kept_files
from jumok.engines.converted import ConvertedEngine, require_ctranslate2
from jumok.errors import RecipeError, StorageError, UnsupportedError, nearest
from jumok.storage import read_stored_model

if TYPE_CHECKING:
    from jumok.decoding import Engine, Shortlist, Translator
    from jumok.models import TranslationModel
    from jumok.recipe import Recipe
    from jumok.storage import ModelCard, StoredModel
    from jumok.text import Vocabularies

__all__ = ["ENGINES", "INT8_COSTS", "load", "places_for"]

ENGINES = ("auto", "torch", "ctranslate2")
CONVERTER = 1
"""Raise it whenever `export` writes something else: what was kept before is then made anew."""

INT8_COSTS = "int8_costs"
"""The fact of a model card that says how many BLEU eight-bit weights cost on the validation set."""
MOST_INT8_COSTS = 0.2
FEWEST_PLACES = 2048


def load(
    folder: str | Path,
    *,
    engine: str = "auto",
    cores: int | None = None,
    shortlist: Shortlist | bool = False,
) -> Translator:
    """The translator in a model folder. Every file is verified first, and loading runs no code from it.

    `engine` "ctranslate2" runs a copy of the model that is converted on first use and kept in the user's
    cache folder; "torch" runs the model itself; "auto" is the first where that is possible, and otherwise the
    second, with the reason in `translator.engine.why`. A converted model works on all cores, or on so many.
    With `shortlist` translations are limited to the pieces of the one in the folder, or of the one given.
    """
    if engine not in ENGINES:
        raise RecipeError(
            f'There is no engine "{engine}".{nearest(engine, ENGINES)} There are: {", ".join(ENGINES)}.'
        )
    if engine == "torch":
        return load_with_torch(folder, shortlist=shortlist)
    # Their bytes are let go of: a converted copy is smaller, and whoever looks inside reads them again.
    stored = read_stored_model(Path(folder)).without_weights()
    refuse_text_model(stored)
    vocabularies = load_vocabularies(stored.vocabularies)
    few = choose_shortlist(shortlist, stored, vocabularies)
    model = Deferred(lambda: _build(stored, vocabularies))
    chosen = _engine(engine, stored, vocabularies, model, {"cores": cores, "shortlist": few})
    return make_translator(model, vocabularies, stored.card, engine=chosen, shortlist=few)


def _build(stored: StoredModel, vocabularies: Vocabularies) -> TranslationModel:
    from jumok.decoding.building import load_model

    return cast("TranslationModel", load_model(stored, vocabularies))


def places_for(recipe: Recipe) -> int:
    """Positions enough for the longest source that is not cut up, and for its translation."""
    longest = recipe.training.longest
    return max(FEWEST_PLACES, longest + 1, SearchPlan.of(recipe.search).limit(longest))


def _engine(
    name: str, stored: StoredModel, vocabularies: Vocabularies, model: Deferred, options: dict[str, Any]
) -> Engine:
    asked_for = name == "ctranslate2"
    try:
        return _converted(stored, vocabularies, model, {**options, "strict": asked_for})
    except UnsupportedError as error:
        if asked_for:
            raise UnsupportedError(f"{error}. Choose the engine torch, or auto.") from None
        why = str(error)
    except StorageError as error:
        if asked_for:
            raise
        why = str(error)
    from jumok.decoding.torch_engine import TorchEngine

    return TorchEngine(model.model(), why=why, shortlist=options["shortlist"])


def _converted(
    stored: StoredModel, vocabularies: Vocabularies, model: Deferred, options: dict[str, Any]
) -> Engine:
    """The engine over the converted model. An UnsupportedError says why there is none."""
    require_ctranslate2()
    recipe, sizes = stored.card.recipe, (vocabularies.source.size, vocabularies.target.size)
    precision, places = _precision(stored.card), places_for(recipe)

    def convert() -> dict[str, bytes]:
        from jumok.engines.export import export

        return export(model.model(), places=places, quantization=precision)

    made_of: dict[str, Any] = {
        "converter": CONVERTER,
        "weights": stored.weights_line["sha256"],
        "model": recipe.model.model_dump(mode="json"),
        "pieces": sizes,
        "places": places,
        "precision": precision,
    }
    try:
        return ConvertedEngine(kept_files(made_of, convert), pieces=max(sizes), **options)
    except RuntimeError:
        # Whole, and yet not to be loaded: written by another release of CTranslate2.
        forget(made_of)
    try:
        return ConvertedEngine(kept_files(made_of, convert), pieces=max(sizes), **options)
    except RuntimeError as error:
        raise UnsupportedError(f"CTranslate2 cannot run the converted model ({error})") from None


def _precision(card: ModelCard) -> str:
    """Eight bits where they were measured to cost little; a model that was not measured keeps its own."""
    costs = card.facts.get(INT8_COSTS)
    cheap = isinstance(costs, int | float) and costs < MOST_INT8_COSTS
    return "int8" if cheap else "float32"
