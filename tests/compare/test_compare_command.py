"""`jumok compare` from the command line: a small comparison, the same command again, errors, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from jumok.cli import main
from jumok.training.run.run_folder import RunFolder
from support.digit_lines import digit_lines, write_tsv

# For models of any family, too small to learn anything.
TINY = (
    "model.width=16",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "text.vocab_size=300",
    "search.beam=2",
    "search.max_length_ratio=1.0",
)
TINY_OPTIONS = [argument for setting in TINY for argument in ("--set", setting)]


@pytest.fixture
def call(capsys):
    """A function that runs `jumok compare ARGUMENTS` in this process: returns exit code, stdout, stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["compare", *map(str, arguments)])
        captured = capsys.readouterr()
        return end.value.code or 0, captured.out, captured.err

    return run


@pytest.mark.medium
def test_two_systems_are_compared_and_not_trained_again(call, tmp_path, monkeypatch):
    pairs, out = write_tsv(tmp_path / "digits.en-de.tsv", digit_lines(60)), tmp_path / "out"
    arguments = [pairs, "--model", "recurrent", "--attention", "none,bahdanau", "--steps", "3", "--out", out]
    code, stdout, stderr = call(*arguments, *TINY_OPTIONS, "--json")
    assert code == 0, stderr
    result = json.loads(stdout)
    first, second = result["systems"]
    assert [first["name"], second["name"]] == ["recurrent-none", "recurrent-bahdanau"]
    assert (first["p_value"], first["alignment_error"]) == (None, None)
    assert 0 < second["p_value"] <= 1
    assert 0 <= second["alignment_error"] <= 1
    assert first["parameters"] < second["parameters"]
    for row in (first, second):
        assert 0 <= row["bleu_interval"][0] <= row["bleu_interval"][1] <= 100
        assert row["steps"] == 3
        assert row["peak_memory"] > 50  # MB
        assert row["decoding_sentences"] > 0
        assert [point["step"] for point in row["curve"]][-1] == 3
        assert len(row["bleu_by_length"]) == len(result["quarters"]) == 4
    assert result["sentences"] == 6  # of the test set: a tenth of 60
    assert result["unequal"] == []
    assert "[1/2] recurrent-none" in stderr
    assert "[2/2] recurrent-bahdanau" in stderr
    assert stderr.count("3 steps") >= 2  # in the training display of each system
    recipes = [RunFolder(out / row["name"]).record().recipe for row in (first, second)]
    assert recipes[0].text == recipes[1].text
    assert recipes[0].training.batch_tokens == recipes[1].training.batch_tokens
    tokenizers = [(out / row["name"] / "pieces.model").read_bytes() for row in (first, second)]
    assert tokenizers[0] == tokenizers[1]
    assert json.loads((out / "compare.json").read_text(encoding="utf-8")) == result
    assert "recurrent-bahdanau" in (out / "report.html").read_text(encoding="utf-8")

    monkeypatch.setattr(subprocess, "Popen", None)  # starting a worker would fail
    code, stdout, stderr = call(*arguments, *TINY_OPTIONS)
    assert code == 0, stderr
    assert stderr.count("already finished") == 2
    assert "recurrent-bahdanau" in stdout
    assert f"report: {out / 'report.html'}" in stdout
    assert json.loads((out / "compare.json").read_text(encoding="utf-8")) == result

    code, _, stderr = call(*arguments, *TINY_OPTIONS, "--set", "model.dropout=0.4")
    assert code == 2
    assert "model.dropout: received 0.4" in stderr


@pytest.mark.medium
def test_an_interrupted_comparison_saves_a_checkpoint_and_says_how_to_continue(tmp_path):
    pairs, out = write_tsv(tmp_path / "digits.en-de.tsv", digit_lines(60)), tmp_path / "out"
    arguments = ["compare", pairs, "--system", "recurrent", "--system", "transformer", "--out", out]
    program = [
        sys.executable,
        "-c",
        "from jumok.cli import main; main()",
        *map(str, arguments),
        *TINY_OPTIONS,
    ]
    with subprocess.Popen(
        [*program, "--steps", "1000000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        stderr = ""
        while "parameters" not in stderr:  # this line is shown when training starts
            line = process.stderr.readline()
            assert line, stderr
            stderr += line
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, stderr + rest
    assert "interrupted at recurrent. The same command continues" in rest
    assert "Traceback" not in rest
    assert list((out / "recurrent" / "checkpoints").glob("step-*"))
    assert not (out / "transformer").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attention", "none,bahdanu", "--model", "recurrent", "--steps", "3"], 'Did you mean "bahdanau"'),
        (
            ["--model", "transformer", "--attention", "none", "--steps", "3"],
            "a Transformer consists of attention",
        ),
        (["--attention", "none", "--steps", "3"], "Received: recurrent-none"),
        (["--system", "recurrent", "--steps", "3"], "at least two systems"),
        (["--model", "recurrent,transformer"], "Set --minutes or --steps"),
        (["--model", "recurrent,transformer", "--steps", "3", "--set", "x=1"], "--set takes"),
        (["--model", "recurrent,transformer", "--steps", "3"], "no-such.tsv"),
    ],
)
def test_an_impossible_comparison_is_refused_in_one_paragraph(call, tmp_path, arguments, message):
    code, stdout, stderr = call(tmp_path / "no-such.tsv", "--out", tmp_path / "out", *arguments)
    assert (code, stdout) == (2, "")
    assert stderr.startswith("jumok compare: ")
    assert message in stderr
    assert "\n\n" not in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()
