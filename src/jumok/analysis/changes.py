"""Changes of attention as data: silence heads, paint one weight, pin queries to keys.

These classes are the schema of a change. Python code constructs them, and the server validates requests with
them. `web/src/lib/changes.ts` has the same fields, which a test compares.

Indices refer to the maps of an explanation. A row of "decoder" and "cross" is a step of the translation.
Other changes may change the token of this step, so the page cannot always find the words of a change in the
translation. Therefore `words` stores the words that the row and the column had when a person chose them.
`words` has no effect on attention. But a change without `words` is refused if the translation lacks the step
(`change_edits.check_rows`).

`change_edits.py` applies changes to a model. This module imports neither torch nor numpy, because it is used
in the front end of the server, which runs no model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from jumok.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

Index = Annotated[int, Field(strict=True, ge=0, le=10_000)]
Indices = Annotated[tuple[Index, ...], Field(min_length=1, max_length=100)]
Weight = Annotated[float, Field(strict=True, ge=0, le=1)]
Words = tuple[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=200)]]
"""The words that the row and the column of a change had when a person chose them."""


def _require_kind(schema: dict[str, Any]) -> None:
    """Make `kind` required in JSON. In Python it has a default."""
    schema["required"] = [*schema.get("required", []), "kind"]


def _check_weight(weight: float) -> None:
    if not 0 <= weight <= 1:
        raise DataError(f"A weight lies between 0 and 1. Received: {weight}.")


@dataclass(frozen=True, slots=True)
class Change:
    """A change at one attention site, in one layer and head; None means all layers or all heads."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", json_schema_extra=_require_kind)

    site: Literal["encoder", "decoder", "cross"]
    layer: Index | None = None
    head: Index | None = None

    @property
    def first_step(self) -> int:
        """The first target step that the change affects. The tokens before this step stay the same."""
        return 0

    def named_indices(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the queries and the keys that the change names, or empty tuples if it names no cells."""
        return (), ()

    @property
    def chosen_words(self) -> Words | None:
        """The field `words`, if the change has it."""
        return None


@dataclass(frozen=True, slots=True)
class Silence(Change):
    """Set all weights of the head, the layer or the whole site to 0, so that no value is read.

    Other changes cannot undo this, in any order of the changes.
    """

    kind: Literal["silence"] = field(default="silence", kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Paint(Change):
    """Set one weight. The other weights of the row are rescaled so that the row keeps its sum.

    If all other weights are 0, or if `weight` is larger than the sum, the new sum is `weight`.
    """

    query: Index = field(kw_only=True)
    key: Index = field(kw_only=True)
    weight: Weight = field(default=1.0, kw_only=True)
    words: Words | None = field(default=None, kw_only=True)
    kind: Literal["paint"] = field(default="paint", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _check_weight(self.weight)

    @property
    def first_step(self) -> int:
        return 0 if self.site == "encoder" else self.query

    def named_indices(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (self.query,), (self.key,)

    @property
    def chosen_words(self) -> Words | None:
        return self.words


@dataclass(frozen=True, slots=True)
class Pin(Change):
    """Give the share `weight` of the queries' attention to these keys together. Rescale the other weights.

    The share is divided among the keys in proportion to their weights, or evenly if all are 0. With a share
    of 1, the queries attend only to these keys. With a share of 0, they attend only to other keys. A query
    that attended only to these keys keeps just the share, because there are no other weights to rescale.
    """

    queries: Indices = field(kw_only=True)
    keys: Indices = field(kw_only=True)
    weight: Weight = field(default=1.0, kw_only=True)
    words: Words | None = field(default=None, kw_only=True)
    kind: Literal["pin"] = field(default="pin", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not self.queries or not self.keys:
            raise DataError(
                "A pin ties queries to keys and needs at least one of each. "
                f"Received: queries {self.queries} and keys {self.keys}."
            )
        _check_weight(self.weight)

    @property
    def first_step(self) -> int:
        return 0 if self.site == "encoder" else min(self.queries)

    def named_indices(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.queries, self.keys

    @property
    def chosen_words(self) -> Words | None:
        return self.words


AnyChange = Annotated[Silence | Paint | Pin, Field(discriminator="kind")]
"""A change in JSON, for pydantic models. `kind` selects the class."""
ChangeList = Annotated[list[AnyChange], Field(max_length=64)]

KINDS = ("silence", "paint", "pin")
_ADAPTER: TypeAdapter[Silence | Paint | Pin] = TypeAdapter(AnyChange)


def change_to_json(change: Change) -> dict[str, Any]:
    """Return the change as plain JSON values: its kind and its fields. `words` is left out if it is None."""
    fields = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(change).items()
        if name != "words" or value is not None
    }
    return {"kind": fields.pop("kind"), **fields}


def change_from_json(fields: Mapping[str, Any]) -> Change:
    """Return the change with these fields, which come from `change_to_json` or from a client."""
    kind = str(fields.get("kind"))
    if kind not in KINDS:
        raise DataError(f'There is no change "{kind}".{suggest(kind, KINDS)} There are: {", ".join(KINDS)}.')
    try:
        return _ADAPTER.validate_python(dict(fields))
    except ValidationError as error:
        raise DataError(
            f'This is not a valid change of kind "{kind}": {first_error(error)}. Received: {dict(fields)}.'
        ) from None


def first_error(error: ValidationError) -> str:
    """Return the first validation error and its location, without the input, which may be long."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    location = ".".join(str(part) for part in first["loc"]) or "the request"
    return f"{location}: {first['msg']}"
