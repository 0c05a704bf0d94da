"""The maximum length of a translation, derived from the pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from jumok.config.derive import derive_search
from jumok.config.recipe import EXTRA_TOKENS
from jumok.config.resolve import Overrides, resolve


def token_lengths(pairs: list[tuple[int, int]], *, pictures: bool = False) -> Any:
    """Return the lengths of encoded pairs, with special tokens: one in a source text, two in a target."""
    source, target = numpy.array(pairs).T
    return SimpleNamespace(source_lengths=source + (0 if pictures else 1), target_lengths=target + 2)


@pytest.mark.parametrize(
    ("pairs", "ratio"),
    [
        ([(10, 10), (10, 30), (20, 20)], 2.5),  # 30 = 2 · 10 + EXTRA_TOKENS, and 2.5 = 1.25 · 2
        ([(12, 18)] * 5, 1.88),  # 1.25 · 18 / 12: all pairs are short, so the mean ratio decides
        ([(4, 60)], 3.0),  # the ratio is at most 3, even if a target is longer
        ([(20, 5)] * 3, 1.0),  # the ratio is at least 1
    ],
)
def test_the_maximum_follows_the_longest_targets_within_bounds(
    pairs: list[tuple[int, int]], ratio: float
) -> None:
    resolved = derive_search(resolve(Overrides()), token_lengths(pairs))
    assert resolved.recipe.search.max_length_ratio == pytest.approx(ratio)
    assert [setting.name for setting in resolved.reasons] == ["search.max_length_ratio"]


def test_an_override_is_not_changed() -> None:
    overrides = Overrides.from_settings(**{"search.max_length_ratio": 2.2})
    resolved = derive_search(resolve(overrides), token_lengths([(10, 10)]))
    assert resolved.recipe.search.max_length_ratio == 2.2
    assert resolved.reasons == ()


def test_the_derived_maximum_fits_into_the_positions_of_the_model() -> None:
    """All pictures have the same number of patches: captions set the ratio, and the positions limit it."""
    pictures = {"source.kind": "pictures", "source.size": 8, "source.patch_size": 4}
    lengths = token_lengths([(4, 190)], pictures=True)
    # 1.25 · 190 tokens for the 4 patches, and EXTRA_TOKENS.
    unlimited = derive_search(resolve(Overrides.from_settings(**pictures)), lengths)
    assert int(4 * unlimited.recipe.search.max_length_ratio) + EXTRA_TOKENS == 247
    limited = derive_search(resolve(Overrides.from_settings(**pictures)), lengths, max_tokens=200)
    assert int(4 * limited.recipe.search.max_length_ratio) + EXTRA_TOKENS == 200
    assert limited.reason_for("search.max_length_ratio").endswith("; the model has positions for 200")
