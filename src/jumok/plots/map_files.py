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

_SUFFIXES = (".json", ".png", ".svg")
_SHARPNESS = 2
"""Pixels of a PNG for each of the SVG: letters stay crisp on today's screens."""
_DIGITS = 4


def save(
    attention: AttentionMap, path: str | Path, *, title: str = "", links: Alignment | None = None
) -> None:
    """Write a map as the file name says: a picture to `.svg` or `.png`, numbers to `.json`."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UnsupportedError(
            f"An attention map can be saved as {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}. "
            f"Received: {path}.{nearest(suffix, _SUFFIXES)}"
        )
    write = to_json if suffix == ".json" else draw_alignment
    text = write(attention, title=title, links=links)
    data = _png(text) if suffix == ".png" else text.encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise StorageError(f"The attention map could not be written to {path}: {error.strerror}.") from error


def _png(svg: str) -> bytes:
    """The picture in pixels, by resvg, which knows the fonts of the machine, Hangul where they have it."""
    try:
        import resvg_py
    except ImportError as error:
        raise UnsupportedError(
            "A picture as .png needs resvg, which is not installed. "
            'Do: pip install "jumok[png]", or write .svg, which every browser opens.'
        ) from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_SHARPNESS))


def to_json(attention: AttentionMap, *, title: str = "", links: Alignment | None = None) -> str:
    """The map as JSON: site, keys (source words), queries (target words), weights to four digits, facts.

    Weights are nested as (layer, head, query, key). JSON knows no NaN, so such a weight becomes null. The
    links of words stand under `alignment`, as `0-0 1-2`.
    """
    document = {
        **({"title": title} if title else {}),
        "site": attention.site,
        "keys": list(attention.keys),
        "queries": list(attention.queries),
        "weights": _rounded(map_weights(attention).tolist()),
        "facts": dict(attention.facts),
        **({} if links is None else {"alignment": str(links)}),
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
