"""Changes that a person makes to attention, as values: silence a head, paint a weight, pin a word to a word.

They are told in the places of an explanation's maps and become an `Edit`, which every model takes. A decoder
alone has one map over source and target together; there a change of "cross" touches the part of it that looks
from the target at the source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jumok.errors import DataError, nearest
from jumok.models import DecoderOnly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from jumok.attention import Edit, Place
    from jumok.models import TranslationModel

    HeadGroup = tuple[str, Sequence[tuple[int, int]]]
    """A site, and (layer, head) of some of its heads."""

__all__ = [
    "Change",
    "Paint",
    "Pin",
    "Silence",
    "change_from_json",
    "change_to_json",
    "check_changes",
    "edit_of",
    "silence_each",
]


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a weights tensor (row, head, query, key) that is one site, and which query comes first."""

    queries: slice
    keys: slice
    first: int

    def row_of(self, query: int) -> int | None:
        """Where the site's query stands among those given; None where it is not there."""
        row = self.queries.start + query - self.first
        return row if self.queries.start <= row < self.queries.stop else None


@dataclass(frozen=True, slots=True)
class Change(ABC):
    """A change at a site, in one layer and head of it, or in all where they are None."""

    kind: ClassVar[str]

    site: str
    layer: int | None = None
    head: int | None = None

    @property
    def first_step(self) -> int:
        """The first step of the target that it touches: what is written before stays as it was."""
        return 0

    def cells(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The queries and the keys that it names."""
        return (), ()

    @abstractmethod
    def apply(self, weights: Tensor, window: Window) -> None:
        """Write into the weights of the heads that are meant, (row, head, query, key)."""


@dataclass(frozen=True, slots=True)
class Silence(Change):
    """Weights of 0: the head, the layer or the whole site adds nothing."""

    kind = "silence"

    def apply(self, weights: Tensor, window: Window) -> None:
        weights[:, :, window.queries, window.keys] = 0.0


@dataclass(frozen=True, slots=True)
class Paint(Change):
    """One weight as told. The rest of its row is rescaled, so that the row sums to what it did."""

    kind = "paint"

    query: int = 0
    key: int = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise DataError(f"A weight lies between 0 and 1. Received: {self.weight}.")

    @property
    def first_step(self) -> int:
        return 0 if self.site == "encoder" else self.query

    def cells(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (self.query,), (self.key,)

    def apply(self, weights: Tensor, window: Window) -> None:
        row = window.row_of(self.query)
        if row is None:
            return
        every = weights[:, :, row]  # (row, head, key), the whole row
        here = window.keys.start + self.key
        total = every.sum(dim=-1, keepdim=True)
        rest = total - every[..., here, None]
        # Where all the weight stood on this key, there is no rest to rescale: the row then sums to less.
        every *= (total - self.weight).clamp(min=0) / rest.clamp(min=1e-12)
        every[..., here] = self.weight


@dataclass(frozen=True, slots=True)
class Pin(Change):
    """Queries that may look at these keys only, in the shares they had, or evenly where they had none."""

    kind = "pin"

    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.queries or not self.keys:
            raise DataError(
                "A pin ties queries to keys and needs at least one of each. "
                f"Received: queries {self.queries} and keys {self.keys}."
            )

    @property
    def first_step(self) -> int:
        return 0 if self.site == "encoder" else min(self.queries, default=0)

    def cells(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.queries, self.keys

    def apply(self, weights: Tensor, window: Window) -> None:
        keys = [window.keys.start + key for key in self.keys]
        for query in self.queries:
            row = window.row_of(query)
            if row is None:
                continue
            every = weights[:, :, row]  # (row, head, key)
            shares = every[..., keys]
            given = shares.sum(dim=-1, keepdim=True)
            shares = (shares / given.clamp(min=1e-12)).where(given > 1e-12, 1 / len(keys))
            total = every.sum(dim=-1, keepdim=True)
            every.zero_()
            every[..., keys] = shares * total.where(total > 0, 1.0)


_KINDS: dict[str, Callable[..., Change]] = {kind.kind: kind for kind in (Silence, Paint, Pin)}


def change_to_json(change: Change) -> dict[str, Any]:
    """The change as plain JSON values: its kind and its fields."""
    fields = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(change).items()
    }
    return {"kind": change.kind, **fields}


def change_from_json(fields: Mapping[str, Any]) -> Change:
    """The change that `change_to_json` wrote, or that a page asks for."""
    kind = str(fields.get("kind"))
    if kind not in _KINDS:
        raise DataError(
            f'There is no change "{kind}".{nearest(kind, _KINDS)} There are: {", ".join(_KINDS)}.'
        )
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    del values["kind"]
    try:
        return _KINDS[kind](**values)
    except TypeError as error:
        raise DataError(f'This is no change of kind "{kind}": {error}. Received: {dict(fields)}.') from None


def check_changes(
    changes: Sequence[Change], shapes: Mapping[str, tuple[int, ...]], model: TranslationModel
) -> None:
    """Refuse what names no place of the maps, whose shapes are (layer, head, query, key), or a masked one."""
    never_ahead = ("encoder", "decoder") if isinstance(model, DecoderOnly) else ("decoder",)
    for change in changes:
        if change.site not in shapes:
            known = ", ".join(shapes) or "none"
            raise DataError(f'This model has no attention "{change.site}". It has: {known}.')
        layers, heads, queries, keys = shapes[change.site]
        named = change.cells()
        asked = {"layer": ([change.layer], layers), "head": ([change.head], heads)}
        asked |= {"query": (list(named[0]), queries), "key": (list(named[1]), keys)}
        for what, (places, count) in asked.items():
            for place in places:
                if place is not None and place not in range(count):
                    raise DataError(
                        f'The attention "{change.site}" of this sentence has no {what} {place}: there are '
                        f"{count}, counted from 0. Received: {change}."
                    )
        earliest = min(named[0], default=keys)
        if change.site in never_ahead and max(named[1], default=0) > earliest:
            raise DataError(
                f'The attention "{change.site}" of this model never looks ahead: query {earliest} sees the '
                f"keys from 0 to {earliest}. Received: {change}. Choose an earlier key or a later query."
            )


def edit_of(changes: Sequence[Change], model: TranslationModel, source_length: int) -> Edit | None:
    """The edit that makes these changes, for a source of so many pieces, its `</s>` counted."""
    if not changes:
        return None

    def edit(weights: Tensor, place: Place, /) -> Tensor:
        edited = weights
        for change in changes:
            window = _window(change.site, model, source_length, place, weights)
            if window is None or change.layer not in (None, place.layer):
                continue
            edited = edited.clone() if edited is weights else edited
            heads = slice(None) if change.head is None else slice(change.head, change.head + 1)
            change.apply(edited[:, heads], window)
        return edited

    return edit


def silence_each(
    groups: Sequence[HeadGroup], model: TranslationModel, source_length: int, before: Edit | None
) -> Edit:
    """In row r of a batch, silence the heads of group r; `before` is done first."""

    def edit(weights: Tensor, place: Place, /) -> Tensor:
        edited = (weights if before is None else before(weights, place)).clone()
        for row, sentence in enumerate(place.rows.tolist()):
            site, heads = groups[sentence]
            window = _window(site, model, source_length, place, weights)
            if window is None:
                continue
            for layer, head in heads:
                if layer == place.layer:
                    Silence(site).apply(edited[row : row + 1, head : head + 1], window)
        return edited

    return edit


def _window(
    site: str, model: TranslationModel, source_length: int, place: Place, weights: Tensor
) -> Window | None:
    """Where a site stands in weights reported from a place; None where it does not."""
    queries, keys = weights.shape[-2:]
    if not isinstance(model, DecoderOnly):
        return Window(slice(0, queries), slice(0, keys), place.first) if site == place.site else None
    begin, end = (0, source_length) if site == "encoder" else (source_length, place.first + queries)
    start = min(max(0, begin - place.first), queries)
    stop = max(start, min(end - place.first, queries))
    columns = slice(source_length, keys) if site == "decoder" else slice(0, min(source_length, keys))
    return Window(slice(start, stop), columns, place.first + start - begin)
