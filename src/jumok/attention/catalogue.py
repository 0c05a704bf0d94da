"""Every mechanism by name: the one place where a name becomes a class.

A new mechanism is one file and one row here. Its options are a `Settings` class beside it, whose fields are
keywords of its constructor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from jumok.attention.additive import Additive, AdditiveSettings
from jumok.attention.contract import HeadShape
from jumok.attention.direct import Direct
from jumok.attention.efficient import Efficient
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
from jumok.attention.multi_head import MultiHead, Widths
from jumok.attention.positions import POSITIONS
from jumok.attention.restricted import Restricted, RestrictedSettings
from jumok.attention.scaled_dot import ScaledDot
from jumok.errors import RecipeError, nearest
from jumok.recipe import AttentionSettings, Settings

if TYPE_CHECKING:
    from torch import nn

    from jumok.attention.contract import Attention, Mechanism, Supports

__all__ = ["CATALOGUE", "Entry", "check_options", "find_entry", "make_attention", "make_direct"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the catalogue. The settings' fields are keywords of the mechanism."""

    mechanism: type[Mechanism[Any]]
    paper: str
    settings: type[Settings] = Settings
    order: Literal["before", "after"] = "after"
    """Whether a recurrent decoder, in the mechanism's paper, attends before its step or after it."""

    @property
    def supports(self) -> Supports:
        return self.mechanism.supports


_LUONG = "Luong et al. 2015, Effective approaches to attention-based neural machine translation"

CATALOGUE: dict[str, Entry] = {
    "scaled-dot": Entry(ScaledDot, "Vaswani et al. 2017, Attention is all you need, eq. 1"),
    "bahdanau": Entry(
        Additive,
        "Bahdanau et al. 2015, Neural machine translation by jointly learning to align and translate, A.1.2",
        AdditiveSettings,
        order="before",
    ),
    "luong-dot": Entry(LuongDot, f"{_LUONG}, section 3.1"),
    "luong-general": Entry(LuongGeneral, f"{_LUONG}, section 3.1"),
    "luong-concat": Entry(LuongConcat, f"{_LUONG}, section 3.1", ConcatSettings),
    "luong-location": Entry(LuongLocation, f"{_LUONG}, eq. 8", LocationSettings),
    "luong-local-m": Entry(LuongLocalM, f"{_LUONG}, section 3.2", LocalSettings),
    "luong-local-p": Entry(LuongLocalP, f"{_LUONG}, eq. 9 and 10", LocalSettings),
    "efficient": Entry(
        Efficient, "Shen et al. 2018, Efficient attention: attention with linear complexities"
    ),
    "linear": Entry(LinearAttention, "Katharopoulos et al. 2020, Transformers are RNNs"),
    "restricted": Entry(
        Restricted, "Vaswani et al. 2017, Attention is all you need, section 4", RestrictedSettings
    ),
}


def find_entry(name: str) -> Entry:
    """The catalogue's row of that name."""
    if name not in CATALOGUE:
        known = ", ".join(CATALOGUE)
        raise RecipeError(
            f'There is no attention called "{name}".{nearest(name, CATALOGUE)} There are: {known}.'
        )
    return CATALOGUE[name]


def make_attention(
    settings: AttentionSettings,
    *,
    width: int,
    heads: int,
    causal: bool = False,
    dropout: nn.Module | None = None,
    positions: str = "none",
) -> Attention:
    """The multi-head attention that the settings describe, ready for states of that width.

    Where it is a self-attention, its heads can be told of `positions`, one of `POSITIONS`.
    """
    widths = Widths.of(width, heads)
    shape = HeadShape(heads, query=widths.key, key=widths.key)
    mechanism = _make_mechanism(settings, shape, causal=causal, dropout=dropout)
    told = POSITIONS[positions].heads(shape, causal)
    return MultiHead(width=widths, heads=heads, mechanism=mechanism, positions=told)


def make_direct(settings: AttentionSettings, *, query: int, key: int) -> Attention:
    """The mechanism as its paper has it in a recurrent decoder: one head, and no projection round it."""
    return Direct(_make_mechanism(settings, HeadShape(1, query=query, key=key)))


def _make_mechanism(
    settings: AttentionSettings, shape: HeadShape, *, causal: bool = False, dropout: nn.Module | None = None
) -> Mechanism[Any]:
    options = check_options(settings)
    return find_entry(settings.kind).mechanism(shape, causal=causal, dropout=dropout, **dict(options))


def check_options(settings: AttentionSettings) -> Settings:
    """The options of a mechanism with their defaults, or an error that names all that is wrong with them."""
    entry = find_entry(settings.kind)
    try:
        return entry.settings.model_validate(settings.options)
    except ValidationError as error:
        raise RecipeError(_explain(settings.kind, entry.settings, error)) from None


def _explain(kind: str, settings: type[Settings], error: ValidationError) -> str:
    lines = [f'The options of the attention "{kind}" cannot be used:']
    for fault in error.errors():
        name = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            known = ", ".join(settings.model_fields) or "none"
            lines.append(
                f"  {name}: no such option.{nearest(name, settings.model_fields)} There are: {known}."
            )
        else:
            lines.append(f"  {name}: {fault['msg']}. Received: {fault['input']!r}")
    return "\n".join(lines)
