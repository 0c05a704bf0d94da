"""Write keras_numbers.json: outputs of Keras' attention layers for known weights and inputs.

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


def case(
    target_shape: tuple[int, ...],
    source_shape: tuple[int, ...] | None,
    mask_shape: tuple[int, ...] | None = None,
    **options,
) -> dict:
    """A test case of `MultiHeadAttention` with random states and, if `mask_shape` is given, a random mask."""
    layer = keras.layers.MultiHeadAttention(dtype="float64", **options)
    query = numbers(target_shape, 1)
    value = query if source_shape is None else numbers(source_shape, 2)
    layer(query, value)  # the first call creates the parameters of the layer
    fill(layer)
    allowed = None if mask_shape is None else numbers(mask_shape, 3) > -0.5  # True for about 70%
    output, scores = layer(query, value, attention_mask=allowed, return_attention_scores=True)
    facts = {
        "options": options,
        "query": query.tolist(),
        "value": None if source_shape is None else value.tolist(),
    }
    if allowed is not None:
        facts["mask"] = allowed.tolist()
    return facts | results(layer, output, scores)


def without_projections(kind: type, **options) -> dict:
    """A test case of a layer without projections, which is called with random states as [query, value]."""
    layer = kind(dtype="float64", **options)
    query, value = numbers((2, 3, 4), 1), numbers((2, 5, 4), 2)
    layer([query, value])  # the first call creates the parameters of the layer
    fill(layer)
    output, scores = layer([query, value], return_attention_scores=True)
    return {"query": query.tolist(), "value": value.tolist()} | results(layer, output, scores)


def fill(layer: keras.Layer) -> None:
    layer.set_weights([numbers(weight.shape, 10 + i) * 0.3 for i, weight in enumerate(layer.weights)])


def results(layer: keras.Layer, output, scores) -> dict:
    """The numbers that the tests compare.

    "weights" are the parameters of the layer. "scores" are the weights of attention, as Keras calls them.
    """
    return {
        "weights": {weight.path: keras.ops.convert_to_numpy(weight).tolist() for weight in layer.weights},
        "output": keras.ops.convert_to_numpy(output).tolist(),
        "scores": keras.ops.convert_to_numpy(scores).tolist(),
    }


CASES = {
    "documented": case((2, 8, 16), (2, 4, 16), num_heads=2, key_dim=2),
    "widths": case((2, 3, 6), (2, 5, 10), num_heads=3, key_dim=4, value_dim=5, output_shape=7),
    "no bias": case((1, 4, 8), None, num_heads=2, key_dim=4, use_bias=False),
    "axes": case((2, 2, 3, 2, 6), None, num_heads=2, key_dim=3, attention_axes=(2, 3)),
    "output shape": case((1, 3, 4), None, num_heads=2, key_dim=2, output_shape=(2, 3)),
    "axes of two tensors": case(
        (2, 2, 3, 2, 4), (2, 2, 2, 1, 4), (2, 2, 3, 2, 2, 1), num_heads=2, key_dim=2, attention_axes=(2, 3)
    ),
    "dot": without_projections(keras.layers.Attention),
    "dot, scale": without_projections(keras.layers.Attention, use_scale=True),
    "concat": without_projections(keras.layers.Attention, score_mode="concat"),
    "concat, scale": without_projections(keras.layers.Attention, score_mode="concat", use_scale=True),
    "additive": without_projections(keras.layers.AdditiveAttention, use_scale=False),
    "additive, scale": without_projections(keras.layers.AdditiveAttention),
}

if __name__ == "__main__":
    path = Path(__file__).with_name("keras_numbers.json")
    content = {"keras": keras.__version__, "cases": CASES}
    text = json.dumps(content, separators=(",", ":"))
    path.write_text(
        json.dumps(json.loads(text, parse_float=lambda f: round(float(f), 10))) + "\n", encoding="utf-8"
    )
