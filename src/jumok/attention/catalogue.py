"""Every mechanism by name: the one place where a name becomes a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.attention.multi_head import MultiHead
from jumok.attention.scaled_dot import ScaledDot
from jumok.errors import RecipeError, nearest
from jumok.recipe import ScaledDotSettings

if TYPE_CHECKING:
    from pydantic import BaseModel
    from torch import nn

    from jumok.attention.contract import Attention, Mechanism, Supports

__all__ = ["CATALOGUE", "Entry", "find_entry", "make_attention"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the catalogue. The settings' fields, `kind` aside, are keywords of the mechanism."""

    mechanism: type[Mechanism[Any]]
    settings: type[BaseModel]
    paper: str

    @property
    def supports(self) -> Supports:
        return self.mechanism.supports


CATALOGUE: dict[str, Entry] = {
    "scaled-dot": Entry(
        mechanism=ScaledDot,
        settings=ScaledDotSettings,
        paper="Vaswani et al. 2017, Attention is all you need, eq. 1",
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
    settings: ScaledDotSettings,
    *,
    width: int,
    heads: int,
    causal: bool = False,
    dropout: nn.Module | None = None,
) -> Attention:
    """The attention that the settings describe, ready for states of that width."""
    entry = find_entry(settings.kind)
    options = settings.model_dump(exclude={"kind"})
    mechanism = entry.mechanism(causal=causal, dropout=dropout, **options)
    return MultiHead(width=width, heads=heads, mechanism=mechanism)
