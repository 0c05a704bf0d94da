"""`jumok models`, and a run of another family with another mechanism, by a word each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from digit_lines import TINY
from jumok.attention import CATALOGUE, POSITIONS
from jumok.models import NORMS
from jumok.recipe import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call

RECURRENT = {name: value for name, value in TINY.items() if name not in ("model.feed_forward", "model.heads")}
SMALL = [word for name, value in RECURRENT.items() for word in ("--set", f"{name}={value}")]


def test_every_family_and_mechanism_is_listed_with_its_paper(call: Call) -> None:
    ran = call("models")
    assert ran.code == 0
    for name in [*FAMILIES, *CATALOGUE, *POSITIONS, *NORMS, "none"]:
        assert f"  {name} " in ran.out
    assert "Bahdanau et al. 2015" in ran.out
    facts = json.loads(call("models", "--json").out)
    assert set(facts["families"]) == set(FAMILIES)
    assert facts["mechanisms"]["restricted"]["places"] == [
        "transformer encoder",
        "transformer decoder",
        "decoder-only",
        "encoder-only",
    ]
    assert facts["mechanisms"]["none"]["places"] == ["recurrent"]
    assert "window" in facts["mechanisms"]["luong-local-p"]["options"]
    assert facts["positions"]["rotary"]["mechanisms"] == ["scaled-dot", "luong-dot", "restricted"]
    assert "Zhang & Sennrich 2019" in facts["norms"]["rms"]["paper"]


@pytest.mark.parametrize("family", ["transformer", "decoder-only"])
def test_positions_and_norm_are_a_setting_each(call: Call, pairs: Path, tmp_path: Path, family: str) -> None:
    layers = {"transformer": {}, "decoder-only": {"model.layers": 1}}[family]
    usual = {name: value for name, value in TINY.items() if not layers or not name.endswith("_layers")}
    chosen = {**usual, **layers, "model.positions": "relative-keys", "model.norm_kind": "batch"}
    words = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]
    out = tmp_path / "run"
    ran = call("train", pairs, "--out", out, "--model", family, *words)
    assert ran.code == 0, ran.err
    assert "pre-norm (batch), positions relative-keys" in call("info", out / "model").out
    assert len(call("translate", out / "model", stdin=b"one two\n\nthree\n").out.splitlines()) == 3
    assert call("look", out / "model", "one two", "--out", tmp_path / "map.svg").code == 0


def test_the_decoder_alone_translates_too(call: Call, pairs: Path, tmp_path: Path) -> None:
    small = [name for name in TINY if not name.endswith("_layers")]
    words = [word for name in small for word in ("--set", f"{name}={TINY[name]}")]
    out = tmp_path / "run"
    ran = call("train", pairs, "--out", out, "--model", "decoder-only", "--set", "model.layers=2", *words)
    assert ran.code == 0, ran.err
    assert "decoder-only" in call("info", out / "model").out
    assert len(call("translate", out / "model", stdin=b"one two\n\nthree\n").out.splitlines()) == 3
    assert call("look", out / "model", "one two", "--out", tmp_path / "map.svg").code == 0


@pytest.mark.parametrize("attention", ["luong-general", "none"])
def test_a_recurrent_model_is_trained_and_used_with_the_same_commands(
    call: Call, pairs: Path, tmp_path: Path, attention: str
) -> None:
    out = tmp_path / "run"
    words = ["--model", "recurrent", "--attention", attention, *SMALL]
    ran = call("train", pairs, "--out", out, *words)
    assert ran.code == 0, ran.err
    assert "recurrent" in ran.err
    told = call("info", out / "model").out
    assert f"gru, attention {attention}" in told
    translated = call("translate", out / "model", stdin=b"one two\n\nthree\n")
    assert translated.code == 0
    assert len(translated.out.splitlines()) == 3
    scored = call("evaluate", out / "model", pairs, "--json")
    assert scored.code == 0, scored.err
    looked = call("look", out / "model", "one two", "--out", tmp_path / "map.svg")
    if attention == "none":
        assert "no attention to its source" in looked.paragraph("look")
    else:
        assert looked.code == 0, looked.err
    again = call("train", pairs, "--out", out)
    assert "already finished" in again.err, "what is not named is not changed"


def test_one_word_puts_a_mechanism_wherever_it_can_stand(call: Call, pairs: Path, tmp_path: Path) -> None:
    small = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
    ran = call("train", pairs, "--out", tmp_path / "run", "--attention", "efficient", *small)
    assert ran.code == 0, ran.err
    told = call("info", tmp_path / "run" / "model").out
    assert "encoder attention efficient, cross attention efficient" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--attention", "none"], "a Transformer is made of attention"),
        (["--attention", "bahdanu"], 'Did you mean "bahdanau"'),
        (["--model", "recurrent", "--attention", "restricted"], "does not support cross"),
        (["--model", "recurrent", "--set", "model.input_feeding=true"], "before its step"),
        (["--attention", "linear", "--set", "model.positions=alibi"], 'Set model.positions to "sinusoidal"'),
        (["--set", "model.positions=learned", "--set", "model.places=90"], "must know 611 places"),
        (["--set", "model.positions=rotory"], "'rotary'"),
        (["--set", 'model.cross_attention={kind = "bahdanau", unts = 3}'], 'Did you mean "units"'),
    ],
)
def test_what_cannot_be_combined_is_refused_before_anything_is_read(
    call: Call, tmp_path: Path, words: list[str], said: str
) -> None:
    ran = call("train", tmp_path / "no-such.tsv", "--out", tmp_path / "run", *words)
    assert said in ran.paragraph("train")
    assert not (tmp_path / "run").exists()
