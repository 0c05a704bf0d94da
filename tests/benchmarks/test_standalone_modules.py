"""The modules of `python -m benchmarks` with their own options: `scale`, `device` and `large_corpus`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import device
from benchmarks.scale import estimate, num_parameters, table
from jumok.system.device import DeviceConfig

PROJECT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_more_hosts_train_faster_and_need_less_memory_each() -> None:
    one, two, many = (estimate("base", hosts, 1) for hosts in (1, 2, 1000))
    assert one.efficiency == 1
    assert one.sent_megabytes == 0
    assert two.sent_megabytes == pytest.approx(4 * num_parameters("base") / 1e6)
    assert many.sent_megabytes < 2 * two.sent_megabytes
    assert many.memory_megabytes < one.memory_megabytes  # Adam's state is divided
    assert one.tokens_per_second < two.tokens_per_second < 2 * one.tokens_per_second


@pytest.mark.parametrize("name", ["scale.md", "scale.ko.md"])
def test_the_page_has_the_computed_table(name: str) -> None:
    page = (PROJECT / "docs" / name).read_text(encoding="utf-8")
    assert "\n".join(table([1, 10, 100, 1000], [1, 10])) in page


def test_the_speed_of_a_device_counts_no_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "seconds_per_update", lambda model, batch, seconds: 0.5)
    rows = device.TIMED_SIZES["tiny"] // device.LENGTH
    tokens = sum(device.LENGTH - row % 5 + 1 for row in range(rows))  # with </s>
    assert device.speed("tiny", DeviceConfig("cpu", "fp32"), seconds=0) == 2 * tokens


@pytest.mark.slow
def test_a_large_corpus_is_measured(tmp_path: Path) -> None:
    report = json.loads(run("large_corpus", "--pairs", "1200000", "--work", str(tmp_path)))
    encode = report["encode"]
    assert encode["pairs"] + encode["held out"] == 1_200_000
    assert encode["skipped"] == {}
    assert 100 < encode["peak MB"] < 1500  # of all processes together
    assert encode["peak MB on disk"] > 2 * report["make"]["bytes"] / 2**20  # the corpus and its spool
    assert report["resume"]["batches per epoch"] > 1000


@pytest.mark.slow
def test_the_report_for_the_cpu_says_that_every_family_agrees() -> None:
    report = json.loads(run("device", "--device", "cpu", "--seconds", "0.1"))
    assert all(family["agrees"] for family in report["families"].values()), report["families"]
