"""`jumok models`, and training with other families, mechanisms, positions and norms than the default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jumok.attention import CATALOGUE, POSITIONS
from jumok.config.recipe import SETTINGS_BY_FAMILY, named_recipes
from jumok.models.norms import NORMS
from support.digit_lines import TINY

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

RECURRENT = {name: value for name, value in TINY.items() if name not in ("model.feed_forward", "model.heads")}
RECURRENT_OPTIONS = [option for name, value in RECURRENT.items() for option in ("--set", f"{name}={value}")]


def test_every_family_and_mechanism_is_listed_with_its_paper(call: Call) -> None:
    result = call("models")
    assert result.code == 0
    for name in [*SETTINGS_BY_FAMILY, *CATALOGUE, *POSITIONS, *NORMS, *named_recipes(), "none"]:
        assert f"  {name} " in result.out
    assert "Bahdanau et al. 2015" in result.out
    facts = json.loads(call("models", "--json").out)
    assert set(facts["families"]) == set(SETTINGS_BY_FAMILY)
    assert facts["mechanisms"]["restricted"]["sites"] == [
        "transformer encoder",
        "transformer decoder",
        "decoder-only",
        "encoder-only",
    ]
    assert facts["mechanisms"]["none"]["sites"] == ["recurrent"]
    # "places" and "paper" are the old names of "sites" and "description".
    assert all(mechanism["places"] == mechanism["sites"] for mechanism in facts["mechanisms"].values())
    entries = [entry for group in facts.values() for entry in group.values()]
    assert all(entry["paper"] == entry["description"] for entry in entries)
    assert "window" in facts["mechanisms"]["luong-local-p"]["options"]
    product_mechanisms = [name for name, entry in CATALOGUE.items() if entry.supports.products]
    assert facts["positions"]["rotary"]["mechanisms"] == product_mechanisms
    assert "Zhang & Sennrich 2019" in facts["norms"]["rms"]["description"]


@pytest.mark.parametrize("family", ["transformer", "decoder-only"])
def test_positions_and_norm_can_be_set(call: Call, pairs: Path, tmp_path: Path, family: str) -> None:
    layers = {"transformer": {}, "decoder-only": {"model.layers": 1}}[family]
    tiny = {name: value for name, value in TINY.items() if not layers or not name.endswith("_layers")}
    settings = {**tiny, **layers, "model.positions": "relative-keys", "model.norm_kind": "batch"}
    options = [option for name, value in settings.items() for option in ("--set", f"{name}={value}")]
    out = tmp_path / "run"
    result = call("train", pairs, "--out", out, "--model", family, *options)
    assert result.code == 0, result.err
    assert "pre-norm (batch), positions relative-keys" in call("info", out / "model").out
    assert len(call("translate", out / "model", stdin=b"one two\n\nthree\n").out.splitlines()) == 3
    assert call("look", out / "model", "one two", "--out", tmp_path / "map.svg").code == 0


def test_a_decoder_only_model_translates(call: Call, pairs: Path, tmp_path: Path) -> None:
    names = [name for name in TINY if not name.endswith("_layers")]
    options = [option for name in names for option in ("--set", f"{name}={TINY[name]}")]
    out = tmp_path / "run"
    result = call(
        "train", pairs, "--out", out, "--model", "decoder-only", "--set", "model.layers=2", *options
    )
    assert result.code == 0, result.err
    assert "decoder-only" in call("info", out / "model").out
    assert len(call("translate", out / "model", stdin=b"one two\n\nthree\n").out.splitlines()) == 3
    assert call("look", out / "model", "one two", "--out", tmp_path / "map.svg").code == 0


@pytest.mark.parametrize("attention", ["luong-general", "none"])
def test_a_recurrent_model_is_trained_and_used_with_the_same_commands(
    call: Call, pairs: Path, tmp_path: Path, attention: str
) -> None:
    out = tmp_path / "run"
    options = ["--model", "recurrent", "--attention", attention, *RECURRENT_OPTIONS]
    result = call("train", pairs, "--out", out, *options)
    assert result.code == 0, result.err
    assert "recurrent" in result.err
    text = call("info", out / "model").out
    assert f"gru, attention {attention}" in text
    translation = call("translate", out / "model", stdin=b"one two\n\nthree\n")
    assert translation.code == 0
    assert len(translation.out.splitlines()) == 3
    evaluation = call("evaluate", out / "model", pairs, "--json")
    assert evaluation.code == 0, evaluation.err
    look = call("look", out / "model", "one two", "--out", tmp_path / "map.svg")
    if attention == "none":
        assert "no cross-attention" in look.error_of("look")
    else:
        assert look.code == 0, look.err
    repeated = call("train", pairs, "--out", out)
    # This command has none of the options above. The settings of the run apply, so no setting has changed.
    assert "already finished" in repeated.err


def test_attention_sets_the_mechanism_at_every_site_that_supports_it(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    options = [option for name, value in TINY.items() for option in ("--set", f"{name}={value}")]
    result = call("train", pairs, "--out", tmp_path / "run", "--attention", "efficient", *options)
    assert result.code == 0, result.err
    text = call("info", tmp_path / "run" / "model").out
    assert "encoder attention efficient, decoder attention efficient, cross attention efficient" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--attention", "none"], "a Transformer consists of attention"),
        (["--attention", "bahdanu"], 'Did you mean "bahdanau"'),
        (["--model", "recurrent", "--attention", "restricted"], "does not support cross"),
        (["--model", "recurrent", "--set", "model.input_feeding=true"], "before its step"),
        (["--attention", "linear", "--set", "model.positions=alibi"], 'Set model.positions to "sinusoidal"'),
        # By default, a source has at most 200 tokens, and its translation at most 3 · 200 + 10, after <s>.
        (["--set", "model.positions=learned", "--set", "model.max_positions=90"], "must cover 611 positions"),
        (["--set", "model.positions=rotory"], "'rotary'"),
        (["--set", 'model.cross_attention={kind = "bahdanau", unts = 3}'], 'Did you mean "units"'),
    ],
)
def test_impossible_combinations_are_refused_before_any_file_is_read(
    call: Call, tmp_path: Path, options: list[str], message: str
) -> None:
    result = call("train", tmp_path / "no-such.tsv", "--out", tmp_path / "run", *options)
    assert message in result.error_of("train")
    assert not (tmp_path / "run").exists()
