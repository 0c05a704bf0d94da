"""Families of translation models, built of attention."""

from jumok.models.build import FAMILIES, NEEDS, NO_ATTENTION, build_model, check_model, place_attention
from jumok.models.dropout import Dropout, seed_dropout
from jumok.models.model import OutputLayer, State, TranslationModel
from jumok.models.recurrent import Recurrent, RecurrentState
from jumok.models.transformer import Transformer, TransformerState

__all__ = [
    "FAMILIES",
    "NEEDS",
    "NO_ATTENTION",
    "Dropout",
    "OutputLayer",
    "Recurrent",
    "RecurrentState",
    "State",
    "Transformer",
    "TransformerState",
    "TranslationModel",
    "build_model",
    "check_model",
    "place_attention",
    "seed_dropout",
]
