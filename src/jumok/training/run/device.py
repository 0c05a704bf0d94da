"""The device and the precision of a new run, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.config.derive import DerivedSetting
from jumok.config.recipe import make_recipe
from jumok.system.device import choose_device

if TYPE_CHECKING:
    from jumok.config.recipe import Recipe

__all__ = ["derive_device"]


def derive_device(recipe: Recipe, overrides: Recipe) -> tuple[Recipe, list[DerivedSetting]]:
    """Return the recipe with its device and precision, and why, if the user did not set both."""
    given = overrides.training
    device, precision = (
        getattr(given, name) if name in given.model_fields_set else "auto" for name in ("device", "precision")
    )
    config = choose_device(device, precision, minutes=given.minutes or 0.0)
    chosen = {"training.device": config.device, "training.precision": config.precision}
    derived = []
    if device == "auto":
        derived.append(DerivedSetting("training.device", config.device, config.reason))
    if precision == "auto" and config.precision != "fp32":
        derived.append(DerivedSetting("training.precision", config.precision, config.reason))
    return make_recipe(recipe.model_dump(exclude_unset=True), **chosen), derived
