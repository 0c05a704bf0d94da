"""Models with random weights, most with confident predictions, and model folders with them."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from jumok.config.recipe import SETTINGS_BY_FAMILY, Recipe, TextSettings, make_recipe
from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine
from jumok.inference.engines.ctranslate2_export import export
from jumok.inference.engines.torch_engine import TorchEngine
from jumok.models.build import build_model
from jumok.models.model import OutputLayer
from jumok.storage.model_folder import ModelCard, save_model
from jumok.storage.tensors import module_weights
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer
from jumok.types import BEGIN, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jumok.inference.engines.protocol import Engine
    from jumok.inference.search.plan import Sampling, SearchPlan
    from jumok.models.model import TranslationModel
    from jumok.types import Hypothesis

WORDS = ["the", "a", "small", "old", "house", "tree", "river", "sees", "knows", "and", "near", "home"]
SMALL = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "feed_forward": 32, "heads": 2}


def random_model(
    *, vocab_size: int = 24, seed: int = 1, tied: bool = False, **settings: Any
) -> TranslationModel:
    """Return a small model with random weights.

    If not `tied`, its predictions are confident, and it never predicts `<pad>` or `<s>`.
    """
    torch.manual_seed(seed)
    family = SETTINGS_BY_FAMILY[settings.get("family", "transformer")]
    validated: Any = family.model_validate({**SMALL, "tied": tied, **settings})
    model = build_model(validated, source_vocab_size=vocab_size, target_vocab_size=vocab_size, shared=True)
    if not tied:
        model.output = OutputLayer(torch.nn.Parameter(torch.randn(vocab_size, 16) * 0.5), bias=True)
        with torch.no_grad():
            model.output.bias[[PAD, BEGIN]] = -1e4  # type: ignore[index]
    return model.eval()


def both_engines(
    model: TranslationModel, *, max_positions: int = 1024
) -> tuple[TorchEngine, CTranslate2Engine]:
    """Return an engine of torch and an engine of CTranslate2 with the same model."""
    files = export(model, max_positions=max_positions)
    return TorchEngine(model), CTranslate2Engine(files, vocab_size=len(model.output.weight))


def all_ids(hypotheses: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    """Return the token ids of all hypotheses of each sentence."""
    return [[hypothesis.ids for hypothesis in sentence_hypotheses] for sentence_hypotheses in hypotheses]


def run_search(
    engine: Engine,
    sources: Sequence[Sequence[int]],
    plan: SearchPlan,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    sampling: Sampling | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each source, in the order of the sources."""
    hypotheses_of: dict[int, list[Hypothesis]] = {}
    prefixes = prefixes or [[] for _ in sources]
    for group, hypotheses in engine.search(sources, plan, prefixes=prefixes, sampling=sampling):
        hypotheses_of.update(zip(group, hypotheses, strict=True))
    return [hypotheses_of[i] for i in range(len(sources))]


def sentences(count: int, *, seed: int = 1, max_words: int = 12) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choice(WORDS) for _ in range(generator.randint(1, max_words))) + "."
        for _ in range(count)
    ]


@cache
def small_tokenizers() -> TokenizerPair:
    tokenizer = train_tokenizer(sentences(300), TextSettings(), vocab_size=300)
    return TokenizerPair(tokenizer, tokenizer, shared=True)


def write_model(folder: Path, *, facts: dict[str, Any] | None = None, **settings: Any) -> Path:
    """Write a model folder with random weights. The weights give a Transformer confident predictions."""
    recipe: Recipe = make_recipe({"model": {**SMALL, **settings}}, **{"search.max_length_ratio": 1.0})
    tokenizers = small_tokenizers()
    size = tokenizers.source.vocab_size
    torch.manual_seed(1)
    model = build_model(recipe.model, source_vocab_size=size, target_vocab_size=size, shared=True)
    with torch.no_grad():
        model.output.weight.mul_(4)
    save_model(
        folder,
        ModelCard(recipe, facts=facts or {}),
        module_weights(model),
        {"pieces.model": tokenizers.source.to_bytes()},
        checked=True,
    )
    return folder
