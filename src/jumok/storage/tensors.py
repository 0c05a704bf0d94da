"""Weights to bytes and back, in the safetensors format. Unlike pickle, reading it runs no code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError
from jumok.storage.folders import damage_message

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor, nn


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return tensors in the safetensors format, sorted by name so that equal tensors give equal bytes."""
    from safetensors.torch import save  # start-up

    contiguous = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    return bytes(save(contiguous))


def tensors_from_bytes(data: bytes, path: Path) -> dict[str, Tensor]:
    """Return the tensors in the bytes of a safetensors file. Error messages name the file by `path`."""
    from safetensors import SafetensorError  # start-up
    from safetensors.torch import load  # start-up

    try:
        return dict(load(data))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelFolderError(damage_message(path, f"it is not a safetensors file ({error})")) from None


def check_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error if a number is NaN or infinite: a model with it would give empty translations."""
    wrong = [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]
    if wrong:
        names = ", ".join(wrong[:3])
        reason = f"{len(wrong)} of its {len(tensors)} tensors have numbers that are not finite ({names})"
        raise ModelFolderError(damage_message(path, reason))


def module_weights(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of a module.

    A tied parameter is returned once, under its first name. The tensors share the module's memory: clone them
    before the next update.
    """
    stored = {id(tensor) for tensor in module.state_dict(keep_vars=True).values()}
    named = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if id(tensor) in stored}


def load_module_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a module; names, shapes and types must match."""
    import torch  # start-up

    check_weights_fit(module, weights)
    with torch.no_grad():
        for name, tensor in module_weights(module).items():
            tensor.copy_(weights[name])


def check_weights_fit(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise an error if names, shapes or types differ from those of the module. Nothing is copied."""
    expected = module_weights(module)
    mismatched = [name for name in {*expected, *weights} if not _fits(expected.get(name), weights.get(name))]
    if mismatched:
        raise ModelFolderError(
            f"{len(mismatched)} weights do not fit the model (missing, unexpected, other shape or type): "
            f"{', '.join(sorted(mismatched)[:5])}. "
            "The recipe and the weights come from different models; copy the folder again."
        )


def _fits(expected: Tensor | None, received: Tensor | None) -> bool:
    if expected is None or received is None:
        return False
    return expected.shape == received.shape and expected.dtype == received.dtype
