"""A translator whose encoder starts from a pretrained one (`--encoder-from`).

The pretrained encoder decides the source vocabulary, the sizes and the initial weights. They are copied into
the run folder when the run starts, so that it can be resumed without the encoder's own folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.derive import DerivedSetting
from jumok.config.recipe import AttentionSettings, EncoderOnlySettings, TransformerSettings
from jumok.errors import RecipeError
from jumok.inference.loading import open_tokenizers
from jumok.models import encoder_part
from jumok.storage import (
    load_module_weights,
    module_weights,
    read_stored_model,
    remove_folder,
    tensors_from_bytes,
    tensors_to_bytes,
    verify_folder,
    write_folder,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from jumok.config.recipe import Recipe
    from jumok.models import Model
    from jumok.text import AnyTokenizer

__all__ = ["PretrainedEncoder", "load_encoder_weights", "read_encoder"]

WEIGHTS = "weights.safetensors"
# The translator takes over every setting that both models have, except these.
_NOT_FROM_ENCODER = {"family", "dropout", "attention_dropout", "attention_init", "tied"}
_TRANSLATOR_NAMES = {"layers": "encoder_layers", "attention": "encoder_attention"}


@dataclass(frozen=True)
class PretrainedEncoder:
    """The encoder of an encoder-only model, read from its model folder."""

    folder: str
    settings: EncoderOnlySettings
    language: str
    tokenizer: AnyTokenizer
    weights: Mapping[str, Tensor]

    def decided_settings(self, overrides: Recipe) -> list[DerivedSetting]:
        """Return the settings that the encoder decides; raise if an override differs from one."""
        settings = self._translator_settings() | {"text.shared": False}
        conflicts = [
            f"  {name}: received {received!r}, the encoder has {value!r}"
            for name, value in settings.items()
            if (received := _override(overrides, name)) not in (None, value)
        ]
        if conflicts:
            lines = "\n".join(conflicts)
            raise RecipeError(
                f"These settings contradict the encoder in {self.folder}:\n{lines}\n"
                "A translator takes its sizes from its pretrained encoder, and has another vocabulary for "
                "its target. Leave the settings out, or train another encoder with them."
            )
        digest = hashlib.sha256(tensors_to_bytes(self.weights)).hexdigest()
        decided = [
            DerivedSetting("model.encoder_from", self.folder, f"as set; its sha256 is {digest[:16]}"),
            *(
                DerivedSetting(name, value, f"as in {self.folder}")
                for name, value in settings.items()
                if value is not None  # None: set neither in the encoder nor in the translator
            ),
        ]
        if _override(overrides, "model.decoder_layers") is None:
            reason = "as deep as the encoder"
            decided.append(DerivedSetting("model.decoder_layers", self.settings.layers, reason))
        return decided

    def _translator_settings(self) -> dict[str, Any]:
        """Return the encoder's settings under the translator's names, in the order of its fields."""
        named = {
            _TRANSLATOR_NAMES.get(name, name): _as_written(value)
            for name, value in self.settings
            if name not in _NOT_FROM_ENCODER
        }
        return {f"model.{name}": named[name] for name in TransformerSettings.model_fields if name in named}

    def check_language(self, source: str) -> None:
        """Raise if the source language of the pairs is not the one that the encoder was trained on."""
        if self.language and source and self.language != source:
            raise RecipeError(
                f"The encoder in {self.folder} was trained on {self.language}, and the source of these pairs "
                f"is {source}. Swap the sides with --from {self.language}, or use another encoder."
            )

    def store(self, folder: Path) -> None:
        """Copy the weights to a folder of the run, with their sha256."""
        if folder.exists():
            remove_folder(folder)
        files = [(WEIGHTS, tensors_to_bytes(self.weights))]
        metadata, failure_note = {"from": self.folder}, "No update has been made yet."
        write_folder(folder, files, metadata=metadata, failure_note=failure_note)


def read_encoder(folder: str) -> PretrainedEncoder:
    """Return the encoder in a model folder, all files verified."""
    stored = read_stored_model(Path(folder))
    settings = stored.card.recipe.model
    if not isinstance(settings, EncoderOnlySettings):
        raise RecipeError(
            f"The model in {folder} is {settings.family}; --encoder-from takes an encoder-only model. "
            "Train one on plain text: `jumok train text.txt --model encoder-only --out …`."
        )
    if settings.task == "classify":
        raise RecipeError(
            f"The model in {folder} classifies pictures; --encoder-from takes an encoder that was trained on "
            "plain text. Train one: `jumok train text.txt --model encoder-only --out …`."
        )
    tokenizer, weights = open_tokenizers(stored).source, encoder_part(stored.weights())
    # Plain text is a corpus of pairs without a source, so its language is the target's.
    return PretrainedEncoder(folder, settings, stored.card.recipe.languages.target, tokenizer, weights)


def load_encoder_weights(model: Model, folder: Path) -> None:
    """Load stored encoder weights into the encoder of a new model."""
    weights = tensors_from_bytes(verify_folder(folder)[WEIGHTS], folder / WEIGHTS)
    load_module_weights(model, {**module_weights(model), **weights})


def _override(overrides: Recipe, name: str) -> Any:
    """Return the value that the user set for `section.field`; None if they did not."""
    section, _, field = name.partition(".")
    settings = getattr(overrides, section)
    if field not in settings.model_fields_set or (field, getattr(settings, field)) == ("size", "auto"):
        return None
    return _as_written(getattr(settings, field))


def _as_written(value: Any) -> Any:
    """Return a setting as a user would write it: a mechanism without options is its name."""
    if isinstance(value, AttentionSettings):
        return value.model_dump() if value.options else value.kind
    return value
