"""What the validation set says of a model: its loss, and translations with their scores.

The loss is teacher forced, over at most 2,000 pairs, none longer than those that are trained on. At most 400
of them, spread evenly over the set, are also translated, greedily, since a loss does not show that a model
repeats itself or stops too soon.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

import torch

from jumok.corpus import padded_batch
from jumok.decoding import SearchPlan, Translator, greedy
from jumok.decoding.engine import like_lengths
from jumok.errors import DataError
from jumok.evaluation import score
from jumok.explain import Side
from jumok.storage import ScoreRecord
from jumok.training.detectors import flatness, odd_piece_share, unigram_entropy
from jumok.training.events import Sample
from jumok.training.exhibits import fixed_sentence, look_at_pair
from jumok.training.loss import sequence_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jumok.models import Model, TranslationModel
    from jumok.recipe import Recipe
    from jumok.text import Vocabularies
    from jumok.values import AttentionMap, Batch, Pair

__all__ = ["ValidationResult", "ValidationSet", "never", "short_enough", "spread", "validation_loss"]

Item = TypeVar("Item")

MOST_PAIRS = 2000
MOST_TRANSLATED = 400
SAMPLES = 3
LOOKED_AT = 16


def never() -> bool:
    """Nobody asks to stop."""
    return False


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What was found. `scores` carry their signatures."""

    loss: float
    scores: Mapping[str, ScoreRecord]
    hypotheses: tuple[str, ...]
    references: tuple[str, ...]
    samples: tuple[Sample, ...]

    def values(self) -> dict[str, float]:
        return {name: record.value for name, record in self.scores.items()}


