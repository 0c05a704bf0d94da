"""Model families, built from attention."""

from jumok.models.build import MODEL_BUILDERS, build_model
from jumok.models.decoder_only import DecoderOnly, DecoderOnlyState
from jumok.models.encoder_only import EncoderOnly, encoder_part
from jumok.models.kernels.dropout import Dropout, seed_dropout
from jumok.models.model import Model, OutputLayer, State, TranslationModel
from jumok.models.norms import NORMS, BatchNorm
from jumok.models.patch_embedding import PatchEmbedding
from jumok.models.recurrent import Recurrent, RecurrentState
from jumok.models.transformer import Transformer, TransformerState
from jumok.models.validate import (
    ATTENTION_NEEDS,
    NO_ATTENTION,
    attention_overrides,
    check_model,
    check_overrides,
    check_reads_pictures,
    check_recipe,
    fill_max_keys,
)

__all__ = [
    "ATTENTION_NEEDS",
    "MODEL_BUILDERS",
    "NORMS",
    "NO_ATTENTION",
    "BatchNorm",
    "DecoderOnly",
    "DecoderOnlyState",
    "Dropout",
    "EncoderOnly",
    "Model",
    "OutputLayer",
    "PatchEmbedding",
    "Recurrent",
    "RecurrentState",
    "State",
    "Transformer",
    "TransformerState",
    "TranslationModel",
    "attention_overrides",
    "build_model",
    "check_model",
    "check_overrides",
    "check_reads_pictures",
    "check_recipe",
    "encoder_part",
    "fill_max_keys",
    "seed_dropout",
]
