"""`jumok shortlist`: learnt, measured, stored, and used with --shortlist."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from jumok.cli.shortlist import _refuse_training_pairs
from jumok.errors import DataError
from jumok.storage import read_stored_model

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call


@pytest.fixture
def copied(model: Path, tmp_path: Path) -> Path:
    shutil.copytree(model, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.medium
def test_a_shortlist_is_learnt_measured_stored_and_used(call: Call, copied: Path, pairs: Path) -> None:
    before = call("info", copied, "--json")
    assert json.loads(before.out)["shortlist"] is False
    result = call("shortlist", copied, pairs)
    assert result.code == 0, result.err
    assert "it costs" in result.out
    assert f"`jumok translate {copied} --shortlist` uses it" in result.out
    refused = call("shortlist", copied, pairs, "--valid", pairs, "--json")
    assert refused.code == 2  # every pair is a validation pair
    facts = json.loads(call("info", copied, "--json").out)
    assert facts["shortlist"] is True
    assert {"shortlist_costs", "shortlist_speed", "shortlist_engine"} <= set(facts["facts"])
    assert "shortlist    yes" in call("info", copied).out
    lines = b"one two three\n\nfour\n"
    for engine in ("torch", "ctranslate2"):
        result = call("translate", copied, "--shortlist", "--engine", engine, stdin=lines)
        assert (result.code, result.out.count("\n")) == (0, 3), result.err
    assert call("evaluate", copied, pairs, "--shortlist").code == 0


def test_a_model_without_a_shortlist_says_how_to_get_one(call: Call, model: Path, pairs: Path) -> None:
    message = call("translate", model, "--shortlist", stdin=b"one\n").paragraph("translate")
    assert f"`jumok shortlist {model} PAIRS`" in message
    assert "has no shortlist" in call("evaluate", model, pairs, "--shortlist").paragraph("evaluate")


def test_training_pairs_are_refused_for_measuring(call: Call, copied: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"one {n}\ttwo {n}\n" for n in range(40)), encoding="utf-8")
    message = call("shortlist", copied, few).paragraph("shortlist")
    assert "of the pairs given here 4 would be held out" in message
    assert "--valid" in message


@pytest.mark.parametrize(
    ("held_out", "validated", "refused"),
    [
        (10_000, 2000, False),  # training validates on 2000 pairs at most
        (10_000, 1990, False),  # and drops pairs that are too long
        (10_000, 900, True),
        (10_000, 2001, True),
        (100, 100, False),
        (100, 101, True),
        (100, None, False),  # not recorded
    ],
)
def test_the_number_of_validation_pairs_tells_whether_these_are_the_training_files(
    held_out: int, validated: int | None, refused: bool
) -> None:
    with pytest.raises(DataError, match="--valid") if refused else nullcontext():
        _refuse_training_pairs(held_out, validated)


@pytest.mark.medium
def test_the_shortlist_is_not_learnt_from_the_pairs_it_is_measured_on(
    call: Call, copied: Path, pairs: Path, gold_pairs: Path
) -> None:
    result = call("shortlist", copied, pairs, "--valid", gold_pairs, "--json")
    assert result.code == 0, result.err
    facts = json.loads(result.out)
    assert facts["validation_pairs"] == 6
    assert facts["shortlist_costs"] == pytest.approx(facts["bleu"] - facts["bleu_shortlisted"], abs=1e-3)
    assert facts["shortlist_speed"] > 0
    assert read_stored_model(copied).card.facts["shortlist_speed"] == facts["shortlist_speed"]
