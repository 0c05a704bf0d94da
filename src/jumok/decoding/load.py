"""From a model folder to a Translator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from jumok.decoding.translator import Translator
from jumok.errors import ModelFolderError
from jumok.models import build_model
from jumok.storage import load_module_weights, read_model_folder, refuse_misfits
from jumok.text import Subwords, Vocabularies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jumok.models import TranslationModel
    from jumok.recipe import ModelSettings

__all__ = ["load"]


def load(folder: str | Path) -> Translator:
    """The translator in a model folder. Every file is verified first, and loading runs no code from it."""
    card, weights, files = read_model_folder(Path(folder))
    vocabularies = _vocabularies(files)
    recipe = card.recipe
    refuse_misfits(_outline(Path(folder), recipe.model, vocabularies), weights)
    with _Unfilled("cpu"):
        model = _build(recipe.model, vocabularies)
    load_module_weights(model, weights)
    return Translator(
        model,
        vocabularies,
        search=recipe.search,
        read_out=card.read_out,
        source_language=recipe.languages.source,
        target_language=recipe.languages.target,
        longest_source=recipe.training.longest,
    )


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


def _outline(folder: Path, settings: ModelSettings, vocabularies: Vocabularies) -> TranslationModel:
    """The model without memory for its weights: a card may ask for more than any machine has."""
    try:
        with _Unfilled("meta"):
            return _build(settings, vocabularies)
    except (OverflowError, RuntimeError, TypeError) as error:
        raise ModelFolderError(
            f"{folder} cannot be used: its recipe describes no model that could be built ({error}). Copy the "
            "folder again from where it came, or make it anew."
        ) from None


def _build(settings: ModelSettings, vocabularies: Vocabularies) -> TranslationModel:
    return build_model(
        settings,
        source_pieces=vocabularies.source.size,
        target_pieces=vocabularies.target.size,
        shared=vocabularies.shared,
    )


def _vocabularies(files: Mapping[str, bytes]) -> Vocabularies:
    if "pieces.model" in files:
        pieces = Subwords.from_bytes(files["pieces.model"])
        return Vocabularies(source=pieces, target=pieces, shared=True)
    source, target = (Subwords.from_bytes(files[f"{side}.model"]) for side in ("source", "target"))
    return Vocabularies(source=source, target=target, shared=False)
