"""A run that starts from a trained model (`--start-from`), to fine-tune it or to train it on more pairs.

The start model decides vocabulary, sizes and initial weights. Unless the user sets a learning rate, the run
trains with a tenth of the peak learning rate of training from scratch. It trains on new pairs mixed with old
ones (`old_pairs.py`). At its end, `fine_tuning.py` chooses the weights.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.derive import SIZES
from jumok.config.recipe import as_written
from jumok.config.resolve import DerivedSetting
from jumok.errors import DataError, RecipeError, UnsupportedError
from jumok.inference.loading import open_tokenizers
from jumok.storage.folders import remove_folder, verify_folder, write_folder
from jumok.storage.model_folder import card_from_json, card_to_json, find_model_folder, read_stored_model
from jumok.storage.tensors import tensors_from_bytes, tensors_to_bytes
from jumok.training.events import StageDone
from jumok.training.run.initial_model import (
    INITIAL_WEIGHTS,
    refuse_contradictions,
)
from jumok.training.run.inputs import is_picture_corpus
from jumok.training.run.old_pairs import Collector, OldPairs, collect_old_pairs
from jumok.training.validation.translation import TranslationValidation
from jumok.types import UNKNOWN, Pair

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from torch import Tensor

    from jumok.config.recipe import LanguageSettings, Recipe
    from jumok.config.resolve import Overrides, Resolved
    from jumok.models.model import Model
    from jumok.storage.model_folder import ModelCard
    from jumok.text.tokenizer import TokenizerPair
    from jumok.training.events import Event
    from jumok.training.run.corpus_reader import Sentences
    from jumok.training.run.inputs import Inputs
    from jumok.training.run.run_folder import RunFolder

RATE_DIVISOR = 10.0
EPOCHS = 10.0
"""The limit if the user sets none: a trained model needs few passes over the pairs."""
MIN_DROPOUT = 0.1
SAMPLED_PAIRS = 2000  # the first new pairs, in which unknown tokens are counted
CARD, OLD_PAIRS = "card.json", "old_pairs.json"
# The value of such a model setting may differ between a run and its start model.
_FREE_MODEL_SETTINGS = {"size", "dropout", "attention_dropout", "attention_init", "encoder_from"}
_PARTS = {
    "encoder": ("encoder.*", "after_encoder.*"),
    "decoder": ("decoder.*", "after_decoder.*"),
    "embeddings": ("source_embedding.*", "target_embedding.*"),
}


@dataclass(frozen=True)
class StartModel:
    """The model that a run starts from, read from its model folder. `inputs` says how files are read."""

    folder: str
    card: ModelCard
    tokenizers: TokenizerPair
    weights: Mapping[str, Tensor]
    inputs: Inputs

    def decided_settings(self, overrides: Overrides) -> list[DerivedSetting]:
        """Return the settings that the start model decides; raise if an override differs from one.

        Settings that do not change the shape of the model, such as settings of the search, may be overridden.
        """
        freeze = overrides.get("fine_tuning.freeze", ())
        _matching_weights(self.weights, freeze)  # raise now, not after the preparation
        fixed = self._fixed_settings()
        refuse_contradictions(
            fixed,
            overrides,
            noun="start model",
            origin=self.folder,
            advice="A run takes vocabulary and sizes from the model that it starts from. Leave the settings "
            "out, or leave --start-from out and train a new model.",
        )
        free = {
            name: value for name, value in self._free_settings(overrides).items() if name not in overrides
        }
        digest = hashlib.sha256(tensors_to_bytes(self.weights)).hexdigest()
        return [
            DerivedSetting(
                "fine_tuning.start_from", self.folder, f"as set; its sha256 begins with {digest[:16]}"
            ),
            *(
                DerivedSetting(name, value, f"as in {self.folder}")
                for name, value in {**fixed, **free}.items()
                if value is not None  # None: the model does not have it
            ),
        ]

    def _fixed_settings(self) -> dict[str, Any]:
        recipe = self.card.recipe
        model = {f"model.{n}": as_written(v) for n, v in recipe.model if n not in _FREE_MODEL_SETTINGS}
        text = {f"text.{name}": value for name, value in recipe.text if name != "sampling"}
        languages = {f"languages.{side}": code for side, code in recipe.languages if code}
        return {**languages, **text, **model}

    def _free_settings(self, overrides: Overrides) -> dict[str, Any]:
        recipe = self.card.recipe
        settings: dict[str, Any] = {f"search.{name}": value for name, value in recipe.search}
        settings["model.size"] = recipe.model.size or _largest_fitting_size(recipe.model.width)
        settings["model.dropout"] = max(recipe.model.dropout, MIN_DROPOUT)
        settings["training.max_sentence_tokens"] = recipe.training.max_sentence_tokens
        settings["training.label_smoothing"] = recipe.training.label_smoothing
        if not overrides.keys() & {"training.steps", "training.epochs", "training.minutes"}:
            settings["training.epochs"] = EPOCHS
        return settings

    def check_languages(self, languages: LanguageSettings) -> None:
        """Do nothing: the languages of the start model are decided settings, so the pairs have them."""

    def adjust(self, resolved: Resolved) -> Resolved:
        """Return the settings with a tenth of the peak learning rate, unless the user has set the rate."""
        name = "training.learning_rate"
        if name in resolved.overrides:
            return resolved
        card = self.card
        if "imported_from" not in card.facts and not card.recipe.fine_tuning.start_from:
            peak, origin = card.recipe.training.learning_rate, "of the start model"
        else:  # the start model was not trained from scratch here
            peak, origin = resolved.recipe.training.learning_rate, "for a new model of this width"
        rate = DerivedSetting(name, float(f"{peak / RATE_DIVISOR:.2g}"), f"a tenth of the peak {origin}")
        return resolved.corrected(rate)

    def store(self, folder: RunFolder, sentences: Sentences, recipe: Recipe) -> Generator[Event, None, None]:
        """Copy the weights, the card and the old pairs into the run folder."""
        started = time.perf_counter()
        old_pairs = OldPairs()
        if recipe.model.task == "translate":
            model_folder = find_model_folder(Path(self.folder))
            collector = Collector(model_folder, self.tokenizers, recipe.languages, self.inputs)
            old_pairs = collect_old_pairs(collector, sentences, recipe.fine_tuning)
            if old_pairs.keep:
                _check_keep_lengths(old_pairs.keep, self.tokenizers, recipe)
        if folder.start.exists():
            remove_folder(folder.start)
        card = json.dumps(card_to_json(self.card), ensure_ascii=False)
        files = [
            (INITIAL_WEIGHTS, tensors_to_bytes(self.weights)),
            (CARD, card.encode()),
            (OLD_PAIRS, old_pairs.to_bytes()),
        ]
        write_folder(folder.start, files, failure_note="No update has been made yet.")
        parts = []
        if old_pairs.replay:
            parts.append(f"{len(old_pairs.replay):,} pairs to replay ({old_pairs.replay_origin})")
        if old_pairs.keep:
            parts.append(f"{len(old_pairs.keep):,} to keep ({old_pairs.keep_origin})")
        parts.append(_describe_unknown(self.tokenizers, sentences))
        yield StageDone("starting from", f"{self.folder}: {', '.join(parts)}", time.perf_counter() - started)

    def make_tokenizers(self, sentences: Sentences, recipe: Recipe) -> TokenizerPair:
        return self.tokenizers


def read_start_model(folder: str, inputs: Inputs) -> StartModel:
    """Return the model in a model folder, all files verified; raise if the run has pictures."""
    if any(map(is_picture_corpus, (*inputs.pairs, *inputs.valid))):
        raise UnsupportedError(
            "--start-from takes a model of text, but the source is pictures. Leave it out and "
            "train a new model."
        )
    stored = read_stored_model(Path(folder))
    recipe = stored.card.recipe
    if recipe.source.kind == "pictures":
        raise UnsupportedError(
            f"The model in {folder} reads pictures; --start-from takes a model of text. Train a new one."
        )
    return StartModel(folder, stored.card, open_tokenizers(stored), stored.weights(), inputs)


@dataclass(frozen=True)
class StoredStart:
    """The files of the start model that are stored in a run folder."""

    card: ModelCard
    weights: Mapping[str, Tensor]
    old_pairs: OldPairs


def read_stored_start(folder: RunFolder) -> StoredStart:
    files = verify_folder(folder.start)
    return StoredStart(
        card=card_from_json(folder.start / CARD, json.loads(files[CARD])),
        weights=tensors_from_bytes(files[INITIAL_WEIGHTS], folder.start / INITIAL_WEIGHTS),
        old_pairs=OldPairs.from_bytes(files[OLD_PAIRS]),
    )


def read_start_card(folder: RunFolder) -> ModelCard:
    """Return the card of the start model. No other file is read, and no checksum is verified."""
    path = folder.start / CARD
    return card_from_json(path, json.loads(path.read_bytes()))


def check_fine_tuning(overrides: Overrides) -> None:
    """Raise if a setting of fine-tuning has no model to start from, or two models are named."""
    if "fine_tuning.start_from" not in overrides:
        names = sorted(name for name in overrides if name.startswith("fine_tuning."))
        if names:
            raise RecipeError(
                f"{', '.join(names)}: only a run that starts from a trained model has this. Name it with "
                "--start-from MODEL, or leave the setting out."
            )
    elif "model.encoder_from" in overrides:
        raise RecipeError(
            "--start-from and --encoder-from both decide the initial weights of the encoder. Give one."
        )


def freeze_weights(model: Model, patterns: Sequence[str]) -> None:
    """Exclude the weights whose names match one of the patterns from training."""
    parameters = dict(model.named_parameters())
    for name in _matching_weights(parameters, patterns):
        parameters[name].requires_grad_(False)


def _matching_weights(names: Iterable[str], patterns: Sequence[str]) -> set[str]:
    """Return the names that match a pattern; raise if a pattern matches no name, or if all names match."""
    names, frozen = list(names), set[str]()
    for pattern in patterns:
        matched = {
            name for name in names for part in _PARTS.get(pattern, (pattern,)) if fnmatchcase(name, part)
        }
        if not matched:
            raise RecipeError(
                f"No weight of the start model is called {pattern!r}. fine_tuning.freeze takes "
                f"{', '.join(_PARTS)} or patterns of names such as {names[len(names) // 2]}."
            )
        frozen |= matched
    if frozen and len(frozen) == len(names):
        raise RecipeError(
            f"All weights would be frozen, so nothing would be trained. Received: fine_tuning.freeze = "
            f"{', '.join(patterns)}. Leave one out."
        )
    return frozen


def _check_keep_lengths(keep: Sequence[Pair], tokenizers: TokenizerPair, recipe: Recipe) -> None:
    """Raise now, and not after the training, if all pairs to keep are too long to validate on."""
    try:
        TranslationValidation(keep, tokenizers, recipe)
    except DataError:
        raise DataError(
            f"Nothing shows what the model keeps: all {len(keep):,} pairs to keep have more than "
            f"{recipe.training.max_sentence_tokens} tokens on a side. Raise training.max_sentence_tokens, or "
            "give shorter pairs with --keep."
        ) from None


def _largest_fitting_size(width: int) -> str:
    """Return the largest size of at most this width, else the smallest: imported models name no size."""
    fitting = [size for size, (_, _, size_width, _, _) in SIZES.items() if size_width <= width]
    return fitting[-1] if fitting else next(iter(SIZES))


def _describe_unknown(tokenizers: TokenizerPair, sentences: Sentences) -> str:
    """Describe the share of unknown tokens in the first new pairs. Fine-tuning learns no new tokens."""
    pairs = [pair for pair, _ in zip(sentences.pairs(), range(SAMPLED_PAIRS), strict=False)]
    sides = (tokenizers.source, [p.source for p in pairs]), (tokenizers.target, [p.target for p in pairs])
    tokens = [token for tokenizer, texts in sides for ids in tokenizer.encode_batch(texts) for token in ids]
    unknown = tokens.count(UNKNOWN)
    count = f"{len(pairs):,}"
    if not unknown:
        return f"no unknown token in the first {count} new pairs"
    return f"{unknown / len(tokens):.2%} of the tokens in the first {count} new pairs are unknown"
