"""Weights as bytes and back. Reading them runs no code: there is no pickle anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError
from jumok.storage.folders import damaged

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor, nn

__all__ = [
    "load_module_weights",
    "module_weights",
    "refuse_misfits",
    "tensors_from_bytes",
    "tensors_to_bytes",
]


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors in the safetensors format, sorted by name so that equal tensors give equal bytes."""
    from safetensors.torch import save

    plain = {name: tensors[name].detach().contiguous() for name in sorted(tensors)}
    return bytes(save(plain))


def tensors_from_bytes(data: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file that was already read; `path` is for the error message."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return dict(load(data))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelFolderError(damaged(path, f"it is not a safetensors file ({error})")) from None


def module_weights(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and stored buffers of a module, each once even where it is tied under several names.

    The tensors are the module's own: clone them before the next update.
    """
    stored = {id(tensor) for tensor in module.state_dict(keep_vars=True).values()}
    named = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if id(tensor) in stored}


def load_module_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """The inverse: copy weights into a module whose names and shapes must fit."""
    import torch

    refuse_misfits(module, weights)
    with torch.no_grad():
        for name, tensor in module_weights(module).items():
            tensor.copy_(weights[name])


def refuse_misfits(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise where names, shapes or types differ; all misfits are named at once. Nothing is read or copied."""
    own = module_weights(module)
    misfits = [name for name in {*own, *weights} if not _fits(own.get(name), weights.get(name))]
    if misfits:
        raise ModelFolderError(
            f"{len(misfits)} weights do not fit the model. Received: {', '.join(sorted(misfits)[:5])}. "
            "The recipe and the weights come from different models; copy the folder again."
        )


def _fits(own: Tensor | None, given: Tensor | None) -> bool:
    return own is not None and given is not None and own.shape == given.shape and own.dtype == given.dtype
