"""Who takes part: named recipes that could all be trained, and what must be alike in them.

    make_contenders(["recurrent:none", "recurrent:bahdanau", "transformer"], settings={"training.minutes": 5})

Every recipe is checked before anything is read, so that the third contender cannot fail after the first two
have been trained for an hour.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.errors import RecipeError
from jumok.models import check_recipe, place_attention
from jumok.recipe import Recipe, TextSettings, flatten, make_recipe, read_recipe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Contender", "equalised", "make_contenders", "unequal"]

BUDGET = ("minutes", "steps", "epochs")
EQUAL = (*(f"text.{name}" for name in TextSettings.model_fields), "training.batch_tokens", "training.seed")
"""Settings that have nothing to do with the model: where they differ, a comparison compares them."""
TAKEN = {"data", "compare.json", "compare.md", "report.html"}
"""Names of a comparison's own files, beside which each contender has a folder."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A recipe with a name, which is also that of its run folder."""

    name: str
    recipe: Recipe


def make_contenders(
    words: Sequence[str] = (),
    *,
    recipes: Sequence[Path] = (),
    settings: Mapping[str, Any] | None = None,
) -> tuple[Contender, ...]:
    """Contenders from words, `family` or `family:mechanism`, then from files with a recipe.

    `settings`, as `section.name`, hold for all of them, before what a file says. A budget among them takes
    the place of every budget in the files.
    """
    settings = dict(settings or {})
    contenders = [
        *(_from_word(word, settings) for word in words),
        *(_from_file(path, settings) for path in recipes),
    ]
    _check_names([contender.name for contender in contenders])
    _check_budgets(contenders)
    return tuple(contenders)


def equalised(asked: Recipe, first: Recipe) -> Recipe:
    """The recipe with what must be equal taken from the first contender's, where nobody set it."""
    have, own = flatten(first), flatten(asked, only_set=True)
    return make_recipe(
        asked.model_dump(exclude_unset=True), **{name: have[name] for name in EQUAL if name not in own}
    )


def unequal(recipes: Mapping[str, Recipe]) -> tuple[str, ...]:
    """What somebody set differently although a fair comparison wants it equal, a sentence each."""
    settings = {contender: flatten(recipe) for contender, recipe in recipes.items()}
    found = []
    for name in EQUAL:
        values = {contender: have[name] for contender, have in settings.items()}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{contender} {value}" for contender, value in values.items())
            found.append(f"{name} is not the same: {listed}.")
    return tuple(found)


def _from_word(word: str, settings: Mapping[str, Any]) -> Contender:
    family, colon, mechanism = (part.strip() for part in word.partition(":"))
    if not family or (colon and not mechanism):
        raise RecipeError(
            "A contender is a family of models, or a family and its attention, as in recurrent:bahdanau. "
            f"Received: {word!r}. `jumok models` lists what there is."
        )
    name = f"{family}-{mechanism}" if mechanism else family
    try:
        recipe = make_recipe(None, **{**settings, "model.family": family})
        if mechanism:
            nested = recipe.model_dump(exclude_unset=True)
            recipe = make_recipe(nested, **place_attention(family, mechanism))
        check_recipe(recipe)
        _refuse_other_tasks(recipe)
    except RecipeError as error:
        raise _cannot_take_part(name, error) from None
    return Contender(name, recipe)


def _refuse_other_tasks(recipe: Recipe) -> None:
    if recipe.model.task != "translate":
        raise RecipeError(
            f"Models that translate are compared, and {recipe.model.family} learns from plain text here. "
            "`jumok evaluate MODEL text.txt` gives the figures of such models on the same text."
        )


def _from_file(path: Path, settings: Mapping[str, Any]) -> Contender:
    name = _file_name(path)
    nested = read_recipe(path)
    training = nested.get("training")
    if isinstance(training, dict) and any(f"training.{budget}" in settings for budget in BUDGET):
        nested["training"] = {key: value for key, value in training.items() if key not in BUDGET}
    try:
        recipe = make_recipe(nested, **settings)
        check_recipe(recipe)
        _refuse_other_tasks(recipe)
    except RecipeError as error:
        raise _cannot_take_part(name, error) from None
    return Contender(name, recipe)


def _file_name(path: Path) -> str:
    """`big.toml` is called big; the `recipe.toml` of a run folder is called after the folder."""
    word = path.resolve().parent.name if path.stem == "recipe" else path.stem
    return re.sub(r"[^\w.-]+", "-", word).strip(".-") or "recipe"


def _cannot_take_part(name: str, error: RecipeError) -> RecipeError:
    return type(error)(f'The contender "{name}" cannot take part. {error}')


def _check_names(names: list[str]) -> None:
    if len(names) < 2:
        raise RecipeError(
            f"A comparison needs two contenders or more. Received: {', '.join(names) or 'none'}. Name them "
            "with --attention none,bahdanau, with --contender recurrent:none, or with --recipe a.toml."
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RecipeError(
            f"Each contender needs a name of its own. Received more than once: {', '.join(twice)}. Leave one "
            "out, or rename its file."
        )
    taken = sorted(TAKEN.intersection(names))
    if taken:
        raise RecipeError(
            f"A contender cannot be called {' or '.join(taken)}: the comparison has a file of that name. "
            "Rename the recipe."
        )


def _check_budgets(contenders: Sequence[Contender]) -> None:
    budgets = {
        contender.name: tuple(getattr(contender.recipe.training, name) for name in BUDGET)
        for contender in contenders
    }
    if not any(any(budget) for budget in budgets.values()):
        raise RecipeError(
            "A comparison needs an end that is the same for all. Set --minutes or --steps for each contender."
        )
    if len(set(budgets.values())) > 1:
        listed = "; ".join(f"{name}: {_budget_words(budget)}" for name, budget in budgets.items())
        raise RecipeError(
            f"The contenders do not have the same budget. Received: {listed}. Set --minutes or --steps, "
            "which then hold for all."
        )


def _budget_words(budget: Sequence[float | None]) -> str:
    parts = [f"{value:g} {name}" for name, value in zip(BUDGET, budget, strict=True) if value is not None]
    return ", ".join(parts) or "no end"
