"""From settings to a model: the one place where settings meet classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.attention import find_entry, make_attention
from jumok.errors import RecipeError, UnsupportedError, nearest
from jumok.models.dropout import Dropout
from jumok.models.layers import RESIDUALS, Embedding, FeedForward, Residual
from jumok.models.model import OutputLayer, TranslationModel
from jumok.models.transformer import DecoderBlock, EncoderBlock, Transformer

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.attention import Attention
    from jumok.recipe import ScaledDotSettings, TransformerSettings

__all__ = ["FAMILIES", "build_model", "build_transformer"]

# What a mechanism must be able to do to stand at each site.
NEEDS = {"encoder": (), "decoder": ("causal", "incremental"), "cross": ("cross",)}


def build_model(
    settings: TransformerSettings, *, source_pieces: int, target_pieces: int, shared: bool
) -> TranslationModel:
    """The model that the settings describe. `shared` says that both languages have one vocabulary."""
    if settings.family not in FAMILIES:
        known = ", ".join(FAMILIES)
        hint = nearest(settings.family, FAMILIES)
        raise RecipeError(
            f'There is no family of models called "{settings.family}".{hint} There are: {known}.'
        )
    if shared and source_pieces != target_pieces:
        raise UnsupportedError(
            "One shared vocabulary has one size. "
            f"Received: {source_pieces:,} source pieces and {target_pieces:,} target pieces. "
            "Set text.shared = false for a vocabulary a language."
        )
    return FAMILIES[settings.family](
        settings, source_pieces=source_pieces, target_pieces=target_pieces, shared=shared
    )


def build_transformer(
    settings: TransformerSettings, *, source_pieces: int, target_pieces: int, shared: bool
) -> Transformer:
    """Vaswani et al. 2017. Tied, the output is the target's embedding, and the source's too where shared."""
    width, dropout = settings.width, settings.dropout
    target_embedding = Embedding(pieces=target_pieces, width=width, dropout=dropout)
    source_embedding = Embedding(pieces=source_pieces, width=width, dropout=dropout)
    output = OutputLayer(target_embedding.weight)
    if not settings.tied:
        output = OutputLayer(Embedding(pieces=target_pieces, width=width, dropout=dropout).weight)
    elif shared:
        source_embedding.weight = target_embedding.weight
    norm = RESIDUALS[settings.norm]
    return Transformer(
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        encoder=[_encoder_block(settings) for _ in range(settings.encoder_layers)],
        decoder=[_decoder_block(settings) for _ in range(settings.decoder_layers)],
        after_encoder=norm.last(width),
        after_decoder=norm.last(width),
        output=output,
    )


FAMILIES: dict[str, Callable[..., TranslationModel]] = {"transformer": build_transformer}


def _encoder_block(settings: TransformerSettings) -> EncoderBlock:
    return EncoderBlock(
        attention=_attention(settings, settings.encoder_attention, site="encoder"),
        feed_forward=FeedForward(width=settings.width, hidden=settings.feed_forward),
        residuals=_residuals(settings, 2),
    )


def _decoder_block(settings: TransformerSettings) -> DecoderBlock:
    return DecoderBlock(
        attention=_attention(settings, settings.decoder_attention, site="decoder"),
        cross_attention=_attention(settings, settings.cross_attention, site="cross"),
        feed_forward=FeedForward(width=settings.width, hidden=settings.feed_forward),
        residuals=_residuals(settings, 3),
    )


def _residuals(settings: TransformerSettings, number: int) -> list[Residual]:
    norm = RESIDUALS[settings.norm]
    return [norm(width=settings.width, dropout=settings.dropout) for _ in range(number)]


def _attention(settings: TransformerSettings, mechanism: ScaledDotSettings, *, site: str) -> Attention:
    missing = find_entry(mechanism.kind).supports.missing(*NEEDS[site])
    if missing:
        raise UnsupportedError(
            f'The attention "{mechanism.kind}" cannot stand at the site "{site}": it does not support '
            f'{" and ".join(missing)}. Set model.{site}_attention to {{ kind = "scaled-dot" }}.'
        )
    return make_attention(
        mechanism,
        width=settings.width,
        heads=settings.heads,
        causal=site == "decoder",
        dropout=Dropout(settings.attention_dropout) if settings.attention_dropout else None,
    )
