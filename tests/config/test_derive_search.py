"""The maximum length of a translation, derived from the pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from jumok.config.derive import derive_search
from jumok.config.recipe import make_recipe


def store(pairs: list[tuple[int, int]]) -> Any:
    """Return the lengths in a store: a source has one special token, a target has two."""
    source, target = numpy.array(pairs).T
    return SimpleNamespace(source_lengths=source + 1, target_lengths=target + 2)


@pytest.mark.parametrize(
    ("pairs", "ratio"),
    [
        ([(10, 10), (10, 30), (20, 20)], 2.5),  # 30 = 2 · 10 + 10, and a quarter more
        ([(12, 18)] * 5, 1.88),  # all are short: the mean ratio decides
        ([(4, 60)], 3.0),  # at most three times
        ([(20, 5)] * 3, 1.0),  # at least once
    ],
)
def test_the_maximum_is_somewhat_longer_than_any_target(pairs: list[tuple[int, int]], ratio: float) -> None:
    recipe, derived = derive_search(make_recipe(), make_recipe(), store(pairs))
    assert recipe.search.max_length_ratio == pytest.approx(ratio)
    assert [setting.name for setting in derived] == ["search.max_length_ratio"]


def test_an_override_is_not_changed() -> None:
    overrides = make_recipe(**{"search.max_length_ratio": 2.2})
    recipe, derived = derive_search(overrides, overrides, store([(10, 10)]))
    assert recipe.search.max_length_ratio == 2.2
    assert derived == []
