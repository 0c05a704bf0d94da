"""The systems of a comparison: named overrides, and the settings that should be equal in all of them.

    make_systems(["recurrent:none", "recurrent:bahdanau", "transformer"], settings={"training.minutes": 5})

All overrides are checked before any pair is read. So a contradiction in the settings of the third system is
reported at once, and not after the first two systems have trained for an hour.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.config.recipe import TextSettings, flatten, read_recipe
from jumok.config.resolve import Overrides
from jumok.errors import RecipeError
from jumok.models.validate import attention_overrides, check_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jumok.config.recipe import Recipe

BUDGET_NAMES = ("minutes", "steps", "epochs")
"""The settings of `training` that limit the training of a system."""
SHARED_SETTINGS = (
    *(f"text.{name}" for name in TextSettings.model_fields),
    "training.batch_tokens",
    "training.seed",
)
"""Settings that do not belong to the model. If they differ, the comparison also measures their effect."""
RESERVED_NAMES = {"data", "compare.json", "compare.md", "report.html"}
"""Names of the comparison's own files and of its folder of pairs, beside the run folders of the systems."""


@dataclass(frozen=True, slots=True)
class System:
    """Named overrides. The run folder has the same name."""

    name: str
    overrides: Overrides


def make_systems(
    specs: Sequence[str] = (),
    *,
    recipes: Sequence[Path] = (),
    settings: Mapping[str, Any] | None = None,
) -> tuple[System, ...]:
    """Return the systems of `specs` (each `family` or `family:mechanism`), then those of the recipe files.

    `settings` (`section.name` → value) apply to all systems and take precedence over the files. If `settings`
    has a budget, it replaces every budget in the files.
    """
    settings = dict(settings or {})
    systems = [
        *(_from_spec(spec, settings) for spec in specs),
        *(_from_file(path, settings) for path in recipes),
    ]
    _check_names([system.name for system in systems])
    _check_budgets(systems)
    return tuple(systems)


def with_shared_settings(overrides: Overrides, first_recipe: Recipe) -> Overrides:
    """Return the overrides. Shared settings that are missing get the values of the first system."""
    first_values = flatten(first_recipe)
    return overrides.updated({name: first_values[name] for name in SHARED_SETTINGS if name not in overrides})


def describe_unequal_settings(recipes: Mapping[str, Recipe]) -> tuple[str, ...]:
    """Return one sentence per shared setting whose values differ."""
    settings = {system: flatten(recipe) for system, recipe in recipes.items()}
    sentences = []
    for name in SHARED_SETTINGS:
        values = {system: flat[name] for system, flat in settings.items()}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{system} {value}" for system, value in values.items())
            sentences.append(f"{name} is not the same: {listed}.")
    return tuple(sentences)


def _from_spec(spec: str, settings: Mapping[str, Any]) -> System:
    family, colon, mechanism = (part.strip() for part in spec.partition(":"))
    if not family or (colon and not mechanism):
        raise RecipeError(
            "A system is a model family, or a family and its attention, such as recurrent:bahdanau. "
            f"Received: {spec!r}. `jumok models` lists all of them."
        )
    name = f"{family}-{mechanism}" if mechanism else family
    try:
        overrides = Overrides.from_settings(**{**settings, "model.family": family})
        if mechanism:
            overrides = overrides.updated(attention_overrides(family, mechanism))
        check_overrides(overrides)
        _refuse_other_tasks(overrides)
    except RecipeError as error:
        raise _invalid_system(name, error) from None
    return System(name, overrides)


def _refuse_other_tasks(overrides: Overrides) -> None:
    if overrides.with_defaults().model.task != "translate":
        raise RecipeError(
            "Only models that write text for a source can be compared: the table scores translations and "
            f"captions. Here, {overrides.family} learns from plain text or names the classes of pictures. "
            "Train each such model with `jumok train`; `jumok evaluate MODEL TEXT_OR_FOLDER` scores them on "
            "the same data."
        )


def _from_file(path: Path, settings: Mapping[str, Any]) -> System:
    name = _system_name(path)
    nested = read_recipe(path)
    training = nested.get("training")
    if isinstance(training, dict) and any(f"training.{name}" in settings for name in BUDGET_NAMES):
        nested["training"] = {key: value for key, value in training.items() if key not in BUDGET_NAMES}
    try:
        overrides = Overrides.from_settings(nested, **settings)
        check_overrides(overrides)
        _refuse_other_tasks(overrides)
    except RecipeError as error:
        raise _invalid_system(name, error) from None
    return System(name, overrides)


def _system_name(path: Path) -> str:
    """Return `big` for `big.toml`; for the `recipe.toml` of a run folder, return the name of the folder."""
    name = path.resolve().parent.name if path.stem == "recipe" else path.stem
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "recipe"


def _invalid_system(name: str, error: RecipeError) -> RecipeError:
    return type(error)(f'The system "{name}" cannot be trained. {error}')


def _check_names(names: list[str]) -> None:
    if len(names) < 2:
        raise RecipeError(
            f"A comparison needs at least two systems. Received: {', '.join(names) or 'none'}. Name them "
            "with --attention none,bahdanau, with --system recurrent:none, or with --recipe a.toml."
        )
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise RecipeError(
            f"Every system needs a different name. Received more than once: {', '.join(duplicates)}. Leave "
            "one out, or rename its file."
        )
    reserved = sorted(RESERVED_NAMES.intersection(names))
    if reserved:
        raise RecipeError(
            f"A system cannot be called {' or '.join(reserved)}: the comparison itself uses that "
            "name. Rename the recipe."
        )


def _check_budgets(systems: Sequence[System]) -> None:
    budgets = {
        system.name: tuple(system.overrides.get(f"training.{name}") for name in BUDGET_NAMES)
        for system in systems
    }
    if not any(any(budget) for budget in budgets.values()):
        raise RecipeError(
            "A comparison needs a training budget, the same for each system. Set --minutes or --steps."
        )
    if len(set(budgets.values())) > 1:
        listed = "; ".join(f"{name}: {describe_budget(budget)}" for name, budget in budgets.items())
        raise RecipeError(
            f"The systems do not have the same budget. Received: {listed}. Set --minutes or --steps, which "
            "then applies to all."
        )


def describe_budget(budget: Sequence[float | None]) -> str:
    """Return the budget in words. `budget` has one limit for each of `BUDGET_NAMES`; None is no limit."""
    parts = [
        f"{value:.10g} {name}" for name, value in zip(BUDGET_NAMES, budget, strict=True) if value is not None
    ]
    return ", ".join(parts) or "no budget"
