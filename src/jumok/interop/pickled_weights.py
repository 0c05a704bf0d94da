"""Read weights from `pytorch_model.bin`, the only format of `interop` that is a pickle.

The restricted unpickler of torch creates only tensors and plain containers. It raises an error before it
creates an object of any other type. Only this module may call the unpickler (tests/test_architecture.py), and
it runs only in the child process of `importing.py`.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jumok.interop.package import Package


def read_pickled_weights(package: Package, name: str) -> dict[str, Tensor]:
    """Return the tensors of a PyTorch file by name."""
    data = package.read(name)
    try:
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can make the unpickler raise any exception
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise package.refusal(f"{name} is not a file of weights only ({reason:.200})") from None
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in content.items()
    ):
        raise package.refusal(f"{name} holds something else than named tensors")
    return content
