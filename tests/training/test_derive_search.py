"""How long a translation may become, from the pairs that were seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from jumok.recipe import make_recipe
from jumok.training.derive import derive_search


def store(pairs: list[tuple[int, int]]) -> Any:
    """Lengths of pairs in pieces, as a store has them: with one mark, and with two."""
    source, target = numpy.array(pairs).T
    return SimpleNamespace(source_lengths=source + 1, target_lengths=target + 2)


@pytest.mark.parametrize(
    ("pairs", "longest"),
    [
        ([(10, 10), (10, 30), (20, 20)], 2.5),  # 30 = 2 · 10 + 10, and a quarter more
        ([(12, 18)] * 5, 1.88),  # all are short: what is usual for a piece decides
        ([(4, 60)], 3.0),  # never more than three times
        ([(20, 5)] * 3, 1.0),  # nor less than once
    ],
)
def test_somewhat_longer_than_any_that_was_seen(pairs: list[tuple[int, int]], longest: float) -> None:
    recipe, reasons = derive_search(make_recipe(), make_recipe(), store(pairs))
    assert recipe.search.longest == pytest.approx(longest)
    assert [reason.setting for reason in reasons] == ["search.longest"]


def test_what_was_set_stays() -> None:
    asked = make_recipe(**{"search.longest": 2.2})
    recipe, reasons = derive_search(asked, asked, store([(10, 10)]))
    assert recipe.search.longest == 2.2
    assert reasons == []
