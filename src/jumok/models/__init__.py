"""Families of translation models, built of attention."""

from jumok.models.build import FAMILIES, build_model
from jumok.models.dropout import Dropout, seed_dropout
from jumok.models.model import OutputLayer, State, TranslationModel
from jumok.models.transformer import Transformer, TransformerState

__all__ = [
    "FAMILIES",
    "Dropout",
    "OutputLayer",
    "State",
    "Transformer",
    "TransformerState",
    "TranslationModel",
    "build_model",
    "seed_dropout",
]
