"""What every exporter gets: a loaded model with its card and its tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from jumok.models import TranslationModel
    from jumok.storage import ModelCard
    from jumok.text import TokenizerPair

__all__ = ["ExportedModel", "does_not_fit"]


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """A translator to export. `quantization` is the precision of the weights, if the format has a choice."""

    card: ModelCard
    model: TranslationModel
    tokenizers: TokenizerPair
    quantization: str = "float32"

    @property
    def languages(self) -> tuple[str, str]:
        languages = self.card.recipe.languages
        return languages.source, languages.target


def does_not_fit(toolkit: str, setting: str, why: str, advice: str) -> UnsupportedError:
    """Return the error for a model that another toolkit cannot hold."""
    return UnsupportedError(f"This model cannot be exported to {toolkit}: {setting}, and {why}. {advice}")
