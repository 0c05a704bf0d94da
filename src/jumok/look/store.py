"""Attention maps in files: the picture for people, JSON for programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError, StorageError, UnsupportedError, nearest
from jumok.look.grid import map_weights
from jumok.look.heat_map import draw_alignment
from jumok.values import AttentionMap

if TYPE_CHECKING:
    from jumok.values import Alignment

__all__ = ["from_json", "save", "to_json"]

_SUFFIXES = (".json", ".svg")
_DIGITS = 4


def save(
    attention: AttentionMap, path: str | Path, *, title: str = "", links: Alignment | None = None
) -> None:
    """Write a map as the file name says: a picture to `.svg`, numbers to `.json`."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UnsupportedError(
            f"An attention map can be saved as {' or '.join(_SUFFIXES)}. "
            f"Received: {path}.{nearest(suffix, _SUFFIXES)}"
        )
    text = draw_alignment(attention, title=title, links=links) if suffix == ".svg" else to_json(attention)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"The attention map could not be written to {path}: {error.strerror}.") from error


def to_json(attention: AttentionMap) -> str:
    """The map as JSON: site, keys (source words), queries (target words), weights to four digits, facts.

    Weights are nested as (layer, head, query, key). JSON knows no NaN, so such a weight becomes null.
    """
    document = {
        "site": attention.site,
        "keys": list(attention.keys),
        "queries": list(attention.queries),
        "weights": _rounded(map_weights(attention).tolist()),
        "facts": dict(attention.facts),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> AttentionMap:
    """The map that `to_json` wrote."""
    try:
        document = json.loads(text)
        queries, keys = tuple(map(str, document["queries"])), tuple(map(str, document["keys"]))
        weights = np.array(document["weights"], dtype=np.float32)
        if not queries:  # nested lists cannot tell how wide rows are of which there are none
            weights = weights.reshape(*weights.shape[:2], 0, len(keys))
        attention = AttentionMap(
            site=str(document["site"]),
            weights=weights,
            queries=queries,
            keys=keys,
            facts={str(name): str(value) for name, value in document.get("facts", {}).items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"This is not an attention map as JSON: {type(error).__name__}: {error}.") from None
    map_weights(attention)
    return attention


def _rounded(values: Any) -> Any:
    if isinstance(values, list):
        return [_rounded(value) for value in values]
    return round(values, _DIGITS) if math.isfinite(values) else None
