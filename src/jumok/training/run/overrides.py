"""The settings that the user set, checked before anything is read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.config.recipe import Recipe, setting_names
from jumok.config.renamed import RENAMED_SETTINGS, current_name
from jumok.config.resolve import Overrides
from jumok.errors import RecipeError, suggest
from jumok.models.validate import check_overrides, set_max_keys_of_mechanisms
from jumok.text.languages import language_code
from jumok.training.run.start_model import check_fine_tuning

if TYPE_CHECKING:
    from collections.abc import Mapping


def make_overrides(recipe: Overrides | Recipe | None, settings: Mapping[str, Any]) -> Overrides:
    """Return the overrides in `recipe`, updated with `settings` and checked.

    If `recipe` is a `Recipe`, only the fields that the caller has set count as overrides.
    """
    if isinstance(recipe, Recipe):
        recipe = Overrides.from_settings(recipe.model_dump(exclude_unset=True))
    overrides = recipe if recipe is not None else Overrides()
    overrides = overrides.updated({_full_name(name): value for name, value in settings.items()})
    languages = {name: overrides.get(name) for name in ("languages.source", "languages.target")}
    codes = {name: language_code(word) for name, word in languages.items() if word}
    overrides = overrides.updated(codes)  # "Korean" and "kor" are ko
    _check_run_ends(overrides)
    check_fine_tuning(overrides)
    check_overrides(overrides)
    return set_max_keys_of_mechanisms(overrides)


def _check_run_ends(overrides: Overrides) -> None:
    """Raise if nothing would ever end the run, or if a cosine schedule has no last step."""
    if overrides.keys() & {"training.steps", "training.epochs", "training.minutes"}:
        return
    if overrides.get("training.patience") == 0:
        raise RecipeError(
            "This run would never end: training.patience is 0 and neither steps, epochs nor minutes are set. "
            "Set one of them."
        )
    if overrides.get("training.schedule") == "cosine":
        raise RecipeError(
            'The schedule "cosine" falls to zero at the last step, but nothing says when that is. '
            'Set steps, epochs or minutes, or choose "inverse-sqrt".'
        )


def _full_name(name: str) -> str:
    """Return the name with its section (`minutes` → `training.minutes`)."""
    if "." in name:
        return name
    names = setting_names()
    old_names = [full for full, new in RENAMED_SETTINGS.items() if new in names]
    matches = [full for full in (*names, *old_names) if full.partition(".")[2] == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RecipeError(
            f"There are several settings called {name!r}: {', '.join(map(current_name, matches))}. "
            "Name one in full."
        )
    short_names = [full.partition(".")[2] for full in names]
    raise RecipeError(f"There is no setting called {name!r}.{suggest(name, short_names)}")
