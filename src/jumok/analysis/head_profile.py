"""The profile of a head over a corpus: statistics of its attention, and the effects of silencing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from jumok.analysis.bound_model import BoundModel
from jumok.analysis.change_edits import check_changes, edit_from_changes
from jumok.analysis.explainer import EditedModel
from jumok.data.batching import padded_batch
from jumok.errors import DataError
from jumok.evaluation.alignment_error import score_alignments
from jumok.evaluation.scores import score
from jumok.inference.alignment.readout import AttendedPair, read_alignment
from jumok.inference.engines.protocol import length_buckets
from jumok.inference.search.beam import beam_search
from jumok.inference.search.plan import SearchPlan
from jumok.inference.teacher_forcing import site_weights
from jumok.types import ReadOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.analysis.changes import Silence
    from jumok.inference.translator import OnProgress, Translator
    from jumok.types import Alignment, Pair


BATCH_TOKENS = 256  # source tokens per batch: few, so that progress is reported often
ALL_ON_SPECIAL = 0.95
"""A query with at least this weight on the special token attends to no word, and has no offset."""


@dataclass(frozen=True, slots=True)
class AffectedSentence:
    """A pair, and how the log-probability of its target changes when the head is silenced."""

    source: str
    target: str
    effect: float
    with_head: str
    """The translation by the unchanged model."""
    without_head: str
    """The translation with the head silenced."""


@dataclass(frozen=True, slots=True)
class HeadProfile:
    """Measurements of one head on a corpus. Its attention is measured on the reference translations."""

    site: str
    layer: int
    head: int
    sentences: int
    """The number of sentence pairs that were measured."""
    offset: float
    """The mean of key position − query position over the attention to words, in tokens. In the decoder, 0 is
    the token that the step reads, and −1 is the token before it. NaN if the head attends to no word."""
    entropy: float
    """The mean of −Σ α ln α over queries and sentences, as in `HeadStatistics`."""
    on_special: float
    """The mean weight on the special token, as in `HeadStatistics`."""
    error: float | None
    """The alignment error of the head's argmax; None without gold alignments or for self-attention."""
    effect: float
    """The mean change in the log-probability of a target when the head is silenced."""
    bleu: float
    """The BLEU of the translations by the unchanged model."""
    bleu_without: float
    """The BLEU of the translations with the head silenced."""
    changed: int
    """How many translations change when the head is silenced."""
    strongest: tuple[AffectedSentence, ...]
    """The pairs whose log-probability falls most when the head is silenced, the largest fall first."""


@dataclass(frozen=True, slots=True)
class _EncodedPair:
    """A pair, and the token ids of its sides."""

    pair: Pair
    source: list[int]
    target: list[int]


class _Progress:
    """Counts three tasks per pair: one teacher-forced pass, and translations with and without the head."""

    def __init__(self, pairs: int, on_progress: OnProgress | None) -> None:
        self._done, self._total = 0, 3 * pairs
        self._on_progress = on_progress

    def advance(self, count: int) -> None:
        self._done += count
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


def profile_head(
    translator: Translator,
    pairs: Sequence[Pair],
    change: Silence,
    *,
    strongest: int = 5,
    on_progress: OnProgress | None = None,
) -> HeadProfile:
    """Return the profile of one head over sentence pairs. `change` silences this head.

    Pairs that are too long for the model are left out. `on_progress(done, total)` counts the passes over
    pairs and their translations. An exception that it raises ends the work.
    """
    if change.layer is None or change.head is None:
        raise DataError(f"One head is measured at a time: name its layer and its head. Received: {change}.")
    encoded = _encode(translator, pairs)
    if not encoded:
        raise DataError(
            f"No pair is short enough for this model: it reads {translator.max_source_tokens:,} tokens. "
            f"Received: {len(pairs):,} pairs."
        )
    model, site, layer_head = translator.model, change.site, (change.layer, change.head)
    progress = _Progress(len(encoded), on_progress)
    statistics, links, gold, effects = [], [], [], []
    for encoded_pair in encoded:
        [weights] = site_weights(model, [encoded_pair.source], [encoded_pair.target])
        if encoded_pair is encoded[0]:
            check_changes([change], {name: array.shape for name, array in weights.items()}, model)
        statistics.append(_statistics(weights[site][layer_head], site))
        bound_model = BoundModel(model, encoded_pair.source)
        effect = bound_model.silencing_effects(encoded_pair.target, [(site, (layer_head,))])
        effects.append(float(effect.sum()))
        if site == "cross" and encoded_pair.pair.alignment is not None:
            links.append(_links(translator, encoded_pair, weights["cross"], layer_head))
            gold.append(encoded_pair.pair.alignment)
        progress.advance(1)
    with_head = _translate(translator, encoded, (), progress)
    without_head = _translate(translator, encoded, (change,), progress)
    references = [encoded_pair.pair.target for encoded_pair in encoded]
    bleu, bleu_without = (
        score(texts, references, language=translator.target_language, metrics=("bleu",)).bleu
        for texts in (with_head, without_head)
    )
    order = np.argsort(effects)[:strongest].tolist()
    offset, entropy, on_special = (_mean(values) for values in zip(*statistics, strict=True))
    return HeadProfile(
        # The fields from `site` to `on_special`, in the order of the class.
        *(site, *layer_head, len(encoded), offset, entropy, on_special),
        error=score_alignments(links, gold).error if gold else None,
        effect=float(np.mean(effects)),
        bleu=bleu,
        bleu_without=bleu_without,
        changed=sum(text != other for text, other in zip(with_head, without_head, strict=True)),
        strongest=tuple(
            AffectedSentence(
                encoded[i].pair.source, encoded[i].pair.target, effects[i], with_head[i], without_head[i]
            )
            for i in order
        ),
    )


