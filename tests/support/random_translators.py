"""Translators of every family with small random models, and the attention of step-by-step decoding."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import torch

from jumok.config.recipe import (
    AttentionSettings,
    DecoderOnlySettings,
    EncoderOnlySettings,
    RecurrentSettings,
    SearchSettings,
    TextSettings,
    TransformerSettings,
)
from jumok.data.batching import padded_batch
from jumok.inference.picture_classifier import PictureClassifier
from jumok.inference.translator import ModelFacts, Translator
from jumok.models.build import build_model
from jumok.text.class_names import ClassNames
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer
from jumok.types import BEGIN

SENTENCE = "the old house sees a small tree."
TARGET = "a river knows the old tree."
WORDS = ["the", "a", "small", "old", "house", "tree", "river", "sees", "knows", "and", "near", "home"]

SMALL = {"width": 16, "heads": 2, "feed_forward": 24, "dropout": 0.0}
SMALL_MODELS: dict[str, Any] = {
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
def tokenizers() -> TokenizerPair:
    generator = random.Random(1)
    lines = [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) + "." for _ in range(300)]
    tokenizer = train_tokenizer(lines, TextSettings(kind="unigram"), vocab_size=310)
    return TokenizerPair(tokenizer, tokenizer, shared=True)


def make_translator(settings: Any, **options: Any) -> Translator:
    """Return a translator with random weights. `options` are arguments of `Translator`."""
    torch.manual_seed(7)
    size = tokenizers().target.vocab_size
    model = build_model(settings, source_vocab_size=size, target_vocab_size=size, shared=True)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 2.0  # so that random attention is not uniform
    search = options.pop("search", SearchSettings(beam=3, max_length_ratio=0.5))
    facts = ModelFacts(source_language="en", target_language="de")
    return Translator(model, tokenizers(), search=search, facts=facts, **options)


# Models for tests of code that depends on the widths of heads.
OTHER_MODELS = {
    "projections": TransformerSettings(
        encoder_layers=2,
        decoder_layers=2,
        key_width=6,
        value_width=3,
        key_value_groups=1,
        attention_bias=True,
        **SMALL,
    ),
}


@functools.cache
def small_translator(name: str) -> Translator:
    """Return the translator of a name in SMALL_MODELS or OTHER_MODELS."""
    return make_translator((SMALL_MODELS | OTHER_MODELS)[name])


# Pictures of 8 × 8 grey pixels, as in `picture_files.py`, in a grid of 4 × 4 patches of 2 × 2 pixels.
PICTURE_TOKENIZER = PictureTokenizer(size=8, patch_size=2, channels=1)


@functools.cache
def picture_translator() -> Translator:
    """Return a translator from pictures to captions, with random weights."""
    torch.manual_seed(7)
    pair = TokenizerPair(PICTURE_TOKENIZER, tokenizers().target, shared=False)
    settings = TransformerSettings(encoder_layers=2, decoder_layers=2, **SMALL)
    size = pair.target.vocab_size
    model = build_model(
        settings, source_vocab_size=0, target_vocab_size=size, shared=False, grid=PICTURE_TOKENIZER.grid
    )
    search = SearchSettings(beam=3, max_length_ratio=0.5)
    return Translator(model, pair, search=search, facts=ModelFacts(target_language="de"))


@functools.cache
def picture_classifier() -> PictureClassifier:
    """Return a classifier of pictures with random weights."""
    torch.manual_seed(7)
    classes = ClassNames(["left", "right", "top"])
    settings = EncoderOnlySettings(layers=2, task="classify", **SMALL)
    size = classes.vocab_size
    model = build_model(
        settings, source_vocab_size=0, target_vocab_size=size, shared=False, grid=PICTURE_TOKENIZER.grid
    )
    return PictureClassifier(model, PICTURE_TOKENIZER, classes)


@torch.inference_mode()
def stepwise_weights(translator: Translator, source: list[int], target: list[int]) -> dict[str, Any]:
    """Return a dict from site to weights (layer, head, query, key).

    An edit collects the weights during step-by-step decoding.
    """
    collected: dict[tuple[str, int], list[np.ndarray]] = {}

    def collect(weights, site, /):
        collected.setdefault((site.name, site.layer), []).append(weights[0].numpy().copy())
        return weights

    state = translator.model.begin(padded_batch([source]), edit=collect)
    for token in [BEGIN, *target]:
        _, state = translator.model.step(state, torch.tensor([token]))
    sites: dict[str, list[np.ndarray]] = {}
    for (site, _), rows in sorted(collected.items()):
        keys = max(row.shape[-1] for row in rows)
        padded = [np.pad(row, ((0, 0), (0, 0), (0, keys - row.shape[-1]))) for row in rows]
        sites.setdefault(site, []).append(np.concatenate(padded, axis=1))
    stacked = {site: np.stack(layers) for site, layers in sites.items()}
    if "cross" in stacked:
        return stacked
    # In a decoder-only model the target follows the source.
    weights, split = stacked["decoder"], len(source) + 1
    return {
        "encoder": weights[:, :, :split, :split],
        "cross": weights[:, :, split:, :split],
        "decoder": weights[:, :, split:, split:],
    }
