"""Translators of every family around small random models, and where a step-by-step decoding looked."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import torch

from jumok.corpus.batches import padded_batch
from jumok.decoding import Translator
from jumok.models import build_model
from jumok.recipe import (
    AttentionSettings,
    DecoderOnlySettings,
    RecurrentSettings,
    SearchSettings,
    TextSettings,
    TransformerSettings,
)
from jumok.text import Vocabularies, learn_subwords
from jumok.values import BEGIN

SENTENCE = "the old house sees a small tree."
TARGET = "a river knows the old tree."
WORDS = ["the", "a", "small", "old", "house", "tree", "river", "sees", "knows", "and", "near", "home"]

SMALL = {"width": 16, "heads": 2, "feed_forward": 24, "dropout": 0.0}
FAMILIES: dict[str, Any] = {
    "transformer": TransformerSettings(encoder_layers=2, decoder_layers=2, **SMALL),
    "post-norm": TransformerSettings(encoder_layers=2, decoder_layers=2, norm="post", **SMALL),
    "bahdanau": RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="bahdanau")),
    "luong": RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="luong-general")),
    "feeding": RecurrentSettings(
        width=16, embedding=12, attention=AttentionSettings(kind="luong-dot"), input_feeding=True
    ),
    "decoder-only": DecoderOnlySettings(layers=2, **SMALL),
}


@functools.cache
def vocabularies() -> Vocabularies:
    generator = random.Random(1)
    lines = [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) + "." for _ in range(300)]
    subwords = learn_subwords(lines, TextSettings(kind="unigram"), pieces=310)
    return Vocabularies(subwords, subwords, shared=True)


def make_translator(settings: Any, **options: Any) -> Translator:
    torch.manual_seed(7)
    size = vocabularies().target.size
    model = build_model(settings, source_pieces=size, target_pieces=size, shared=True)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 2.0  # so that random attention is not the same everywhere
    search = options.pop("search", SearchSettings(beam=3, longest=0.5))
    return Translator(
        model, vocabularies(), search=search, source_language="en", target_language="de", **options
    )


@functools.cache
def family_translator(name: str) -> Translator:
    return make_translator(FAMILIES[name])


@torch.inference_mode()
def stepwise_weights(translator: Translator, source: list[int], target: list[int]) -> dict[str, Any]:
    """Site → weights (layer, head, query, key), gathered by an edit while decoding goes step by step."""
    told: dict[tuple[str, int], list[np.ndarray]] = {}

    def listen(weights, place, /):
        told.setdefault((place.site, place.layer), []).append(weights[0].numpy().copy())
        return weights

    state = translator.model.begin(padded_batch([source]), edit=listen)
    for piece in [BEGIN, *target]:
        _, state = translator.model.step(state, torch.tensor([piece]))
    sites: dict[str, list[np.ndarray]] = {}
    for (site, _), rows in sorted(told.items()):
        keys = max(row.shape[-1] for row in rows)
        padded = [np.pad(row, ((0, 0), (0, 0), (0, keys - row.shape[-1]))) for row in rows]
        sites.setdefault(site, []).append(np.concatenate(padded, axis=1))
    stacked = {site: np.stack(layers) for site, layers in sites.items()}
    if "cross" in stacked:
        return stacked
    whole, columns = stacked["decoder"], len(source) + 1
    return {
        "encoder": whole[:, :, :columns, :columns],
        "cross": whole[:, :, columns:, :columns],
        "decoder": whole[:, :, columns:, columns:],
    }
