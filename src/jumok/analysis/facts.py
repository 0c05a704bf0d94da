"""Facts about the model behind an explanation, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.attention import CATALOGUE
from jumok.models.decoder_only import DecoderOnly
from jumok.models.encoder_only import EncoderOnly
from jumok.models.layers import PostNorm
from jumok.models.recurrent import Recurrent
from jumok.models.transformer import Transformer

if TYPE_CHECKING:
    from jumok.models.model import Model


def model_facts(model: Model) -> dict[str, Any]:
    """Return the number of parameters, the family, the norm or the recurrent cell, and the mechanisms.

    The mechanisms are names of the catalogue by site. Norm and mechanisms are read from the first layer,
    because all layers have the same. Of an unknown kind of model only the number of parameters is returned.
    """
    facts: dict[str, Any] = {"parameters": sum(weight.numel() for weight in model.parameters())}
    if isinstance(model, Transformer):
        encoder, decoder = model.encoder[0], model.decoder[0]
        sites = {"encoder": encoder.attention, "decoder": decoder.attention, "cross": decoder.cross_attention}
        residual = encoder.around_attention
        facts |= {"family": "transformer", "norm": "post" if isinstance(residual, PostNorm) else "pre"}
    elif isinstance(model, DecoderOnly):
        sites = dict.fromkeys(("encoder", "decoder", "cross"), model.blocks[0].attention)
        residual = model.blocks[0].around_attention
        facts |= {"family": "decoder-only", "norm": "post" if isinstance(residual, PostNorm) else "pre"}
    elif isinstance(model, EncoderOnly):
        sites = {"encoder": model.encoder[0].attention}
        residual = model.encoder[0].around_attention
        facts |= {"family": "encoder-only", "norm": "post" if isinstance(residual, PostNorm) else "pre"}
    elif isinstance(model, Recurrent):
        attention = getattr(model.decoder, "attention", None)
        sites = {} if attention is None else {"cross": attention}
        facts |= {"family": "recurrent", "cell": type(model.decoder.layers[0]).__name__.lower()}
    else:
        return facts
    facts["mechanisms"] = {site: _mechanism_name(attention) for site, attention in sites.items()}
    return facts


def _mechanism_name(attention: Any) -> str:
    kind = type(attention.mechanism)
    names = {entry.mechanism: name for name, entry in CATALOGUE.items()}
    return names.get(kind, kind.__name__)
