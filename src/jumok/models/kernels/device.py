"""The devices on which the fast kernels of this package run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["on_cpu"]


def on_cpu(tensor: Tensor) -> bool:
    """Whether the tensor is on the CPU, where the fast kernels run; other devices use the plain twins."""
    return tensor.device.type == "cpu"
