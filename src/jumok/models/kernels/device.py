"""Where the fast kernels of this package run, and in which type products are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def on_cpu(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


def runs_fast_kernels(tensor: Tensor) -> bool:
    """Whether the kernels with gradients by hand compute with this tensor; if not, their plain twins do.

    They run on the CPU, and without autocast, which would change the type of some products and not of others.
    """
    return on_cpu(tensor) and not torch.is_autocast_enabled("cpu")


def product_dtype(tensor: Tensor) -> torch.dtype:
    """The type in which autocast, if it is enabled, wants products with this tensor; else its own type."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype
