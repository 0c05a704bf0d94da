"""Apply changes to attention: convert `Change` objects to an `Edit`, which every model accepts.

The indices of a change refer to the maps of an explanation. A decoder-only model has one map over source and
target together. In this map, a change of "cross" affects the part in which target queries attend to source
keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING

from jumok.analysis.changes import Change, Paint, Pin, Silence
from jumok.errors import DataError
from jumok.models.decoder_only import DecoderOnly

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from jumok.attention import AttentionSite, Edit
    from jumok.models.model import TranslationModel

    HeadGroup = tuple[str, Sequence[tuple[int, int]]]
    """A site, and (layer, head) of some of its heads."""

MAX_STEPS = 10_001
"""A change may name the steps 0 … 10,000; `changes.Index` has the same limit."""


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a weights tensor (row of the batch, head, query, key) that belongs to one site."""

    queries: slice
    keys: slice
    first_query: int  # the index in the site's map of the first query in the window

    def index_of(self, query: int) -> int | None:
        """Return the tensor's index of a query of the site, or None if the tensor lacks this query."""
        index = self.queries.start + query - self.first_query
        return index if self.queries.start <= index < self.queries.stop else None


@singledispatch
def apply_change(change: Change, weights: Tensor, window: Window) -> None:
    """Write the change into the weights of the selected heads, (row of the batch, head, query, key)."""
    raise NotImplementedError(type(change).__name__)


@apply_change.register(Silence)
def _silence(change: Silence, weights: Tensor, window: Window) -> None:
    weights[:, :, window.queries, window.keys] = 0.0


@apply_change.register(Paint)
def _paint(change: Paint, weights: Tensor, window: Window) -> None:
    query = window.index_of(change.query)
    if query is None:
        return
    query_weights = weights[:, :, query]  # (row of the batch, head, key)
    key = window.keys.start + change.key
    total = query_weights.sum(dim=-1, keepdim=True)
    query_weights[..., key] = 0.0
    rest = query_weights.sum(dim=-1, keepdim=True)  # `total` minus the old weight would be less exact
    # If the other keys have no weight, nothing can be rescaled: the new sum is `change.weight`.
    query_weights *= (total - change.weight).clamp(min=0) / rest.clamp(min=1e-12)
    query_weights[..., key] = change.weight


@apply_change.register(Pin)
def _pin(change: Pin, weights: Tensor, window: Window) -> None:
    keys = [window.keys.start + key for key in dict.fromkeys(change.keys)]
    for index in change.queries:
        query = window.index_of(index)
        if query is None:
            continue
        query_weights = weights[:, :, query]  # (row of the batch, head, key)
        old_weights = query_weights[..., keys]
        key_total = old_weights.sum(dim=-1, keepdim=True)
        shares = (old_weights / key_total.clamp(min=1e-12)).where(key_total > 1e-12, 1 / len(keys))
        total = query_weights.sum(dim=-1, keepdim=True)
        total = total.where(total > 0, 1.0)  # a query that attended to nothing gets weights that sum to 1
        query_weights[..., keys] = 0.0
        rest = query_weights.sum(dim=-1, keepdim=True)
        # If the other keys have no weight, nothing can be rescaled: the new sum is `total * change.weight`.
        query_weights *= total * (1 - change.weight) / rest.clamp(min=1e-12)
        query_weights[..., keys] = shares * total * change.weight


def check_changes(
    changes: Sequence[Change],
    shapes: Mapping[str, tuple[int, ...]],
    model: TranslationModel,
    *,
    translates: bool = False,
) -> None:
    """Refuse changes that name an index outside the maps, or a key after the query in causal attention.

    `shapes` has the shape (layer, head, query, key) of the map of each site. With `translates`, the sentence
    may be translated again with the changes, and the new translation may have more steps. Then steps after
    the end of the maps are accepted; call `check_rows` when the number of steps is known.
    """
    causal = ("encoder", "decoder") if isinstance(model, DecoderOnly) else ("decoder",)
    for change in changes:
        if change.site not in shapes:
            known = ", ".join(shapes) or "none"
            raise DataError(f'This model has no attention "{change.site}". It has: {known}.')
        layers, heads, queries, keys = shapes[change.site]
        named_queries, named_keys = change.named_indices()
        by_axis = {"layer": ([change.layer], layers), "head": ([change.head], heads)}
        queries_are_known = not translates or change.site == "encoder"
        by_axis["query"] = (
            [query for query in named_queries if queries_are_known or query not in range(MAX_STEPS)],
            queries,
        )
        # With new steps, "decoder" has new keys too. The causal mask limits them, see below.
        if not translates or change.site != "decoder":
            by_axis["key"] = (list(named_keys), keys)
        for axis, (indices, count) in by_axis.items():
            _check_indices(change, axis, indices, count)
        earliest = min(named_queries, default=keys)
        if change.site in causal and max(named_keys, default=0) > earliest:
            raise DataError(
                f'The attention "{change.site}" of this model is causal: query {earliest} attends to the '
                f"keys from 0 to {earliest}. Received: {change}. Choose an earlier key or a later query."
            )


