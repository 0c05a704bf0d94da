"""Explanations as files and pages: `.html` to view, compact `.json`, or `.npz` with exact weights."""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from jumok.analysis.json_format import (
    explanation_from_document,
    explanation_from_json,
    explanation_to_document,
    explanation_to_json,
)
from jumok.analysis.live_explanation import complete_explanation
from jumok.errors import DataError, UnsupportedError, suggest
from jumok.plots.page import iframe, static_page
from jumok.storage.folders import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jumok.analysis.explanation import Explanation

# Names of the arrays in an .npz file; a site follows the prefix.
_DOCUMENT = "document"
_SITE_PREFIX = "attention_"
# Errors that numpy and zipfile raise for an empty file, a file of one array, and damaged bytes of an archive.
_NPZ_ERRORS = (
    ValueError,
    KeyError,
    OSError,
    EOFError,
    TypeError,
    RuntimeError,
    BadZipFile,
    TokenError,
    zlib.error,
)


def save_explanation(explanation: Explanation, path: str | Path) -> None:
    """Write an explanation in the format that the file name's suffix names.

    A page (`.html`) of a live explanation also gets effects, measures, steps and layer predictions, because a
    stored page cannot compute them.
    """
    path = Path(path)
    write_file(path, _WRITERS[_suffix(path, _WRITERS)](explanation))


def open_explanation(path: str | Path) -> Explanation:
    """Read a `.json` or `.npz` file that `save_explanation` wrote. No code of the file is run."""
    path = Path(path)
    read = _READERS[_suffix(path, _READERS)]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"The explanation at {path} cannot be read: {error.strerror}.") from None
    return read(data)


def explanation_page(explanations: Sequence[Explanation]) -> str:
    """Return one page with these explanations. Live explanations are completed (`complete_explanation`)."""
    return static_page(
        [explanation_to_json(complete_explanation(explanation)) for explanation in explanations]
    )


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """A page as a notebook displays it."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


def show_explanation(explanation: Explanation, *, height: int = 760) -> NotebookPage:
    """Return the page of an explanation for a notebook cell, `height` pixels high."""
    return NotebookPage(iframe(explanation_page([explanation]), height=height))


def _suffix(path: Path, known: Mapping[str, object]) -> str:
    suffix = path.suffix.lower()
    if suffix not in known:
        raise UnsupportedError(
            f"An explanation is stored as {' or '.join(known)}. Received: {path}.{suggest(suffix, known)}"
        )
    return suffix


def _to_page(explanation: Explanation) -> bytes:
    return explanation_page([explanation]).encode()


def _to_json(explanation: Explanation) -> bytes:
    return explanation_to_json(explanation).encode()


def _from_json(data: bytes) -> Explanation:
    try:
        return explanation_from_json(data.decode())
    except UnicodeDecodeError as error:
        raise DataError(f"This is not an explanation as JSON: {error}.") from None


def _to_npz(explanation: Explanation) -> bytes:
    """Return an .npz file: the document without its maps, as UTF-8 bytes, and one array per site."""
    document = json.dumps(
        explanation_to_document(explanation, weights=False), ensure_ascii=False, allow_nan=False
    )
    arrays: dict[str, Any] = {
        f"{_SITE_PREFIX}{site}": np.asarray(attention.weights, dtype=np.float32)
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
            maps = {
                name.removeprefix(_SITE_PREFIX): arrays[name]
                for name in arrays.files
                if name.startswith(_SITE_PREFIX)
            }
    except _NPZ_ERRORS as error:
        raise DataError(f"This is not an explanation as .npz: {type(error).__name__}: {error}.") from None
    return explanation_from_document(document, lambda _: maps)


_WRITERS: dict[str, Callable[[Explanation], bytes]] = {".html": _to_page, ".json": _to_json, ".npz": _to_npz}
_READERS: dict[str, Callable[[bytes], Explanation]] = {".json": _from_json, ".npz": _from_npz}
