"""Each detector finds its own problem. On a healthy run, no detector finds a problem."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch

from jumok.training.loop.detectors import (
    Evidence,
    byte_token_share,
    flatness,
    run_detectors,
    training_diverged,
    unigram_entropy,
)
from jumok.training.loop.state import ValidationRecord

REFERENCES = tuple(f"sentence number {i} is here" for i in range(40))


def record(step: int, validation_loss: float, training_loss: float) -> ValidationRecord:
    return ValidationRecord(step, validation_loss, training_loss, {"chrf": 50.0})


HEALTHY = Evidence(
    step=800,
    steps=1000,
    warmup_steps=100,
    validations=(record(200, 4.0, 4.1), record(400, 3.0, 3.2), record(600, 2.5, 2.6)),
    validation_loss=2.3,
    training_loss=2.4,
    hypotheses=tuple(text.replace("here", "there") for text in REFERENCES),
    references=REFERENCES,
    unigram_entropy=6.0,
    uniform_loss=8.0,
    byte_token_share=0.001,
    flatness=0.4,
)

BROKEN = {
    "same output": {"hypotheses": ("a man .",) * 30 + REFERENCES[:10]},
    "odd tokens": {"byte_token_share": 0.2},
    "flat attention": {"flatness": 0.98},
    "not finite": {"validation_loss": math.nan},
    "diverged": {"validation_loss": 87_300_121.0},
    "stuck": {"validation_loss": 5.9},
    "too short": {"hypotheses": tuple(text[:10] for text in REFERENCES)},
    "too long": {"hypotheses": tuple(text * 2 for text in REFERENCES)},
    "overfitting": {
        "validations": (record(200, 2.0, 2.5), record(400, 2.2, 1.9), record(600, 2.4, 1.4)),
        "validation_loss": 2.6,
        "training_loss": 1.0,
    },
}


def test_a_healthy_run_has_no_findings() -> None:
    assert run_detectors(HEALTHY) == []


def test_odd_tokens_are_called_usual_in_a_small_corpus() -> None:
    [finding] = run_detectors(replace(HEALTHY, byte_token_share=0.2))
    assert "usual if the training text is small" in finding.advice
    # The vocabulary may already be as large as the text allows.
    assert "vocab_size" not in finding.advice


@pytest.mark.parametrize("kind", BROKEN)
def test_each_problem_is_found(kind: str) -> None:
    findings = run_detectors(replace(HEALTHY, **BROKEN[kind]))  # type: ignore[arg-type]
    assert kind in {finding.kind for finding in findings}
    assert all(finding.message and finding.advice for finding in findings)


@pytest.mark.parametrize(
    "kind", sorted(set(BROKEN) - {"odd tokens", "overfitting", "not finite", "diverged"})
)
def test_early_in_a_run_half_of_the_detectors_report_nothing(kind: str) -> None:
    # A run is early up to step 200 (`LATE_STEPS`).
    early = replace(HEALTHY, **BROKEN[kind], step=150)  # type: ignore[arg-type]
    assert run_detectors(early) == []


def test_equal_outputs_are_no_finding_if_the_references_are_equal() -> None:
    equal = replace(HEALTHY, hypotheses=("yes",) * 40, references=("yes",) * 40)
    assert run_detectors(equal) == []


def test_a_loss_that_rises_a_little_is_not_overfitting() -> None:
    validations = (record(200, 2.0, 2.5), record(400, 2.02, 2.3), record(600, 2.03, 2.1))
    assert (
        run_detectors(replace(HEALTHY, validations=validations, validation_loss=2.04, training_loss=2.0))
        == []
    )


def test_numbers_that_were_not_measured_give_no_finding() -> None:
    unknown = replace(HEALTHY, unigram_entropy=math.nan, flatness=math.nan, training_loss=math.nan)
    assert run_detectors(unknown) == []


def test_without_a_planned_end_detectors_wait_for_a_few_validations() -> None:
    flat = replace(HEALTHY, steps=None, flatness=0.99)
    assert run_detectors(flat) == []
    assert run_detectors(replace(flat, validations=(*HEALTHY.validations, record(700, 2.4, 2.5)))) != []


def test_unigram_entropy_by_hand() -> None:
    assert unigram_entropy(Counter({1: 5, 2: 5})) == pytest.approx(math.log(2))
    assert unigram_entropy(Counter({1: 5})) == 0
    assert math.isnan(unigram_entropy(Counter()))


def test_byte_token_share_by_hand() -> None:
    assert byte_token_share(["▁a", "<0xE2>", "<unk>", "b"]) == 0.5
    assert byte_token_share([]) == 0


def test_flatness_by_hand() -> None:
    uniform = torch.full((2, 1, 2, 3, 4), 0.25)  # (batch, layer, head, query, key)
    lengths = torch.tensor([4, 4])
    assert flatness(uniform, lengths, lengths) == pytest.approx(1.0)
    peaked = uniform.clone()
    peaked[:, 0, 1] = torch.tensor([1.0, 0, 0, 0])  # one peaked head is enough
    assert flatness(peaked, lengths, lengths) == pytest.approx(0.0, abs=1e-6)


def test_flatness_ignores_padding() -> None:
    weights = torch.zeros(2, 1, 1, 3, 4)
    # Sentence 0 has 2 source tokens. Its target of 3 tokens has 2 queries, so the third query is padding.
    weights[0, ..., :2, :2] = 0.5
    weights[1] = 0.25
    assert flatness(weights, torch.tensor([3, 4]), torch.tensor([2, 4])) == pytest.approx(1.0)
    assert math.isnan(flatness(weights[:1], torch.tensor([3]), torch.tensor([1])))


def test_divergence_is_reported_above_the_uniform_loss_but_early_in_a_run_only_far_above_it() -> None:
    # The uniform loss is 8.0. "Far above it" is more than `DIVERGED_RATIO` times 8.0, which is 12.0. If the
    # training loss is below the uniform loss, the limit is `USELESS_RATIO` times 8.0, which is 32.0.
    def kinds(**changes: float) -> set[str]:
        return {finding.kind for finding in run_detectors(replace(HEALTHY, **changes))}  # type: ignore[arg-type]

    assert "diverged" in kinds(validation_loss=8.1, training_loss=8.1)
    assert "diverged" not in kinds(validation_loss=8.1, training_loss=8.1, step=20)
    assert "diverged" in kinds(validation_loss=12.1, training_loss=math.nan, step=20)
    assert "diverged" not in kinds(validation_loss=12.1, training_loss=0.5)  # overfitting, not divergence
    assert "diverged" in kinds(validation_loss=32.1, training_loss=0.5)


@pytest.mark.parametrize(("loss", "reported"), [(7.0, False), (11.9, False), (12.1, True), (math.nan, False)])
def test_a_training_loss_far_above_the_uniform_loss_is_reported(loss: float, reported: bool) -> None:
    assert (training_diverged(loss, uniform_loss=8.0) is not None) is reported
