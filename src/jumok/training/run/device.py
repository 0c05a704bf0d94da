"""The device and the precision of a new run, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.config.resolve import DerivedSetting
from jumok.system.device import choose_device

if TYPE_CHECKING:
    from jumok.config.resolve import Resolved


def derive_device(resolved: Resolved) -> Resolved:
    """Choose device and precision, except what the person set."""
    device, precision = (
        resolved.overrides.get(f"training.{name}", "auto") for name in ("device", "precision")
    )
    config = choose_device(device, precision, minutes=resolved.recipe.training.minutes or 0.0)
    derived = [DerivedSetting("training.device", config.device, config.reason)]
    if config.precision != "fp32":
        derived.append(DerivedSetting("training.precision", config.precision, config.reason))
    return resolved.with_derived(derived)
