"""The language pairs of the loaded models, and paths between languages through pivot languages.

A model that writes captions has no source language, so no path contains it. It is looked up by its target.
"""

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

    from jumok.config.recipe import Recipe
    from jumok.text.sentences import Sentences


# In requests, "auto" asks the server to detect the language, so it is no code.
_LANGUAGE_CODE = re.compile(r"(?!auto$)[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LanguagePair:
    """The languages of one model. If the model writes captions, `source` is "".

    `model_index` is the model's index on the command line.
    """

    model_index: int
    source: str
    target: str
    sentences: Sentences = "split"
    """How texts are divided for this model: "split" into sentences, or "keep" each line in one piece."""

    @property
    def name(self) -> str:
        """The pair as written in URLs."""
        return f"{self.source}_{self.target}"


PivotPath = tuple[LanguagePair, ...]
"""The pairs of the models that translate one after another. Empty if source and target are the same."""


class LanguagePairs:
    """The language pairs of all models, and the shortest path from one language to another."""

    def __init__(self, model_pairs: Sequence[LanguagePair]) -> None:
        self.model_pairs = tuple(model_pairs)
        """The pair of each model, in the order of the command line."""
        self.text_pairs = pairs = tuple(pair for pair in model_pairs if pair.source)
        """The pairs of the models that translate text."""
        self.captions = {pair.target: pair for pair in model_pairs if not pair.source}
        """The pairs of the models that write captions, by the language of the captions."""
        self._by_source: dict[str, list[LanguagePair]] = {}
        for pair in pairs:
            self._by_source.setdefault(pair.source, []).append(pair)
        self.codes = list(dict.fromkeys(code for pair in pairs for code in (pair.source, pair.target)))
        """The languages of the models that translate text."""

    @property
    def languages_of_models(self) -> list[tuple[str, str]]:
        """The source and the target of each model, in the order of the command line."""
        return [(pair.source, pair.target) for pair in self.model_pairs]

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
        """Return the languages into which `source` can be translated.

        `source` is one of them, because clients of LibreTranslate expect this.
        """
        return [code for code in self.codes if self.pivot_path(source, code) is not None]

    def sources(self, target: str) -> list[str]:
        """Return the languages that can be translated into `target`. `target` is one of them."""
        return [code for code in self.codes if self.pivot_path(code, target) is not None]

    def to_json(self) -> list[dict[str, object]]:
        """Return the response of `/languages`."""
        return [
            {"code": code, "name": language_name(code), "targets": self.targets(code)} for code in self.codes
        ]


def read_language_pairs(folders: Sequence[Path]) -> LanguagePairs:
    """Read the languages of model folders.

    Each folder must name its languages, no pair may occur twice, and at least one model must translate text.
    """
    folder_of: dict[tuple[str, str], Path] = {}
    model_pairs = []
    for index, folder in enumerate(folders):
        card = read_stored_model(folder).card
        source, target = languages = _languages_of(folder, card.recipe)
        if languages in folder_of:
            task = f"translate {source} → {target}" if source else f"write captions in {target}"
            raise ModelFolderError(f"{folder_of[languages]} and {folder} both {task}. Name only one.")
        folder_of[languages] = folder
        model_pairs.append(LanguagePair(index, source, target, sentences_for_texts(card.facts)))
    pairs = LanguagePairs(model_pairs)
    if not pairs.text_pairs:
        raise UnsupportedError(
            "All of these models read pictures. A server needs at least one model that translates text; then "
            "it can also serve `/v1/caption`. To caption a picture without a server, run `jumok translate "
            "MODEL picture.png`."
        )
    return pairs


def _languages_of(folder: Path, recipe: Recipe) -> tuple[str, str]:
    """Return the source and the target of a model. If the model writes captions, the source is ""."""
    reads_pictures = recipe.source.kind == "pictures"
    task = recipe.model.task
    if task != "translate":
        kind = "a classifier of pictures" if reads_pictures else f"a model of plain text ({task})"
        raise ModelFolderError(
            f"{folder} holds {kind}, which does not translate. A server needs a model that was trained on "
            "sentence pairs, or on pictures with captions."
        )
    source, target = codes = ("" if reads_pictures else recipe.languages.source, recipe.languages.target)
    if reads_pictures and not _LANGUAGE_CODE.fullmatch(target):
        raise ModelFolderError(
            f"{folder} does not say in which language it writes captions. Received: {target[:40]!r}. Train "
            "it with --to and a code such as en or pt-BR."
        )
    if not target or not (source or reads_pictures):
        raise ModelFolderError(
            f"{folder} does not say which languages it translates between. Train it with --from and --to."
        )
    if source == target or not all(map(_LANGUAGE_CODE.fullmatch, filter(None, codes))):
        raise ModelFolderError(
            f"{folder} translates from {source[:40]!r} to {target[:40]!r}. A server needs two "
            "languages, each with a code such as en or pt-BR. Train it with --from and --to."
        )
    return codes
