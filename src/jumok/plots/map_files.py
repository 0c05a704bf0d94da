"""Attention maps as files: pictures (SVG, PNG) and JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError, StorageError, UnsupportedError, suggest
from jumok.plots import fonts
from jumok.plots.grid import map_weights
from jumok.plots.heat_map import draw_alignment
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from jumok.types import Alignment

_SUFFIXES = (".json", ".png", ".svg")
_PNG_SCALE = 2
"""PNG pixels per SVG pixel, so that text is sharp on high-resolution screens."""
_DECIMALS = 4  # of a weight in JSON


def save(
    attention: AttentionMap, path: str | Path, *, title: str = "", links: Alignment | None = None
) -> None:
    """Write a map in the format of the suffix: a picture (`.svg`, `.png`) or numbers (`.json`)."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UnsupportedError(
            f"An attention map can be saved as {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}. "
            f"Received: {path}.{suggest(suffix, _SUFFIXES)}"
        )
    write = to_json if suffix == ".json" else draw_alignment
    text = write(attention, title=title, links=links)
    data = render_png(text) if suffix == ".png" else text.encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise StorageError(f"The attention map could not be written to {path}: {error.strerror}.") from error


def render_png(svg: str) -> bytes:
    """Render the picture with resvg. If the system has none of its fonts, the shipped font is used."""
    try:
        import resvg_py  # optional
    except ImportError as error:
        raise UnsupportedError(
            "A picture as .png needs resvg, which is not installed. "
            'Run: pip install "jumok[png]", or write .svg, which every browser opens.'
        ) from error
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg, zoom=_PNG_SCALE, font_files=[str(fonts.FILE)], sans_serif_family=fonts.FAMILY
        )
    )


def to_json(attention: AttentionMap, *, title: str = "", links: Alignment | None = None) -> str:
    """Return the map as JSON: site, keys, queries, rounded weights, facts.

    Weights are nested as (layer, head, query, key). JSON has no NaN: such a weight becomes null. Word links
    are stored under `alignment` in the Pharaoh format, for example `0-0 1?2`: `-` marks a
    sure link, `?` a link that is only possible.
    """
    document = {
        **({"title": title} if title else {}),
        "site": attention.site,
        "keys": list(attention.keys),
        "queries": list(attention.queries),
        "weights": _round_weights(map_weights(attention).tolist()),
        "facts": dict(attention.facts),
        **({} if links is None else {"alignment": str(links)}),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> AttentionMap:
    """Return the map that `to_json` wrote, without its title and its word links."""
    try:
        document = json.loads(text)
        queries, keys = tuple(map(str, document["queries"])), tuple(map(str, document["keys"]))
        weights = np.array(document["weights"], dtype=np.float32)
        if not queries:  # without rows, nested lists do not say how many keys there are
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
    map_weights(attention)  # raises if the weights do not fit the words
    return attention


def _round_weights(values: Any) -> Any:
    if isinstance(values, list):
        return [_round_weights(value) for value in values]
    return round(values, _DECIMALS) if math.isfinite(values) else None
