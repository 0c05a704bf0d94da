"""Resolve overrides and derived settings into a recipe, with the reasons for the derived settings.

    overrides = Overrides.from_settings({"model": {"size": "tiny"}}, **{"training.minutes": 5})
    resolved = resolve(overrides, [DerivedSetting("model.dropout", 0.3, "29,000 pairs: …"), …])
    resolved.recipe      every setting has a value: the override, else the derived value, else the default
    resolved.reasons     the derived settings, each with its reason

`Overrides` and `Recipe` are two types, so that a default is never mistaken for something that a person set.
`derive.py` computes the derived settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from jumok.config.recipe import Recipe, flatten, make_recipe, merge_settings


class Overrides(Mapping[str, Any]):
    """The settings that a person has set: `section.name` → value, as it is written in TOML.

    Overrides cannot be changed. Every value is valid in a recipe. `jumok.models.validate.check_overrides`
    checks whether the values can be combined.
    """

    def __init__(self) -> None:
        """Make empty overrides. Use `from_settings` for overrides that are not empty."""
        self._values: dict[str, Any] = {}

    @classmethod
    def from_settings(cls, nested: Mapping[str, Any] | None = None, **settings: Any) -> Self:
        """Return the overrides in `nested`, updated with `settings` (`section.name=value`).

        None means "not set", and so does the size "auto".

        >>> dict(Overrides.from_settings({"model": {"size": "auto"}}, **{"training.minutes": 45}))
        {'training.minutes': 45.0}
        """
        merged = merge_settings(nested, settings)
        values = flatten(make_recipe(merged))
        names = [f"{section}.{name}" for section, part in merged.items() for name in dict(part)]
        return cls._of({name: values[name] for name in names})

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> Self:
        """Return overrides that set every setting to its value in the recipe."""
        return cls._of(flatten(recipe))

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Self:
        overrides = cls()
        overrides._values = {name: value for name, value in values.items() if value is not None}
        return overrides

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Overrides({self._values!r})"

    @property
    def family(self) -> str:
        """The model family; the default is the Transformer."""
        return str(self.get("model.family", "transformer"))

    def updated(self, settings: Mapping[str, Any]) -> Self:
        """Return these overrides updated with `settings`, `section.name` → value. None has no effect."""
        return self.from_settings(self.nested(), **settings)

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return section → name → value, as in a recipe file."""
        sections: dict[str, dict[str, Any]] = {}
        for path, value in self._values.items():
            section, _, name = path.partition(".")
            sections.setdefault(section, {})[name] = value
        return sections

    def with_defaults(self) -> Recipe:
        """Return a recipe of these overrides and the defaults of all other settings. Nothing is derived."""
        return make_recipe(self.nested())


@dataclass(frozen=True, slots=True)
class DerivedSetting:
    """The name of a setting (`section.name`), its derived value, and the reason for the value."""

    name: str
    value: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """Overrides, the recipe resolved from them so far, and the reasons for derived settings."""

    overrides: Overrides
    recipe: Recipe
    reasons: tuple[DerivedSetting, ...] = ()

    def with_derived(self, derived: Iterable[DerivedSetting]) -> Resolved:
        """Apply derived settings, except those that the person has set; return the result."""
        applied = [setting for setting in derived if setting.name not in self.overrides]
        recipe = with_settings(self.recipe, {setting.name: setting.value for setting in applied})
        return replace(self, recipe=recipe, reasons=(*self.reasons, *applied))

    def with_reasons(self, reasons: Iterable[DerivedSetting]) -> Resolved:
        """Add reasons, without changing the recipe; return the result."""
        return replace(self, reasons=(*self.reasons, *reasons))

    def corrected(self, setting: DerivedSetting) -> Resolved:
        """Replace a value in the recipe, even if the person has set the value; return the result."""
        reasons = {reason.name: reason for reason in self.reasons} | {setting.name: setting}
        recipe = with_settings(self.recipe, {setting.name: setting.value})
        return replace(self, recipe=recipe, reasons=tuple(reasons.values()))

    def reason_for(self, name: str) -> str:
        """Return why a setting was derived; "" if it was not."""
        return next((setting.reason for setting in self.reasons if setting.name == name), "")


def resolve(overrides: Overrides, derived: Iterable[DerivedSetting] = ()) -> Resolved:
    """Return the recipe of overrides and derived settings. A derived value never replaces an override."""
    return Resolved(overrides, overrides.with_defaults()).with_derived(derived)


def with_settings(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """Return a recipe with other values of some settings, `section.name` → value."""
    return make_recipe(recipe.model_dump(), **settings) if settings else recipe


def differences(overrides: Overrides, recipe: Recipe) -> list[tuple[str, Any, Any]]:
    """Return (name, override, value in the recipe) for each override that differs from the recipe."""
    values = flatten(recipe)
    return [(name, value, values.get(name)) for name, value in overrides.items() if value != values.get(name)]
