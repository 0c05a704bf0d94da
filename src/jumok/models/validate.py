"""Refuse settings that cannot be combined, before anything is read or built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.attention import POSITIONS, Widths, check_options, find_entry, make_single_head
from jumok.config.derive import SIZES
from jumok.config.recipe import (
    EXTRA_TOKENS,
    BlockSettings,
    RecurrentSettings,
)
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.config.recipe import (
        AttentionSettings,
        DecoderOnlySettings,
        EncoderOnlySettings,
        ModelSettings,
        Recipe,
        SourceSettings,
        TransformerSettings,
    )
    from jumok.config.resolve import Overrides

NO_ATTENTION = "none"
PICTURE_FAMILIES = ("transformer", "encoder-only")

ATTENTION_NEEDS: dict[str, dict[str, tuple[str, ...]]] = {
    "transformer": {
        "encoder_attention": (),
        "decoder_attention": ("causal", "incremental"),
        "cross_attention": ("cross",),
    },
    "recurrent": {"attention": ("cross",)},
    "decoder-only": {"attention": ("causal", "incremental", "left_padding")},
    "encoder-only": {"attention": ()},
}
"""For each family: setting that names a mechanism → features that the mechanism must support."""

POSITIONS_REFUSED_BECAUSE = {
    "products": "its scores are not products of queries and keys",
    "bias": "it has no scores to which a bias could be added",
}
"""Feature that some positions need → why a mechanism without this feature cannot have these positions.

