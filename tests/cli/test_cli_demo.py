"""`jumok demo` writes its files and refuses folders of others. It trains on few pairs here, for seconds."""

from __future__ import annotations

import importlib
import json
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

import pytest

from jumok.training.run import training_run

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

REPORT_KEYS = {
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
    """Make the corpus of the demo small: an untrained model is slow on its thousand test pairs."""
    demo = importlib.import_module("jumok.cli.demo")
    monkeypatch.setattr(demo, "PAIRS", {"train": 300, "valid": 20, "test": 30})


@pytest.mark.medium
@pytest.mark.usefixtures("few_pairs")
def test_the_demo_writes_its_files_and_is_not_trained_again(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    arguments = ["demo", "--out", out, "--minutes", "0.05", "--pairs", "300"]
    result = call(*arguments)
    assert result.code == 0, result.err
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert set(report) >= REPORT_KEYS
    assert (report["pairs"], report["sentences"]) == (300, 30)
    assert 0 < report["train_seconds"] < 60
    assert report["parameters"] > 0
    assert all({"source", "translation", "alignment"} <= set(example) for example in report["examples"])
    assert report["examples"][0]["source"] == "I go home."
    ElementTree.fromstring((out / "attention.svg").read_text(encoding="utf-8"))
    assert f"  page     {out / 'attention.html'}" in result.out
    assert '"format":"jumok-explanation"' in (out / "attention.html").read_text(encoding="utf-8")
    assert f"BLEU {report['bleu']:.1f} (13a)" in result.out
    assert "|tok:13a|" in report["bleu_signature"]
    assert f"jumok translate {out / 'model'}" in result.out
    assert len((out / "corpus" / "train.en-ko.tsv").read_text(encoding="utf-8").splitlines()) == 300

    repeated = call(*arguments)
    assert repeated.code == 0
    assert "this run is already finished" in repeated.out
    new_report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    # `train_seconds` is the time of the first command, because the second command did not train.
    assert new_report.pop("train_seconds") == pytest.approx(report.pop("train_seconds"), abs=1)
    assert new_report == report

    other = call("demo", "--out", out, "--minutes", "0.05", "--pairs", "301")
    assert "contains a demo with 300 pairs" in other.error_of("demo")
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["pairs"] == 300


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("run", ["finished_run", "unfinished_run"])
def test_another_run_is_not_changed(run: str, call: Call, request: pytest.FixtureRequest) -> None:
    out = request.getfixturevalue(run)
    before = sorted(out.rglob("*"))
    message = call("demo", "--out", out, "--pairs", "100").error_of("demo")
    assert f"{out} contains another run, not a demo" in message
    assert sorted(out.rglob("*")) == before


@pytest.mark.usefixtures("few_pairs")
def test_a_rank_without_events_prints_no_report(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under torchrun, only rank 0 has events, and only rank 0 writes the model."""
    monkeypatch.setattr(training_run, "training_events", lambda *_, **__: iter(()))
    result = call("demo", "--out", tmp_path / "demo", "--pairs", "100")
    assert (result.code, result.err) == (0, "")
    assert not (tmp_path / "demo" / "report.json").exists()


@pytest.mark.usefixtures("few_pairs")
def test_a_folder_with_other_files_is_not_changed(call: Call, tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_bytes(b"mine")
    message = call("demo", "--out", tmp_path, "--pairs", "100").error_of("demo")
    assert "is not a run of jumok. Received: thesis.docx" in message
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.docx"]
