"""`jumok compare` as a person calls it: a whole small comparison, its repetition, its refusals, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from digit_lines import digit_lines, write_tsv
from jumok.cli import main
from jumok.training.folder import RunFolder

# Models of any family, so small that they learn nothing.
TINY = (
    "model.width=16",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "text.pieces=300",
    "search.beam=2",
    "search.longest=1.0",
)
SMALL = [word for setting in TINY for word in ("--set", setting)]


@pytest.fixture
def call(capsys):
    """(exit code, stdout, stderr) of `jumok compare WORDS` in this process."""

    def run(*words):
        with pytest.raises(SystemExit) as end:
            main(["compare", *map(str, words)])
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


@pytest.mark.medium
def test_two_contenders_are_compared_and_not_trained_again(call, tmp_path, monkeypatch):
    pairs, out = write_tsv(tmp_path / "digits.en-de.tsv", digit_lines(60)), tmp_path / "out"
    words = [pairs, "--model", "recurrent", "--attention", "none,bahdanau", "--steps", "3", "--out", out]
    code, said, told = call(*words, *SMALL, "--json")
    assert code == 0, told
    found = json.loads(said)
    first, second = found["contenders"]
    assert [first["name"], second["name"]] == ["recurrent-none", "recurrent-bahdanau"]
    assert (first["p_value"], first["alignment_error"]) == (None, None)
    assert 0 < second["p_value"] <= 1
    assert 0 <= second["alignment_error"] <= 1
    assert first["parameters"] < second["parameters"]
    for row in (first, second):
        assert 0 <= row["bleu_interval"][0] <= row["bleu_interval"][1] <= 100
        assert row["steps"] == 3
        assert row["peak_memory"] > 50
        assert row["decoding_sentences"] > 0
        assert [point["step"] for point in row["curve"]][-1] == 3
        assert len(row["bleu_by_length"]) == len(found["quarters"]) == 4
    assert found["sentences"] == 6
    assert found["unequal"] == []
    assert "[1/2] recurrent-none" in told
    assert "[2/2] recurrent-bahdanau" in told
    assert told.count("3 steps") >= 2, "the lines of the training display"
    recipes = [RunFolder(out / row["name"]).record().recipe for row in (first, second)]
    assert recipes[0].text == recipes[1].text
    assert recipes[0].training.batch_tokens == recipes[1].training.batch_tokens
    pieces = [(out / row["name"] / "pieces.model").read_bytes() for row in (first, second)]
    assert pieces[0] == pieces[1]
    assert json.loads((out / "compare.json").read_text(encoding="utf-8")) == found
    assert "recurrent-bahdanau" in (out / "report.html").read_text(encoding="utf-8")

    monkeypatch.setattr(subprocess, "Popen", None)  # a second process would fail
    code, said, told = call(*words, *SMALL)
    assert code == 0, told
    assert told.count("already finished") == 2
    assert "recurrent-bahdanau" in said
    assert f"report: {out / 'report.html'}" in said
    assert json.loads((out / "compare.json").read_text(encoding="utf-8")) == found

    code, _, told = call(*words, *SMALL, "--set", "model.dropout=0.4")
    assert code == 2
    assert "model.dropout: asked 0.4" in told


@pytest.mark.medium
def test_an_interrupted_comparison_saves_and_says_so(tmp_path):
    pairs, out = write_tsv(tmp_path / "digits.en-de.tsv", digit_lines(60)), tmp_path / "out"
    words = ["compare", pairs, "--contender", "recurrent", "--contender", "transformer", "--out", out]
    program = [sys.executable, "-c", "from jumok.cli import main; main()", *map(str, words), *SMALL]
    with subprocess.Popen(
        [*program, "--steps", "1000000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        told = ""
        while "parameters" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, told + rest
    assert "interrupted at recurrent. The same command continues" in rest
    assert "Traceback" not in rest
    assert list((out / "recurrent" / "checkpoints").glob("step-*"))
    assert not (out / "transformer").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--attention", "none,bahdanu", "--model", "recurrent", "--steps", "3"], 'Did you mean "bahdanau"'),
        (
            ["--model", "transformer", "--attention", "none", "--steps", "3"],
            "a Transformer is made of attention",
        ),
        (["--attention", "none", "--steps", "3"], "Received: recurrent-none"),
        (["--contender", "recurrent", "--steps", "3"], "two contenders or more"),
        (["--model", "recurrent,transformer"], "Set --minutes or --steps"),
        (["--model", "recurrent,transformer", "--steps", "3", "--set", "x=1"], "--set takes"),
        (["--model", "recurrent,transformer", "--steps", "3"], "no-such.tsv"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_paragraph(call, tmp_path, words, said):
    code, out, told = call(tmp_path / "no-such.tsv", "--out", tmp_path / "out", *words)
    assert (code, out) == (2, "")
    assert told.startswith("jumok compare: ")
    assert said in told
    assert "\n\n" not in told
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()
