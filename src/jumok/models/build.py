"""Build a model from its settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jumok.attention import POSITIONS, GridPositions, make_attention, make_single_head
from jumok.errors import RecipeError, UnsupportedError, suggest
from jumok.models.decoder_only import DecoderOnly, DecoderOnlyBlock
from jumok.models.encoder_only import EncoderOnly
from jumok.models.kernels.dropout import Dropout
from jumok.models.layers import RESIDUALS, Embedding, FeedForward, Residual
from jumok.models.model import Model, OutputLayer
from jumok.models.norms import NORMS
from jumok.models.patch_embedding import PatchEmbedding
from jumok.models.recurrent import (
    AttendAfter,
    AttendBefore,
    DecoderSettings,
    NoAttention,
    Recurrent,
    RecurrentDecoder,
    RecurrentEncoder,
    TokenEmbedding,
)
from jumok.models.transformer import DecoderBlock, EncoderBlock, Transformer
from jumok.models.validate import (
    NO_ATTENTION,
    attention_order,
    check_model,
    check_reads_pictures,
    encoder_width,
    head_widths,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from jumok.attention import Attention
    from jumok.config.recipe import (
        AttentionSettings,
        BlockSettings,
        DecoderOnlySettings,
        EncoderOnlySettings,
        ModelSettings,
        RecurrentSettings,
        TransformerSettings,
    )
    from jumok.types import PatchGrid

EmbeddingT = TypeVar("EmbeddingT", Embedding, TokenEmbedding)


def build_model(
    settings: ModelSettings,
    *,
    source_vocab_size: int,
    target_vocab_size: int,
    shared: bool,
    grid: PatchGrid | None = None,
) -> Model:
    """Return a new model with these settings. If `shared`, both languages use one vocabulary.

    With a `grid`, the sources are pictures, which are cut into patches as the grid says.
    """
    if settings.family not in MODEL_BUILDERS:
        known = ", ".join(MODEL_BUILDERS)
        hint = suggest(settings.family, MODEL_BUILDERS)
        raise RecipeError(f'There is no model family called "{settings.family}".{hint} There are: {known}.')
    if shared and source_vocab_size != target_vocab_size:
        raise UnsupportedError(
            "A shared vocabulary has one size. "
            f"Received: {source_vocab_size:,} source tokens and {target_vocab_size:,} target tokens. "
            "Set text.shared = false for one vocabulary per language."
        )
    check_model(settings)
    check_reads_pictures(settings.family, settings.task, pictures=grid is not None)
    picture_arguments: dict[str, Any] = {} if grid is None else {"grid": grid}
    return MODEL_BUILDERS[settings.family](
        settings,
        source_vocab_size=source_vocab_size,
        target_vocab_size=target_vocab_size,
        shared=shared,
        **picture_arguments,
    )


def build_transformer(
    settings: TransformerSettings,
    *,
    source_vocab_size: int,
    target_vocab_size: int,
    shared: bool,
    grid: PatchGrid | None = None,
) -> Transformer:
    """Return a Transformer (Vaswani et al. 2017).

    With a `grid`, the encoder reads a picture and the decoder writes its caption.
    """

    def make_embedding(**arguments: Any) -> Embedding:  # each embedding has a table of positions of its own
        return Embedding(**arguments, positions=_added_positions(settings))

    source_embedding, target_embedding, output = _block_embeddings(
        settings, make_embedding, (source_vocab_size, target_vocab_size), shared=shared
    )
    return Transformer(
        source_embedding=source_embedding if grid is None else _patch_embedding(settings, grid),
        target_embedding=target_embedding,
        encoder=[
            _encoder_block(settings, settings.encoder_attention) for _ in range(settings.encoder_layers)
        ],
        decoder=[_decoder_block(settings) for _ in range(settings.decoder_layers)],
        after_encoder=_final_norm(settings),
        after_decoder=_final_norm(settings),
        output=output,
    )


def build_recurrent(
    settings: RecurrentSettings, *, source_vocab_size: int, target_vocab_size: int, shared: bool
) -> Recurrent:
    """Return a recurrent model: Bahdanau et al. 2015, Luong et al. 2015, or a decoder without attention."""
    source_embedding, target_embedding, output = _embeddings(
        TokenEmbedding,
        (source_vocab_size, target_vocab_size),
        width=settings.embedding,
        dropout=settings.dropout,
        tied=settings.tied,
        shared=shared,
    )
    return Recurrent(
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        encoder=RecurrentEncoder(
            cell=settings.cell,
            inputs=settings.embedding,
            width=encoder_width(settings),
            layers=settings.encoder_layers,
            bidirectional=settings.bidirectional,
            dropout=settings.dropout,
        ),
        decoder=_recurrent_decoder(settings),
        output=output,
    )


def build_decoder_only(
    settings: DecoderOnlySettings, *, source_vocab_size: int, target_vocab_size: int, shared: bool
) -> DecoderOnly:
    """Return a decoder-only model: one stack of causal self-attention for the source and the target."""
    # Source and target are one sequence, so their embeddings share one table of positions.
    make_embedding = partial(Embedding, positions=_added_positions(settings))
    source_embedding, target_embedding, output = _block_embeddings(
        settings, make_embedding, (source_vocab_size, target_vocab_size), shared=shared
    )
    blocks = [
        DecoderOnlyBlock(
            attention=_self_attention(settings, settings.attention, causal=True),
            feed_forward=_feed_forward(settings),
            residuals=_residuals(settings, 2),
        )
        for _ in range(settings.layers)
    ]
    return DecoderOnly(
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        blocks=blocks,
        after_blocks=_final_norm(settings),
        output=output,
    )


def build_encoder_only(
    settings: EncoderOnlySettings,
    *,
    source_vocab_size: int,
    target_vocab_size: int,
    shared: bool,
    grid: PatchGrid | None = None,
) -> EncoderOnly:
    """Return an encoder for one language, with an output layer that predicts masked tokens.

    With a `grid`, the model is a Vision Transformer, which predicts the class of a picture: Dosovitskiy et
    al. 2021.
    """
    make_embedding = partial(Embedding, positions=_added_positions(settings))
    text_embedding, _, output = _block_embeddings(
        settings, make_embedding, (source_vocab_size, target_vocab_size), shared=shared
    )
    picture_embedding = None if grid is None else _patch_embedding(settings, grid, class_token=True)
    return EncoderOnly(
        source_embedding=picture_embedding or text_embedding,
        encoder=[_encoder_block(settings, settings.attention) for _ in range(settings.layers)],
        after_encoder=_final_norm(settings),
        output=output,
    )


MODEL_BUILDERS: dict[str, Callable[..., Model]] = {
    "transformer": build_transformer,
    "recurrent": build_recurrent,
    "decoder-only": build_decoder_only,
    "encoder-only": build_encoder_only,
}


# --- Parts --------------------------------------------------------------------------------------------------


def _embeddings(
    make_embedding: Callable[..., EmbeddingT],
    vocab_sizes: tuple[int, int],
    *,
    width: int,
    dropout: float,
    tied: bool,
    shared: bool,
    bias: bool = False,
) -> tuple[EmbeddingT, EmbeddingT, OutputLayer]:
    """Return the source embedding, the target embedding and the output layer.

    If `tied`, the output layer uses the matrix of the target embedding. If `tied` and `shared`, the source
    embedding uses this matrix too.
    """
    source_size, target_size = vocab_sizes
    target = make_embedding(vocab_size=target_size, width=width, dropout=dropout)
    source = make_embedding(vocab_size=source_size, width=width, dropout=dropout)
    if not tied:
        # The output layer gets a matrix of its own, with the initial values of an embedding.
        untied = make_embedding(vocab_size=target_size, width=width, dropout=dropout)
        return source, target, OutputLayer(untied.weight, bias=bias)
    if shared:
        source.weight = target.weight
    return source, target, OutputLayer(target.weight, bias=bias)


def _block_embeddings(
    settings: BlockSettings,
    make_embedding: Callable[..., Embedding],
    vocab_sizes: tuple[int, int],
    *,
    shared: bool,
) -> tuple[Embedding, Embedding, OutputLayer]:
    """Return the result of `_embeddings` for the settings of a model that consists of blocks."""
    return _embeddings(
        make_embedding,
        vocab_sizes,
        width=settings.width,
        dropout=settings.dropout,
        tied=settings.tied,
        shared=shared,
        bias=settings.output_bias,
    )


def _patch_embedding(
    settings: BlockSettings, grid: PatchGrid, *, class_token: bool = False
) -> PatchEmbedding:
    """Return an embedding of pictures.

    Sinusoidal positions are two-dimensional here. Other kinds number the patches along the rows.
    """
    leading = int(class_token)
    positions: nn.Module
    if settings.positions == "sinusoidal":
        positions = GridPositions(grid.rows, grid.columns, settings.width, leading=leading)
    else:
        kind = POSITIONS[settings.positions]
        positions = kind.make_for_embeddings(settings.width, leading + len(grid))
    return PatchEmbedding(
        grid,
        width=settings.width,
        dropout=settings.dropout,
        positions=positions,
        class_token=class_token,
    )


def _recurrent_decoder(settings: RecurrentSettings) -> RecurrentDecoder:
    decoder_settings = DecoderSettings(
        settings.cell,
        settings.embedding,
        settings.width,
        encoder_width(settings),
        settings.decoder_layers,
        settings.dropout,
    )
    if settings.attention.kind == NO_ATTENTION:
        return NoAttention(decoder_settings)
    attention = make_single_head(settings.attention, query=settings.width, key=encoder_width(settings))
    if attention_order(settings) == "after":
        return AttendAfter(decoder_settings, attention, input_feeding=settings.input_feeding)
    return AttendBefore(decoder_settings, attention)


def _encoder_block(
    settings: TransformerSettings | EncoderOnlySettings, mechanism: AttentionSettings
) -> EncoderBlock:
    return EncoderBlock(
        attention=_self_attention(settings, mechanism),
        feed_forward=_feed_forward(settings),
        residuals=_residuals(settings, 2),
    )


def _decoder_block(settings: TransformerSettings) -> DecoderBlock:
    return DecoderBlock(
        attention=_self_attention(settings, settings.decoder_attention, causal=True),
        cross_attention=_attention(settings, settings.cross_attention),
        feed_forward=_feed_forward(settings),
        residuals=_residuals(settings, 3),
    )


def _feed_forward(settings: BlockSettings) -> FeedForward:
    return FeedForward(width=settings.width, hidden=settings.feed_forward, activation=settings.activation)


def _residuals(settings: BlockSettings, count: int) -> list[Residual]:
    residual, norm = RESIDUALS[settings.norm], NORMS[settings.norm_kind].make
    return [residual(width=settings.width, dropout=settings.dropout, norm=norm) for _ in range(count)]


def _final_norm(settings: BlockSettings) -> nn.Module:
    """Return the norm after the last block of a stack; the identity with post-norm."""
    return RESIDUALS[settings.norm].final_norm(settings.width, NORMS[settings.norm_kind].make)


def _added_positions(settings: BlockSettings) -> nn.Module:
    """Return the positions that are added to the embeddings. They are zeros for kinds that act on heads."""
    return POSITIONS[settings.positions].make_for_embeddings(settings.width, settings.max_positions)


def _self_attention(
    settings: BlockSettings, mechanism: AttentionSettings, *, causal: bool = False
) -> Attention:
    """Return an attention with positions. Cross-attention has none, so it calls `_attention` directly."""
    return _attention(settings, mechanism, causal=causal, positions=settings.positions)


def _attention(
    settings: BlockSettings, mechanism: AttentionSettings, *, causal: bool = False, positions: str = "none"
) -> Attention:
    return make_attention(
        mechanism,
        width=head_widths(settings),
        heads=settings.heads,
        causal=causal,
        dropout=Dropout(settings.attention_dropout) if settings.attention_dropout else None,
        positions=positions,
        projections={
            "groups": settings.key_value_groups,
            "bias": settings.attention_bias,
            "initialiser": settings.attention_init,
        },
    )
