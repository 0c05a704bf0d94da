"""The input files of a run: pairs for a model that translates, plain text for one that does not.

Most model families have one task. The decoder-only family has two: with pairs it becomes a translator, with
one plain text a language model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumok.config.recipe import DecoderOnlySettings
from jumok.data import Corpus, open_corpora, open_pairs_or_text, open_texts
from jumok.errors import DataError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.config.recipe import Recipe

__all__ = ["CorpusInput", "open_inputs"]

CorpusInput = str | Path | Corpus
"""A file of pairs or of plain text, or an open corpus. Two parallel text files are two items in a row."""


def open_inputs(
    pairs: Sequence[CorpusInput], valid: Sequence[CorpusInput], recipe: Recipe
) -> tuple[list[Corpus], list[Corpus]]:
    """Return the training corpora and the validation corpora; raise if the model cannot learn from them."""
    model, languages = recipe.model, recipe.languages
    task_is_open = isinstance(model, DecoderOnlySettings) and "task" not in model.model_fields_set
    plain = None if task_is_open else model.task != "translate"
    corpora = _open(pairs, languages.source, languages.target, plain=plain)
    first = corpora[0]
    validation: list[Corpus] = []
    if valid:
        validation = _open(valid, first.source_language, first.target_language, plain=first.plain)
    opened = (*corpora, *validation)
    if any(corpus.plain != (first.plain if plain is None else plain) for corpus in opened):
        expected = "plain text" if (first.plain if plain is None else plain) else "sentence pairs"
        names = ", ".join(corpus.name for corpus in opened)
        raise DataError(f"This {model.family} model learns from {expected}. Received: {names}.")
    if first.plain:
        _check_plain_text_settings(recipe)
    return corpora, validation


def _open(files: Sequence[CorpusInput], source: str, target: str, *, plain: bool | None) -> list[Corpus]:
    """Open paths as plain text (True), as pairs (False), or as their content suggests (None)."""
    corpora = [file for file in files if isinstance(file, Corpus)]
    paths = [str(file) for file in files if not isinstance(file, Corpus)]
    if paths and plain:
        corpora.extend(open_texts(paths, language=target or source or None))
    elif paths:
        open_files = open_corpora if plain is False else open_pairs_or_text
        corpora.extend(open_files(paths, source=source or None, target=target or None))
    return corpora


def _check_plain_text_settings(recipe: Recipe) -> None:
    """Raise if a setting needs pairs."""
    training = recipe.training
    if "stop_on" in training.model_fields_set and training.stop_on != "loss":
        raise RecipeError(
            "A model of plain text is validated by its loss. "
            f"Received: training.stop_on = {training.stop_on!r}. "
            'Leave it out, or set it to "loss".'
        )
    if not recipe.text.shared:
        raise RecipeError(
            "Plain text has one language and one vocabulary. Received: text.shared = false. Leave it out."
        )
