"""The choice of the device and the precision for a new run, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.config.resolve import DerivedSetting
from jumok.system.device import choose_device

if TYPE_CHECKING:
    from jumok.config.resolve import Overrides, Resolved


def check_device(overrides: Overrides) -> None:
    """Raise if this machine lacks the device or precision that was set, before the corpus is read."""
    device, precision = _requested_device(overrides)
    if (device, precision) != ("auto", "auto"):
        choose_device(device, precision)


def derive_device(resolved: Resolved) -> Resolved:
    """Choose the device and the precision, unless the user set them."""
    device, precision = _requested_device(resolved.overrides)
    config = choose_device(device, precision, minutes=resolved.recipe.training.minutes or 0.0)
    derived = [DerivedSetting("training.device", config.device, config.reason)]
    if config.precision != "fp32":
        derived.append(DerivedSetting("training.precision", config.precision, config.reason))
    return resolved.with_derived(derived)


def _requested_device(overrides: Overrides) -> tuple[str, str]:
    """Return the device and the precision that the user set; "auto" for what was not set."""
    return overrides.get("training.device", "auto"), overrides.get("training.precision", "auto")
