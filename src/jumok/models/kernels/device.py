"""When the fast kernels of this package run, and the type in which products are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def on_cpu(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


def runs_fast_kernels(tensor: Tensor) -> bool:
    """Whether the kernels with gradients by hand run on this tensor. If not, their plain twins run.

    The kernels run only on the CPU and without autocast. Autocast would change the type of only some of their
    products.
    """
    return on_cpu(tensor) and not torch.is_autocast_enabled("cpu")


def product_dtype(tensor: Tensor) -> torch.dtype:
    """Return the type of products with this tensor: its own type, or that of autocast if it is enabled."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype
