"""One teacher-forced pass: the weights of every attention, and how likely every next piece was.

Attention never looks ahead, so one pass over a finished translation gives the weights that decoding had at
every step: search itself gathers nothing and stays as fast as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.corpus.batches import padded_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.attention import Edit
    from jumok.models import TranslationModel

    Ids = Sequence[int]

__all__ = ["next_log_probs", "site_weights"]


@torch.inference_mode()
def site_weights(
    model: TranslationModel, sources: Sequence[Ids], targets: Sequence[Ids], *, edit: Edit | None = None
) -> list[dict[str, NDArray[Any]]]:
    """Site → weights (layer, head, query, key) of each pair of piece ids, without padding."""
    batch = padded_batch(sources, targets)
    sites = model.attention(batch) if edit is None else model.attention(batch, edit=edit)
    arrays = {site: weights.float().numpy() for site, weights in sites.items()}
    lengths = [(len(source) + 1, len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    return [
        {site: _unpadded(site, array[row], *both) for site, array in arrays.items()}
        for row, both in enumerate(lengths)
    ]


def _unpadded(site: str, weights: NDArray[Any], source: int, target: int) -> NDArray[Any]:
    """The weights (layer, head, query, key) of a pair of these lengths, without padding."""
    queries = source if site == "encoder" else target
    keys = target if site == "decoder" else source
    return weights[:, :, :queries, :keys]


@torch.inference_mode()
def next_log_probs(model: TranslationModel, source: Ids, target: Ids, *, edit: Edit | None = None) -> Tensor:
    """Log-probabilities of every piece at every step of a target, its `</s>` included: (step, piece)."""
    states = model(padded_batch([source], [target]), edit=edit)
    return model.output.log_probs(states)[0]
