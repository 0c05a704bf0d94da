"""The model folder: a card (`jumok.json`), the weights, the tokenizers and optionally a shortlist."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jumok.config.recipe import Recipe, make_stored_recipe
from jumok.errors import JumokError, ModelFolderError, RecipeError, StorageError, UnsupportedError
from jumok.storage.folders import (
    OpenFile,
    check_file_name,
    checksum,
    damage_message,
    json_with_checksum,
    manifest_entry,
    read_listed_file,
    read_manifest,
    write_file,
    write_folder,
)
from jumok.storage.tensors import check_finite, tensors_from_bytes, tensors_to_bytes
from jumok.storage.user_cache import is_checked, remember_checked
from jumok.types import ReadOut  # noqa: TC001 - pydantic needs the type at run time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

MODEL_FORMAT = 2
CARD = "jumok.json"
WEIGHTS = "weights.safetensors"
SHARED_VOCABULARY = ("pieces.model",)
SEPARATE_VOCABULARIES = ("source.model", "target.model")
IMPORTED_VOCABULARY = ("source.spm", "target.spm", "vocabulary.json")
CONVERTED_MODEL = "model.bin"
CONVERTED_FILES = (
    CONVERTED_MODEL,
    "config.json",
    "shared_vocabulary.json",
    "source_vocabulary.json",
    "target_vocabulary.json",
)
"""The files of a model that only CTranslate2 runs; they take the place of the weights."""
SHORTLIST = "shortlist.txt"
README = "README.md"
RUN_RECORD, MODEL = "run.json", "model"
"""The record of a run, which makes a folder a run folder, and the model folder in it."""
MAX_REPLACEMENTS, SECONDS_TO_REPLACE = 3, 0.02
"""While a model is being read, a training run may replace its folder this many times. After a failed attempt,
the reader waits SECONDS_TO_REPLACE seconds."""
_VOCABULARIES = (SHARED_VOCABULARY, SEPARATE_VOCABULARIES, IMPORTED_VOCABULARY)
_OPTIONAL_FILES = (SHORTLIST, README)


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score and the signature of its computation: only scores with equal signatures can be compared."""

    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """A corpus that a model was trained on: enough to recognise it, not to rebuild it.

    `fingerprint` is a digest of its pairs.
    """

    name: str
    pairs: int
    fingerprint: str


def jumok_version() -> str:
    """Return the installed version, which is stored in model folders."""
    try:
        return version("jumok")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The content of `jumok.json`, which describes a model. The languages of the model are in the recipe.

    `read_out` says how word alignments are read from cross-attention. `facts` has numbers and texts about the
    model by name. `created_by` is a version of jumok.
    """

    recipe: Recipe
    scores: Mapping[str, ScoreRecord] = field(default_factory=dict)
    read_out: ReadOut | None = None
    corpora: tuple[CorpusRecord, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    created_by: str = field(default_factory=jumok_version)
    plan: tuple[tuple[int, int | None], ...] = ()
    """The revisions of the training plan (`revisions` of `training.loop.schedule.Plan`); empty if unknown."""


def save_model(
    folder: Path,
    card: ModelCard,
    weights: Mapping[str, Tensor],
    tokenizers: Mapping[str, bytes],
    *,
    readme: str | None = None,
    checked: bool = False,
    failure_note: str = "Nothing that was there before has been touched.",
    replace: bool = False,
) -> None:
    """Write a model folder. `tokenizers` is file name → bytes (`text/tokenizer_files.py`).

    `README.md` describes the model to people. `readme` is its text; by default the text is made from the
    card. `checked` puts the folder on the user's list of checked models; it is set if this process has
    trained the model. `replace` replaces a folder that exists.
    """
    _check_tokenizers(folder, tokenizers)
    if folder.exists() and not replace:
        raise StorageError(f"{folder} exists already. Choose another name, or move the old model away.")
    if readme is None:
        from jumok.storage.readme import describe_model  # start-up

        readme = describe_model(card)
    files = [*tokenizers.items(), (WEIGHTS, tensors_to_bytes(weights)), (README, readme.encode())]
    metadata = card_to_json(card)
    write_folder(folder, files, metadata=metadata, manifest=CARD, failure_note=failure_note, replace=replace)
    if checked:
        with suppress(JumokError):  # the model is stored, even if its card cannot be read now
            _remember(checksum(read_manifest(folder / CARD)))


def save_converted_model(
    folder: Path, card: ModelCard, files: Mapping[str, bytes], tokenizers: Mapping[str, bytes], *, readme: str
) -> None:
    """Write the folder of a model that only CTranslate2 runs. `files` are the files of CTranslate2."""
    _check_tokenizers(folder, tokenizers)
    if folder.exists():
        raise StorageError(f"{folder} exists already. Choose another name, or move the old model away.")
    listed = [*tokenizers.items(), *files.items(), (README, readme.encode())]
    write_folder(folder, listed, metadata=card_to_json(card), manifest=CARD)


def _remember(digest: str) -> None:
    """Put a model folder and its conversion on the user's list of checked models."""
    remember_checked(digest)
    remember_checked(_conversion_digest(digest))


