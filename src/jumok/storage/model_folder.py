"""The model folder: a card (`jumok.json`), the weights, the vocabularies, and perhaps a shortlist."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jumok.errors import ModelFolderError, RecipeError, StorageError
from jumok.recipe import Recipe, make_recipe
from jumok.storage.folders import (
    check_name,
    checked_json,
    damaged,
    line_of,
    read_listed,
    read_manifest,
    write_file,
    write_folder,
)
from jumok.storage.tensors import tensors_from_bytes, tensors_to_bytes
from jumok.values import ReadOut  # noqa: TC001 - pydantic reads the type when the program runs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

__all__ = [
    "VOCABULARY_FILES",
    "CorpusRecord",
    "ModelCard",
    "ScoreRecord",
    "StoredModel",
    "jumok_version",
    "read_model_folder",
    "read_stored_model",
    "save_model",
    "store_shortlist",
]

MODEL_FORMAT = 2
CARD = "jumok.json"
WEIGHTS = "weights.safetensors"
VOCABULARY_FILES = ("pieces.model", "source.model", "target.model")
SHORTLIST = "shortlist.txt"


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score and the signature that says how it was computed; one without the other cannot be compared."""

    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """Which sentences a model has seen: enough to recognise them, not to rebuild them."""

    name: str
    pairs: int
    fingerprint: str


def jumok_version() -> str:
    """The installed version, which a model folder remembers."""
    try:
        return version("jumok")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What `jumok.json` says of a model. The languages are those of its recipe."""

    recipe: Recipe
    scores: Mapping[str, ScoreRecord] = field(default_factory=dict)
    read_out: ReadOut | None = None
    corpora: tuple[CorpusRecord, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    created_by: str = field(default_factory=jumok_version)
    plan: tuple[tuple[int, int | None], ...] = ()
    """How many steps were planned, from which step on (`training.schedule.Plan`); empty where not known."""


def save_model(
    folder: Path,
    card: ModelCard,
    weights: Mapping[str, Tensor],
    vocabularies: Mapping[str, bytes],
    *,
    intact: str = "Nothing that was there before has been touched.",
) -> None:
    """Write a model folder. `vocabularies` is file name → bytes: `pieces.model`, or one file a side."""
    _check_vocabularies(folder, vocabularies)
    if folder.exists():
        raise StorageError(f"{folder} exists already. Choose another name, or move the old model away.")
    files = [*vocabularies.items(), (WEIGHTS, tensors_to_bytes(weights))]
    write_folder(folder, files, facts=_card_to_json(card), manifest=CARD, intact=intact)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model folder as it was read: verified, its weights not yet made into tensors, which needs torch."""

    folder: Path
    card: ModelCard
    vocabularies: Mapping[str, bytes]  # file name → bytes
    weights_line: Mapping[str, Any]  # what the card says of the weights: sha256 and size
    weights_bytes: bytes | None
    shortlist: bytes | None = None

    def weights(self) -> dict[str, Tensor]:
        """The weights as tensors; read again, and verified again, where they were let go of."""
        data = self.weights_bytes or read_listed(self.folder, WEIGHTS, self.weights_line)
        return tensors_from_bytes(data, self.folder / WEIGHTS)

    def without_weights(self) -> StoredModel:
        """The same, with the memory of the weights let go of."""
        return replace(self, weights_bytes=None)


def read_model_folder(folder: Path) -> tuple[ModelCard, dict[str, Tensor], dict[str, bytes]]:
    """The card, the weights and the vocabulary files of a model folder, all verified."""
    stored = read_stored_model(folder)
    return stored.card, stored.weights(), dict(stored.vocabularies)


def read_stored_model(folder: Path) -> StoredModel:
    """A model folder with every file verified. This needs no torch."""
    if not (folder / CARD).exists():
        _refuse_foreign(folder)
    content = read_manifest(folder / CARD)
    _check_format(folder, content.get("format"))
    listed = content["files"]
    for name in listed:
        check_name(folder, name)
        if name not in (known := (WEIGHTS, SHORTLIST, *VOCABULARY_FILES)):
            raise ModelFolderError(
                f"{folder} lists a file that a model of format {MODEL_FORMAT} does not have. "
                f"Received: {name!r}. Known: {', '.join(known)}."
            )
    _check_vocabularies(folder, {name: b"" for name in listed if name not in (WEIGHTS, SHORTLIST)})
    if WEIGHTS not in listed:
        raise ModelFolderError(damaged(folder / WEIGHTS, "the card does not list it"))
    card = _card_from_json(folder, content)
    data = {name: read_listed(folder, name, line) for name, line in listed.items()}
    weights, shortlist = data.pop(WEIGHTS), data.pop(SHORTLIST, None)
    return StoredModel(folder, card, data, listed[WEIGHTS], weights, shortlist)


