"""The settings that the user set, checked before anything is read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.config.recipe import make_recipe, setting_names
from jumok.config.renamed import RENAMED_SETTINGS, current_name
from jumok.errors import RecipeError, suggest
from jumok.models import check_recipe, fill_max_keys
from jumok.text import language_code
from jumok.training.run.start_model import check_fine_tuning

if TYPE_CHECKING:
    from jumok.config.recipe import Recipe, TrainingSettings

__all__ = ["make_overrides"]


def make_overrides(recipe: Recipe | None, settings: dict[str, Any]) -> Recipe:
    """Return `recipe` updated with `settings`, checked. Only the fields that the user set are set."""
    nested = recipe.model_dump(exclude_unset=True) if recipe is not None else {}
    overrides = make_recipe(nested, **{_full_name(name): value for name, value in settings.items()})
    codes = {f"languages.{side}": language_code(name) for side, name in overrides.languages if name}
    overrides = make_recipe(overrides.model_dump(exclude_unset=True), **codes)  # "Korean" and "kor" are ko
    _check_run_ends(overrides.training)
    check_fine_tuning(overrides)
    check_recipe(overrides)
    return fill_max_keys(overrides)


def _check_run_ends(training: TrainingSettings) -> None:
    """Raise if nothing would ever end the run, or if a cosine schedule has no last step."""
    if (training.steps, training.epochs, training.minutes) != (None, None, None):
        return
    if "patience" in training.model_fields_set and training.patience == 0:
        raise RecipeError(
            "This run would never end: training.patience is 0 and neither steps, epochs nor minutes are set. "
            "Set one of them."
        )
    if "schedule" in training.model_fields_set and training.schedule == "cosine":
        raise RecipeError(
            'The schedule "cosine" falls to zero at the last step, but nothing says when that is. '
            'Set steps, epochs or minutes, or choose "inverse-sqrt".'
        )


def _full_name(name: str) -> str:
    """Return the name with its section (`minutes` → `training.minutes`)."""
    if "." in name:
        return name
    known = setting_names()
    old = [full for full, new in RENAMED_SETTINGS.items() if new in known]
    matches = [full for full in (*known, *old) if full.partition(".")[2] == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RecipeError(
            f"There are several settings called {name!r}: {', '.join(map(current_name, matches))}. "
            "Name one in full."
        )
    short = [full.partition(".")[2] for full in known]
    raise RecipeError(f"There is no setting called {name!r}.{suggest(name, short)}")
