"""`jumok demo`: the whole line once, here on hardly any pairs and in hardly any time."""

from __future__ import annotations

import importlib
import json
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli_calls import Call

KEYS = {
    "bleu",
    "chrf",
    "ter",
    "alignment_error",
    "train_seconds",
    "pairs",
    "parameters",
    "examples",
    "sentences",
}


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`demo` scores on a thousand pairs; a model that has learnt nothing takes its time over them."""
    demo = importlib.import_module("jumok.cli.demo")
    monkeypatch.setattr(demo, "PAIRS", {"train": 300, "valid": 20, "test": 30})


@pytest.mark.medium
@pytest.mark.usefixtures("few_pairs")
def test_demo(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    words = ["demo", "--out", out, "--minutes", "0.05", "--pairs", "300"]
    ran = call(*words)
    assert ran.code == 0, ran.err
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert set(report) >= KEYS
    assert (report["pairs"], report["sentences"]) == (300, 30)
    assert 0 < report["train_seconds"] < 60
    assert report["parameters"] > 0
    assert all({"source", "translation", "alignment"} <= set(example) for example in report["examples"])
    assert report["examples"][0]["source"] == "I go home."
    ElementTree.fromstring((out / "attention.svg").read_text(encoding="utf-8"))
    assert f"  page     {out / 'attention.html'}" in ran.out
    assert '"format":"jumok-explanation"' in (out / "attention.html").read_text(encoding="utf-8")
    assert f"BLEU {report['bleu']:.1f} (13a)" in ran.out
    assert "|tok:13a|" in report["bleu_signature"]
    assert f"jumok translate {out / 'model'}" in ran.out
    assert len((out / "corpus" / "train.en-ko.tsv").read_text(encoding="utf-8").splitlines()) == 300

    again = call(*words)
    assert again.code == 0
    assert "this run is already finished" in again.out
    repeated = json.loads((out / "report.json").read_text(encoding="utf-8"))
    # The time that training took, not the time it took to see that it is finished.
    assert repeated.pop("train_seconds") == pytest.approx(report.pop("train_seconds"), abs=1)
    assert repeated == report

    other = call("demo", "--out", out, "--minutes", "0.05", "--pairs", "301")
    assert "holds a demo on 300 pairs" in other.paragraph("demo")
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["pairs"] == 300

    assert "training.minutes: asked 0.06" in call(*words[:3], "--minutes", "0.06", *words[5:]).err


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("run", ["finished_run", "unfinished_run"])
def test_another_run_stays_as_it_is(run: str, call: Call, request: pytest.FixtureRequest) -> None:
    out = request.getfixturevalue(run)
    before = sorted(out.rglob("*"))
    said = call("demo", "--out", out, "--pairs", "100").paragraph("demo")
    assert f"{out} holds another run, not a demo" in said
    assert sorted(out.rglob("*")) == before


@pytest.mark.usefixtures("few_pairs")
def test_a_folder_with_something_else_stays_as_it_is(call: Call, tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_bytes(b"mine")
    said = call("demo", "--out", tmp_path, "--pairs", "100").paragraph("demo")
    assert "is not a run of jumok. Received: thesis.docx" in said
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.docx"]
