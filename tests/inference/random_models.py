"""Transformers with random weights and sharp opinions, and model folders that hold them."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from jumok.decoding import TorchEngine
from jumok.engines import ConvertedEngine
from jumok.engines.export import export
from jumok.models import OutputLayer, build_model
from jumok.recipe import FAMILIES, Recipe, TextSettings, make_recipe
from jumok.storage import ModelCard, module_weights, save_model
from jumok.text import Vocabularies, learn_subwords
from jumok.values import BEGIN, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jumok.decoding import Engine, Sampling, SearchPlan
    from jumok.models import TranslationModel
    from jumok.values import Hypothesis

WORDS = ["the", "a", "small", "old", "house", "tree", "river", "sees", "knows", "and", "near", "home"]
SMALL = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "feed_forward": 32, "heads": 2}


def random_model(*, pieces: int = 24, seed: int = 1, tied: bool = False, **settings: Any) -> TranslationModel:
    """A small model; untied, it knows what to say and never says `<pad>` or `<s>`."""
    torch.manual_seed(seed)
    family = FAMILIES[settings.get("family", "transformer")]
    chosen: Any = family.model_validate({**SMALL, "tied": tied, **settings})
    model = build_model(chosen, source_pieces=pieces, target_pieces=pieces, shared=True)
    if not tied:
        model.output = OutputLayer(torch.nn.Parameter(torch.randn(pieces, 16) * 0.5), bias=True)
        with torch.no_grad():
            model.output.bias[[PAD, BEGIN]] = -1e4  # type: ignore[index]
    return model.eval()


def both_engines(model: TranslationModel, *, places: int = 1024) -> tuple[TorchEngine, ConvertedEngine]:
    pieces = len(model.output.weight)
    return TorchEngine(model), ConvertedEngine(export(model, places=places), pieces=pieces)


def searched(
    engine: Engine,
    sources: Sequence[Sequence[int]],
    plan: SearchPlan,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    sampling: Sampling | None = None,
) -> list[list[Hypothesis]]:
    """All hypotheses in the order of the sources."""
    found: dict[int, list[Hypothesis]] = {}
    begins = prefixes or [[] for _ in sources]
    for group, hypotheses in engine.search(sources, plan, prefixes=begins, sampling=sampling):
        found.update(zip(group, hypotheses, strict=True))
    return [found[i] for i in range(len(sources))]


def sentences(count: int, *, seed: int = 1, longest: int = 12) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choice(WORDS) for _ in range(generator.randint(1, longest))) + "."
        for _ in range(count)
    ]


@cache
def small_vocabularies() -> Vocabularies:
    subwords = learn_subwords(sentences(300), TextSettings(), pieces=300)
    return Vocabularies(subwords, subwords, shared=True)


def write_model(folder: Path, *, facts: dict[str, Any] | None = None, **settings: Any) -> Path:
    """A model folder with random weights; its transformers speak, sharply, of anything."""
    recipe: Recipe = make_recipe({"model": {**SMALL, **settings}}, **{"search.longest": 1.0})
    vocabularies = small_vocabularies()
    size = vocabularies.source.size
    torch.manual_seed(1)
    model = build_model(recipe.model, source_pieces=size, target_pieces=size, shared=True)
    with torch.no_grad():
        model.output.weight.mul_(4)
    save_model(
        folder,
        ModelCard(recipe, facts=facts or {}),
        module_weights(model),
        {"pieces.model": vocabularies.source.to_bytes()},
    )
    return folder
