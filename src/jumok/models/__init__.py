"""Families of models, built of attention."""

from jumok.models.build import (
    FAMILIES,
    NEEDS,
    NEEDS_DECODER_ONLY,
    NO_ATTENTION,
    build_model,
    check_model,
    check_recipe,
    fill_places,
    place_attention,
)
from jumok.models.decoder_only import DecoderOnly, DecoderOnlyState
from jumok.models.dropout import Dropout, seed_dropout
from jumok.models.encoder_only import EncoderOnly, encoder_part
from jumok.models.model import Model, OutputLayer, State, TranslationModel
from jumok.models.norms import NORMS, BatchNorm
from jumok.models.recurrent import Recurrent, RecurrentState
from jumok.models.transformer import Transformer, TransformerState

__all__ = [
    "FAMILIES",
    "NEEDS",
    "NEEDS_DECODER_ONLY",
    "NORMS",
    "NO_ATTENTION",
    "BatchNorm",
    "DecoderOnly",
    "DecoderOnlyState",
    "Dropout",
    "EncoderOnly",
    "Model",
    "OutputLayer",
    "Recurrent",
    "RecurrentState",
    "State",
    "Transformer",
    "TransformerState",
    "TranslationModel",
    "build_model",
    "check_model",
    "check_recipe",
    "encoder_part",
    "fill_places",
    "place_attention",
    "seed_dropout",
]
