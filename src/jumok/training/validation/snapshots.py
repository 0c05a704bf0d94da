"""Snapshots of a model in metrics.jsonl, one per validation: sample translations and one attention map.

The sentences are the same at every validation. A snapshot stays when its checkpoint is removed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jumok.analysis.packing import pack_weights
from jumok.analysis.tokenized_sentence import word_map
from jumok.inference.attention_maps import label_maps
from jumok.inference.teacher_forcing import site_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.analysis.tokenized_sentence import TokenizedSentence
    from jumok.models.model import TranslationModel
    from jumok.training.events import Sample
    from jumok.types import AttentionMap

MAX_TOKENS = 16  # of the sentence whose attention is shown
MAX_CHARACTERS = 300  # of each text of a sample


def pick_snapshot_sentence(lengths: Sequence[int]) -> int | None:
    """Return the index of the longest sentence of 1 to `MAX_TOKENS` tokens; None if there is none."""
    short = [index for index, length in enumerate(lengths) if 0 < length <= MAX_TOKENS]
    return max(short, key=lambda index: lengths[index], default=None)


def cross_attention_map(
    model: TranslationModel, source: TokenizedSentence, target: TokenizedSentence
) -> AttentionMap | None:
    """Return the attention from target words to source words; None if the model has no cross-attention."""
    [sites] = site_weights(model, [source.ids], [target.ids])
    maps = label_maps(sites, source.tokens, target.tokens)
    return mean_word_map(maps["cross"], source, target) if "cross" in maps else None


def mean_word_map(
    attention: AttentionMap, source: TokenizedSentence, target: TokenizedSentence
) -> AttentionMap:
    """Return the mean of the maps of all layers and heads, from word to word: (1, 1, query, key)."""
    words = word_map(attention, source, target)
    return replace(words, weights=words.weights.mean(axis=(0, 1), keepdims=True))


def snapshot_to_json(samples: Sequence[Sample], attention: AttentionMap | None) -> dict[str, Any]:
    """Return the fields of a validation line in metrics.jsonl; empty ones are omitted."""
    fields: dict[str, Any] = {}
    if samples:
        fields["samples"] = [
            {
                "source": _shorten(sample.source),
                "reference": _shorten(sample.reference),
                "hypothesis": _shorten(sample.hypothesis),
            }
            for sample in samples
        ]
    if attention is not None:
        fields["attention"] = {
            "site": attention.site,
            "queries": list(attention.queries),
            "keys": list(attention.keys),
            "weights": pack_weights(attention.weights[0, 0], four_decimals=True),
        }
    return fields


def _shorten(text: str) -> str:
    """Return the text as one line of at most `MAX_CHARACTERS`: an untrained model may never emit `</s>`.

    Line separators other than a line feed are replaced too, since some readers split lines at them.
    """
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"