The features are fields of `Supports`.
"""


def check_overrides(overrides: Overrides) -> None:
    """Refuse overrides that no derived setting can make valid.

    Unless `source.kind` is set, lengths are checked as for text, because the corpus has not been read.
    """
    recipe = overrides.with_defaults()
    model, width_is_set = recipe.model, "model.width" in overrides
    if isinstance(model, RecurrentSettings):
        _check_recurrent(model)
        if width_is_set:
            _check_recurrent_widths(model)
    else:
        if "model.heads" in overrides:
            if width_is_set or (model.key_width is not None and model.value_width is not None):
                head_widths(model)
            else:
                _check_heads_of_sizes(model.heads, overrides.get("model.size"))
            _check_groups(model)
        _check_mechanisms(model)
        # Without these overrides, the width of a head is derived, and `check_recipe` checks it.
        if model.key_width is not None or {"model.width", "model.heads"} <= overrides.keys():
            _check_rotary_width(model)
    if {"source.size", "source.patch_size"} <= overrides.keys():
        _check_patches(recipe.source)
    _check_lengths_and_search(recipe)


def check_recipe(recipe: Recipe) -> None:
    """Refuse a model that cannot be built, or that does not fit the rest of its recipe."""
    check_model(recipe.model)
    if recipe.source.kind == "pictures":
        _check_patches(recipe.source)
    _check_lengths_and_search(recipe)


def check_model(settings: ModelSettings) -> None:
    """Refuse a model whose settings cannot be combined."""
    if isinstance(settings, RecurrentSettings):
        _check_recurrent(settings)
        _check_recurrent_widths(settings)
        return
    head_widths(settings)
    _check_groups(settings)
    _check_mechanisms(settings)
    _check_rotary_width(settings)


def _check_lengths_and_search(recipe: Recipe) -> None:
    """Refuse a recipe if its lengths or its search settings do not fit its model."""
    _check_learned_positions(recipe)
    _check_max_keys(recipe)
    _check_coverage(recipe)


def _check_heads_of_sizes(heads: int, size: str | None) -> None:
    """Refuse a number of heads that divides the width of none of the sizes that the model may have.

    `size` is the size of the model if it is set. Otherwise any size may be derived.
    """
    widths = {name: width for name, (_, _, width, *_) in SIZES.items() if size in (None, name)}
    if all(width % heads for width in widths.values()):
        widths_text = ", ".join(f"{width} ({name})" for name, width in widths.items())
        smallest = min(widths.values())
        divisors = ", ".join(str(count) for count in range(1, 65) if smallest % count == 0)
        raise UnsupportedError(
            f"{heads} heads cannot share the width of any size evenly. Widths: {widths_text}. "
            f"Possible: {divisors}, or set model.width too."
        )


def _check_mechanisms(
    settings: TransformerSettings | DecoderOnlySettings | EncoderOnlySettings,
) -> None:
    for setting, (mechanism, needs) in _mechanisms(settings).items():
        _check_mechanism(mechanism, needs, setting=setting)
        if "cross" not in needs:
            _check_positions(settings, mechanism, setting=setting)
        _check_dropout(mechanism, settings.attention_dropout, setting=setting)


def check_reads_pictures(family: str, task: str | None, *, pictures: bool) -> None:
    """Refuse pictures for a family that cannot read them, and a task that does not fit the source.

    The task is None if it is not set and will be derived.
    """
    if pictures and family not in PICTURE_FAMILIES:
        raise UnsupportedError(
            f"A {family} model reads text, and the source is pictures. Choose --model transformer, "
            "which writes captions, or --model encoder-only, which names classes."
        )
    if family == "encoder-only" and task is not None and (task == "classify") != pictures:
        source = "pictures" if pictures else "text"
        raise UnsupportedError(
            f'The task of an encoder-only model is "classify" for pictures and "masked" for text. Received: '
            f'model.task = "{task}", and {source}. Leave model.task out: it is derived.'
        )


def attention_overrides(family: str, mechanism: str) -> dict[str, str]:
    """Return overrides that select a mechanism at every site of a family that the mechanism supports."""
    needs_by_setting = ATTENTION_NEEDS[family]
    if len(needs_by_setting) == 1:
        return {f"model.{setting}": mechanism for setting in needs_by_setting}
    if mechanism == NO_ATTENTION:
        return {"model.cross_attention": mechanism}  # `_check_mechanism` refuses it with the reason
    supports = find_entry(mechanism).supports
    return {
        f"model.{setting}": mechanism
        for setting, needs in needs_by_setting.items()
        if not supports.missing(*needs)
    }


def head_widths(settings: BlockSettings) -> Widths:
    """Return the widths of every attention of the model.

    Raise if the heads cannot share the width evenly and the widths of a head are not both set.
    """
    return Widths.of(settings.width, settings.heads, key=settings.key_width, value=settings.value_width)


def encoder_width(settings: RecurrentSettings) -> int:
    """Return the width of the states of a recurrent encoder."""
    return settings.width if settings.encoder_width is None else settings.encoder_width


def attention_order(settings: RecurrentSettings) -> str:
    """Return "before" or "after": when a recurrent decoder attends, relative to its step."""
    return find_entry(settings.attention.kind).order if settings.order == "auto" else settings.order


def set_max_keys_of_mechanisms(overrides: Overrides) -> Overrides:
    """Return the overrides with `max_keys` filled in for mechanisms with a fixed number of positions."""
    complete_settings = {
        setting: {"kind": mechanism.kind, **mechanism.options, "max_keys": needed}
        for setting, mechanism, needed in _mechanisms_with_max_keys(overrides.with_defaults())
        if "max_keys" not in mechanism.options
    }
    return overrides.updated(complete_settings)


def _mechanisms(model: ModelSettings) -> dict[str, tuple[AttentionSettings, tuple[str, ...]]]:
    """Return setting → (mechanism, features that the mechanism must support)."""
    return {
        f"model.{setting}": (getattr(model, setting), needs)
        for setting, needs in ATTENTION_NEEDS[model.family].items()
    }


# --- Lengths ------------------------------------------------------------------------------------------------


def _max_source_tokens(recipe: Recipe) -> int:
    """Return the length of the longest source in tokens, including `</s>` or the class token of a picture.

    A picture that gets a caption has no class token, so that one of these tokens is not used.
    """
    return (recipe.source.num_patches or recipe.training.max_sentence_tokens) + 1


def _max_target_tokens(recipe: Recipe) -> int:
    """Return the length in tokens of the longest target in training or in a search, including `<s>`."""
    max_tokens = recipe.training.max_sentence_tokens
    limit = (recipe.source.num_patches or max_tokens) * recipe.search.max_length_ratio
    return max(int(limit) + EXTRA_TOKENS, max_tokens) + 1


def max_translation_tokens(recipe: Recipe) -> int | None:
    """Return the maximum length of a translation, in tokens, that the positions of the model allow.

    None if there is no limit.
    """
    model, limits = recipe.model, []
    if isinstance(model, BlockSettings) and model.positions == "learned":
        source_tokens = _max_source_tokens(recipe) if model.family == "decoder-only" else 0
        limits.append(model.max_positions - source_tokens)
    limits += [
        mechanism.options["max_keys"]
        for setting, mechanism, _ in _mechanisms_with_max_keys(recipe)
        if setting == "model.decoder_attention" and "max_keys" in mechanism.options
    ]
    return min(limits) - 1 if limits else None  # the first position is that of `<s>`


def _max_text_source_tokens(recipe: Recipe) -> int:
    """Return `_max_source_tokens`, or 0 for pictures, whose grid decides how many positions there are."""
    return _max_source_tokens(recipe) if recipe.source.kind == "text" else 0


MAX_SEQUENCE_TOKENS: dict[str, Callable[[Recipe], int]] = {
    "transformer": lambda recipe: max(_max_text_source_tokens(recipe), _max_target_tokens(recipe)),
    "decoder-only": lambda recipe: _max_text_source_tokens(recipe) + _max_target_tokens(recipe),
    "encoder-only": _max_text_source_tokens,
}
"""For each family with positions, the length in tokens of the longest sequence that its models compute.

