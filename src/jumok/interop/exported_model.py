"""The input of every exporter: a loaded model with its card and its tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError
from jumok.text.joint_vocabulary import JointVocabularyTokenizer

if TYPE_CHECKING:
    from jumok.models.model import TranslationModel
    from jumok.storage.model_folder import ModelCard
    from jumok.text.tokenizer import TokenizerPair


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """A translation model to export.

    `quantization` is the precision of the weights. Only some formats offer a choice.
    """

    card: ModelCard
    model: TranslationModel
    tokenizers: TokenizerPair
    quantization: str = "float32"

    @property
    def languages(self) -> tuple[str, str]:
        languages = self.card.recipe.languages
        return languages.source, languages.target


def export_refusal(toolkit: str, setting: str, why: str, advice: str) -> UnsupportedError:
    """Return the error for a model that another toolkit cannot represent."""
    return UnsupportedError(f"This model cannot be exported to {toolkit}: {setting}, and {why}. {advice}")


def text_requirements(exported: ExportedModel) -> str:
    """Return a paragraph for the README that says how users of another toolkit must prepare a text.

    If a text needs no preparation, return "".
    """
    source = exported.tokenizers.source
    if not isinstance(source, JointVocabularyTokenizer):
        return "\nText must be in Unicode's normal form NFC.\n"
    sentences = []
    if source.code:
        sentences.append(
            f"Begin every text with the token `{source.code}`, the target language of this model."
        )
    elif source.codes:
        listed = " ".join(f"`{code}`" for code in source.codes[:20])
        sentences.append(f"Begin each text with the token of its target language: {listed}.")
    if source.normaliser != "none":
        sentences.append(
            "Normalise each text as OPUS-MT's `preprocess.sh` does: ASCII punctuation and digits."
        )
    return f"\n{' '.join(sentences)}\n" if sentences else ""
