"""Tiny models of digits written as words, and sentences for them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from support.digit_lines import ENGLISH, GERMAN, TINY

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"],
}


def make_digit_model(folder: Path, source: str, target: str, tag: str = "") -> Path:
    """Make a model folder with random weights. If there is a `tag`, sources may begin with this tag."""
    import torch

    from jumok.config.recipe import TextSettings, make_recipe
    from jumok.models.build import build_model
    from jumok.storage.model_folder import ModelCard, save_model
    from jumok.storage.tensors import module_weights
    from jumok.text.tokenizer_training import train_tokenizer

    generator = random.Random(1)
    lines = [
        " ".join(generator.choices(DIGITS[code], k=generator.randint(2, 5)))
        for code in (source, target)
        for _ in range(60)
    ] + [f"{tag} one"] * 10 * bool(tag)
    tokenizer = train_tokenizer(lines, TextSettings(), vocab_size=300)
    recipe = make_recipe({"languages": {"source": source, "target": target}}, **TINY)
    torch.manual_seed(1)
    model = build_model(
        recipe.model,
        source_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        shared=True,
    )
    with torch.no_grad():
        model.output.weight.mul_(4)  # makes the distributions peaked, so that rounding changes no translation
    save_model(
        folder / "model",
        ModelCard(recipe),
        module_weights(model),
        {"pieces.model": tokenizer.to_bytes()},
        checked=True,
    )
    return folder / "model"


def sentences(count: int, seed: int = 1) -> list[str]:
    """Return random English sentences of 1 to 12 digits, in words."""
    generator = random.Random(seed)
    return [" ".join(generator.choices(DIGITS["en"], k=generator.randint(1, 12))) for _ in range(count)]
