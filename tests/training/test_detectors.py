"""Each detector fires on its planted case and is silent on a healthy run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch

from jumok.training.detectors import Evidence, flatness, inspect, odd_piece_share, unigram_entropy
from jumok.training.state import ValidationRecord

REFERENCES = tuple(f"sentence number {i} is here" for i in range(40))


def record(step: int, loss: float, training_loss: float) -> ValidationRecord:
    return ValidationRecord(step, loss, training_loss, {"chrf": 50.0})


HEALTHY = Evidence(
    step=800,
    steps=1000,
    warmup=100,
    validations=(record(200, 4.0, 4.1), record(400, 3.0, 3.2), record(600, 2.5, 2.6)),
    loss=2.3,
    training_loss=2.4,
    hypotheses=tuple(text.replace("here", "there") for text in REFERENCES),
    references=REFERENCES,
    unigram_entropy=6.0,
    odd_pieces=0.001,
    flatness=0.4,
)

PLANTED = {
    "same output": {"hypotheses": ("a man .",) * 30 + REFERENCES[:10]},
    "odd pieces": {"odd_pieces": 0.2},
    "flat attention": {"flatness": 0.98},
    "not finite": {"loss": math.nan},
    "stuck": {"loss": 5.9},
    "too short": {"hypotheses": tuple(text[:10] for text in REFERENCES)},
    "too long": {"hypotheses": tuple(text * 2 for text in REFERENCES)},
    "overfitting": {
        "validations": (record(200, 2.0, 2.5), record(400, 2.2, 1.9), record(600, 2.4, 1.4)),
        "loss": 2.6,
        "training_loss": 1.0,
    },
}


def test_a_healthy_run_is_left_in_peace() -> None:
    assert inspect(HEALTHY) == []


@pytest.mark.parametrize("kind", PLANTED)
def test_the_planted_case_is_found(kind: str) -> None:
    found = inspect(replace(HEALTHY, **PLANTED[kind]))  # type: ignore[arg-type]
    assert kind in {finding.kind for finding in found}
    assert all(finding.message and finding.advice for finding in found)


@pytest.mark.parametrize("kind", sorted(set(PLANTED) - {"odd pieces", "overfitting", "not finite"}))
def test_early_on_nothing_is_wrong_yet(kind: str) -> None:
    early = replace(HEALTHY, **PLANTED[kind], step=150)  # type: ignore[arg-type]
    assert inspect(early) == []


def test_references_that_are_alike_excuse_equal_outputs() -> None:
    alike = replace(HEALTHY, hypotheses=("yes",) * 40, references=("yes",) * 40)
    assert inspect(alike) == []


def test_a_loss_that_rises_a_little_is_not_overfitting() -> None:
    validations = (record(200, 2.0, 2.5), record(400, 2.02, 2.3), record(600, 2.03, 2.1))
    assert inspect(replace(HEALTHY, validations=validations, loss=2.04, training_loss=2.0)) == []


def test_unknown_numbers_say_nothing() -> None:
    unknown = replace(HEALTHY, unigram_entropy=math.nan, flatness=math.nan, training_loss=math.nan)
    assert inspect(unknown) == []


def test_without_a_planned_end_a_few_validations_must_pass() -> None:
    planted = replace(HEALTHY, steps=None, flatness=0.99)
    assert inspect(planted) == []
    assert inspect(replace(planted, validations=(*HEALTHY.validations, record(700, 2.4, 2.5)))) != []


def test_unigram_entropy_by_hand() -> None:
    assert unigram_entropy(Counter({1: 5, 2: 5})) == pytest.approx(math.log(2))
    assert unigram_entropy(Counter({1: 5})) == 0
    assert math.isnan(unigram_entropy(Counter()))


def test_odd_pieces_by_hand() -> None:
    assert odd_piece_share(["▁a", "<0xE2>", "<unk>", "b"]) == 0.5
    assert odd_piece_share([]) == 0


def test_flatness_by_hand() -> None:
    uniform = torch.full((2, 1, 2, 3, 4), 0.25)
    lengths = torch.tensor([4, 4])
    assert flatness(uniform, lengths, lengths) == pytest.approx(1.0)
    pointed = uniform.clone()
    pointed[:, 0, 1] = torch.tensor([1.0, 0, 0, 0])  # one head that points is enough
    assert flatness(pointed, lengths, lengths) == pytest.approx(0.0, abs=1e-6)


def test_flatness_leaves_padding_out() -> None:
    weights = torch.zeros(2, 1, 1, 3, 4)
    weights[0, ..., :2, :2] = 0.5  # a source of 2, a target of 2 steps; the third query is padding
    weights[1] = 0.25
    found = flatness(weights, torch.tensor([3, 4]), torch.tensor([2, 4]))
    assert found == pytest.approx(1.0)
    assert math.isnan(flatness(weights[:1], torch.tensor([3]), torch.tensor([1])))
