"""From settings to a model: the one place where settings meet classes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from jumok.attention import POSITIONS, Widths, check_options, find_entry, make_attention, make_direct
from jumok.errors import RecipeError, UnsupportedError, nearest
from jumok.models.decoder_only import DecoderOnly, DecoderOnlyBlock
from jumok.models.dropout import Dropout
from jumok.models.encoder_only import EncoderOnly
from jumok.models.layers import RESIDUALS, Embedding, FeedForward, Residual
from jumok.models.model import Model, OutputLayer
from jumok.models.norms import NORMS
from jumok.models.recurrent import (
    AttendAfter,
    AttendBefore,
    NoAttention,
    PieceEmbedding,
    Recurrent,
    RecurrentDecoder,
    RecurrentEncoder,
)
from jumok.models.transformer import DecoderBlock, EncoderBlock, Transformer
from jumok.recipe import DecoderOnlySettings, EncoderOnlySettings, RecurrentSettings, make_recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

    from jumok.attention import Attention
    from jumok.recipe import AttentionSettings, ModelSettings, Recipe, TransformerSettings

    BlockSettings: TypeAlias = TransformerSettings | DecoderOnlySettings | EncoderOnlySettings

__all__ = [
    "FAMILIES",
    "NEEDS",
    "NEEDS_DECODER_ONLY",
    "NO_ATTENTION",
    "build_decoder_only",
    "build_encoder_only",
    "build_model",
    "build_recurrent",
    "build_transformer",
    "check_model",
    "check_recipe",
    "fill_places",
    "place_attention",
]

NO_ATTENTION = "none"
EmbeddingT = TypeVar("EmbeddingT", Embedding, PieceEmbedding)

# What a mechanism must be able to do to stand at each site.
NEEDS: dict[str, tuple[str, ...]] = {
    "encoder": (),
    "decoder": ("causal", "incremental"),
    "cross": ("cross",),
}
POSITION_NEEDS = {
    "products": "its scores are no products of queries and keys",
    "bias": "it has no scores that a bias could be added to",
}
NEEDS_DECODER_ONLY = ("causal", "incremental", "left_padding")


def build_model(settings: ModelSettings, *, source_pieces: int, target_pieces: int, shared: bool) -> Model:
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
    check_model(settings)
    return FAMILIES[settings.family](
        settings, source_pieces=source_pieces, target_pieces=target_pieces, shared=shared
    )


def build_transformer(
    settings: TransformerSettings, *, source_pieces: int, target_pieces: int, shared: bool
) -> Transformer:
    """Vaswani et al. 2017."""

    def embedding(**parts: Any) -> Embedding:
        return Embedding(**parts, positions=_added_positions(settings))

    source_embedding, target_embedding, output = _embeddings(
        embedding,
        (source_pieces, target_pieces),
        width=settings.width,
        dropout=settings.dropout,
        tied=settings.tied,
        shared=shared,
    )
    return Transformer(
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        encoder=[
            _encoder_block(settings, settings.encoder_attention) for _ in range(settings.encoder_layers)
        ],
        decoder=[_decoder_block(settings) for _ in range(settings.decoder_layers)],
        after_encoder=_last_norm(settings),
        after_decoder=_last_norm(settings),
        output=output,
    )


def _embeddings(
    kind: Callable[..., EmbeddingT],
    pieces: tuple[int, int],
    *,
    width: int,
    dropout: float,
    tied: bool,
    shared: bool,
) -> tuple[EmbeddingT, EmbeddingT, OutputLayer]:
    """Source, target and output. Tied, the output is the target's matrix, and the source's too if shared."""
    target = kind(pieces=pieces[1], width=width, dropout=dropout)
    source = kind(pieces=pieces[0], width=width, dropout=dropout)
    if not tied:
        return source, target, OutputLayer(kind(pieces=pieces[1], width=width, dropout=dropout).weight)
    if shared:
        source.weight = target.weight
    return source, target, OutputLayer(target.weight)


def build_recurrent(
    settings: RecurrentSettings, *, source_pieces: int, target_pieces: int, shared: bool
) -> Recurrent:
    """Bahdanau et al. 2015 or Luong et al. 2015, or neither: a decoder without attention."""
    source_embedding, target_embedding, output = _embeddings(
        PieceEmbedding,
        (source_pieces, target_pieces),
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
            width=settings.width,
            layers=settings.encoder_layers,
            bidirectional=settings.bidirectional,
            dropout=settings.dropout,
        ),
        decoder=_recurrent_decoder(settings),
        output=output,
    )


def _recurrent_decoder(settings: RecurrentSettings) -> RecurrentDecoder:
    parts: dict[str, Any] = {
        "cell": settings.cell,
        "embedding": settings.embedding,
        "width": settings.width,
        "layers": settings.decoder_layers,
        "dropout": settings.dropout,
    }
    if settings.attention.kind == NO_ATTENTION:
        return NoAttention(**parts)
    attention = make_direct(settings.attention, query=settings.width, key=settings.width)
    if _order(settings) == "after":
        return AttendAfter(**parts, attention=attention, feeding=settings.input_feeding)
    return AttendBefore(**parts, attention=attention)


def _order(settings: RecurrentSettings) -> str:
    return find_entry(settings.attention.kind).order if settings.order == "auto" else settings.order


def build_decoder_only(
    settings: DecoderOnlySettings, *, source_pieces: int, target_pieces: int, shared: bool
) -> DecoderOnly:
    """One stack of masked self-attention that reads the source and writes the target."""
    source_embedding, target_embedding, output = _embeddings(
        partial(Embedding, positions=_added_positions(settings)),  # one sequence has one table of places
        (source_pieces, target_pieces),
        width=settings.width,
        dropout=settings.dropout,
        tied=settings.tied,
        shared=shared,
    )
    blocks = [
        DecoderOnlyBlock(
            attention=_self_attention(settings, settings.attention, causal=True),
            feed_forward=FeedForward(width=settings.width, hidden=settings.feed_forward),
            residuals=_residuals(settings, 2),
        )
        for _ in range(settings.layers)
    ]
    return DecoderOnly(
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        blocks=blocks,
        after_blocks=_last_norm(settings),
        output=output,
    )


def build_encoder_only(
    settings: EncoderOnlySettings, *, source_pieces: int, target_pieces: int, shared: bool
) -> EncoderOnly:
    """The encoder and what guesses the pieces that were hidden from it. There is one language."""
    embedding, _, output = _embeddings(
        partial(Embedding, positions=_added_positions(settings)),
        (source_pieces, target_pieces),
        width=settings.width,
        dropout=settings.dropout,
        tied=settings.tied,
        shared=shared,
    )
    return EncoderOnly(
        source_embedding=embedding,
        encoder=[_encoder_block(settings, settings.attention) for _ in range(settings.layers)],
        after_encoder=_last_norm(settings),
        output=output,
    )


FAMILIES: dict[str, Callable[..., Model]] = {
    "transformer": build_transformer,
    "recurrent": build_recurrent,
    "decoder-only": build_decoder_only,
    "encoder-only": build_encoder_only,
}


def _encoder_block(
    settings: TransformerSettings | EncoderOnlySettings, mechanism: AttentionSettings
) -> EncoderBlock:
    return EncoderBlock(
        attention=_self_attention(settings, mechanism),
        feed_forward=FeedForward(width=settings.width, hidden=settings.feed_forward),
        residuals=_residuals(settings, 2),
    )


def _decoder_block(settings: TransformerSettings) -> DecoderBlock:
    return DecoderBlock(
        attention=_self_attention(settings, settings.decoder_attention, causal=True),
        cross_attention=_attention(settings, settings.cross_attention),
        feed_forward=FeedForward(width=settings.width, hidden=settings.feed_forward),
        residuals=_residuals(settings, 3),
    )


def _residuals(settings: BlockSettings, number: int) -> list[Residual]:
    residual, norm = RESIDUALS[settings.norm], NORMS[settings.norm_kind].make
    return [residual(width=settings.width, dropout=settings.dropout, norm=norm) for _ in range(number)]


def _last_norm(settings: BlockSettings) -> nn.Module:
    return RESIDUALS[settings.norm].last(settings.width, NORMS[settings.norm_kind].make)


def _added_positions(settings: BlockSettings) -> nn.Module:
    """What is added to embeddings of these settings."""
    return POSITIONS[settings.positions].added(settings.width, settings.places)


def _self_attention(
    settings: BlockSettings, mechanism: AttentionSettings, *, causal: bool = False
) -> Attention:
    return _attention(settings, mechanism, causal=causal, positions=settings.positions)


def _attention(
    settings: BlockSettings, mechanism: AttentionSettings, *, causal: bool = False, positions: str = "none"
) -> Attention:
    return make_attention(
        mechanism,
        width=settings.width,
        heads=settings.heads,
        causal=causal,
        dropout=Dropout(settings.attention_dropout) if settings.attention_dropout else None,
        positions=positions,
    )


def check_recipe(recipe: Recipe) -> None:
    """Refuse a model that cannot be, or that the rest of its recipe asks too much of."""
    check_model(recipe.model)
    _check_places(recipe)
    _check_keys(recipe)
    _check_coverage(recipe)


def _check_places(recipe: Recipe) -> None:
    """Learned positions must reach to the end of the longest translation that a search may try."""
    model, longest = recipe.model, recipe.training.longest
    if isinstance(model, RecurrentSettings) or model.positions != "learned":
        return
    needed = _most_steps(recipe)
    if isinstance(model, DecoderOnlySettings):
        needed += longest + 1
    elif isinstance(model, EncoderOnlySettings):
        needed = longest + 1
    if model.places < needed:
        raise UnsupportedError(
            f"Learned positions must know {needed} places for sources of training.longest = {longest} pieces "
            f"and the translations that a search may try. Received: model.places = {model.places}. Raise it, "
            'lower training.longest, or set model.positions to "sinusoidal", which has no end.'
        )


def fill_places(recipe: Recipe) -> Recipe:
    """The recipe with as many places as are needed where a mechanism knows so many and none were set."""
    filled = {
        setting: {"kind": mechanism.kind, **mechanism.options, "longest": needed}
        for setting, mechanism, needed in _located(recipe)
        if "longest" not in mechanism.options
    }
    return make_recipe(recipe.model_dump(exclude_unset=True), **filled) if filled else recipe


def _check_keys(recipe: Recipe) -> None:
    """A mechanism with a `longest` knows so many keys: there may be no more in training, nor in a search."""
    longest = recipe.training.longest
    for setting, mechanism, needed in _located(recipe):
        known = mechanism.options.get("longest", needed)
        if known < needed:
            wanted = f'{{ kind = "{mechanism.kind}", longest = {needed} }}'
            raise UnsupportedError(
                f'{setting} = "{mechanism.kind}" must know {needed} places for sentences of '
                f"training.longest = {longest} pieces and the translations that a search may try. "
                f"Received: longest = {known}. Set {setting} = {wanted}, lower training.longest, or choose "
                '"luong-general", which has no end.'
            )


def _located(recipe: Recipe) -> Iterator[tuple[str, AttentionSettings, int]]:
    """The mechanisms that know so many places, each with its setting and how many it needs."""
    for setting, (mechanism, _) in _mechanisms(recipe.model).items():
        if mechanism.kind != NO_ATTENTION and hasattr(check_options(mechanism), "longest"):
            decodes = setting == "model.decoder_attention"
            yield setting, mechanism, _most_steps(recipe) if decodes else recipe.training.longest + 1


def _most_steps(recipe: Recipe) -> int:
    """Steps of the longest translation that a search may try of the longest source, `<s>` counted."""
    return int(recipe.training.longest * recipe.search.longest) + 11


def _check_coverage(recipe: Recipe) -> None:
    """The coverage penalty counts attention, so there must be some."""
    model, penalty = recipe.model, recipe.search.coverage_penalty
    if penalty and isinstance(model, RecurrentSettings) and model.attention.kind == NO_ATTENTION:
        raise UnsupportedError(
            "The coverage penalty asks which source words were attended to, and there is no attention. "
            f"Received: search.coverage_penalty = {penalty:g}. Set it to 0 or choose a model.attention."
        )


def check_model(settings: ModelSettings) -> None:
    """Refuse what cannot be combined, before anything is read or built."""
    if isinstance(settings, RecurrentSettings):
        _check_recurrent(settings)
        return
    if "heads" in settings.model_fields_set:  # else they are derived, from a width that may be derived too
        Widths.of(settings.width, settings.heads)
    for setting, (mechanism, needs) in _mechanisms(settings).items():
        _check_mechanism(mechanism, needs, setting=setting)
        if "cross" not in needs:
            _check_positions(settings, mechanism, setting=setting)
        _check_dropout(mechanism, settings.attention_dropout, setting=setting)


def _mechanisms(model: ModelSettings) -> dict[str, tuple[AttentionSettings, tuple[str, ...]]]:
    """By the setting that names it: each mechanism of a model, and what it must be able to do there."""
    if isinstance(model, RecurrentSettings):
        return {"model.attention": (model.attention, NEEDS["cross"])}
    if isinstance(model, DecoderOnlySettings):
        return {"model.attention": (model.attention, NEEDS_DECODER_ONLY)}
    if isinstance(model, EncoderOnlySettings):
        return {"model.attention": (model.attention, NEEDS["encoder"])}
    return {f"model.{site}_attention": (getattr(model, f"{site}_attention"), NEEDS[site]) for site in NEEDS}


def _check_recurrent(settings: RecurrentSettings) -> None:
    if settings.bidirectional and settings.width % 2:
        raise UnsupportedError(
            "A bidirectional encoder gives half of model.width to each direction. "
            f"Received: model.width = {settings.width}. Set an even width, or model.bidirectional = false."
        )
    attends = settings.attention.kind != NO_ATTENTION
    if attends:
        _check_mechanism(settings.attention, NEEDS["cross"], setting="model.attention")
    if settings.input_feeding and not attends:
        raise UnsupportedError(
            "Input feeding feeds what was attended to, and there is no attention. "
            "Set model.input_feeding = false, or choose a model.attention."
        )
    if settings.input_feeding and _order(settings) == "before":
        raise UnsupportedError(
            "A decoder that attends before its step is fed what it attended to in that very step. "
            'Set model.input_feeding = false, or model.order = "after".'
        )


def _check_mechanism(mechanism: AttentionSettings, needs: tuple[str, ...], *, setting: str) -> None:
    if mechanism.kind == NO_ATTENTION:
        raise UnsupportedError(
            f'{setting} cannot be "{NO_ATTENTION}": a Transformer is made of attention. '
            f"Without it there is `--model recurrent --attention {NO_ATTENTION}`."
        )
    check_options(mechanism)
    missing = find_entry(mechanism.kind).supports.missing(*needs)
    if missing:
        raise UnsupportedError(
            f'{setting} cannot be "{mechanism.kind}": it does not support {" and ".join(missing)}. '
            'Set it to "scaled-dot", which goes everywhere.'
        )


def _check_positions(settings: BlockSettings, mechanism: AttentionSettings, *, setting: str) -> None:
    """A self-attention of that mechanism can be told of the positions."""
    kind = settings.positions
    missing = find_entry(mechanism.kind).supports.missing(*POSITIONS[kind].needs)
    if missing:
        raise UnsupportedError(
            f'model.positions cannot be "{kind}" where {setting} is "{mechanism.kind}": '
            f"{' and '.join(POSITION_NEEDS[need] for need in missing)}. "
            'Set model.positions to "sinusoidal", which goes with every mechanism, or '
            f'{setting} to "scaled-dot".'
        )
    if kind == "rotary" and settings.width // settings.heads % 2:
        raise UnsupportedError(
            "Rotary positions turn pairs of columns, and a head of "
            f"model.width / model.heads = {settings.width // settings.heads} has an odd one. "
            'Set model.heads so that heads are of even width, or model.positions to "alibi".'
        )


def _check_dropout(mechanism: AttentionSettings, share: float, *, setting: str) -> None:
    if share and find_entry(mechanism.kind).supports.missing("dropout"):
        raise UnsupportedError(
            f"model.attention_dropout falls on attention weights. Received: {share}, and {setting} = "
            f'"{mechanism.kind}", which forms none in training. Set model.attention_dropout = 0 '
            f'(model.dropout works everywhere), or {setting} = "scaled-dot".'
        )


def place_attention(family: str, kind: str) -> dict[str, str]:
    """The settings that put a mechanism into a model of that family, wherever it can stand."""
    if family in ("recurrent", "decoder-only", "encoder-only"):
        return {"model.attention": kind}
    if kind == NO_ATTENTION:
        return {"model.cross_attention": kind}  # which `check_model` refuses, with the reason
    supports = find_entry(kind).supports
    return {f"model.{site}_attention": kind for site, needs in NEEDS.items() if not supports.missing(*needs)}
