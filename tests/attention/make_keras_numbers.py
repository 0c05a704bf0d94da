"""Writes keras_numbers.json: outputs of Keras' MultiHeadAttention for known weights and inputs.

Run it by hand, with Keras 3 installed (which the tests do not need):

    KERAS_BACKEND=torch python tests/attention/make_keras_numbers.py
"""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy


def numbers(shape: tuple[int, ...], seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).normal(size=shape).astype("float64")


def case(target: tuple[int, ...], source: tuple[int, ...] | None, **options) -> dict:
    layer = keras.layers.MultiHeadAttention(dtype="float64", **options)
    query = numbers(target, 1)
    value = query if source is None else numbers(source, 2)
    layer(query, value)
    layer.set_weights([numbers(weight.shape, 10 + i) * 0.3 for i, weight in enumerate(layer.weights)])
    output, scores = layer(query, value, return_attention_scores=True)
    return {
        "options": options,
        "query": query.tolist(),
        "value": None if source is None else value.tolist(),
        "weights": {weight.path: keras.ops.convert_to_numpy(weight).tolist() for weight in layer.weights},
        "output": keras.ops.convert_to_numpy(output).tolist(),
        "scores": keras.ops.convert_to_numpy(scores).tolist(),
    }


CASES = {
    "documented": case((2, 8, 16), (2, 4, 16), num_heads=2, key_dim=2),
    "widths": case((2, 3, 6), (2, 5, 10), num_heads=3, key_dim=4, value_dim=5, output_shape=7),
    "no bias": case((1, 4, 8), None, num_heads=2, key_dim=4, use_bias=False),
    "axes": case((2, 2, 3, 2, 6), None, num_heads=2, key_dim=3, attention_axes=(2, 3)),
}

if __name__ == "__main__":
    path = Path(__file__).with_name("keras_numbers.json")
    content = {"keras": keras.__version__, "cases": CASES}
    text = json.dumps(content, separators=(",", ":"))
    path.write_text(
        json.dumps(json.loads(text, parse_float=lambda f: round(float(f), 10))) + "\n", encoding="utf-8"
    )
