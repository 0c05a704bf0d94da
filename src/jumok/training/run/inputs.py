"""What a run reads: pairs for a model that translates, plain text for one that does not.

Most families decide it by themselves. The decoder alone does both: two texts or a file of pairs make it a
translator, one text alone makes it a language model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumok.corpus import Corpus, open_corpora, open_pairs_or_text, open_texts
from jumok.errors import DataError, RecipeError
from jumok.recipe import DecoderOnlySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.recipe import Recipe

__all__ = ["Pairs", "open_all"]

Pairs = str | Path | Corpus
"""A file of pairs or of plain text, or a corpus that is already open; two texts are two files in a row."""


def open_all(
    pairs: Sequence[Pairs], valid: Sequence[Pairs], recipe: Recipe
) -> tuple[list[Corpus], list[Corpus]]:
    """The corpora to train on and those to validate on; what the model cannot learn from is refused."""
    model, languages = recipe.model, recipe.languages
    open_to_both = isinstance(model, DecoderOnlySettings) and "task" not in model.model_fields_set
    plain = None if open_to_both else model.task != "translate"
    corpora = _open(pairs, languages.source, languages.target, plain=plain)
    first = corpora[0]
    against = _open(valid, first.source_language, first.target_language, plain=first.plain) if valid else []
    if any(corpus.plain != (first.plain if plain is None else plain) for corpus in (*corpora, *against)):
        wanted = "plain text" if first.plain or plain else "sentence pairs"
        names = ", ".join(corpus.name for corpus in (*corpora, *against))
        raise DataError(f"This {model.family} model learns from {wanted}. Received: {names}.")
    if first.plain:
        _refuse_what_needs_pairs(recipe)
    return corpora, against


def _open(pairs: Sequence[Pairs], source: str, target: str, *, plain: bool | None) -> list[Corpus]:
    """Open what is named by its path, as pairs, as plain text or (None) as what it is; corpora are open."""
    corpora = [one for one in pairs if isinstance(one, Corpus)]
    paths = [str(one) for one in pairs if not isinstance(one, Corpus)]
    if paths and plain:
        corpora.extend(open_texts(paths, language=target or source or None))
    elif paths:
        opened = open_corpora if plain is False else open_pairs_or_text
        corpora.extend(opened(paths, source=source or None, target=target or None))
    return corpora


def _refuse_what_needs_pairs(recipe: Recipe) -> None:
    training = recipe.training
    if "stop_on" in training.model_fields_set and training.stop_on != "loss":
        raise RecipeError(
            "A model of plain text is judged by its loss. "
            f"Received: training.stop_on = {training.stop_on!r}. "
            'Leave it out, or set it to "loss".'
        )
    if not recipe.text.shared:
        raise RecipeError(
            "Plain text has one language, so one vocabulary. Received: text.shared = false. Leave it out."
        )
