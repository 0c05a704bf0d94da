"""Validation of a translator: its loss, and translations with their scores.

The loss is teacher-forced, over at most 2,000 pairs (`MAX_PAIRS`), without those of more than
`training.max_sentence_tokens` tokens. At most 400 of them (`MAX_TRANSLATED`), evenly spaced, are also
translated (greedily during training, with the beam of the recipe at the end), since a loss does not show that
a model repeats itself or stops too early.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch

from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.data.batching import padded_batch
from jumok.data.hold_out import fingerprint_pairs
from jumok.evaluation.scores import score
from jumok.inference.engines.protocol import length_buckets
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.inference.text_options import LINE_BY_LINE
from jumok.inference.translator import Translator
from jumok.models.kernels.cross_entropy import sequence_loss
from jumok.storage.model_folder import ScoreRecord
from jumok.training.events import Sample
from jumok.training.loop.detectors import byte_token_share, flatness, unigram_entropy
from jumok.training.validation.protocol import (
    MAX_PAIRS,
    ValidationResult,
    drop_too_long,
    evenly_spaced,
    never_stop,
)
from jumok.training.validation.snapshots import cross_attention_map, pick_snapshot_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.config.recipe import Recipe
    from jumok.models.model import Model, TranslationModel
    from jumok.text.tokenizer import TokenizerPair
    from jumok.types import AttentionMap, Batch, Pair

MAX_TRANSLATED = 400
NUM_SAMPLES = 3  # translations that every validation shows
FLATNESS_PAIRS = 16  # pairs on which flatness is measured
TIMED_BATCHES, TIMED_TRANSLATIONS = 4, 50  # how many `estimate_seconds` times


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """A pair and the token ids of both sides, without special tokens."""

    pair: Pair
    source: list[int]  # token ids; of a picture, patches
    target: list[int]

    @property
    def length(self) -> int:
        """Tokens of the longer side. For a picture, only the tokens of its caption count."""
        return len(self.target) if self.pair.picture else max(len(self.source), len(self.target))


class TranslationValidation:
    """Validation pairs, encoded and batched once."""

    def __init__(self, pairs: Sequence[Pair], tokenizers: TokenizerPair, recipe: Recipe) -> None:
        self._tokenizers = tokenizers
        self.fingerprint = fingerprint_pairs(pairs)
        self.uniform_loss = math.log(tokenizers.target.vocab_size)
        self._language = recipe.languages.target
        self._search = recipe.search
        encoded = _encode(evenly_spaced(pairs, MAX_PAIRS), tokenizers)
        lengths = [pair.length for pair in encoded]
        self._encoded = drop_too_long(encoded, lengths, recipe.training.max_sentence_tokens)
        self.num_too_long = len(encoded) - len(self._encoded)
        self._translated = evenly_spaced(self._encoded, MAX_TRANSLATED)
        self._snapshot_index = pick_snapshot_sentence([pair.length for pair in self._translated])
        self._sample_indices = self._pick_sample_indices()
        self._batches = _batches(self._encoded, recipe.training.batch_tokens)
        self._flatness_batch = _batch(evenly_spaced(self._encoded, FLATNESS_PAIRS))
        targets = [pair.target for pair in self._encoded]
        self.unigram_entropy = unigram_entropy(Counter(token for ids in targets for token in ids))
        tokens = [token for ids in targets for token in tokenizers.target.tokens(ids)]
        self.byte_token_share = byte_token_share(tokens)

    def _pick_sample_indices(self) -> list[int]:
        """Return indices into `translated` of the pairs that every validation shows.

        The first pair is the pair of the attention snapshot.
        """
        first = [] if self._snapshot_index is None else [self._snapshot_index]
        others = [index for index in range(len(self._translated)) if index != self._snapshot_index]
        return [*first, *evenly_spaced(others, NUM_SAMPLES - len(first))]

    @property
    def pairs(self) -> list[Pair]:
        return [encoded.pair for encoded in self._encoded]

    @property
    def translated(self) -> list[Pair]:
        """The pairs whose sources are translated."""
        return [encoded.pair for encoded in self._translated]

    def __len__(self) -> int:
        return len(self._encoded)

    def validate(
        self, model: Model, beam: int, *, should_stop: Callable[[], bool] = never_stop
    ) -> ValidationResult | None:
        loss = self.loss(model, should_stop=should_stop)
        hypotheses = self.translate(model, beam, should_stop=should_stop) if loss is not None else None
        if loss is None or hypotheses is None:
            return None
        pairs = self.translated
        references = [pair.target for pair in pairs]
        samples = tuple(Sample(pairs[i].source, references[i], hypotheses[i]) for i in self._sample_indices)
        return ValidationResult(
            loss=loss,
            scores=_score_records(hypotheses, references, self._language),
            hypotheses=tuple(hypotheses),
            references=tuple(references),
            samples=samples,
        )

    def loss(self, model: Model, *, should_stop: Callable[[], bool] = never_stop) -> float | None:
        """Return only the loss, which takes a fraction of the time of a validation; None if interrupted."""
        return validation_loss(model, self._batches, should_stop=should_stop)

    def translate(
        self, model: Model, beam: int, *, should_stop: Callable[[], bool] = never_stop
    ) -> list[str] | None:
        """Translate the sources of `translated`; None if interrupted.

        Each source is a whole line, except that the `Translator` splits sources of more than 200 tokens, also
        if `training.max_sentence_tokens` is higher.
        """

        def abort_if_stopped(done: int, total: int) -> None:
            if should_stop():
                raise _StoppedError

        translator = Translator(_as_translation_model(model), self._tokenizers, search=self._search)
        try:
            sources = [pair.source for pair in self.translated]
            translations = translator.translate(
                sources, beam=beam, on_progress=abort_if_stopped, **LINE_BY_LINE
            )
            return [translation.text for translation in translations]
        except _StoppedError:
            return None

    def flatness(self, model: Model) -> float:
        batch = self._flatness_batch
        model.eval()
        with torch.no_grad():
            weights = model.attention(batch).get("cross")
        if weights is None or batch.target_lengths is None:
            return math.nan
        return flatness(weights.cpu(), batch.target_lengths, batch.source_lengths)

    def attention_snapshot(self, model: Model) -> AttentionMap | None:
        """Return the cross-attention of the first sample; None if there is none that the page can draw.

        The decoder reads the reference (teacher forcing), so all maps of a run have equal rows and columns.
        """
        if self._snapshot_index is None or self._tokenizers.source.token_shape:  # the page draws words only
            return None
        encoded, tokenizers = self._translated[self._snapshot_index], self._tokenizers
        source = TokenizedSentence.from_ids(encoded.pair.source, encoded.source, tokenizers.source)
        target = TokenizedSentence.from_ids(encoded.pair.target, encoded.target, tokenizers.target)
        return cross_attention_map(_as_translation_model(model.eval()), source, target)

    def estimate_seconds(self, model: Model) -> float:
        """Return about how many seconds a validation will take once the model has learnt to stop.

        An untrained model does not emit `</s>`, so its translations are cut at the expected length.
        """
        batches = evenly_spaced(self._batches, TIMED_BATCHES)
        started = time.perf_counter()
        validation_loss(model, batches)
        loss_seconds = (time.perf_counter() - started) * len(self._batches) / len(batches)
        sources = evenly_spaced([pair.source for pair in self._translated], TIMED_TRANSLATIONS)
        length_ratio = self._num_target_tokens() / max(sum(len(pair.source) for pair in self._encoded), 1)
        # The model may have no positions for more tokens than the search may write.
        length_ratio = min(length_ratio, self._search.max_length_ratio)
        plan = SearchPlan(beam=1, max_length_ratio=length_ratio, extra_tokens=1)
        started = time.perf_counter()
        greedy_search(_as_translation_model(model), padded_batch(sources).to(model.device), plan)
        return loss_seconds + (time.perf_counter() - started) * len(self._translated) / len(sources)

    def cost_in_tokens(self) -> float:
        """Return the number of training tokens that cost as much as a validation.

        A token of the loss costs a third as much as a training token. A token of the search costs as much as
        three training tokens.
        """
        translated_share = len(self._translated) / max(len(self._encoded), 1)
        return self._num_target_tokens() * (1 / 3 + 3 * translated_share)

    def _num_target_tokens(self) -> int:
        return sum(len(pair.target) for pair in self._encoded)


def validation_loss(
    model: Model, batches: Sequence[Batch], *, should_stop: Callable[[], bool] = never_stop
) -> float | None:
    """Return the negative log-likelihood per target token, in nats; None if interrupted."""
    model.eval()
    total, tokens = 0.0, 0
    with torch.no_grad():
        for batch in batches:
            if should_stop():
                return None
            if batch.target is not None:
                sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
                total, tokens = total + float(sums.nll), tokens + sums.tokens
    return total / max(tokens, 1)


def _encode(pairs: Sequence[Pair], tokenizers: TokenizerPair) -> list[EncodedPair]:
    sources = tokenizers.source.encode_batch([pair.source for pair in pairs])
    targets = tokenizers.target.encode_batch([pair.target for pair in pairs])
    return [EncodedPair(*fields) for fields in zip(pairs, sources, targets, strict=True)]


def _batches(pairs: Sequence[EncodedPair], batch_tokens: int) -> list[Batch]:
    """Return batches of pairs with similar target lengths; `<s>` and `</s>` count."""
    lengths = [len(pair.target) + 2 for pair in pairs]
    return [_batch([pairs[i] for i in rows]) for rows in length_buckets(lengths, batch_tokens)]


def _batch(pairs: Sequence[EncodedPair]) -> Batch:
    return padded_batch([pair.source for pair in pairs], [pair.target for pair in pairs])


def _as_translation_model(model: Model) -> TranslationModel:
    """Narrow the type: only models that translate are validated here."""
    return cast("TranslationModel", model)


class _StoppedError(Exception):
    """Raised in a progress callback to abort a translation, because the run is interrupted."""


def _score_records(hypotheses: list[str], references: list[str], language: str) -> dict[str, ScoreRecord]:
    scores = score(hypotheses, references, language=language, metrics=("bleu", "chrf"))
    return {
        "bleu": ScoreRecord(scores.bleu, scores.bleu_signature),
        "chrf": ScoreRecord(scores.chrf, scores.chrf_signature),
    }
