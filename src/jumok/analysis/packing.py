"""Arrays as base64 text: weights as 8-bit codes on a square-root scale, other numbers as float32.

    code = round(255 · √(weight / scale)),   weight = scale · (code / 255)²

Half of the codes are for weights below a quarter of the scale, where most weights lie and where differences
of colour are easiest to see. The error is at most √(scale · weight) / 255 + scale / 510². A second byte per
weight makes the error about 254 times smaller: with a scale of 1 it is below 0.000016, less than half a unit
of the fourth decimal. A causal map is stored without the weights above the diagonal, which are all 0.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_FINE_STEPS = 254  # steps of the second byte between two codes, −127 … 127


def pack_weights(weights: NDArray[Any], *, four_decimals: bool = False) -> dict[str, Any]:
    """Return non-negative weights (…, query, key) as a JSON object. NaN and infinity become 0.

    With `four_decimals`, a second byte per weight is stored.
    """
    clean = np.clip(np.nan_to_num(np.asarray(weights, dtype=np.float64), posinf=0.0), 0.0, None)
    scale = max(1.0, float(clean.max(initial=0.0)))
    causal = _is_causal(clean)
    stored = clean[..., *np.tril_indices(clean.shape[-1])] if causal else clean
    levels = 255 * np.sqrt(stored / scale)
    codes = np.rint(levels)
    packed = {
        "shape": list(clean.shape),
        "layout": "causal" if causal else "full",
        "scale": scale,
        "codes": _base64(codes.astype(np.uint8)),
    }
    if four_decimals:
        packed["fine"] = _base64(np.rint(_FINE_STEPS * (levels - codes)).astype(np.int8))
    return packed


def unpack_weights(packed: Mapping[str, Any]) -> NDArray[np.float32]:
    """Unpack the result of `pack_weights`.

    The error is below scale / 255, or 254 times less with two bytes.
    """
    shape = tuple(int(size) for size in packed["shape"])
    levels = np.frombuffer(_bytes(packed["codes"]), dtype=np.uint8).astype(np.float32)
    if packed.get("fine"):
        fine = np.frombuffer(_bytes(packed["fine"]), dtype=np.int8).astype(np.float32)
        levels += _shaped(fine, levels.shape) / _FINE_STEPS
    weights = np.float32(packed["scale"]) * np.square(levels / 255)
    if packed["layout"] == "full":
        return _shaped(weights, shape)
    queries, keys = shape[-2:]
    if queries != keys or keys < 0:
        raise DataError(f"A causal map has as many queries as keys. Received: the shape {shape}.")
    # The size is checked before memory is allocated for the shape that the file names.
    stored = _shaped(weights, (*shape[:-2], keys * (keys + 1) // 2))
    full = np.zeros(shape, dtype=np.float32)
    if stored.size:
        full[..., *np.tril_indices(keys)] = stored
    return full


def pack_floats(values: NDArray[Any]) -> dict[str, Any]:
    """Return an array of any shape as a JSON object with little-endian float32."""
    array = np.asarray(values, dtype="<f4")
    return {"shape": list(array.shape), "float32": _base64(array)}


def unpack_floats(packed: Mapping[str, Any]) -> NDArray[np.float32]:
    """Unpack the result of `pack_floats`. Values are exact."""
    values = np.frombuffer(_bytes(packed["float32"]), dtype="<f4").astype(np.float32)
    return _shaped(values, tuple(int(size) for size in packed["shape"]))


def _is_causal(weights: NDArray[Any]) -> bool:
    queries, keys = weights.shape[-2:]
    return queries == keys and not np.triu(weights, 1).any()


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"This is not base64: {error}.") from None


def _shaped(values: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
    if min(shape, default=0) < 0 or values.size != math.prod(shape):
        raise DataError(f"{values.size} numbers do not fill the shape {shape}. The file may have been cut.")
    return values.reshape(shape)
