"""Numbers as text: weights as 8-bit numbers on a square-root scale, others as float32, both in base64.

    byte = round(255 · √(weight / scale)),   weight = scale · (byte / 255)²

Half of the bytes stand for weights below a quarter, where most weights are and where eyes tell more apart.
The error is at most scale · √weight / 255. A second byte a weight makes it 254 times smaller, so that four
decimals can be read off. A map in which no query sees a later key leaves those out.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["pack_floats", "pack_weights", "unpack_floats", "unpack_weights"]

_FINE = 254


def pack_weights(weights: NDArray[Any], *, fine: bool = False) -> dict[str, Any]:
    """Weights (…, query, key), none below 0, as a JSON object. What is no number becomes 0."""
    clean = np.clip(np.nan_to_num(np.asarray(weights, dtype=np.float64), posinf=0.0), 0.0, None)
    scale = max(1.0, float(clean.max(initial=0.0)))
    causal = _is_causal(clean)
    kept = clean[..., *np.tril_indices(clean.shape[-1])] if causal else clean
    levels = 255 * np.sqrt(kept / scale)
    codes = np.rint(levels)
    packed = {
        "shape": list(clean.shape),
        "layout": "causal" if causal else "full",
        "scale": scale,
        "codes": _base64(codes.astype(np.uint8)),
    }
    if fine:
        packed["fine"] = _base64(np.rint(_FINE * (levels - codes)).astype(np.int8))
    return packed


def unpack_weights(packed: Mapping[str, Any]) -> NDArray[np.float32]:
    """What `pack_weights` packed, to within scale / 255, or 254 times closer where it is fine."""
    shape = tuple(int(size) for size in packed["shape"])
    levels = np.frombuffer(_bytes(packed["codes"]), dtype=np.uint8).astype(np.float32)
    if packed.get("fine"):
        added = np.frombuffer(_bytes(packed["fine"]), dtype=np.int8).astype(np.float32)
        levels += _shaped(added, levels.shape) / _FINE
    weights = np.float32(packed["scale"]) * np.square(levels / 255)
    if packed["layout"] == "full":
        return _shaped(weights, shape)
    rows, columns = np.tril_indices(shape[-1])
    whole = np.zeros(shape, dtype=np.float32)
    whole[..., rows, columns] = _shaped(weights, (*shape[:-2], len(rows)))
    return whole


def pack_floats(values: NDArray[Any]) -> dict[str, Any]:
    """Numbers of any shape as little-endian float32."""
    array = np.asarray(values, dtype="<f4")
    return {"shape": list(array.shape), "float32": _base64(array)}


def unpack_floats(packed: Mapping[str, Any]) -> NDArray[np.float32]:
    """What `pack_floats` packed, exactly."""
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
        raise DataError(f"These are no numbers in base64: {error}.") from None


def _shaped(values: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
    if values.size != int(np.prod(shape)):
        raise DataError(f"{values.size} numbers do not fill the shape {shape}. The file may have been cut.")
    return values.reshape(shape)
