"""Explanations in files: `.html` to look at, `.json` compactly, `.npz` with every weight as it was."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from jumok.errors import DataError, UnsupportedError, nearest
from jumok.explain.document import explanation_of, to_document
from jumok.explain.explanation import Explanation
from jumok.look import frozen_page
from jumok.storage import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["open_explanation", "save"]

_DOCUMENT = "document"
_SITE = "attention_"


def save(explanation: Explanation, path: str | Path) -> None:
    """Write an explanation as the file name says."""
    path = Path(path)
    write_file(path, _WRITERS[_suffix(path, _WRITERS)](explanation))


def open_explanation(path: str | Path) -> Explanation:
    """The explanation in a file that `save` wrote. It runs no code and needs no model."""
    path = Path(path)
    read = _READERS[_suffix(path, _READERS)]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"The explanation at {path} cannot be read: {error.strerror}.") from None
    return read(data)


def _suffix(path: Path, known: Mapping[str, object]) -> str:
    suffix = path.suffix.lower()
    if suffix not in known:
        raise UnsupportedError(
            f"An explanation is kept as {' or '.join(known)}. Received: {path}.{nearest(suffix, known)}"
        )
    return suffix


def _to_page(explanation: Explanation) -> bytes:
    return frozen_page([explanation.for_page().to_json()]).encode()


def _to_text(explanation: Explanation) -> bytes:
    return explanation.to_json().encode()


def _from_text(data: bytes) -> Explanation:
    try:
        return Explanation.from_json(data.decode())
    except UnicodeDecodeError as error:
        raise DataError(f"This is not an explanation as JSON: {error}.") from None


def _to_npz(explanation: Explanation) -> bytes:
    """The document without its maps, as UTF-8 bytes, and an array for each site."""
    document = json.dumps(to_document(explanation, weights=False), ensure_ascii=False, allow_nan=False)
    arrays: dict[str, Any] = {
        f"{_SITE}{site}": np.asarray(attention.weights, dtype=np.float32)
        for site, attention in explanation.attention.items()
    }
    buffer = io.BytesIO()
    arrays[_DOCUMENT] = np.frombuffer(document.encode(), dtype=np.uint8)
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _from_npz(data: bytes) -> Explanation:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            document = json.loads(arrays[_DOCUMENT].tobytes().decode())
            maps = {name.removeprefix(_SITE): arrays[name] for name in arrays.files if name.startswith(_SITE)}
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise DataError(f"This is not an explanation as .npz: {type(error).__name__}: {error}.") from None
    return explanation_of(document, lambda _: maps)


_WRITERS: dict[str, Callable[[Explanation], bytes]] = {".html": _to_page, ".json": _to_text, ".npz": _to_npz}
_READERS: dict[str, Callable[[bytes], Explanation]] = {".json": _from_text, ".npz": _from_npz}
