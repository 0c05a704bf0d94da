"""What a run shows of itself at each validation, kept in the lines of metrics.jsonl.

The same few sentences come with their translations each time, and one of them with where the model looks
while it reads the reference. Checkpoints go as a run goes on; what these lines tell of them stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jumok.explain import Side, label_maps, site_weights
from jumok.explain.packing import pack_weights
from jumok.explain.sides import word_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.models import TranslationModel
    from jumok.training.events import Sample
    from jumok.values import AttentionMap

__all__ = ["exhibits_to_json", "fixed_sentence", "look_at_pair", "mean_word_map"]

MOST_PIECES = 16
MOST_LETTERS = 300


def fixed_sentence(lengths: Sequence[int]) -> int | None:
    """Which sentence is looked at: the longest of at most 16 pieces; None where all are longer."""
    short = [place for place, length in enumerate(lengths) if 0 < length <= MOST_PIECES]
    return max(short, key=lambda place: lengths[place], default=None)


def look_at_pair(model: TranslationModel, source: Side, target: Side) -> AttentionMap | None:
    """From each word of the target to those of the source; None where a model does not look there."""
    [sites] = site_weights(model, [source.ids], [target.ids])
    maps = label_maps(sites, source.pieces, target.pieces)
    return mean_word_map(maps["cross"], source, target) if "cross" in maps else None


def mean_word_map(attention: AttentionMap, source: Side, target: Side) -> AttentionMap:
    """The mean over all layers and heads, between words: (1, 1, query, key)."""
    words = word_map(attention, source, target)
    return replace(words, weights=words.weights.mean(axis=(0, 1), keepdims=True))


def exhibits_to_json(samples: Sequence[Sample], attention: AttentionMap | None) -> dict[str, Any]:
    """As a line of metrics.jsonl tells them; what there is none of is left out."""
    told: dict[str, Any] = {}
    if samples:
        told["samples"] = [
            {
                "source": _in_short(sample.source),
                "reference": _in_short(sample.reference),
                "hypothesis": _in_short(sample.hypothesis),
            }
            for sample in samples
        ]
    if attention is not None:
        told["attention"] = {
            "site": attention.site,
            "queries": list(attention.queries),
            "keys": list(attention.keys),
            "weights": pack_weights(attention.weights[0, 0], fine=True),
        }
    return told


def _in_short(text: str) -> str:
    """On one line, whatever a reader takes for a line's end, and cut: a young model may babble."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"