def _encode(translator: Translator, pairs: Sequence[Pair]) -> list[_EncodedPair]:
    """Return the pairs that are short enough for the model, with the token ids of their sides."""
    max_tokens = translator.max_source_tokens
    ids = zip(
        translator.source_ids([pair.source for pair in pairs]),
        translator.tokenizers.target.encode_batch([pair.target for pair in pairs]),
        strict=True,
    )
    encoded = (
        _EncodedPair(pair, list(source), list(target))
        for pair, (source, target) in zip(pairs, ids, strict=True)
    )
    return [
        encoded_pair
        for encoded_pair in encoded
        if max(len(encoded_pair.source), len(encoded_pair.target)) <= max_tokens
    ]


def _statistics(weights: NDArray[Any], site: str) -> tuple[float, float, float]:
    """Return the mean offset, entropy and weight on the special token of one map (query, key)."""
    table = weights.astype(np.float64)
    queries, keys = table.shape
    special = 0 if site == "decoder" else keys - 1
    entropy = -(table * np.log(np.where(table > 0, table, 1.0))).sum(axis=1).mean()
    on_special = table[:, special]
    words = np.delete(table, special, axis=1)
    positions = np.delete(np.arange(keys), special)
    attends = (on_special < ALL_ON_SPECIAL) & (words.sum(axis=1) > 0)
    if not attends.any():
        return np.nan, float(abs(entropy)), float(on_special.mean())  # `abs` turns -0.0 into 0.0
    mean_key = (words[attends] * positions).sum(axis=1) / words[attends].sum(axis=1)
    offset = (mean_key - np.arange(queries)[attends]).mean()
    return float(offset), float(abs(entropy)), float(on_special.mean())


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN, or NaN if all are NaN."""
    numbers = [value for value in values if not np.isnan(value)]
    return float(np.mean(numbers)) if numbers else float("nan")


def _links(
    translator: Translator, encoded_pair: _EncodedPair, weights: NDArray[Any], layer_head: tuple[int, int]
) -> Alignment:
    tokenizers = translator.tokenizers
    words = (
        tokenizers.source.word_of_token(encoded_pair.pair.source, encoded_pair.source),
        tokenizers.target.word_of_token(encoded_pair.pair.target, encoded_pair.target),
    )
    return read_alignment(AttendedPair(weights, *words), ReadOut((layer_head,)))


@torch.inference_mode()
def _translate(
    translator: Translator, encoded: Sequence[_EncodedPair], changes: Sequence[Silence], progress: _Progress
) -> list[str]:
    """Translate with the model's search settings, always on torch, so that only the changes differ."""
    model, plan = translator.model, SearchPlan.from_settings(translator.search)
    texts = [""] * len(encoded)
    lengths = [len(encoded_pair.source) + 1 for encoded_pair in encoded]
    for rows in length_buckets(lengths, BATCH_TOKENS):
        batch = padded_batch([encoded[i].source for i in rows]).to(model.device)
        # In a decoder-only model, targets begin after the padded sources, so the edit gets the padded length.
        stepper = EditedModel(model, edit_from_changes(changes, model, batch.source.shape[1]))
        with model.autocast():
            ranked = beam_search(stepper, batch, plan)
        for row, hypotheses in zip(rows, ranked, strict=True):
            ids = hypotheses[0].ids if hypotheses else ()
            texts[row] = translator.tokenizers.target.decode(ids)
        progress.advance(len(rows))
    return texts
