"""Build the device of `toy_device.cpp` and register it in this process: `torch.device("toy")`."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils import cpp_extension

__all__ = ["register_toy_device"]


def register_toy_device(build_folder: Path) -> Any:
    """Build and register the device. Return the extension, which has three functions.

    `waits()` returns operation → number of waits of the host. `uploads()` returns the number of copies from
    the host to the device. `reset_counts()` sets all these numbers to 0.
    """
    build_folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MAX_JOBS", "1")
    torch.utils.rename_privateuse1_backend("toy")
    extension: ModuleType = cpp_extension.load(
        "toy_device",
        [str(Path(__file__).with_name("toy_device.cpp"))],
        extra_cflags=["-O0", "-g0", "-std=c++20"],
        build_directory=str(build_folder),
    )
    torch._register_device_module(
        "toy",
        SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            _is_in_bad_fork=lambda: False,
            manual_seed_all=lambda seed: None,
            device_count=lambda: 1,
            current_device=lambda: 0,
            get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16],
        ),
    )
    torch.utils.generate_methods_for_privateuse1_backend()
    return extension
