"""One teacher-forced pass: the weights at every attention site and the log-probabilities of every step.

The decoder's attention is causal, so one pass over a finished translation gives the weights of every decoding
step, and the search need not collect the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.data.batching import padded_batch
from jumok.inference.engines.protocol import length_buckets
from jumok.types import END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.attention import Edit
    from jumok.models.model import TranslationModel

    Ids = Sequence[int]

__all__ = ["cross_entropies", "next_log_probs", "site_weights", "token_log_probs"]


@torch.inference_mode()
def site_weights(
    model: TranslationModel, sources: Sequence[Ids], targets: Sequence[Ids], *, edit: Edit | None = None
) -> list[dict[str, NDArray[Any]]]:
    """Return the attention weights of each pair: site → (layer, head, query, key), without padding.

    The pairs are given as token ids.
    """
    batch = padded_batch(sources, targets)
    sites = model.attention(batch) if edit is None else model.attention(batch, edit=edit)
    arrays = {site: weights.float().cpu().numpy() for site, weights in sites.items()}
    lengths = [(len(source) + 1, len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    return [
        {site: _remove_padding(site, array[row], *pair_lengths) for site, array in arrays.items()}
        for row, pair_lengths in enumerate(lengths)
    ]


def _remove_padding(site: str, weights: NDArray[Any], source_length: int, target_length: int) -> NDArray[Any]:
    """Return the weights (layer, head, query, key) of a pair, without padding.

    Both lengths count one special token. A picture has none, but the patches of pictures are never padded.
    """
    queries = source_length if site == "encoder" else target_length
    keys = target_length if site == "decoder" else source_length
    return weights[:, :, :queries, :keys]


@torch.inference_mode()
def next_log_probs(model: TranslationModel, source: Ids, target: Ids, *, edit: Edit | None = None) -> Tensor:
    """Return the log-probabilities of every token of the vocabulary at every step of a target: (step, token).

    The last step is that of `</s>`.
    """
    states = model(padded_batch([source], [target]), edit=edit)
    with model.autocast():
        return model.output.log_probs(states)[0].cpu()


def cross_entropies(
    model: TranslationModel, sources: Sequence[Ids], targets: Sequence[Ids], *, batch_tokens: int = 1024
) -> list[float]:
    """Return H(y|x) = -1/|y| · log p(y|x) of each pair in nats per token. y and |y| include `</s>`.

    The pairs are given as token ids.
    """
    log_probs = token_log_probs(model, sources, targets, batch_tokens=batch_tokens)
    return [-sum(target_log_probs) / len(target_log_probs) for target_log_probs in log_probs]


@torch.inference_mode()
def token_log_probs(
    model: TranslationModel, sources: Sequence[Ids], targets: Sequence[Ids], *, batch_tokens: int = 1024
) -> list[list[float]]:
    """Return the log-probability of each token of each target, `</s>` included."""
    log_probs_by_pair: list[list[float]] = [[]] * len(sources)
    lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
    for rows in length_buckets(lengths, batch_tokens):
        batch = padded_batch([sources[i] for i in rows], [targets[i] for i in rows])
        labels = [[*targets[i], END] for i in rows]
        max_length = max(map(len, labels))
        padded = torch.tensor([[*ids, *[PAD] * (max_length - len(ids))] for ids in labels])  # (row, target)
        states = model(batch)
        with model.autocast():
            all_log_probs = model.output.log_probs(states).cpu()  # (row, target, token)
        log_probs = all_log_probs.gather(-1, padded[:, :, None]).squeeze(-1)  # (row, target)
        for row, row_log_probs in zip(rows, log_probs.tolist(), strict=True):
            log_probs_by_pair[row] = row_log_probs[: len(targets[row]) + 1]
    return log_probs_by_pair