In a decoder-only model, a sequence is a source with its translation. Patches do not count.
"""


def _check_patches(source: SourceSettings) -> None:
    """Raise if the side of a patch does not divide the side of a picture."""
    if source.size % source.patch_size:
        raise UnsupportedError(
            "A picture is cut into whole patches, so source.patch_size must divide source.size. Received: "
            f"source.size = {source.size}, source.patch_size = {source.patch_size}."
        )


def _check_learned_positions(recipe: Recipe) -> None:
    """Raise if learned positions do not cover the longest text that the model reads or writes."""
    model = recipe.model
    if not isinstance(model, BlockSettings) or model.positions != "learned":
        return
    needed = MAX_SEQUENCE_TOKENS[model.family](recipe)
    if model.max_positions < needed:
        limits: dict[str, float] = {"training.max_sentence_tokens": recipe.training.max_sentence_tokens}
        if model.family != "encoder-only":
            limits["search.max_length_ratio"] = recipe.search.max_length_ratio
        if recipe.source.kind == "pictures":  # the longest caption is limited by one of the two
            by_search = needed > recipe.training.max_sentence_tokens + 1
            del limits["training.max_sentence_tokens" if by_search else "search.max_length_ratio"]
        received = " and ".join(f"{name} = {value:g}" for name, value in limits.items())
        raise UnsupportedError(
            f"Learned positions must cover {needed} positions, the longest sequence of this {model.family} "
            f"model with {received}. Received: model.max_positions = {model.max_positions}. Raise "
            f"model.max_positions, lower {' or '.join(limits)}, or set model.positions to "
            '"sinusoidal", which has no limit.'
        )


def _check_max_keys(recipe: Recipe) -> None:
    """Raise if the `max_keys` of a mechanism do not cover the longest sentence or picture.

    The longest sentence is the longest of training or of a search.
    """
    for setting, mechanism, needed in _mechanisms_with_max_keys(recipe):
        max_keys = mechanism.options.get("max_keys", needed)
        if max_keys < needed:
            value = f'{{ kind = "{mechanism.kind}", max_keys = {needed} }}'
            max_sentence = f"training.max_sentence_tokens = {recipe.training.max_sentence_tokens}"
            inputs, advice = f"sentences of {max_sentence} tokens", "lower training.max_sentence_tokens"
            if setting == "model.decoder_attention":
                inputs = f"{inputs} and the longest translation that a search tries"
                advice = f"{advice} or search.max_length_ratio"
            elif recipe.source.kind == "pictures":
                inputs = f"pictures of {recipe.source.num_patches} patches"
                advice = "raise source.patch_size"
            raise UnsupportedError(
                f'{setting} = "{mechanism.kind}" must cover {needed} positions, for {inputs}. '
                f"Received: max_keys = {max_keys}. "
                f'Set {setting} = {value}, {advice}, or choose "luong-general", which has no limit.'
            )


def _mechanisms_with_max_keys(recipe: Recipe) -> Iterator[tuple[str, AttentionSettings, int]]:
    """Yield (setting, mechanism, needed positions) for each mechanism with a fixed number of positions."""
    for setting, (mechanism, _) in _mechanisms(recipe.model).items():
        if mechanism.kind != NO_ATTENTION and hasattr(check_options(mechanism), "max_keys"):
            max_tokens = _max_target_tokens if setting == "model.decoder_attention" else _max_source_tokens
            yield setting, mechanism, max_tokens(recipe)


# --- Combinations -------------------------------------------------------------------------------------------


def _check_coverage(recipe: Recipe) -> None:
    """Raise if the recipe has a coverage penalty and the model has no attention to the source."""
    model, penalty = recipe.model, recipe.search.coverage_penalty
    if penalty and isinstance(model, RecurrentSettings) and model.attention.kind == NO_ATTENTION:
        raise UnsupportedError(
            "The coverage penalty needs attention to the source, and this model has none. "
            f"Received: search.coverage_penalty = {penalty:g}. Set it to 0 or choose a model.attention."
        )


def _check_recurrent(settings: RecurrentSettings) -> None:
    if settings.bidirectional and encoder_width(settings) % 2:
        name = "model.width" if settings.encoder_width is None else "model.encoder_width"
        raise UnsupportedError(
            f"A bidirectional encoder gives half of {name} to each direction. Received: {name} = "
            f"{encoder_width(settings)}. Set an even width, or model.bidirectional = false."
        )
    attends = settings.attention.kind != NO_ATTENTION
    if attends:
        _check_mechanism(
            settings.attention, ATTENTION_NEEDS["recurrent"]["attention"], setting="model.attention"
        )
    if settings.input_feeding and not attends:
        raise UnsupportedError(
            "Input feeding needs attention, and this model has none. "
            "Set model.input_feeding = false, or choose a model.attention."
        )
    if settings.input_feeding and attention_order(settings) == "before":
        raise UnsupportedError(
            "A decoder that attends before its step already has the context as an input of that step. "
            'Set model.input_feeding = false, or model.order = "after".'
        )


def _check_recurrent_widths(settings: RecurrentSettings) -> None:
    """Raise if the mechanism of attention refuses the widths of the encoder and the decoder.

    To check this, the attention is built on the device "meta", where weights take no memory.
    """
    if settings.attention.kind != NO_ATTENTION and settings.encoder_width is not None:
        with torch.device("meta"):
            make_single_head(settings.attention, query=settings.width, key=settings.encoder_width)


def _check_mechanism(mechanism: AttentionSettings, needs: tuple[str, ...], *, setting: str) -> None:
    if mechanism.kind == NO_ATTENTION:
        raise UnsupportedError(
            f'{setting} cannot be "{NO_ATTENTION}": a Transformer consists of attention. '
            f"For a model without attention use `--model recurrent --attention {NO_ATTENTION}`."
        )
    check_options(mechanism)
    missing = find_entry(mechanism.kind).supports.missing(*needs)
    if missing:
        raise UnsupportedError(
            f'{setting} cannot be "{mechanism.kind}": it does not support {" and ".join(missing)}. '
            'Set it to "scaled-dot", which works everywhere.'
        )


def _check_positions(settings: BlockSettings, mechanism: AttentionSettings, *, setting: str) -> None:
    """Raise if the mechanism of a self-attention does not support the kind of positions."""
    kind = settings.positions
    missing = find_entry(mechanism.kind).supports.missing(*POSITIONS[kind].needs)
    if missing:
        raise UnsupportedError(
            f'model.positions cannot be "{kind}" if {setting} is "{mechanism.kind}": '
            f"{' and '.join(POSITIONS_REFUSED_BECAUSE[need] for need in missing)}. "
            'Set model.positions to "sinusoidal", which works with every mechanism, or '
            f'{setting} to "scaled-dot".'
        )


def _check_rotary_width(settings: BlockSettings) -> None:
    """Raise if the positions are rotary and the width of a head is odd."""
    key_width = settings.key_width or settings.width // settings.heads
    if settings.positions == "rotary" and key_width % 2:
        name = "model.width / model.heads" if settings.key_width is None else "model.key_width"
        raise UnsupportedError(
            "Rotary positions rotate pairs of columns and need heads of even width. Received: "
            f"{name} = {key_width}. "
            "Change model.heads or model.key_width so that the width of a head is even, or set "
            'model.positions to "alibi".'
        )


def _check_groups(settings: BlockSettings) -> None:
    groups = settings.key_value_groups
    if groups is not None and settings.heads % groups:
        raise UnsupportedError(
            "model.key_value_groups must divide model.heads. "
            f"Received: {groups} groups for {settings.heads} heads."
        )


def _check_dropout(mechanism: AttentionSettings, probability: float, *, setting: str) -> None:
    if probability and find_entry(mechanism.kind).supports.missing("dropout"):
        raise UnsupportedError(
            f"model.attention_dropout drops attention weights. Received: {probability}, and {setting} = "
            f'"{mechanism.kind}", which forms no weights in training. Set model.attention_dropout = 0 '
            f'(model.dropout works everywhere), or {setting} = "scaled-dot".'
        )
