"""A model of another toolkit that has been read and checked, before it is converted into a jumok model.

The readers rename the weights to the names of Hugging Face's MarianMT, the most common layout of such models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


@dataclass(frozen=True, slots=True)
class ForeignVocabulary:
    """The tokens of one side, by their ids in the foreign model, and the SentencePiece model of this side.

    `end`, `unknown`, `begin` and `padding` are the ids of special tokens.
    """

    tokens: Mapping[int, str]
    """All tokens, including the special tokens."""
    sentencepiece: bytes
    end: int
    unknown: int
    begin: int | None
    """The id with which decoding begins. If None, decoding begins with a zero vector, which has no id."""
    padding: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """All data of a foreign model. The keys of `settings` are settings of a recipe, as `section.name`.

    `format` is the name of the toolkit. `positions` is a value of the setting `model.positions`, and
    `positions_reason` says why. `normaliser` is one of `joint_vocabulary.NORMALISERS`.
    """

    format: str
    settings: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    source: ForeignVocabulary
    target: ForeignVocabulary | None
    """If None, the target has the tokens of `source` and the SentencePiece model `target_sentencepiece`."""
    target_sentencepiece: bytes
    positions: str
    positions_reason: str
    normaliser: str = "none"
    licence: str = ""
    readme: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
