"""How well the two sides of a pair translate each other, by a model of each direction.

    H(y|x) = -1/|y| · log p(y|x)                        the cross-entropy per token of the forward model
    score  = exp(-(|H(y|x) - H(x|y)| + ½ (H(y|x) + H(x|y))))         Junczys-Dowmunt 2018, eq. 2 and 3

This is dual conditional cross-entropy; tokens include `</s>`. For a good pair, both cross-entropies are low
and nearly equal. For two sentences that do not translate each other, both are high. If one side is probable
regardless of the other side (a frequent phrase), only one of the two cross-entropies is high. The highest
possible score is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.inference.translator import Translator
    from jumok.types import Pair


@dataclass(frozen=True, slots=True)
class PairScore:
    """The cross-entropies of a pair in both directions, in nats per token.

    A cross-entropy is NaN if a side of the pair is too long for the model of its direction.
    """

    forward: float
    back: float

    @property
    def score(self) -> float:
        """From 0 to 1, higher is better; 0 for a pair that is too long for a model."""
        if math.isnan(self.forward) or math.isnan(self.back):
            return 0.0
        return math.exp(-(abs(self.forward - self.back) + (self.forward + self.back) / 2))


def check_directions(forward: Translator, back: Translator) -> None:
    """Raise unless both models read text and `back` translates in the opposite direction of `forward`."""
    languages = [(model.source_language, model.target_language) for model in (forward, back)]
    if forward.reads_pictures or back.reads_pictures:
        raise UnsupportedError(
            "Pairs are scored by two models of text. Received: a model that reads pictures."
        )
    if languages[0] != languages[1][::-1]:
        received = " and ".join(f"{source or '?'} → {target or '?'}" for source, target in languages)
        raise UnsupportedError(
            f"Pairs are scored by two models of opposite directions. Received: {received}."
        )


def score_pairs(forward: Translator, back: Translator, pairs: Sequence[Pair]) -> Iterator[PairScore]:
    """Score pairs of the forward model's direction."""
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    yield from map(PairScore, _entropies(forward, sources, targets), _entropies(back, targets, sources))


def _entropies(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
    from jumok.inference.teacher_forcing import cross_entropies  # start-up

    tokenizers, max_tokens = translator.tokenizers, translator.max_source_tokens
    encoded = list(
        zip(tokenizers.source.encode_batch(sources), tokenizers.target.encode_batch(targets), strict=True)
    )
    short = [i for i, (source, target) in enumerate(encoded) if max(len(source), len(target)) <= max_tokens]
    translator.model.eval()
    short_sources, short_targets = [encoded[i][0] for i in short], [encoded[i][1] for i in short]
    short_entropies = cross_entropies(translator.model, short_sources, short_targets)
    entropies = [math.nan] * len(encoded)
    for i, entropy in zip(short, short_entropies, strict=True):
        entropies[i] = entropy
    return entropies
