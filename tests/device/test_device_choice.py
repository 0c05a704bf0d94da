"""How the device and the precision are chosen, with a reason, and how a child process tries bf16."""

from __future__ import annotations

import signal

import pytest
import torch

from jumok.errors import UnsupportedError
from jumok.system import device as device_module
from jumok.system.bf16_probe import Bf16Probe, probe_bf16
from jumok.system.device import DeviceConfig, choose_device


def test_without_an_accelerator_the_cpu_is_chosen_and_the_reason_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_module, "_is_available", lambda name: False)
    assert choose_device() == DeviceConfig("cpu", "fp32", "no accelerator was found")
    assert str(choose_device()) == "cpu, fp32 (no accelerator was found)"


def test_the_first_accelerator_in_the_order_of_devices_is_chosen_if_it_is_available(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_module, "_is_available", lambda name: name in ("mps", "xpu"))
    config = choose_device(index=1)
    assert (config.device, config.precision) == ("xpu:1", "bf16")
    assert choose_device("mps").precision == "fp32"
    assert choose_device("mps", "fp16") == DeviceConfig("mps", "fp16", "")


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "_is_available", lambda name: name == "mps")
    with pytest.raises(UnsupportedError, match=r"torch finds no cuda.*found: cpu, mps"):
        choose_device("cuda")
    with pytest.raises(UnsupportedError, match="Known devices"):
        choose_device("tpu")


def test_fp16_is_refused_on_the_cpu() -> None:
    with pytest.raises(UnsupportedError, match="fp16 is for accelerators"):
        choose_device("cpu", "fp16")


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        # works, speed-up, reason
        (Bf16Probe(True, 1.9, "faster"), "bf16"),
        (Bf16Probe(True, 1.1, "hardly faster"), "fp32"),
        (Bf16Probe(False, 0.0, "dies"), "fp32"),
    ],
)
def test_a_long_run_on_the_cpu_takes_bf16_if_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, probe: Bf16Probe, expected: str
) -> None:
    monkeypatch.setattr("jumok.system.bf16_probe.probe_bf16", lambda: probe)
    config = choose_device("cpu", "auto", minutes=120)
    assert (config.precision, config.reason) == (expected, probe.reason)
    # In a short run, the choice would take longer than bf16 could save.
    assert choose_device("cpu", "auto", minutes=5).precision == "fp32"


def test_bf16_is_refused_on_a_processor_on_which_it_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.system.bf16_probe.probe_bf16", lambda: Bf16Probe(False, 0.0, "dies of SIGILL"))
    with pytest.raises(UnsupportedError, match=r"cannot be trusted with bf16: dies of SIGILL"):
        choose_device("cpu", "bf16")


def test_bf16_does_not_work_if_the_child_process_crashes() -> None:
    probe = probe_bf16(f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})")
    assert not probe.works
    assert probe.reason == "a process that computes in bf16 dies of SIGILL"


def test_bf16_does_not_work_if_the_child_process_fails_or_is_inexact() -> None:
    assert probe_bf16("raise ValueError('no bf16')").reason == "the test of bf16 fails (ValueError: no bf16)"
    wrong = probe_bf16('print(\'{"speed_up": 2.0, "error": 0.5}\')')
    assert (wrong.works, wrong.reason) == (False, "products in bf16 are wrong by 50%")
    slow = probe_bf16('print(\'{"speed_up": 1.1, "error": 0.001}\')')
    assert (slow.works, slow.is_faster) == (True, False)


@pytest.mark.medium
def test_the_probe_gives_an_answer_on_this_machine() -> None:
    probe = probe_bf16()
    assert probe.works or "bf16" in probe.reason
    assert probe.works == (probe.speed_up > 0)


def test_a_model_gets_the_precision_of_its_device() -> None:
    model = torch.nn.Linear(2, 2)
    assert DeviceConfig("cpu", "bf16").place(model).autocast_dtype == torch.bfloat16
    assert DeviceConfig("cpu", "fp32").place(model).autocast_dtype is None
