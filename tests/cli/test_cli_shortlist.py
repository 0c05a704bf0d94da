"""`jumok shortlist`: learnt, measured, stored, and used where it is asked for."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

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
    ran = call("shortlist", copied, pairs)
    assert ran.code == 0, ran.err
    assert "it costs" in ran.out
    assert f"`jumok translate {copied} --shortlist` uses it" in ran.out
    again = call("shortlist", copied, pairs, "--valid", pairs, "--json")
    assert again.code == 2  # every pair is a validation pair
    facts = json.loads(call("info", copied, "--json").out)
    assert facts["shortlist"] is True
    assert {"shortlist_costs", "shortlist_speed", "shortlist_engine"} <= set(facts["facts"])
    assert "shortlist    yes" in call("info", copied).out
    lines = b"one two three\n\nfour\n"
    for engine in ("torch", "ctranslate2"):
        found = call("translate", copied, "--shortlist", "--engine", engine, stdin=lines)
        assert (found.code, found.out.count("\n")) == (0, 3), found.err
    assert call("evaluate", copied, pairs, "--shortlist").code == 0


def test_a_model_without_a_shortlist_says_how_to_get_one(call: Call, model: Path, pairs: Path) -> None:
    said = call("translate", model, "--shortlist", stdin=b"one\n").paragraph("translate")
    assert f"`jumok shortlist {model} PAIRS`" in said
    assert "has no shortlist" in call("evaluate", model, pairs, "--shortlist").paragraph("evaluate")


def test_pairs_that_the_model_has_learnt_are_not_measured_on(
    call: Call, copied: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"one {n}\ttwo {n}\n" for n in range(40)), encoding="utf-8")
    said = call("shortlist", copied, few).paragraph("shortlist")
    assert "would have held 4 out of these" in said
    assert "--valid" in said


@pytest.mark.medium
def test_measured_pairs_are_not_learnt_from(call: Call, copied: Path, pairs: Path, gold_pairs: Path) -> None:
    ran = call("shortlist", copied, pairs, "--valid", gold_pairs, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["validation_pairs"] == 6
    assert found["shortlist_costs"] == pytest.approx(found["bleu"] - found["bleu_shortlisted"], abs=1e-3)
    assert found["shortlist_speed"] > 0
    assert read_stored_model(copied).card.facts["shortlist_speed"] == found["shortlist_speed"]
