"""Which languages the loaded models translate between, directly or through a third language."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.corpus.languages import language_name
from jumok.errors import ModelFolderError
from jumok.storage import read_stored_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Direction", "Directions", "read_directions"]


_CODE = re.compile(r"(?!auto$)[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Direction:
    """What one model does. `number` is its place on the command line."""

    number: int
    source: str
    target: str

    @property
    def name(self) -> str:
        """As it stands in addresses."""
        return f"{self.source}_{self.target}"


class Directions:
    """All directions of a server, and the shortest way from one language to another."""

    def __init__(self, directions: Sequence[Direction]) -> None:
        self.all = tuple(directions)
        self._by_source: dict[str, list[Direction]] = {}
        for direction in directions:
            self._by_source.setdefault(direction.source, []).append(direction)
        ends = [code for direction in directions for code in (direction.source, direction.target)]
        self.codes = list(dict.fromkeys(ends))

    def route(self, source: str, target: str) -> list[Direction] | None:
        """The models to go through, one after the other; [] from a language to itself, None without a way."""
        ways: dict[str, list[Direction]] = {source: []}
        waiting = deque([source])
        while waiting and target not in ways:
            here = waiting.popleft()
            for direction in self._by_source.get(here, ()):
                if direction.target not in ways:
                    ways[direction.target] = [*ways[here], direction]
                    waiting.append(direction.target)
        return ways.get(target)

    def targets(self, source: str) -> list[str]:
        """What a language can be translated into; itself is among them, as clients expect."""
        return [code for code in self.codes if self.route(source, code) is not None]

    def sources(self, target: str) -> list[str]:
        """What can be translated into a language."""
        return [code for code in self.codes if self.route(code, target) is not None]

    def listed(self) -> list[dict[str, object]]:
        """As `/languages` tells it."""
        return [
            {"code": code, "name": language_name(code), "targets": self.targets(code)} for code in self.codes
        ]


def read_directions(folders: Sequence[Path]) -> Directions:
    """The directions of model folders; each must say its languages, and no direction may come twice."""
    found: dict[tuple[str, str], Path] = {}
    directions = []
    for number, folder in enumerate(folders):
        languages = read_stored_model(folder).card.recipe.languages
        pair = (languages.source, languages.target)
        if not all(pair):
            raise ModelFolderError(
                f"{folder} does not say which languages it translates between. Train it with --from and --to."
            )
        if pair[0] == pair[1] or not all(map(_CODE.fullmatch, pair)):
            raise ModelFolderError(
                f"{folder} translates from {pair[0][:40]!r} to {pair[1][:40]!r}. A server needs two "
                "languages, each with a code such as en or pt-BR. Train it with --from and --to."
            )
        if pair in found:
            raise ModelFolderError(
                f"{found[pair]} and {folder} both translate {pair[0]} → {pair[1]}. Name one of them."
            )
        found[pair] = folder
        directions.append(Direction(number, *pair))
    return Directions(directions)
