"""What weights of eight bits cost: the same sentences translated with them and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.decoding import Translator
from jumok.engines import ConvertedEngine, places_for, require_ctranslate2
from jumok.errors import UnsupportedError
from jumok.evaluation.scores import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.models import TranslationModel
    from jumok.recipe import Recipe
    from jumok.text import Vocabularies
    from jumok.values import Pair

__all__ = ["int8_costs"]


def int8_costs(
    model: TranslationModel, vocabularies: Vocabularies, recipe: Recipe, pairs: Sequence[Pair]
) -> float | None:
    """BLEU in single precision less BLEU in eight bits; None where the model cannot be converted."""
    try:
        single, eight = (
            _bleu(model, vocabularies, recipe, pairs, precision) for precision in ("float32", "int8")
        )
    except (UnsupportedError, RuntimeError):  # the second: no kernels for this machine
        return None
    return round(single - eight, 3)


def _bleu(
    model: TranslationModel, vocabularies: Vocabularies, recipe: Recipe, pairs: Sequence[Pair], precision: str
) -> float:
    require_ctranslate2()
    from jumok.engines.export import export

    files = export(model, places=places_for(recipe), quantization=precision)
    # Strict: where torch took over, nothing would be measured, and eight bits would seem to cost nothing.
    pieces = max(vocabularies.source.size, vocabularies.target.size)
    engine = ConvertedEngine(files, pieces=pieces, strict=True)
    longest = recipe.training.longest
    translator = Translator(model, vocabularies, engine=engine, search=recipe.search, longest_source=longest)
    texts = [translation.text for translation in translator.translate([pair.source for pair in pairs])]
    references = [pair.target for pair in pairs]
    return score(texts, references, language=recipe.languages.target, metrics=("bleu",)).bleu
