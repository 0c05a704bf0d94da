"""From what a model folder holds to the model itself. This needs torch; `loading.py` does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from jumok.errors import ModelFolderError
from jumok.models import build_model
from jumok.storage import load_module_weights, refuse_misfits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jumok.models import Model
    from jumok.recipe import ModelSettings
    from jumok.storage import StoredModel
    from jumok.text import Vocabularies

__all__ = ["load_model"]


def load_model(stored: StoredModel, vocabularies: Vocabularies) -> Model:
    """The model of a folder that was read, with its weights."""
    settings, weights = stored.card.recipe.model, stored.weights()
    refuse_misfits(_outline(stored.folder, settings, vocabularies), weights)
    with _Unfilled("cpu"):
        model = _build(settings, vocabularies)
    load_module_weights(model, weights)
    return model


class _Unfilled(TorchFunctionMode):
    """Within it a model is built without initial weights: stored ones take their place.

    On the device "meta" weights have a shape and no memory. `torch.device("meta")` would say so of all
    tensors; but to compute the table of positions there, torch first imports half of its compiler.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if getattr(func, "__name__", "") in ("kaiming_uniform_", "normal_", "uniform_"):
            return args[0] if args else given["tensor"]
        if func in (torch.empty, torch.zeros):
            given = {**given, "device": self._device}
        return func(*args, **given)


def _outline(folder: Path, settings: ModelSettings, vocabularies: Vocabularies) -> Model:
    """The model without memory for its weights: a card may ask for more than any machine has."""
    try:
        with _Unfilled("meta"):
            return _build(settings, vocabularies)
    except (OverflowError, RuntimeError, TypeError) as error:
        raise ModelFolderError(
            f"{folder} cannot be used: its recipe describes no model that could be built ({error}). Copy the "
            "folder again from where it came, or make it anew."
        ) from None


def _build(settings: ModelSettings, vocabularies: Vocabularies) -> Model:
    return build_model(
        settings,
        source_pieces=vocabularies.source.size,
        target_pieces=vocabularies.target.size,
        shared=vocabularies.shared,
    )
