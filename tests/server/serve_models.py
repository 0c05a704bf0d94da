"""Tiny models of digits in words, and sentences for them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from digit_lines import ENGLISH, GERMAN, TINY

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"],
}


def make_digits(folder: Path, source: str, target: str) -> Path:
    """A model folder with random weights, which speaks of anything."""
    import torch

    from jumok.models import build_model
    from jumok.recipe import TextSettings, make_recipe
    from jumok.storage import ModelCard, module_weights, save_model
    from jumok.text import learn_subwords

    generator = random.Random(1)
    lines = [
        " ".join(generator.choices(DIGITS[code], k=generator.randint(2, 5)))
        for code in (source, target)
        for _ in range(60)
    ]
    pieces = learn_subwords(lines, TextSettings(), pieces=300)
    recipe = make_recipe({"languages": {"source": source, "target": target}}, **TINY)
    torch.manual_seed(1)
    model = build_model(recipe.model, source_pieces=pieces.size, target_pieces=pieces.size, shared=True)
    with torch.no_grad():
        model.output.weight.mul_(4)  # sharp opinions, so that rounding decides nothing
    save_model(
        folder / "model", ModelCard(recipe), module_weights(model), {"pieces.model": pieces.to_bytes()}
    )
    return folder / "model"


def sentences(count: int, seed: int = 1) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(DIGITS["en"], k=generator.randint(1, 12))) for _ in range(count)]