class ValidationSet:
    """Validation pairs, encoded and batched once."""

    def __init__(self, pairs: Sequence[Pair], vocabularies: Vocabularies, recipe: Recipe) -> None:
        self._vocabularies = vocabularies
        self._language = recipe.languages.target
        self._search = recipe.search
        some = spread(pairs, MOST_PAIRS)
        sources = vocabularies.source.encode_batch([pair.source for pair in some])
        targets = vocabularies.target.encode_batch([pair.target for pair in some])
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        short = short_enough(lengths, recipe.training.longest)
        self.left_out = len(some) - len(short)
        self.pairs = [some[i] for i in short]
        sources, targets = [sources[i] for i in short], [targets[i] for i in short]
        self.translated = spread(self.pairs, MOST_TRANSLATED)
        self._sources = spread(sources, MOST_TRANSLATED)
        lengths = spread([lengths[i] for i in short], MOST_TRANSLATED)
        self._fixed = fixed_sentence(lengths)
        others = [place for place in range(len(lengths)) if place != self._fixed]
        first = [] if self._fixed is None else [self._fixed]
        self._shown = [*first, *spread(others, SAMPLES - len(first))]
        self._source_lengths = [len(source) for source in sources]
        self._target_lengths = [len(target) for target in targets]
        self._batches = [
            padded_batch([sources[i] for i in rows], [targets[i] for i in rows])
            for rows in like_lengths(
                [length + 2 for length in self._target_lengths], recipe.training.batch_tokens
            )
        ]
        self._looked_at = padded_batch(spread(sources, LOOKED_AT), spread(targets, LOOKED_AT))
        self.unigram_entropy = unigram_entropy(Counter(piece for ids in targets for piece in ids))
        spelt = [piece for ids in targets for piece in vocabularies.target.pieces(ids)]
        self.odd_pieces = odd_piece_share(spelt)

    def __len__(self) -> int:
        return len(self.pairs)

    def validate(
        self, model: Model, beam: int, *, stop: Callable[[], bool] = never
    ) -> ValidationResult | None:
        """Loss, translations and scores; None if `stop` said so before they were complete."""
        loss = validation_loss(model, self._batches, stop=stop)
        hypotheses = self.translate(model, beam, stop=stop) if loss is not None else None
        if loss is None or hypotheses is None:
            return None
        references = [pair.target for pair in self.translated]
        samples = tuple(Sample(self.translated[i].source, references[i], hypotheses[i]) for i in self._shown)
        return ValidationResult(
            loss=loss,
            scores=_score_records(hypotheses, references, self._language),
            hypotheses=tuple(hypotheses),
            references=tuple(references),
            samples=samples,
        )

    def flatness(self, model: Model) -> float:
        """How flat the model's cross-attention is on a few sentences; NaN if it has none."""
        batch = self._looked_at
        model.eval()
        with torch.no_grad():
            weights = model.attention(batch).get("cross")
        if weights is None or batch.target_lengths is None:
            return math.nan
        return flatness(weights, batch.target_lengths, batch.source_lengths)

    def look(self, model: Model) -> AttentionMap | None:
        """Where the model looks in the first sample, while it reads the reference; None if it looks nowhere.

        The reference, since it stays the same: so do the rows and columns of all maps of a run.
        """
        if self._fixed is None:
            return None
        pair, pieces = self.translated[self._fixed], self._vocabularies
        source = Side.of(pair.source, pieces.source.encode(pair.source), pieces.source)
        target = Side.of(pair.target, pieces.target.encode(pair.target), pieces.target)
        return look_at_pair(_writes(model.eval()), source, target)

    def estimate_seconds(self, model: Model) -> float:
        """About what a validation will take once the model has learnt to stop.

        An untrained model does not; so its translations are cut at the length that they will have.
        """
        some = spread(self._batches, 4)
        started = time.perf_counter()
        validation_loss(model, some)
        loss = (time.perf_counter() - started) * len(self._batches) / len(some)
        sources = spread(self._sources, 50)
        ratio = sum(self._target_lengths) / max(sum(self._source_lengths), 1)
        started = time.perf_counter()
        greedy(_writes(model), padded_batch(sources), SearchPlan(beam=1, longest=ratio, extra=1))
        return loss + (time.perf_counter() - started) * len(self._sources) / len(sources)

    def cost_in_pieces(self) -> float:
        """A validation's cost in trained pieces: a forward pass costs a third of one, a search step three."""
        return sum(self._target_lengths) * (1 / 3 + 3 * len(self.translated) / max(len(self.pairs), 1))

    def translate(self, model: Model, beam: int, *, stop: Callable[[], bool] = never) -> list[str] | None:
        """Translations of the pairs in `translated`, as a user of the model would get them."""

        def check(done: int, total: int) -> None:
            if stop():
                raise _StoppedError

        translator = Translator(_writes(model), self._vocabularies, search=self._search)
        try:
            sources = [pair.source for pair in self.translated]
            return [found.text for found in translator.translate(sources, beam=beam, progress=check)]
        except _StoppedError:
            return None


def _writes(model: Model) -> TranslationModel:
    """A model of which the task is to translate."""
    return cast("TranslationModel", model)


class _StoppedError(Exception):
    """Raised within a translation to leave it."""


def _score_records(hypotheses: list[str], references: list[str], language: str) -> dict[str, ScoreRecord]:
    scores = score(hypotheses, references, language=language, metrics=("bleu", "chrf"))
    return {
        "bleu": ScoreRecord(scores.bleu, scores.bleu_signature),
        "chrf": ScoreRecord(scores.chrf, scores.chrf_signature),
    }


def validation_loss(
    model: Model, batches: Sequence[Batch], *, stop: Callable[[], bool] = never
) -> float | None:
    """Negative log-likelihood a target piece, in nats."""
    model.eval()
    total, tokens = 0.0, 0
    with torch.no_grad():
        for batch in batches:
            if stop():
                return None
            if batch.target is not None:
                sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
                total, tokens = total + float(sums.nll), tokens + sums.tokens
    return total / max(tokens, 1)


def short_enough(lengths: Sequence[int], longest: int) -> list[int]:
    """Which of the validation pairs, of these lengths, are no longer than those that are trained on."""
    short = [i for i, length in enumerate(lengths) if length <= longest]
    if not short:
        raise DataError(
            f"There is no sentence to validate on: all {len(lengths):,} validation pairs have more than "
            f"{longest} pieces on a side. Raise training.longest, or give shorter ones with --valid."
        )
    return short


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many items, evenly spaced; the same ones every time."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]
