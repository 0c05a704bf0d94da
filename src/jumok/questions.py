"""Changes of attention as pages and programs ask for them, checked before a model sees them.

The front of the HTTP server checks what its workers are asked, so nothing here imports torch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = ["AskedChanges", "Strict", "first_fault"]

Place = Annotated[int, Field(ge=0, le=10_000)]


class Strict(BaseModel):
    """Fields of just these names and types: 1.0 is no place, and "1" is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Change(Strict):
    site: Literal["encoder", "decoder", "cross"]
    layer: Place | None = None
    head: Place | None = None


class Silence(Change):
    kind: Literal["silence"]


class Paint(Change):
    kind: Literal["paint"]
    query: Place
    key: Place
    weight: float = Field(ge=0, le=1)


class Pin(Change):
    kind: Literal["pin"]
    queries: list[Place] = Field(min_length=1, max_length=100)
    keys: list[Place] = Field(min_length=1, max_length=100)


AskedChanges = Annotated[
    list[Annotated[Silence | Paint | Pin, Field(discriminator="kind")]], Field(max_length=64)
]
"""Of each, `jumok.explain.change_from_json` makes a change."""


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong, and where; what was received is left out, it may be long."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the question"
    return f"{place}: {first['msg']}"
