"""A translator whose encoder begins as one that has read plain text (`--encoder-from`).

The encoder brings its pieces, its sizes and its weights. They are copied into the run folder when the run
begins, and the run goes on without the folder that they came from.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import RecipeError
from jumok.models import encoder_part
from jumok.recipe import AttentionSettings, EncoderOnlySettings, TransformerSettings
from jumok.storage import (
    load_module_weights,
    module_weights,
    read_model_folder,
    remove_folder,
    tensors_from_bytes,
    tensors_to_bytes,
    verify_folder,
    write_folder,
)
from jumok.text import Subwords
from jumok.training.derive import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from jumok.models import Model
    from jumok.recipe import Recipe

__all__ = ["EncoderStart", "begin_with", "keep_start", "read_start"]

WEIGHTS = "weights.safetensors"
# What the translator may choose for itself; every other setting that both have is the encoder's.
_FREE = {"family", "dropout", "attention_dropout", "tied"}
_OTHER_NAMES = {"layers": "encoder_layers", "attention": "encoder_attention"}


@dataclass(frozen=True)
class EncoderStart:
    """An encoder to begin with."""

    folder: str
    settings: EncoderOnlySettings
    language: str
    pieces: Subwords
    weights: Mapping[str, Tensor]

    def reasons(self, asked: Recipe) -> list[Reason]:
        """The settings that the encoder decides. All that was asked for otherwise is refused at once."""
        settings = self._settings() | {"text.shared": False}
        refused = [
            f"  {name}: asked {have!r}, the encoder has {value!r}"
            for name, value in settings.items()
            if (have := _asked(asked, name)) not in (None, value)
        ]
        if refused:
            lines = "\n".join(refused)
            raise RecipeError(
                f"These settings contradict the encoder in {self.folder}:\n{lines}\n"
                "A translator that begins with an encoder has its sizes, and other pieces for its target. "
                "Leave the settings out, or train another encoder with them."
            )
        digest = hashlib.sha256(tensors_to_bytes(self.weights)).hexdigest()
        reasons = [
            Reason("model.encoder_from", self.folder, f"as asked; its weights have the sha256 {digest[:16]}"),
            *(Reason(name, value, f"as in {self.folder}") for name, value in settings.items()),
        ]
        if _asked(asked, "model.decoder_layers") is None:
            reasons.append(Reason("model.decoder_layers", self.settings.layers, "as deep as the encoder"))
        return reasons

    def _settings(self) -> dict[str, Any]:
        own = {name: _plain(value) for name, value in self.settings}
        named = {_OTHER_NAMES.get(name, name): own[name] for name in own if name not in _FREE}
        return {f"model.{name}": named[name] for name in TransformerSettings.model_fields if name in named}

    def refuse_other_language(self, source: str) -> None:
        if self.language and source and self.language != source:
            raise RecipeError(
                f"The encoder in {self.folder} has read {self.language}, and the source of these pairs is "
                f"{source}. Turn the pairs round with --from {self.language}, or take another encoder."
            )


def read_start(folder: str) -> EncoderStart:
    """The encoder in a model folder, all of its files verified."""
    card, weights, files = read_model_folder(Path(folder))
    settings = card.recipe.model
    if not isinstance(settings, EncoderOnlySettings):
        raise RecipeError(
            f"The model in {folder} is {settings.family}, and --encoder-from takes an encoder alone. "
            "Train one on plain text: `jumok train text.txt --model encoder-only --out …`."
        )
    pieces = Subwords.from_bytes(files["pieces.model"])
    return EncoderStart(folder, settings, card.recipe.languages.target, pieces, encoder_part(weights))


def keep_start(start: EncoderStart, folder: Path) -> None:
    """Copy the encoder's weights into a run folder, with their sha256."""
    if folder.exists():
        remove_folder(folder)
    files = [(WEIGHTS, tensors_to_bytes(start.weights))]
    write_folder(folder, files, facts={"from": start.folder}, intact="No step has been made yet.")


def begin_with(model: Model, folder: Path) -> None:
    """Put the weights that were kept into the encoder of a new model."""
    kept = tensors_from_bytes(verify_folder(folder)[WEIGHTS], folder / WEIGHTS)
    load_module_weights(model, {**module_weights(model), **kept})


def _asked(asked: Recipe, name: str) -> Any:
    """The value that somebody set by name, or None."""
    section, _, field = name.partition(".")
    settings = getattr(asked, section)
    if field not in settings.model_fields_set or (field, getattr(settings, field)) == ("size", "auto"):
        return None
    return _plain(getattr(settings, field))


def _plain(value: Any) -> Any:
    """A setting as a person would write it: a mechanism without options is its name."""
    if isinstance(value, AttentionSettings):
        return value.model_dump() if value.options else value.kind
    return value
