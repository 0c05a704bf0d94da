"""Where the fast kernels of this package run, and the type in which products are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def on_cpu(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


def runs_fast_kernels(tensor: Tensor) -> bool:
    """Whether the kernels with gradients by hand run on this tensor; if not, their plain twins do.

    The kernels run on the CPU and without autocast, which would change the type of only some products.
    """
    return on_cpu(tensor) and not torch.is_autocast_enabled("cpu")


def product_dtype(tensor: Tensor) -> torch.dtype:
    """The type in which autocast, if it is enabled, wants products with this tensor; else its own type."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype
