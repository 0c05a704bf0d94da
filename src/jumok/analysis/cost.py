"""The cost of an explanation, computed from the numbers of tokens before the model computes its maps.

Maps grow with the square of the number of tokens, and a character can be up to four tokens, so a text that
looks short can need gigabytes. Weights are counted: layers · heads · queries · keys, summed over the sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy

from jumok.errors import DataError
from jumok.inference.teacher_forcing import site_weights
from jumok.models.patch_embedding import PatchEmbedding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.models.model import TranslationModel


@dataclass(frozen=True, slots=True)
class CostLimits:
    """Limits on an explanation: on its memory, on its time, and on the log-probabilities of its tokens."""

    max_weights: int = 4_000_000
    """Weights in all maps of one translation. A weight takes about 35 bytes of memory while the maps are
    computed, and up to 3 bytes as JSON."""
    max_total_weights: int = 200_000_000
    """Weights of all passes together, for example one pass per hypothesis or per silenced group of heads."""
    max_log_probs: int = 25_000_000
    """(Target tokens + 1 for `</s>`) · vocabulary size."""

    def check(self, model: TranslationModel, source_length: int, target_lengths: Sequence[int]) -> None:
        """Refuse to compute the maps of these targets of one source if they are too large."""
        longest = max(target_lengths, default=0)
        tokens = f"It has {source_length:,} source and {longest:,} target tokens."
        _check("attention weights", count_weights(model, source_length, longest), self.max_weights, tokens)
        total = sum(count_weights(model, source_length, length) for length in target_lengths)
        passes = f"It needs {len(target_lengths):,} passes over up to {longest:,} target tokens."
        _check("attention weights in all passes together", total, self.max_total_weights, passes)
        vocab_size = len(model.output.weight)
        _check("log-probabilities", (longest + 1) * vocab_size, self.max_log_probs, tokens)


def count_weights(model: TranslationModel, source_length: int, target_length: int) -> int:
    """Return the number of weights in all maps of a pair. The lengths do not include special tokens."""
    source, target = source_length + 1, target_length + 1
    cells = {"encoder": source * source, "decoder": target * target, "cross": target * source}
    return sum(heads * cells[site] for site, heads in _heads_per_site(model).items())


_HEADS: WeakKeyDictionary[TranslationModel, dict[str, int]] = WeakKeyDictionary()


def _heads_per_site(model: TranslationModel) -> dict[str, int]:
    """Return site → layers · heads, read from the maps of a pair of empty sentences.

    A model that reads pictures cannot read an empty source. For such a model, the pair is a black picture and
    an empty caption.
    """
    if model not in _HEADS:
        embedding = getattr(model, "source_embedding", None)
        source: Any = ()
        if isinstance(embedding, PatchEmbedding):
            source = numpy.zeros((len(embedding.grid), embedding.grid.values_per_patch), dtype=numpy.uint8)
        [weights] = site_weights(model, [source], [()])
        _HEADS[model] = {site: array.shape[0] * array.shape[1] for site, array in weights.items()}
    return _HEADS[model]


def _check(what: str, count: int, limit: int, why: str) -> None:
    if count > limit:
        raise DataError(
            f"This explanation would have {count:,} {what}; at most {limit:,} are allowed. {why} Give a "
            "shorter sentence or translation."
        )
