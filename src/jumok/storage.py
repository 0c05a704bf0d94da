"""Folders on disk: written whole or not at all, and read without trusting them.

A folder is written under a temporary name beside its final one, its files and itself are flushed to the disk,
and one rename makes it appear. Whoever is killed in the middle leaves `name.tmp-…`, never half a `name`. The
manifest lists sha256 and size of every other file and carries a checksum of itself: a flipped bit is found.

    write_folder(final, files, intact=…)      atomic; full disk and the like become a StorageError
    verify_folder(folder) -> files            each read and compared; ModelFolderError names the damaged one
    save_model / read_model_folder            the model folder; reading it runs no code (no pickle anywhere)
    store_shortlist                           the one thing that may be added to a model folder later
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from jumok.errors import DataError, ModelFolderError, RecipeError, StorageError
from jumok.recipe import Recipe, make_recipe
from jumok.values import ReadOut  # noqa: TC001 - pydantic reads the type when the program runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from torch import Tensor, nn

__all__ = [
    "CorpusRecord",
    "ModelCard",
    "ScoreRecord",
    "StoredModel",
    "checked_json",
    "disk_errors",
    "is_leftover",
    "jumok_version",
    "load_module_weights",
    "module_weights",
    "read_checked_json",
    "read_model_folder",
    "read_regular_file",
    "read_stored_model",
    "refuse_misfits",
    "remove_folder",
    "remove_leftovers",
    "save_model",
    "standard_input",
    "store_shortlist",
    "tensors_from_bytes",
    "tensors_to_bytes",
    "verify_folder",
    "write_file",
    "write_folder",
]

MODEL_FORMAT = 2
CARD = "jumok.json"
WEIGHTS = "weights.safetensors"
VOCABULARY_FILES = ("pieces.model", "source.model", "target.model")
SHORTLIST = "shortlist.txt"
LARGEST_MANIFEST = 16 * 2**20  # bytes; a manifest is small, and is parsed before anything vouches for it

_DISK_FAULTS = {
    errno.ENOSPC: ("the disk is full", "Free some space and run the same command again."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space and run the same command again."),
    errno.EROFS: ("the file system is read-only", "Choose a folder that can be written to."),
    errno.EACCES: ("permission was denied", "Choose a folder that can be written to."),
    errno.EPERM: ("permission was denied", "Choose a folder that can be written to."),
    errno.EIO: ("the disk reported an I/O error", "Check the disk, then run the same command again."),
}


# --- writing ---


def write_folder(
    final: Path,
    files: Iterable[tuple[str, bytes]],
    *,
    facts: Mapping[str, Any] | None = None,
    manifest: str = "manifest.json",
    intact: str = "Nothing that was there before has been touched.",
) -> None:
    """Write a new folder so that it appears whole or not at all.

    `files` may be a generator: one file's bytes are held at a time. `facts` go into the manifest, beside the
    list of files. `intact` is the sentence that tells a reader of the error what they still have.
    """
    with disk_errors(final, intact):
        temporary = final.with_name(f"{final.name}.tmp-{os.getpid()}")
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            listed = {}
            for name, data in files:
                _write_and_sync(temporary / name, data)
                listed[name] = _line_of(data)
            _write_and_sync(temporary / manifest, checked_json({**(facts or {}), "files": listed}))
            _sync_folder(temporary)
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _sync_folder(final.parent)


def _line_of(data: bytes) -> dict[str, Any]:
    """What a manifest says of a file."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def write_file(
    path: Path, data: bytes, *, intact: str = "The file that was there before is untouched."
) -> None:
    """Write or replace one file atomically."""
    with disk_errors(path, intact):
        temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
        try:
            _write_and_sync(temporary, data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder; renamed first, so that nothing half removed stands under a name with a meaning."""
    with disk_errors(folder, "Nothing else has been touched."):
        doomed = folder.with_name(f"{folder.name}.tmp-removed-{os.getpid()}")
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def is_leftover(name: str) -> bool:
    """Whether a name is that of something half written or half removed."""
    return re.search(r"\.tmp-(removed-)?\d+$", name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder: `name.tmp-PID` and `name.tmp-removed-PID`."""
    for path in folder.glob("*.tmp-*"):
        if not is_leftover(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _write_and_sync(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; some file systems cannot, and say EINVAL."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path, intact: str) -> Iterator[None]:
    """Say in words what the disk said in a number."""
    try:
        yield
    except OSError as error:
        unknown = (f"{error.strerror or error}", "Check the path and the disk.")
        what, advice = _DISK_FAULTS.get(error.errno or 0, unknown)
        raise StorageError(f"{path} could not be written: {what}. {intact} {advice}") from error


# --- the manifest ---


def checked_json(content: Mapping[str, Any]) -> bytes:
    """JSON for people, with a checksum of its content inside."""
    whole = {**content, "checksum": _checksum(content)}
    text = json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False)
    return (text + "\n").encode()


def _checksum(content: Mapping[str, Any]) -> str:
    """sha256 of the content in one fixed spelling: what protects the manifest itself from a flipped bit."""
    fixed = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(fixed.encode()).hexdigest()


def read_checked_json(path: Path) -> dict[str, Any]:
    """The inverse of `checked_json`; a file that was changed since is refused."""
    data = read_regular_file(path, largest=LARGEST_MANIFEST)
    try:
        content = json.loads(data, parse_constant=_refuse_constant)
        if not isinstance(content, dict):
            raise ModelFolderError(_damaged(path, "it is not a JSON object"))
        recorded = content.pop("checksum", None)
        found = _checksum(content)  # half a character, which JSON can spell, cannot be encoded
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(_damaged(path, f"it is not JSON ({error})")) from None
    if recorded != found:
        raise ModelFolderError(_damaged(path, "its checksum does not match its content"))
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _read_manifest(path: Path) -> dict[str, Any]:
    content = read_checked_json(path)
    if not isinstance(content.get("files"), dict):
        raise ModelFolderError(_damaged(path, 'it has no list of "files"'))
    return content


def read_regular_file(path: Path, *, largest: int) -> bytes:
    """The bytes of a plain file: no symbolic link, device or pipe is followed, nothing larger is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ModelFolderError(_damaged(path, "it is missing")) from None
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else f"{error.strerror}"
        raise ModelFolderError(_damaged(path, reason)) from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ModelFolderError(_damaged(path, "it is not a plain file"))
        if found.st_size > largest:
            raise ModelFolderError(_damaged(path, f"it has {found.st_size:,} bytes, more than {largest:,}"))
        try:
            return file.read()
        except OSError as error:
            raise StorageError(f"{path} could not be read: {error.strerror}. Check the disk.") from error


def _read_listed(folder: Path, name: str, listed: object) -> bytes:
    """One file of a folder, compared with its line of the manifest."""
    path = folder / name
    if not isinstance(listed, dict) or not isinstance(listed.get("size"), int):
        raise ModelFolderError(_damaged(path, "the manifest lists neither its size nor its sha256"))
    data = read_regular_file(path, largest=listed["size"])
    if len(data) != listed["size"]:
        raise ModelFolderError(_damaged(path, f"it has {len(data):,} bytes instead of {listed['size']:,}"))
    if hashlib.sha256(data).hexdigest() != listed.get("sha256"):
        raise ModelFolderError(_damaged(path, "its sha256 is not the one that was recorded"))
    return data


def _damaged(path: Path, reason: str) -> str:
    return f"{path} cannot be used: {reason}. Copy the folder again from where it came, or make it anew."


def _check_name(folder: Path, name: str) -> None:
    """A listed name is a bare file name; what could lead elsewhere is refused before it is opened."""
    if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise ModelFolderError(
            f"{folder} lists a file outside itself. Received: {name!r}. Do not use a folder you do not trust."
        )


def verify_folder(folder: Path, *, manifest: str = "manifest.json") -> dict[str, bytes]:
    """Every listed file's bytes, each compared with its sha256 and size."""
    content = _read_manifest(folder / manifest)
    for name in content["files"]:
        _check_name(folder, name)
    return {name: _read_listed(folder, name, listed) for name, listed in content["files"].items()}


# --- tensors ---


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors in the safetensors format, sorted by name so that equal tensors give equal bytes."""
    from safetensors.torch import save

    plain = {name: tensors[name].detach().contiguous() for name in sorted(tensors)}
    return bytes(save(plain))


def tensors_from_bytes(data: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file that was already read; `path` is for the error message."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return dict(load(data))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelFolderError(_damaged(path, f"it is not a safetensors file ({error})")) from None


def module_weights(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and stored buffers of a module, each once even where it is tied under several names.

    The tensors are the module's own: clone them before the next update.
    """
    stored = {id(tensor) for tensor in module.state_dict(keep_vars=True).values()}
    named = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if id(tensor) in stored}


def load_module_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """The inverse: copy weights into a module whose names and shapes must fit."""
    import torch

    refuse_misfits(module, weights)
    with torch.no_grad():
        for name, tensor in module_weights(module).items():
            tensor.copy_(weights[name])


def refuse_misfits(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise where names, shapes or types differ; all misfits are named at once. Nothing is read or copied."""
    own = module_weights(module)
    misfits = [name for name in {*own, *weights} if not _fits(own.get(name), weights.get(name))]
    if misfits:
        raise ModelFolderError(
            f"{len(misfits)} weights do not fit the model. Received: {', '.join(sorted(misfits)[:5])}. "
            "The recipe and the weights come from different models; copy the folder again."
        )


def _fits(own: Tensor | None, given: Tensor | None) -> bool:
    return own is not None and given is not None and own.shape == given.shape and own.dtype == given.dtype


def standard_input() -> BinaryIO:
    """The bytes of standard input, which a caller may have closed (`<&-`)."""
    if sys.stdin is None:
        raise DataError("standard input is closed, so there is nothing to read. Name a file, or pipe one in.")
    return sys.stdin.buffer


# --- the model folder ---


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
        data = self.weights_bytes or _read_listed(self.folder, WEIGHTS, self.weights_line)
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
    content = _read_manifest(folder / CARD)
    _check_format(folder, content.get("format"))
    listed = content["files"]
    for name in listed:
        _check_name(folder, name)
        if name not in (known := (WEIGHTS, SHORTLIST, *VOCABULARY_FILES)):
            raise ModelFolderError(
                f"{folder} lists a file that a model of format {MODEL_FORMAT} does not have. "
                f"Received: {name!r}. Known: {', '.join(known)}."
            )
    _check_vocabularies(folder, {name: b"" for name in listed if name not in (WEIGHTS, SHORTLIST)})
    if WEIGHTS not in listed:
        raise ModelFolderError(_damaged(folder / WEIGHTS, "the card does not list it"))
    card = _card_from_json(folder, content)
    data = {name: _read_listed(folder, name, line) for name, line in listed.items()}
    weights, shortlist = data.pop(WEIGHTS), data.pop(SHORTLIST, None)
    return StoredModel(folder, card, data, listed[WEIGHTS], weights, shortlist)


def store_shortlist(folder: Path, shortlist: bytes, facts: Mapping[str, float | str]) -> None:
    """Add a shortlist to a model folder, or replace it, with what was measured of it.

    The card names the shortlist only while the file it names is there: whoever is killed in the middle leaves
    a whole model folder, with it or without.
    """
    read_stored_model(folder)
    content = _read_manifest(folder / CARD)
    intact = "The model itself is intact."
    content["files"].pop(SHORTLIST, None)
    content["facts"] = {name: value for name, value in content["facts"].items() if name not in facts}
    write_file(folder / CARD, checked_json(content), intact=intact)
    write_file(folder / SHORTLIST, shortlist, intact=intact)
    content["files"][SHORTLIST] = _line_of(shortlist)
    content["facts"].update(facts)
    write_file(folder / CARD, checked_json(content), intact=intact)


def _check_format(folder: Path, found: object) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ModelFolderError(_damaged(folder / CARD, f"its format version is {found!r}"))
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


def _card_from_json(folder: Path, content: Mapping[str, Any]) -> ModelCard:
    try:
        stored = _StoredCard.model_validate(content)
        recipe = make_recipe(stored.recipe)
    except RecipeError as error:
        raise ModelFolderError(_damaged(folder / CARD, f"its recipe does not hold. {error}")) from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"][:3])
        reason = f"a part is missing or odd: {where} is {fault['input']!r:.60}"
        raise ModelFolderError(_damaged(folder / CARD, reason)) from None
    return ModelCard(recipe, stored.scores, stored.read_out, stored.corpora, stored.facts, stored.created_by)
