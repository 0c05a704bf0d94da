"""`jumok shortlist` learns, measures and stores a shortlist, which `--shortlist` uses."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.storage.folders import json_with_checksum
from jumok.storage.model_folder import read_stored_model
from support.digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call


@pytest.fixture
def model_copy(model: Path, tmp_path: Path) -> Path:
    shutil.copytree(model, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.medium
def test_a_shortlist_is_learnt_measured_stored_and_used(call: Call, model_copy: Path, pairs: Path) -> None:
    before = call("info", model_copy, "--json")
    assert json.loads(before.out)["shortlist"] is False
    result = call("shortlist", model_copy, pairs)
    assert result.code == 0, result.err
    assert "it costs" in result.out
    assert f"`jumok translate {model_copy} --shortlist` uses it" in result.out
    refused = call("shortlist", model_copy, pairs, "--valid", pairs, "--json")
    assert refused.code == 2  # every pair is a validation pair
    facts = json.loads(call("info", model_copy, "--json").out)
    assert facts["shortlist"] is True
    assert {"shortlist_costs", "shortlist_speed", "shortlist_engine"} <= set(facts["facts"])
    assert "shortlist    yes" in call("info", model_copy).out
    lines = b"one two three\n\nfour\n"
    for engine in ("torch", "ctranslate2"):
        result = call("translate", model_copy, "--shortlist", "--engine", engine, stdin=lines)
        assert (result.code, result.out.count("\n")) == (0, 3), result.err
    assert call("evaluate", model_copy, pairs, "--shortlist").code == 0


def test_a_model_without_a_shortlist_says_how_to_get_one(call: Call, model: Path, pairs: Path) -> None:
    message = call("translate", model, "--shortlist", stdin=b"one\n").error_of("translate")
    assert f"`jumok shortlist {model} PAIRS`" in message
    assert "has no shortlist" in call("evaluate", model, pairs, "--shortlist").error_of("evaluate")


def test_a_shortlist_is_measured_only_on_pairs_that_training_held_out(
    call: Call, model_copy: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"one {n}\ttwo {n}\n" for n in range(40)), encoding="utf-8")
    message = call("shortlist", model_copy, few).error_of("shortlist")
    assert "measured on 4 of the pairs given here" in message
    assert "--valid" in message


@pytest.mark.medium
def test_pairs_of_a_model_trained_with_valid_are_not_mistaken_for_held_out_pairs(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    """With `--valid`, training holds out no pair of the training file.

    The validation set here has as many pairs as training would hold out without `--valid`. So the number of
    validation pairs does not show that they come from another file.
    """
    valid = write_tsv(tmp_path / "valid.en-de.tsv", digit_lines(6, seed=5))
    out = tmp_path / "run"
    jumok.train(pairs, out=out, valid=valid, **TINY)
    card = read_stored_model(out / "model").card
    message = call("shortlist", out / "model", pairs).error_of("shortlist")
    assert "measured on 6 of the pairs given here" in message
    assert card.facts["validation_pairs"] == 6
    assert "not the pairs that training held out" in message
    result = call("shortlist", out / "model", pairs, "--valid", valid)
    assert (result.code, result.err) == (0, "")


def test_a_model_of_an_older_jumok_needs_pairs_to_measure_on(
    call: Call, model_copy: Path, pairs: Path
) -> None:
    card = json.loads((model_copy / "jumok.json").read_text(encoding="utf-8"))
    del card["checksum"], card["facts"]["validation_fingerprint"]
    (model_copy / "jumok.json").write_bytes(json_with_checksum(card))
    message = call("shortlist", model_copy, pairs).error_of("shortlist")
    assert "trained by an older jumok" in message
    assert "--valid" in message


@pytest.mark.medium
def test_a_shortlist_is_measured_on_the_validation_set_of_the_option_valid(
    call: Call, model_copy: Path, pairs: Path, gold_pairs: Path
) -> None:
    result = call("shortlist", model_copy, pairs, "--valid", gold_pairs, "--json")
    assert result.code == 0, result.err
    assert "not those that training held out" in result.err
    facts = json.loads(result.out)
    assert facts["validation_pairs"] == 6
    assert facts["shortlist_costs"] == pytest.approx(facts["bleu"] - facts["bleu_shortlisted"], abs=1e-3)
    assert facts["shortlist_speed"] > 0
    assert read_stored_model(model_copy).card.facts["shortlist_speed"] == facts["shortlist_speed"]
