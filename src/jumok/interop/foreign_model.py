"""A model of another toolkit, read and checked, before it becomes a jumok model.

The readers give weights the names of Hugging Face's MarianMT, the most common layout of such models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


@dataclass(frozen=True, slots=True)
class ForeignVocabulary:
    """The tokens of one side by the foreign model's ids, and the SentencePiece model that produces them."""

    tokens: Mapping[int, str]
    sentencepiece: bytes
    end: int
    unknown: int
    begin: int | None
    """The token with which decoding begins; None: with a zero vector, which has no id."""
    padding: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """What an import needs to know. `settings` are those of a recipe, as `section.name`."""

    format: str
    settings: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    source: ForeignVocabulary
    target: ForeignVocabulary | None
    """None: both sides have the tokens of `source`, with the SentencePiece model `target_sentencepiece`."""
    target_sentencepiece: bytes
    positions: str
    positions_reason: str
    normaliser: str = "none"
    licence: str = ""
    readme: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
