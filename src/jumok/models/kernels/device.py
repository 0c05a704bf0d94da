"""Where the fast kernels of this package can run, and the type in which products are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def on_cpu(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


def runs_fast_kernels(tensor: Tensor) -> bool:
    """Whether the kernels with hand-written gradients can run on this tensor. If not, their plain twins run.

    The kernels run only on the CPU and without autocast, which would change the type of some of their
    products but not of others. Callers also require that gradients are enabled.
    """
    return on_cpu(tensor) and not torch.is_autocast_enabled("cpu")


def product_dtype(tensor: Tensor) -> torch.dtype:
    """Return the type of products with this tensor: its own type, or that of autocast if it is enabled."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype
