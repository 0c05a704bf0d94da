"""The paired bootstrap against sacreBLEU's own tests, and on systems whose difference is known."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from jumok.errors import DataError
from jumok.evaluation import compare, score

if TYPE_CHECKING:
    from typing import Any


def sacrebleu_test(
    kind: str, baseline: list[str], system: list[str], references: list[str]
) -> dict[str, Any]:
    metrics = {"bleu": BLEU(force=True), "chrf": CHRF()}
    named = [("baseline", baseline), ("system", system)]
    _, results = PairedTest(named, metrics, [references], kind, n_samples=1000)()
    return {"bleu": results["BLEU"], "chrf": results["chrF2"]}


def test_scores_and_intervals_are_sacrebleus(
    baseline: list[str], system: list[str], references: list[str]
) -> None:
    expected = sacrebleu_test("bs", baseline, system, references)
    for name, found in compare(baseline, system, references).items():
        theirs = expected[name]
        assert [found.baseline, found.system] == pytest.approx([result.score for result in theirs])
        low, high = found.system_interval
        assert (high - low) / 2 == pytest.approx(theirs[1].ci, rel=0.02)
        assert low < found.system < high


def test_the_p_value_agrees_with_approximate_randomisation(
    baseline: list[str], system: list[str], references: list[str]
) -> None:
    expected = sacrebleu_test("ar", baseline, system, references)
    for name, found in compare(baseline, system, references).items():
        assert found.p_value == pytest.approx(expected[name][1].p_value, abs=0.06)


def test_a_clear_difference_is_significant(
    baseline: list[str], better: list[str], references: list[str]
) -> None:
    for found in compare(baseline, better, references).values():
        assert found.p_value < 0.01
        assert found.wins == 1
        assert found.delta == pytest.approx(found.system - found.baseline)
        assert 0 < found.delta_interval[0] < found.delta < found.delta_interval[1]


def test_turned_round(baseline: list[str], system: list[str], references: list[str]) -> None:
    there = compare(baseline, system, references)["bleu"]
    back = compare(system, baseline, references)["bleu"]
    assert back.delta == -there.delta
    assert back.p_value == there.p_value
    assert back.wins == pytest.approx(1 - there.wins)


def test_a_system_does_not_differ_from_itself(baseline: list[str], references: list[str]) -> None:
    found = compare(baseline, baseline, references)["chrf"]
    assert (found.delta, found.delta_interval, found.p_value, found.wins) == (0, (0, 0), 1, 0)


def alike(references: list[str], seed: int) -> tuple[list[str], list[str]]:
    """Two systems of equal quality: each drops one word of a sentence in two."""
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
def test_false_alarms_are_as_rare_as_promised(references: list[str]) -> None:
    few = references[:100]
    alarms = 0
    for seed in range(60):
        first, second = alike(few, seed)
        alarms += compare(first, second, few, metrics=("bleu",), samples=200)["bleu"].p_value < 0.1
    assert 1 <= alarms <= 12  # 6 expected; more than 12 happens once in 150


def test_the_seed_decides(baseline: list[str], system: list[str], references: list[str]) -> None:
    first = compare(baseline, system, references, samples=100)
    assert first == compare(baseline, system, references, samples=100)
    assert first != compare(baseline, system, references, samples=100, seed=1)
    assert first["bleu"].signature.endswith("|bs:100|seed:12345")


def test_the_same_options_as_score(baseline: list[str], references: list[str]) -> None:
    options = {"lowercase": True, "tokenize": "char"}
    found = compare(baseline, baseline, references, samples=10, **options)  # type: ignore[arg-type]
    expected = score(baseline, references, **options)  # type: ignore[arg-type]
    assert found["bleu"].baseline == expected.bleu
    assert found["bleu"].signature.startswith(expected.bleu_signature)


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(DataError, match="1 baseline, 2 system, 2 references"):
        compare(["a"], ["a", "b"], ["a", "b"])
