"""The language pairs of the loaded models, and paths between languages through pivots."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError, UnsupportedError
from jumok.storage.model_folder import read_stored_model
from jumok.text.languages import language_name
from jumok.text.sentences import sentences_for_texts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jumok.text.sentences import Sentences

__all__ = ["LanguagePair", "LanguagePairs", "PivotPath", "read_language_pairs"]


_LANGUAGE_CODE = re.compile(r"(?!auto$)[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LanguagePair:
    """The languages of one model. `model_index` is its index on the command line."""

    model_index: int
    source: str
    target: str
    sentences: Sentences = "split"
    """Whether its texts are split into sentences, or their lines kept whole."""

    @property
    def name(self) -> str:
        """The pair as written in URLs."""
        return f"{self.source}_{self.target}"


PivotPath = tuple[LanguagePair, ...]
"""The models that translate one after another; empty if source and target are the same language."""


class LanguagePairs:
    """The language pairs of all models, and the shortest path from one language to another."""

    def __init__(self, pairs: Sequence[LanguagePair]) -> None:
        self.all = tuple(pairs)
        self._by_source: dict[str, list[LanguagePair]] = {}
        for pair in pairs:
            self._by_source.setdefault(pair.source, []).append(pair)
        self.codes = list(dict.fromkeys(code for pair in pairs for code in (pair.source, pair.target)))

    def pivot_path(self, source: str, target: str) -> PivotPath | None:
        """Return the shortest chain of models from one language to another; None if there is none."""
        paths: dict[str, PivotPath] = {source: ()}
        queue = deque([source])
        while queue and target not in paths:
            language = queue.popleft()
            for pair in self._by_source.get(language, ()):
                if pair.target not in paths:
                    paths[pair.target] = (*paths[language], pair)
                    queue.append(pair.target)
        return paths.get(target)

    def targets(self, source: str) -> list[str]:
        """Return the languages that a language can be translated into, itself included, as clients expect."""
        return [code for code in self.codes if self.pivot_path(source, code) is not None]

    def sources(self, target: str) -> list[str]:
        """Return the languages that can be translated into a language."""
        return [code for code in self.codes if self.pivot_path(code, target) is not None]

    def to_json(self) -> list[dict[str, object]]:
        """Return the response of `/languages`."""
        return [
            {"code": code, "name": language_name(code), "targets": self.targets(code)} for code in self.codes
        ]


def read_language_pairs(folders: Sequence[Path]) -> LanguagePairs:
    """Read the languages of model folders; each must name both, and no pair may occur twice."""
    folder_of: dict[tuple[str, str], Path] = {}
    pairs = []
    for index, folder in enumerate(folders):
        card = read_stored_model(folder).card
        recipe = card.recipe
        if recipe.source.kind == "pictures":
            raise UnsupportedError(
                f"The model in {folder} reads pictures, which `jumok serve` does not serve. "
                f"`jumok translate {folder} picture.png` runs it on the command line."
            )
        if recipe.model.task != "translate":
            raise ModelFolderError(
                f"{folder} holds a model of plain text ({recipe.model.task}), which does not translate. "
                "A server needs a model that was trained on sentence pairs."
            )
        languages = recipe.languages
        codes = (languages.source, languages.target)
        if not all(codes):
            raise ModelFolderError(
                f"{folder} does not say which languages it translates between. Train it with --from and --to."
            )
        if codes[0] == codes[1] or not all(map(_LANGUAGE_CODE.fullmatch, codes)):
            raise ModelFolderError(
                f"{folder} translates from {codes[0][:40]!r} to {codes[1][:40]!r}. A server needs two "
                "languages, each with a code such as en or pt-BR. Train it with --from and --to."
            )
        if codes in folder_of:
            raise ModelFolderError(
                f"{folder_of[codes]} and {folder} both translate {codes[0]} → {codes[1]}. Name only one."
            )
        folder_of[codes] = folder
        pairs.append(LanguagePair(index, *codes, sentences_for_texts(card.facts)))
    return LanguagePairs(pairs)
