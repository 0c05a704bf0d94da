"""Cost of int8 weights in BLEU: the same sentences translated in float32 and in int8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError
from jumok.evaluation.scores import score
from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine, require_ctranslate2
from jumok.inference.loading import max_positions_for
from jumok.inference.text_options import LINE_BY_LINE
from jumok.inference.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.config.recipe import Recipe
    from jumok.models.model import TranslationModel
    from jumok.text.tokenizer import TokenizerPair
    from jumok.types import Pair


def measure_int8_cost(
    model: TranslationModel, tokenizers: TokenizerPair, recipe: Recipe, pairs: Sequence[Pair]
) -> float | None:
    """Return BLEU in float32 minus BLEU in int8, or None if CTranslate2 cannot run the model here."""
    try:
        float32, int8 = (
            _bleu(model, tokenizers, recipe, pairs, precision) for precision in ("float32", "int8")
        )
    except (UnsupportedError, RuntimeError):  # RuntimeError: CTranslate2 has no kernels for this machine
        return None
    return round(float32 - int8, 3)


def _bleu(
    model: TranslationModel, tokenizers: TokenizerPair, recipe: Recipe, pairs: Sequence[Pair], precision: str
) -> float:
    require_ctranslate2()
    from jumok.inference.engines.ctranslate2_export import export  # optional

    files = export(model, max_positions=max_positions_for(recipe), quantization=precision)
    # Strict: if torch took over, int8 would not be measured and would seem to cost nothing.
    vocab_size = max(tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    engine = CTranslate2Engine(files, vocab_size=vocab_size, strict=True)
    max_tokens = recipe.training.max_sentence_tokens
    translator = Translator(
        model, tokenizers, engine=engine, search=recipe.search, max_source_tokens=max_tokens
    )
    translations = translator.translate([pair.source for pair in pairs], **LINE_BY_LINE)
    texts = [translation.text for translation in translations]
    references = [pair.target for pair in pairs]
    return score(texts, references, language=recipe.languages.target, metrics=("bleu",)).bleu
