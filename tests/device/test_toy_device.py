"""Training, translations and explanations on another device give nearly the same numbers as on the CPU.

The device is a toy (`support/toy_device.cpp`). It reveals code that mixes devices, waits for the device
unintentionally, or uses a wrong type. It cannot show which kernels a real accelerator lacks, or how fast the
accelerator is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import child_environment

HERE = Path(__file__).parent
MAX_DIFFERENCE = 1e-5
MAX_PEAKED_DIFFERENCE = 1e-4
"""The limit for translators. Their weights are doubled, so that attention is peaked; this enlarges errors."""
MAX_WAITS = 2  # per update: one for the norm of the gradient, one for the losses
COMPILER = shutil.which("c++") or shutil.which("g++")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (COMPILER and shutil.which("ninja")), reason="needs a C++ compiler and ninja"),
]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `device_driver.py` reports."""
    folder = tmp_path_factory.mktemp("toy")
    process = subprocess.run(
        [sys.executable, str(HERE / "device_driver.py"), str(folder / "build"), str(folder / "runs")],
        capture_output=True,
        text=True,
        timeout=1200,
        # Some processors list AMX, and a program that uses it crashes (`system/bf16_probe.py`).
        env=child_environment(ONEDNN_MAX_CPU_ISA="AVX512_CORE"),
        check=False,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    return json.loads(process.stdout)


def test_gradients_are_those_of_the_cpu(result: Any) -> None:
    differences = {name: facts["difference"] for name, facts in result["training"].items()}
    assert max(differences.values()) <= MAX_DIFFERENCE, differences


def test_all_parameters_are_on_the_device_and_tied_parameters_stay_tied(result: Any) -> None:
    for name, facts in result["training"].items():
        assert facts["devices"] == ["toy"], name
        assert facts["parameters"][0] == facts["parameters"][1], name
        assert facts["applied"], name


def test_an_update_waits_for_the_device_at_most_twice(result: Any) -> None:
    """Batch norm is left out, since it also waits for the number of positions that are not padding."""
    waits = {name: facts["waits"] for name, facts in result["training"].items() if name != "batch norm"}
    assert all(sum(counts.values()) <= MAX_WAITS for counts in waits.values()), waits


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_autocast_keeps_updates_finite_and_the_loss_near_the_loss_in_fp32(
    result: Any, precision: str
) -> None:
    for name, facts in result[precision].items():
        assert facts["finite"], (name, facts)
        assert facts["loss ratio"] == pytest.approx(1.0, abs=0.02), (name, facts)


def test_translations_and_explanations_are_those_of_the_cpu(result: Any) -> None:
    for name, facts in result["translation"].items():
        assert facts["same texts"], name
        assert facts["score difference"] <= MAX_PEAKED_DIFFERENCE, (name, facts)
        assert facts["explanation difference"] <= MAX_PEAKED_DIFFERENCE, (name, facts)


def test_language_models_continue_texts_as_on_the_cpu(result: Any) -> None:
    assert result["text"]["same texts"]
    assert result["text"]["loss difference"] <= MAX_DIFFERENCE
    assert result["text"]["weight difference"] <= MAX_DIFFERENCE


def test_a_whole_run_on_the_device_resumes_to_the_same_bits(result: Any) -> None:
    run = result["run"]
    assert run["resumed_from"] == 6  # the step of the first checkpoint, at which the run was interrupted
    assert run["uninterrupted"] == run["resumed"]
    assert run["translations"]
