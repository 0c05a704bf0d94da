"""Look up settings of an untrusted model, and check their types and ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.errors import ModelFolderError
    from jumok.interop.package import Package


class SettingsTable:
    """The settings in one file of a package.

    The methods raise an error if a value has another type or a number is out of range. Only `text` returns
    its default if the value has another type.
    """

    def __init__(self, package: Package, file: str, values: Mapping[str, Any]) -> None:
        self._package = package
        self._file = file
        self._values = values

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(name, f"a whole number from {low:,} to {high:,}")
        return value

    def number(self, name: str, low: float, high: float, default: float) -> float:
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self.wrong(name, f"a number from {low:g} to {high:g}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def text(self, name: str, default: str = "") -> str:
        """Return a text, or the default if the value has another type."""
        value = self._values.get(name, default)
        return value if isinstance(value, str) else default

    def require(self, name: str, supported: Any, default: Any, why: str) -> None:
        """Raise an error if a setting differs from `supported`, the only value that jumok supports."""
        value = self._values.get(name, default)
        if value != supported:
            raise self._package.refusal(
                f"{self._file} says {name} = {_to_text(value)}: {why}", "Import a model without this setting."
            )

    def wrong(self, name: str, expected: str) -> ModelFolderError:
        received = _to_text(self._values[name]) if name in self._values else "nothing"
        return self._package.refusal(f"{name} in {self._file} must be {expected}. Received: {received}")


def _to_text(value: Any) -> str:
    try:
        return f"{value!r:.60}"
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return "a very large number"
