"""Families of translation models, built of attention."""

from jumok.models.build import (
    FAMILIES,
    NEEDS,
    NEEDS_DECODER_ONLY,
    NO_ATTENTION,
    build_model,
    check_model,
    place_attention,
)
from jumok.models.decoder_only import DecoderOnly, DecoderOnlyState
from jumok.models.dropout import Dropout, seed_dropout
from jumok.models.model import OutputLayer, State, TranslationModel
from jumok.models.recurrent import Recurrent, RecurrentState
from jumok.models.transformer import Transformer, TransformerState

__all__ = [
    "FAMILIES",
    "NEEDS",
    "NEEDS_DECODER_ONLY",
    "NO_ATTENTION",
    "DecoderOnly",
    "DecoderOnlyState",
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