def _conversion_digest(digest: str) -> str:
    return f"{digest}-ctranslate2"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A verified model folder whose weights are still bytes, because tensors need torch."""

    folder: Path
    card: ModelCard
    digest: str  # of the card, which has the sha256 of every file
    tokenizers: Mapping[str, bytes]  # file name → bytes
    weights_entry: Mapping[str, Any]  # sha256 and size of the weights, or of CTranslate2's model.bin
    weights_bytes: bytes | None
    shortlist: bytes | None = None
    converted_files: Mapping[str, bytes] | None = None
    """The files of a model that only CTranslate2 runs; such a model has no weights of its own."""
    weights_file: OpenFile | None = None
    """The open file of the weights, if their bytes were dropped. A run may replace its model folder, and then
    the weights can still be read from the open file. On Windows, the file is not opened."""

    def weights(self) -> dict[str, Tensor]:
        """Return the weights as tensors. If their bytes were dropped, read and verify the file again."""
        if self.converted_files is not None:
            raise UnsupportedError(
                f"The model in {self.folder} was imported from CTranslate2's files, which translate and do "
                "not show what happens inside: use it with translate, serve and evaluate only. To see its "
                "attention, to train it further or to export it, import the model that they were made from."
            )
        data = self.weights_bytes or self._read_weights()
        weights = tensors_from_bytes(data, self.folder / WEIGHTS)
        check_finite(weights, self.folder / WEIGHTS)
        return weights

    def _read_weights(self) -> bytes:
        try:
            return read_listed_file(self.folder, WEIGHTS, self.weights_entry)
        except ModelFolderError:
            if self.weights_file and (data := self.weights_file.read(self.weights_entry)) is not None:
                return data
            if checksum(read_manifest(self.folder / CARD)) == self.digest:
                raise
            raise ModelFolderError(
                f"{self.folder} was replaced by a newer model since it was loaded. Load it again."
            ) from None

    @property
    def conversion_digest(self) -> str:
        """The digest of the model's conversion for CTranslate2 in the list of checked models.

        If the list has this digest, CTranslate2 runs the model without a trial.
        """
        return _conversion_digest(self.digest)

    def without_weights(self) -> StoredModel:
        """Return a copy without the bytes of the weights, to free their memory; see `weights_file`."""
        weights_file = None if self.converted_files else OpenFile(self.folder / WEIGHTS)
        return replace(self, weights_bytes=None, weights_file=weights_file)


def read_model_with_weights(folder: Path) -> tuple[ModelCard, dict[str, Tensor], dict[str, bytes]]:
    """Return the card, the weights as tensors and the tokenizer files of a model folder, all verified."""
    stored = read_stored_model(folder)
    return stored.card, stored.weights(), dict(stored.tokenizers)


def read_card(folder: Path) -> ModelCard:
    """Return the card of a model folder. Only its own checksum is verified, not the other files."""
    folder = find_model_folder(folder)
    if not (folder / CARD).exists():
        _refuse_path_without_card(folder)
    content = read_manifest(folder / CARD)
    _check_format(folder, content.get("format"))
    return card_from_json(folder / CARD, content)


def model_digest(folder: Path) -> str:
    """Return the digest of a model folder's card, which lists the sha256 of every file.

    Only the card is read.
    """
    return checksum(read_manifest(find_model_folder(folder) / CARD))


def find_model_folder(folder: Path) -> Path:
    """Return the model folder of a run folder. Return any other path unchanged."""
    is_run = (folder / RUN_RECORD).is_file() and not (folder / CARD).exists()
    return folder / MODEL if is_run else folder


def read_stored_model(folder: Path) -> StoredModel:
    """Read a model folder, or the model folder of a run, and verify its files.

    README.md is not verified, because people may edit it. A training run replaces its model from time to
    time. If this happens while the model is being read, the new model is read. torch is not needed.
    """
    folder = find_model_folder(folder)
    for _ in range(MAX_REPLACEMENTS):
        identity = _identity(folder)
        try:
            return _read_stored_model(folder)
        except ModelFolderError:
            time.sleep(SECONDS_TO_REPLACE)
            if _identity(folder) == identity:
                raise
    return _read_stored_model(folder)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return a value that changes when another folder replaces this folder; None if there is no folder."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _read_stored_model(folder: Path) -> StoredModel:
    if not (folder / CARD).exists():
        _refuse_path_without_card(folder)
    content = read_manifest(folder / CARD)
    _check_format(folder, content.get("format"))
    entries = content["files"]
    other_names = (WEIGHTS, *CONVERTED_FILES, *_OPTIONAL_FILES)
    allowed_names = (*other_names, *(file for vocabulary in _VOCABULARIES for file in vocabulary))
    for name in entries:
        check_file_name(folder, name)
        if name not in allowed_names:
            raise ModelFolderError(
                f"{folder} lists a file that a model of format {MODEL_FORMAT} does not have. "
                f"Received: {name!r}. Known: {', '.join(allowed_names)}."
            )
    _check_tokenizers(folder, {name: b"" for name in entries if name not in other_names})
    model_file = CONVERTED_MODEL if WEIGHTS not in entries and CONVERTED_MODEL in entries else WEIGHTS
    if model_file not in entries:
        raise ModelFolderError(damage_message(folder / WEIGHTS, "the card does not list it"))
    card = card_from_json(folder / CARD, content)
    data = {name: read_listed_file(folder, name, entries[name]) for name in entries if name != README}
    weights, shortlist = data.pop(WEIGHTS, None), data.pop(SHORTLIST, None)
    converted = {name: data.pop(name) for name in CONVERTED_FILES if name in data} or None
    return StoredModel(
        folder, card, checksum(content), data, entries[model_file], weights, shortlist, converted
    )


def store_shortlist(folder: Path, shortlist: bytes, facts: Mapping[str, float | str]) -> None:
    """Add a shortlist to a model folder, or replace it. `facts` are its measured cost and speed.

    The card is written first without the shortlist, then the shortlist, then the card with the shortlist. So
    a process that is killed in between leaves a valid model folder, with the shortlist or without.
    """
    folder = find_model_folder(folder)
    was_checked = is_checked(read_stored_model(folder).conversion_digest)
    content = read_manifest(folder / CARD)
    failure_note = "The model itself is intact."
    content["files"].pop(SHORTLIST, None)
    content["facts"] = {name: value for name, value in content["facts"].items() if name not in facts}
    write_file(folder / CARD, json_with_checksum(content), failure_note=failure_note)
    write_file(folder / SHORTLIST, shortlist, failure_note=failure_note)
    content["files"][SHORTLIST] = manifest_entry(shortlist)
    content["facts"].update(facts)
    write_file(folder / CARD, json_with_checksum(content), failure_note=failure_note)
    if was_checked:
        _remember(checksum(content))


def _check_format(folder: Path, version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFolderError(damage_message(folder / CARD, f"its format version is {version!r}"))
    if version > MODEL_FORMAT:
        raise ModelFolderError(
            f"{folder} was made by a newer jumok. Received format {version}; jumok {jumok_version()} reads "
            f"formats up to {MODEL_FORMAT}. Install a newer jumok: pip install -U jumok."
        )
    if version < MODEL_FORMAT:
        raise ModelFolderError(
            f"{folder} was made by an older jumok. Received format {version}; jumok {jumok_version()} reads "
            f"format {MODEL_FORMAT}. Train the model again from its pairs, or use the older jumok."
        )


def _check_tokenizers(folder: Path, tokenizers: Mapping[str, bytes]) -> None:
    if tuple(sorted(tokenizers)) not in _VOCABULARIES:
        raise ModelFolderError(
            f"{folder}: a model needs {', or '.join(' and '.join(names) for names in _VOCABULARIES)}. "
            f"Received: {', '.join(sorted(tokenizers)) or 'none'}."
        )


def _refuse_path_without_card(folder: Path) -> None:
    from jumok.storage.foreign_formats import foreign_model_hint, hub_hint  # start-up

    if not folder.exists() and folder.name == MODEL and (folder.parent / RUN_RECORD).is_file():
        raise ModelFolderError(
            f"The run in {folder.parent} has no model yet: it gets one at its first validation, and a better "
            f"one whenever a validation is the best so far. `jumok train` with --out {folder.parent} "
            "continues it."
        )
    if not folder.exists():
        raise ModelFolderError(
            f"There is no folder {folder}. Name the model/ folder of a run.{hub_hint(folder)}"
        )
    if not folder.is_dir():
        raise ModelFolderError(
            f"{folder} is a file; a model is a folder. Name the model/ folder that `jumok train` wrote."
            f"{foreign_model_hint(folder)}"
        )
    names = sorted(path.name for path in folder.iterdir())
    content = ", ".join(names[:6]) + (", …" if len(names) > 6 else "") if names else "an empty folder"
    hint = (
        f" Did you mean {folder / 'model'}?"
        if (folder / "model" / CARD).exists()
        else foreign_model_hint(folder)
    )
    raise ModelFolderError(f"{folder} is not a jumok model folder (no {CARD}). Received: {content}.{hint}")


def card_to_json(card: ModelCard) -> dict[str, Any]:
    """Return the JSON object of a card as it is stored, without the list of files and the checksum."""
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
    """The types of the fields of a card. They are checked when the card is read."""

    model_config = ConfigDict(allow_inf_nan=False)

    recipe: dict[str, Any]
    scores: dict[str, ScoreRecord]
    read_out: ReadOut | None
    corpora: tuple[CorpusRecord, ...]
    facts: dict[str, str | int | float | bool | None]
    created_by: str
    plan: tuple[tuple[int, int | None], ...] = ()


def card_from_json(path: Path, content: Mapping[str, Any]) -> ModelCard:
    """Return the card in `content`, the JSON object of a file. Error messages name the file by `path`."""
    try:
        stored = _StoredCard.model_validate(content)
        recipe = make_stored_recipe(stored.recipe)
    except RecipeError as error:
        raise ModelFolderError(damage_message(path, f"its recipe is not valid. {error}")) from None
    except ValidationError as error:
        first_error = error.errors()[0]
        where = ".".join(str(part) for part in first_error["loc"][:3])
        reason = f"a field is missing or invalid: {where} is {first_error['input']!r:.60}"
        raise ModelFolderError(damage_message(path, reason)) from None
    return ModelCard(
        recipe,
        stored.scores,
        stored.read_out,
        stored.corpora,
        stored.facts,
        stored.created_by,
        stored.plan,
    )
