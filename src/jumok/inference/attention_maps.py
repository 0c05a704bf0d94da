"""The labels of attention maps, and the map of a picture.

    site      queries (rows)                keys (columns)
    encoder   source tokens, </s>           source tokens, </s>
    decoder   target tokens, </s>           <s>, target tokens
    cross     target tokens, </s>           source tokens, </s>

A row of "decoder" and "cross" is the step that produces the token of its label. The keys of "decoder" are the
tokens that this step has read. A picture has patches instead of source tokens, and no `</s>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

BEGIN_LABEL, END_LABEL = "<s>", "</s>"


def label_maps(
    weights: Mapping[str, NDArray[Any]],
    source: Sequence[str],
    target: Sequence[str],
    *,
    picture: bool = False,
) -> dict[str, AttentionMap]:
    """Return one labelled map per site. `source` and `target` are tokens without special tokens.

    `weights` is site → (layer, head, query, key). `picture` says that `source` are the names of patches.
    """
    read_tokens, produced_tokens = (BEGIN_LABEL, *target), (*target, END_LABEL)
    keys = tuple(source) if picture else (*source, END_LABEL)
    labels = {
        "encoder": (keys, keys),
        "decoder": (produced_tokens, read_tokens),
        "cross": (produced_tokens, keys),
    }
    return {site: AttentionMap(site, array, *labels[site]) for site, array in weights.items()}


def picture_map(cross: NDArray[Any]) -> NDArray[Any]:
    """Return which patches each token of a caption attends to: the mean of the last layer's heads.

    (layer, head, token and `</s>`, patch) -> (token, patch), without the step that produces `</s>`.
    """
    mean: NDArray[Any] = cross[-1].mean(axis=0)
    return mean[:-1]
