"""The paired bootstrap against sacreBLEU's tests, and on systems with a known difference."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from jumok.errors import DataError
from jumok.evaluation.bootstrap import Resampling, compare
from jumok.evaluation.scores import score

if TYPE_CHECKING:
    from typing import Any


def sacrebleu_test(
    kind: str, baseline: list[str], system: list[str], references: list[str]
) -> dict[str, Any]:
    """Return sacreBLEU's results: "bs" is the paired bootstrap, "ar" approximate randomisation."""
    metrics = {"bleu": BLEU(force=True), "chrf": CHRF()}
    named = [("baseline", baseline), ("system", system)]
    _, results = PairedTest(named, metrics, [references], kind, n_samples=1000)()
    return {"bleu": results["BLEU"], "chrf": results["chrF2"]}


def test_scores_and_intervals_equal_the_results_of_sacrebleu(
    baseline: list[str], system: list[str], references: list[str]
) -> None:
    expected = sacrebleu_test("bs", baseline, system, references)
    for name, comparison in compare(baseline, system, references).items():
        sacrebleu_results = expected[name]
        assert [comparison.baseline, comparison.system] == pytest.approx(
            [result.score for result in sacrebleu_results]
        )
        low, high = comparison.system_interval
        assert (high - low) / 2 == pytest.approx(sacrebleu_results[1].ci, rel=0.02)
        assert low < comparison.system < high


def test_the_p_value_agrees_with_approximate_randomisation(
    baseline: list[str], system: list[str], references: list[str]
) -> None:
    expected = sacrebleu_test("ar", baseline, system, references)
    for name, comparison in compare(baseline, system, references).items():
        assert comparison.p_value == pytest.approx(expected[name][1].p_value, abs=0.06)


def test_a_clear_difference_is_significant(
    baseline: list[str], better_system: list[str], references: list[str]
) -> None:
    for comparison in compare(baseline, better_system, references).values():
        assert comparison.p_value < 0.01
        assert comparison.wins == 1  # the share of samples in which the system is better
        assert comparison.delta == pytest.approx(comparison.system - comparison.baseline)
        assert 0 < comparison.delta_interval[0] < comparison.delta < comparison.delta_interval[1]


def test_swapped_systems_have_the_opposite_delta(
    baseline: list[str], system: list[str], references: list[str]
) -> None:
    forward = compare(baseline, system, references)["bleu"]
    backward = compare(system, baseline, references)["bleu"]
    assert backward.delta == -forward.delta
    assert backward.p_value == forward.p_value
    assert backward.wins == pytest.approx(1 - forward.wins)


def test_a_system_does_not_differ_from_itself(baseline: list[str], references: list[str]) -> None:
    comparison = compare(baseline, baseline, references)["chrf"]
    assert (comparison.delta, comparison.delta_interval, comparison.p_value, comparison.wins) == (
        0,
        (0, 0),
        1,
        0,
    )


def equal_systems(references: list[str], seed: int) -> tuple[list[str], list[str]]:
    """Return two systems of equal quality: each drops one word of about half the sentences."""
    generator = random.Random(seed)
    systems: tuple[list[str], list[str]] = ([], [])
    for reference in references:
        for system in systems:
            words = reference.split()
            if generator.random() < 0.5:
                del words[generator.randrange(len(words))]
            system.append(" ".join(words))
    return systems


@pytest.mark.medium
def test_the_false_positive_rate_is_the_significance_level(references: list[str]) -> None:
    subset = references[:100]
    false_positives = 0
    for seed in range(60):
        first, second = equal_systems(subset, seed)
        false_positives += (
            compare(first, second, subset, metrics=("bleu",), resampling=Resampling(200))["bleu"].p_value
            < 0.1
        )
    assert 1 <= false_positives <= 12  # 6 expected; more than 12 happens once in 150


def test_the_result_depends_on_the_seed(
    baseline: list[str], system: list[str], references: list[str]
) -> None:
    first = compare(baseline, system, references, resampling=Resampling(100))
    assert first == compare(baseline, system, references, resampling=Resampling(100))
    assert first != compare(baseline, system, references, resampling=Resampling(100, seed=1))
    assert first["bleu"].signature.endswith("|bs:100|seed:12345")


def test_compare_has_the_options_of_score(baseline: list[str], references: list[str]) -> None:
    options = {"lowercase": True, "tokenize": "char"}
    comparisons = compare(baseline, baseline, references, resampling=Resampling(10), **options)  # type: ignore[arg-type]
    expected = score(baseline, references, **options)  # type: ignore[arg-type]
    assert comparisons["bleu"].baseline == expected.bleu
    assert comparisons["bleu"].signature.startswith(expected.bleu_signature)


def test_unequal_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="1 baseline, 2 system, 2 references"):
        compare(["a"], ["a", "b"], ["a", "b"])
