"""The glossaries of a server. Each glossary is a file with a name, and requests select it by this name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.data.glossary_files import read_glossary
from jumok.errors import DataError, RecipeError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jumok.server.language_pairs import LanguagePairs
    from jumok.text.glossary import Glossary

    Languages = tuple[str, str]


class NamedGlossaries:
    """Glossaries by name. A file that names its languages serves both directions between them.

    Any other file serves every direction in which the server translates, except a direction for which the
    writing systems show that the terms and their translations are swapped.
    """

    def __init__(self, files: Sequence[tuple[str, Path]], pairs: LanguagePairs) -> None:
        self._by_name: dict[str, dict[Languages, Glossary]] = {}
        for name, path in files:
            if name in self._by_name:
                raise RecipeError(f"Two glossaries have the name {name!r}. Give each glossary its own name.")
            self._by_name[name] = _read(path, pairs)

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def check(self, name: str) -> None:
        """Raise a DataError if there is no glossary of this name."""
        if name not in self._by_name:
            available = ", ".join(self._by_name) or "none"
            raise DataError(
                f"there is no glossary {name[:40]!r}.{suggest(name, self.names)} The server has: {available}"
            )

    def get(self, name: str, source: str, target: str) -> Glossary:
        """Return the glossary of this name between two languages. Raise a DataError if there is none."""
        self.check(name)
        glossary = self._by_name[name].get((source, target))
        if glossary is None:
            raise DataError(f"the glossary {name!r} has no terms from {source[:40]} to {target[:40]}")
        return glossary


def _read(path: Path, pairs: LanguagePairs) -> dict[Languages, Glossary]:
    """Return the glossaries of a file for all directions in which the server translates.

    A direction for which the file has no terms is left out. If no direction is left, raise the first error.
    """
    glossaries: dict[Languages, Glossary] = {}
    errors: list[DataError] = []
    languages = [(source, target) for source in pairs.codes for target in pairs.targets(source)]
    for source, target in languages:
        if source != target:
            try:
                glossaries[source, target] = read_glossary(
                    path, source_language=source, target_language=target
                )
            except DataError as error:
                errors.append(error)
    if errors and not glossaries:
        raise errors[0]
    return glossaries
