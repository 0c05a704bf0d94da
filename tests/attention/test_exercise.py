"""The code of the exercise in CONTRIBUTING.md: a new score needs one file and one row of the catalogue."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
import torch

from jumok.attention import CATALOGUE, CatalogueEntry, make_attention
from jumok.config.recipe import AttentionSettings, make_recipe
from jumok.models.build import build_model
from jumok.models.validate import attention_overrides, check_model
from support.contract_checks import CHECKS, WIDTH, Case, Subject

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
CASES = [
    Case(batch=2, heads=2, queries=3, keys=4, density=0.6, seed=1),
    Case(batch=1, heads=4, queries=1, keys=17, density=1.0, seed=2),
    Case(batch=3, heads=1, queries=5, keys=2, density=0.3, seed=3),
]


@pytest.fixture
def cosine(monkeypatch):
    """Add the row of the exercise to the catalogue."""
    exercise = PAGE.read_text(encoding="utf-8").split("### An exercise")[1]
    file, row = re.findall(r"```python\n(.*?)```", exercise, flags=re.DOTALL)[:2]
    module = types.ModuleType("jumok.attention.cosine")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(file, "cosine.py", "exec"), module.__dict__)
    rows = eval(f"{{{row}}}", {"CatalogueEntry": CatalogueEntry, **vars(module)})
    for name, entry in rows.items():
        monkeypatch.setitem(CATALOGUE, name, entry)
    assert list(rows) == ["cosine"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_new_score_keeps_the_contract(cosine, check):
    attention_settings = AttentionSettings(kind="cosine", sharpness=2.0)
    for case in CASES:
        check(
            Subject(
                lambda **options: make_attention(attention_settings, width=WIDTH, **options), torch.float64
            ),
            case,
        )


def test_a_model_can_use_the_new_score_by_name(cosine):
    for family in ("transformer", "recurrent"):
        recipe = make_recipe({"model": {"family": family}}, **attention_overrides(family, "cosine"))
        check_model(recipe.model)
        model = build_model(recipe.model, source_vocab_size=20, target_vocab_size=20, shared=True)
        kinds = {type(part).__name__ for part in model.modules()}
        assert "Cosine" in kinds
        assert "ScaledDot" not in kinds
