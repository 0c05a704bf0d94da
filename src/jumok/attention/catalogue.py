"""All mechanisms by name.

A new mechanism is one file and one row here. Its options are a `Settings` class in the same file, whose
fields are keyword arguments of its constructor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from jumok.attention.additive import Additive, AdditiveSettings
from jumok.attention.contract import HeadShape
from jumok.attention.efficient import Efficient
from jumok.attention.keras_scores import (
    KerasAdditive,
    KerasAdditiveSettings,
    KerasConcat,
    KerasDot,
    KerasScaleSettings,
)
from jumok.attention.linear import LinearAttention
from jumok.attention.local import LocalSettings, LuongLocalM, LuongLocalP
from jumok.attention.luong import (
    ConcatSettings,
    LocationSettings,
    LuongConcat,
    LuongDot,
    LuongGeneral,
    LuongLocation,
)
from jumok.attention.multi_head import MultiHead, ProjectionOptions, Widths
from jumok.attention.network import NetworkScore, NetworkSettings
from jumok.attention.positions import POSITIONS
from jumok.attention.restricted import Restricted, RestrictedSettings
from jumok.attention.scaled_dot import ScaledDot
from jumok.attention.single_head import SingleHead
from jumok.config.recipe import AttentionSettings, Settings
from jumok.errors import RecipeError, suggest

if TYPE_CHECKING:
    from torch import nn

    from jumok.attention.contract import Attention, Mechanism, Supports


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A row of the catalogue. The fields of `settings` are keyword arguments of the mechanism."""

    mechanism: type[Mechanism[Any]]
    paper: str
    settings: type[Settings] = Settings
    order: Literal["before", "after"] = "after"
    """Whether a recurrent decoder by default attends before its step, as Bahdanau's, or after, as Luong's."""

    @property
    def supports(self) -> Supports:
        return self.mechanism.supports


_LUONG = "Luong et al. 2015, Effective approaches to attention-based neural machine translation"

_KERAS = "Chollet et al. 2015, Keras, layer"

CATALOGUE: dict[str, CatalogueEntry] = {
    "scaled-dot": CatalogueEntry(ScaledDot, "Vaswani et al. 2017, Attention is all you need, eq. 1"),
    "bahdanau": CatalogueEntry(
        Additive,
        "Bahdanau et al. 2015, Neural machine translation by jointly learning to align and translate, A.1.2",
        AdditiveSettings,
        order="before",
    ),
    "network": CatalogueEntry(
        NetworkScore,
        "Bahdanau et al. 2015, section 3.1: any small network that is trained with the rest",
        NetworkSettings,
        order="before",
    ),
    "luong-dot": CatalogueEntry(LuongDot, f"{_LUONG}, section 3.1"),
    "luong-general": CatalogueEntry(LuongGeneral, f"{_LUONG}, section 3.1"),
    "luong-concat": CatalogueEntry(LuongConcat, f"{_LUONG}, section 3.1", ConcatSettings),
    "luong-location": CatalogueEntry(LuongLocation, f"{_LUONG}, eq. 8", LocationSettings),
    "luong-local-m": CatalogueEntry(LuongLocalM, f"{_LUONG}, section 3.2", LocalSettings),
    "luong-local-p": CatalogueEntry(LuongLocalP, f"{_LUONG}, eq. 9 and 10", LocalSettings),
    "keras-dot": CatalogueEntry(KerasDot, f'{_KERAS} Attention, score_mode="dot"', KerasScaleSettings),
    "keras-concat": CatalogueEntry(
        KerasConcat, f'{_KERAS} Attention, score_mode="concat"', KerasScaleSettings
    ),
    "keras-additive": CatalogueEntry(KerasAdditive, f"{_KERAS} AdditiveAttention", KerasAdditiveSettings),
    "efficient": CatalogueEntry(
        Efficient, "Shen et al. 2018, Efficient attention: attention with linear complexities"
    ),
    "linear": CatalogueEntry(LinearAttention, "Katharopoulos et al. 2020, Transformers are RNNs"),
    "restricted": CatalogueEntry(
        Restricted, "Vaswani et al. 2017, Attention is all you need, section 4", RestrictedSettings
    ),
}


def find_entry(name: str) -> CatalogueEntry:
    """Return the entry of this name, or raise a `RecipeError` that suggests the nearest name."""
    if name not in CATALOGUE:
        known = ", ".join(CATALOGUE)
        raise RecipeError(
            f'There is no attention called "{name}".{suggest(name, CATALOGUE)} There are: {known}.'
        )
    return CATALOGUE[name]


def make_attention(
    settings: AttentionSettings,
    *,
    width: int | Widths,
    heads: int,
    causal: bool = False,
    dropout: nn.Module | None = None,
    positions: str = "none",
    projections: ProjectionOptions | None = None,
) -> Attention:
    """Return the multi-head attention that the settings describe, for states of this width.

    `positions` is a name of `POSITIONS`, for self-attention. Kinds that are added to the embeddings, such as
    "sinusoidal", change nothing in the heads.
    """
    if positions not in POSITIONS:
        raise RecipeError(
            f'There are no positions called "{positions}".{suggest(positions, POSITIONS)} '
            f"There are: {', '.join(POSITIONS)}."
        )
    widths = Widths.of(width, heads) if isinstance(width, int) else width
    shape = HeadShape(heads, query=widths.key, key=widths.key)
    mechanism = _make_mechanism(settings, shape, causal=causal, dropout=dropout)
    head_positions = POSITIONS[positions].make_for_heads(shape, causal)
    options = projections or ProjectionOptions()
    return MultiHead(width=widths, heads=heads, mechanism=mechanism, positions=head_positions, **options)


def make_single_head(settings: AttentionSettings, *, query: int, key: int) -> Attention:
    """Return the mechanism with one head and no projections, as recurrent decoders use it."""
    return SingleHead(_make_mechanism(settings, HeadShape(1, query=query, key=key)))


def _make_mechanism(
    settings: AttentionSettings, shape: HeadShape, *, causal: bool = False, dropout: nn.Module | None = None
) -> Mechanism[Any]:
    options = check_options(settings)
    return find_entry(settings.kind).mechanism(shape, causal=causal, dropout=dropout, **dict(options))


def check_options(settings: AttentionSettings) -> Settings:
    """Return the mechanism's options with defaults, or raise a `RecipeError` that lists all mistakes."""
    entry = find_entry(settings.kind)
    try:
        return entry.settings.model_validate(settings.options)
    except ValidationError as error:
        raise RecipeError(_explain(settings.kind, entry.settings, error)) from None


def _explain(kind: str, settings: type[Settings], error: ValidationError) -> str:
    lines = [f'The options of the attention "{kind}" cannot be used:']
    for detail in error.errors():
        name = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            known = ", ".join(settings.model_fields) or "none"
            lines.append(
                f"  {name}: no such option.{suggest(name, settings.model_fields)} There are: {known}."
            )
        else:
            lines.append(f"  {name}: {detail['msg']}. Received: {detail['input']!r}")
    return "\n".join(lines)