def check_rows(changes: Sequence[Change], num_steps: int) -> None:
    """Refuse changes that name a step after the end of the translation.

    `num_steps` is the number of steps of the longer translation, without or with the changes. A change with
    `words` is always accepted, because a person chose it in a translation with other changes, which may have
    had more steps. If the new translation lacks the step, the change has no effect.
    """
    for change in changes:
        if change.site != "encoder" and change.chosen_words is None:
            _check_indices(change, "query", list(change.named_indices()[0]), num_steps)


def _check_indices(change: Change, axis: str, indices: Sequence[int | None], count: int) -> None:
    for index in indices:
        if index is not None and index not in range(count):
            raise DataError(
                f'The attention "{change.site}" of this sentence has no {axis} {index}: there are '
                f"{count}, counted from 0. Received: {change}."
            )


def edit_from_changes(changes: Sequence[Change], model: TranslationModel, source_length: int) -> Edit | None:
    """Return the edit that makes these changes, or None if there are no changes.

    `source_length` is the number of source columns of the batches that the edit will be used for: tokens with
    `</s>` and padding, or patches. Only decoder-only models need it: there, targets follow the sources.

    Silences are applied last. So a silenced head stays silent even if one of its rows is painted or pinned.
    """
    if not changes:
        return None
    ordered = sorted(changes, key=lambda change: isinstance(change, Silence))

    def edit(weights: Tensor, attention_site: AttentionSite, /) -> Tensor:
        edited = weights
        for change in ordered:
            window = _window(change.site, model, source_length, attention_site, weights)
            if window is None or change.layer not in (None, attention_site.layer):
                continue
            edited = edited.clone() if edited is weights else edited
            heads = slice(None) if change.head is None else slice(change.head, change.head + 1)
            apply_change(change, edited[:, heads], window)
        return edited

    return edit


def silence_per_row(
    groups: Sequence[HeadGroup], model: TranslationModel, source_length: int, inner: Edit | None
) -> Edit:
    """Return an edit that silences the heads of group r in row r of a batch, after the edit `inner`."""

    def edit(weights: Tensor, attention_site: AttentionSite, /) -> Tensor:
        edited = (weights if inner is None else inner(weights, attention_site)).clone()
        for row, group_index in enumerate(attention_site.rows.tolist()):
            site, heads = groups[group_index]
            window = _window(site, model, source_length, attention_site, weights)
            if window is None:
                continue
            for layer, head in heads:
                if layer == attention_site.layer:
                    edited[row, head, window.queries, window.keys] = 0.0
        return edited

    return edit


def _window(
    site: str, model: TranslationModel, source_length: int, attention_site: AttentionSite, weights: Tensor
) -> Window | None:
    """Return the part of the weights of `attention_site` that belongs to `site`, or None if no part does."""
    queries, keys = weights.shape[-2:]
    offset = attention_site.query_offset
    if not isinstance(model, DecoderOnly):
        return Window(slice(0, queries), slice(0, keys), offset) if site == attention_site.name else None
    # The one map of a decoder-only model: first the source positions, then the target positions.
    begin, end = (0, source_length) if site == "encoder" else (source_length, offset + queries)
    start = min(max(0, begin - offset), queries)
    stop = max(start, min(end - offset, queries))
    columns = slice(source_length, keys) if site == "decoder" else slice(0, min(source_length, keys))
    return Window(slice(start, stop), columns, offset + start - begin)
