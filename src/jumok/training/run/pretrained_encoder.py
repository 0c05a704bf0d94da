"""A translator whose encoder starts from a pretrained encoder (`--encoder-from`).

The pretrained encoder decides the source vocabulary, the sizes, and the initial weights of the translator's
encoder. The weights are copied into the run folder when the run starts, so that the run can be resumed
without the folder of the encoder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.recipe import EncoderOnlySettings, TransformerSettings, as_written
from jumok.config.resolve import DerivedSetting
from jumok.errors import RecipeError
from jumok.inference.loading import open_tokenizers
from jumok.models.encoder_only import encoder_part
from jumok.storage.folders import remove_folder, write_folder
from jumok.storage.model_folder import read_stored_model
from jumok.storage.tensors import tensors_to_bytes
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer
from jumok.training.run.initial_model import (
    INITIAL_WEIGHTS,
    refuse_contradictions,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from torch import Tensor

    from jumok.config.recipe import LanguageSettings, Recipe
    from jumok.config.resolve import Overrides, Resolved
    from jumok.text.protocol import AnyTokenizer
    from jumok.training.events import Event
    from jumok.training.run.corpus_reader import Sentences
    from jumok.training.run.run_folder import RunFolder

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

    def decided_settings(self, overrides: Overrides) -> list[DerivedSetting]:
        """Return the settings that the encoder decides; raise if an override differs from one."""
        settings = self._translator_settings() | {"text.shared": False}
        refuse_contradictions(
            settings,
            overrides,
            noun="encoder",
            origin=self.folder,
            advice="A translator takes its sizes from its pretrained encoder, and has another vocabulary for "
            "its target. Leave the settings out, or train another encoder with them.",
        )
        digest = hashlib.sha256(tensors_to_bytes(self.weights)).hexdigest()
        decided = [
            DerivedSetting(
                "model.encoder_from", self.folder, f"as set; its sha256 begins with {digest[:16]}"
            ),
            *(
                DerivedSetting(name, value, f"as in {self.folder}")
                for name, value in settings.items()
                if value is not None  # None means that the encoder does not set it
            ),
        ]
        if "model.decoder_layers" not in overrides:
            reason = "as deep as the encoder"
            decided.append(DerivedSetting("model.decoder_layers", self.settings.layers, reason))
        return decided

    def _translator_settings(self) -> dict[str, Any]:
        """Return the encoder's settings under the translator's names, in the order of its fields."""
        values = {
            _TRANSLATOR_NAMES.get(name, name): as_written(value)
            for name, value in self.settings
            if name not in _NOT_FROM_ENCODER
        }
        return {f"model.{name}": values[name] for name in TransformerSettings.model_fields if name in values}

    def check_languages(self, languages: LanguageSettings) -> None:
        """Raise if the source language of the pairs is not the one that the encoder was trained on."""
        if self.language and languages.source and self.language != languages.source:
            raise RecipeError(
                f"The encoder in {self.folder} was trained on {self.language}, and the source of these pairs "
                f"is {languages.source}. Swap the sides with --from {self.language}, or use another encoder."
            )

    def adjust(self, resolved: Resolved) -> Resolved:
        return resolved

    def store(self, folder: RunFolder, sentences: Sentences, recipe: Recipe) -> Generator[Event, None, None]:
        """Copy the weights to a folder of the run, with their sha256."""
        if folder.encoder.exists():
            remove_folder(folder.encoder)
        files = [(INITIAL_WEIGHTS, tensors_to_bytes(self.weights))]
        metadata, failure_note = {"from": self.folder}, "No update has been made yet."
        write_folder(folder.encoder, files, metadata=metadata, failure_note=failure_note)
        yield from ()  # makes this a generator, as the protocol says, without an event

    def make_tokenizers(self, sentences: Sentences, recipe: Recipe) -> TokenizerPair:
        """Return the encoder's tokenizer for the source, and a new one for the target."""
        targets = (pair.target for pair in sentences.pairs())
        target = train_tokenizer(targets, recipe.text, vocab_size=recipe.text.vocab_size)
        return TokenizerPair(source=self.tokenizer, target=target, shared=False)


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
