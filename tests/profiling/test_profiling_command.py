"""`jumok bench attention` as a person and as a program would call it."""

from __future__ import annotations

import json

import pytest
import torch

from jumok.bench import CONTENDERS
from jumok.cli import main

TINY = ["--sizes", "64,128,256", "--seconds", "0"]


@pytest.fixture
def call(capsys, monkeypatch):
    monkeypatch.setattr("jumok.bench.keep_memory", lambda: True)  # it would hold for all tests after this

    def run(*words):
        with pytest.raises(SystemExit) as end:
            main(["bench", *words])
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


def test_json_has_every_mechanism_with_every_key(call):
    code, out, err = call("attention", *TINY, "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert list(facts["mechanisms"]) == list(CONTENDERS)
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


def test_sequential_steps_and_paths_are_those_of_the_table(call):
    facts = json.loads(call("attention", *TINY, "--json")[1])
    rows = facts["mechanisms"]
    assert {name for name, row in rows.items() if row["sequential"]["order"] == "n"} == {
        "recurrent",
        "linear causal",
    }
    layers = {name: row["path"]["layers"] for name, row in rows.items()}
    assert layers == dict.fromkeys(CONTENDERS, 1) | {"restricted": 8, "recurrent": 63, "convolutional": 63}
    assert {row["path"]["places"] for row in rows.values()} == {64}
    assert facts["dilated"]["layers"] == 8  # 1 + 3 + 9 + 27 is 40 of 63 places; twice that is enough


def test_people_get_one_table(call):
    code, out, err = call("attention", *TINY)
    assert code == 0
    assert "measuring" in err
    lines = out.splitlines()
    for name in CONTENDERS:
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1
    assert any("at 256 tokens" in line for line in lines)
    assert "variance" in lines[-1]
    assert max(map(len, lines[:-2])) <= 120


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("1k,2k", "Received: --sizes 1k,2k"),
        ("1024", "two or more sizes"),
        ("64,64", "two or more sizes"),
        ("8,1024", "at least 16"),
        ("", "Received: none"),
        ("-5,100", "numbers of tokens"),
    ],
)
def test_sizes_that_give_no_line_are_refused(call, sizes, said):
    code, out, err = call("attention", f"--sizes={sizes}")
    assert (code, out) == (2, "")
    assert err.startswith("jumok bench: ")
    assert said in err


def test_what_cannot_be_measured_is_refused(call):
    code, _, err = call("attenton")
    assert code == 2
    assert "attention" in err
