"""A stored model that a new run takes over: its encoder (`--encoder-from`) or all of it (`--start-from`).

The stored model decides vocabularies, sizes and initial weights, as far as the run takes them over. The
weights are copied into the run folder when the run starts, so that the run can be resumed without the folder
of the stored model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jumok.errors import RecipeError
from jumok.storage.folders import verify_folder
from jumok.storage.tensors import load_module_weights, module_weights, tensors_from_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from jumok.config.recipe import LanguageSettings, Recipe
    from jumok.config.resolve import DerivedSetting, Overrides, Resolved
    from jumok.models.model import Model
    from jumok.text.tokenizer import TokenizerPair
    from jumok.training.events import Event
    from jumok.training.run.corpus_reader import Sentences
    from jumok.training.run.run_folder import RunFolder

INITIAL_WEIGHTS = "weights.safetensors"


class InitialModel(Protocol):
    """A stored model that a new run takes over, or whose encoder it takes over."""

    def decided_settings(self, overrides: Overrides) -> list[DerivedSetting]:
        """Return the settings that this model decides; raise if an override differs from one of them."""

    def check_languages(self, languages: LanguageSettings) -> None:
        """Raise if the pairs have other languages than this model."""

    def adjust(self, resolved: Resolved) -> Resolved:
        """Return the settings with values that depend on both model and corpus."""

    def store(self, folder: RunFolder, sentences: Sentences, recipe: Recipe) -> Generator[Event, None, None]:
        """Copy the parts of this model that the run needs into the run folder."""

    def make_tokenizers(self, sentences: Sentences, recipe: Recipe) -> TokenizerPair:
        """Return the tokenizers of the run."""


def load_initial_weights(model: Model, folder: Path) -> None:
    """Load stored weights into a new model; weights that are not stored stay as they are."""
    weights = tensors_from_bytes(verify_folder(folder)[INITIAL_WEIGHTS], folder / INITIAL_WEIGHTS)
    load_module_weights(model, {**module_weights(model), **weights})


def refuse_contradictions(
    settings: Mapping[str, Any], overrides: Overrides, *, noun: str, origin: str, advice: str
) -> None:
    """Raise if an override differs from a setting that the stored model decides.

    The message calls this model `noun` and names its folder, `origin`.
    """
    conflicts = [
        f"  {name}: received {received!r}, the {noun} has {value!r}"
        for name, value in settings.items()
        if (received := overrides.get(name)) not in (None, value)
    ]
    if conflicts:
        lines = "\n".join(conflicts)
        raise RecipeError(f"These settings contradict the {noun} in {origin}:\n{lines}\n{advice}")