def store_shortlist(folder: Path, shortlist: bytes, facts: Mapping[str, float | str]) -> None:
    """Add a shortlist to a model folder, or replace it, with what was measured of it.

    The card names the shortlist only while the file it names is there: whoever is killed in the middle leaves
    a whole model folder, with it or without.
    """
    read_stored_model(folder)
    content = read_manifest(folder / CARD)
    intact = "The model itself is intact."
    content["files"].pop(SHORTLIST, None)
    content["facts"] = {name: value for name, value in content["facts"].items() if name not in facts}
    write_file(folder / CARD, checked_json(content), intact=intact)
    write_file(folder / SHORTLIST, shortlist, intact=intact)
    content["files"][SHORTLIST] = line_of(shortlist)
    content["facts"].update(facts)
    write_file(folder / CARD, checked_json(content), intact=intact)


def _check_format(folder: Path, found: object) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ModelFolderError(damaged(folder / CARD, f"its format version is {found!r}"))
    if found > MODEL_FORMAT:
        raise ModelFolderError(
            f"{folder} was made by a newer jumok. Received format {found}; this one ({jumok_version()}) "
            f"reads up to {MODEL_FORMAT}. Install a newer jumok: pip install -U jumok."
        )
    if found < MODEL_FORMAT:
        raise ModelFolderError(
            f"{folder} was made by an older jumok. Received format {found}; this one ({jumok_version()}) "
            f"reads {MODEL_FORMAT}. Train the model again from its pairs, or use the version that made it."
        )


def _check_vocabularies(folder: Path, vocabularies: Mapping[str, bytes]) -> None:
    if sorted(vocabularies) not in (["pieces.model"], ["source.model", "target.model"]):
        raise ModelFolderError(
            f"{folder}: a model needs pieces.model, or source.model and target.model. "
            f"Received: {', '.join(sorted(vocabularies)) or 'none'}."
        )


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        raise ModelFolderError(f"There is no folder {folder}. Give the model/ folder of a run.")
    if not folder.is_dir():
        raise ModelFolderError(
            f"{folder} is a file; a model is a folder. Give the model/ folder that `jumok train` wrote."
        )
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "") if names else "an empty folder"
    inside = f" Did you mean {folder / 'model'}?" if (folder / "model" / CARD).exists() else ""
    raise ModelFolderError(f"{folder} is not a jumok model folder (no {CARD}). Received: {shown}.{inside}")


def _card_to_json(card: ModelCard) -> dict[str, Any]:
    languages = card.recipe.languages
    return {
        "format": MODEL_FORMAT,
        "created_by": card.created_by,
        "languages": {"source": languages.source, "target": languages.target},
        "scores": {name: asdict(score) for name, score in card.scores.items()},
        "read_out": asdict(card.read_out) if card.read_out else None,
        "corpora": [asdict(corpus) for corpus in card.corpora],
        "facts": dict(card.facts),
        "plan": card.plan,
        "recipe": card.recipe.model_dump(mode="json", exclude_none=True),
    }


class _StoredCard(BaseModel):
    """The types of what a card says: whoever shows or uses it need not ask again."""

    model_config = ConfigDict(allow_inf_nan=False)

    recipe: dict[str, Any]
    scores: dict[str, ScoreRecord]
    read_out: ReadOut | None
    corpora: tuple[CorpusRecord, ...]
    facts: dict[str, str | int | float | bool | None]
    created_by: str
    plan: tuple[tuple[int, int | None], ...] = ()


def _card_from_json(folder: Path, content: Mapping[str, Any]) -> ModelCard:
    try:
        stored = _StoredCard.model_validate(content)
        recipe = make_recipe(stored.recipe)
    except RecipeError as error:
        raise ModelFolderError(damaged(folder / CARD, f"its recipe does not hold. {error}")) from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"][:3])
        reason = f"a part is missing or odd: {where} is {fault['input']!r:.60}"
        raise ModelFolderError(damaged(folder / CARD, reason)) from None
    return ModelCard(
        recipe,
        stored.scores,
        stored.read_out,
        stored.corpora,
        stored.facts,
        stored.created_by,
        stored.plan,
    )
