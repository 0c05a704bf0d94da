"""`jumok bench attention`, with and without --json."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from jumok.cli import main
from jumok.profiling.layers import PROFILED_LAYERS

PROJECT = Path(__file__).parents[2]
TINY = ["--sizes", "64,128,256", "--seconds", "0"]


@pytest.fixture
def call(capsys, monkeypatch):
    monkeypatch.setattr(
        "jumok.profiling.cost.keep_freed_memory", lambda: True
    )  # the real one affects later tests

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["bench", *arguments])
        output = capsys.readouterr()
        return end.value.code or 0, output.out, output.err

    return run


def test_json_has_every_mechanism_with_every_key(call):
    code, out, err = call("attention", *TINY, "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert list(facts["mechanisms"]) == list(PROFILED_LAYERS)
    for row in facts["mechanisms"].values():
        assert isinstance(row["time_exponent"], float)
        assert 0.5 < row["memory_exponent"] < 1.5
        for by_size in (
            row["seconds"],
            row["peak_bytes"],
            row["operations"]["counted"],
            row["operations"]["formula"],
            row["sequential"]["chain"],
        ):
            assert list(by_size) == ["64", "128", "256"]
            assert all(amount > 0 for amount in by_size.values())
    assert set(facts["machine"]) == {"cores", "threads", "torch", "memory_kept"}
    assert facts["machine"]["memory_kept"] is True
    assert facts["machine"]["threads"] == torch.get_num_threads()
    assert facts["machine"]["torch"] == torch.__version__
    assert [each["width"] for each in facts["scaling"]["dot_products"]] == [2, 8, 32, 100, 512]
    assert len(facts["scaling"]["softmax"]) == 2


@pytest.mark.parametrize(
    "sizes",
    ["16,32", pytest.param("256,1024", marks=pytest.mark.medium)],  # at most one chunk; several chunks
)
def test_sequential_steps_and_paths_are_those_of_the_paper(call, sizes):
    facts = json.loads(call("attention", "--sizes", sizes, "--seconds", "0", "--json")[1])
    rows = facts["mechanisms"]
    assert {name for name, row in rows.items() if row["sequential"]["order"] == "n"} == {
        "recurrent",
        "linear causal",
        "efficient causal",
    }
    assert {row["sequential"]["order"] for row in rows.values()} == {"1", "n"}
    layers = {name: row["path"]["layers"] for name, row in rows.items()}
    assert layers == dict.fromkeys(PROFILED_LAYERS, 1) | {
        "restricted": 8,  # 8 positions per layer: 63 / 8, rounded up
        "recurrent": 63,
        "convolutional": 63,
    }
    assert {row["path"]["places"] for row in rows.values()} == {64}
    # Dilations 1, 3, 9 and 27 carry a signal 40 of 63 positions, and the same dilations again are enough.
    assert facts["dilated"]["layers"] == 8


def test_without_json_one_table_is_printed(call):
    code, out, err = call("attention", *TINY)
    assert code == 0
    assert "measuring" in err
    lines = out.splitlines()
    for name in PROFILED_LAYERS:
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1
    assert any("at 256 tokens" in line for line in lines)
    assert any("variance" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_the_table_of_the_course_has_the_columns_layers_and_orders_that_are_printed(call):
    page = (PROJECT / "docs" / "explain" / "cost.md").read_text(encoding="utf-8")
    course_lines = page.split("```text\n")[1].split("```")[0].splitlines()
    printed_lines = call("attention", *TINY)[1].split("\n\n")[1].splitlines()
    assert [line.split() for line in course_lines[:2]] == [line.split() for line in printed_lines[:2]]
    assert [_orders(line) for line in course_lines[2:]] == [_orders(line) for line in printed_lines[2:]]


def _orders(line):
    """Return the name of a layer, the order of its operations, its steps and its longest path."""
    name, operations, steps, path, *measured = re.split(r" {2,}", line, maxsplit=4)
    assert len(" ".join(measured).split()) == 5  # numbers in the remaining columns
    return name, operations.split()[0], steps, path


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("1k,2k", "Received: --sizes 1k,2k"),  # not numbers
        ("1024", "two or more sizes"),
        ("64,64", "two or more sizes"),
        ("8,1024", "at least 16"),
        ("", "Received: none"),
        ("-5,100", "sequence lengths"),
    ],
)
def test_invalid_sizes_are_refused(call, sizes, message):
    code, out, err = call("attention", f"--sizes={sizes}")
    assert (code, out) == (2, "")
    assert err.startswith("jumok bench: ")
    assert message in err


def test_an_unknown_subject_is_refused(call):
    code, _, err = call("attenton")
    assert code == 2
    assert "attention" in err
