"""Why 1/√d: variances, entropies, and two softmaxes by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from jumok.profiling.scaling import compare_widths, softmax_examples


def test_the_variance_of_a_dot_product_is_its_width():
    for each in compare_widths():
        assert each.variance == pytest.approx(each.width, rel=0.1)


def test_only_scaled_weights_stay_even_as_the_width_grows():
    compared = compare_widths()
    assert [each.width for each in compared] == [2, 8, 32, 100, 512]
    plain = [each.plain for each in compared]
    assert all(wide.entropy < narrow.entropy for narrow, wide in itertools.pairwise(plain))
    assert all(wide.largest > narrow.largest for narrow, wide in itertools.pairwise(plain))
    assert plain[-1].largest > 0.9
    for each in compared:
        # Sixteen scores of variance 1: the entropy is near ln 16 minus half the variance.
        assert each.scaled.entropy == pytest.approx(math.log(16) - 0.5, abs=0.15)
        assert each.scaled.largest < 0.35


def test_the_softmax_of_small_and_of_large_scores():
    small, large = softmax_examples()
    assert small["scores"] == [1.1, -0.8, -1.7]
    assert small["weights"] == pytest.approx([0.8262, 0.1236, 0.0502], abs=1e-4)
    assert large["scores"] == [9, -11, 7]
    assert large["weights"] == pytest.approx(
        [1 / (1 + math.exp(-2)), 1.8155e-9, 1 / (1 + math.exp(2))], rel=1e-4
    )
