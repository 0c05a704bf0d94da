"""Significance of the difference between two systems: the paired bootstrap (Koehn 2004).

A resample is a random selection of sentences, drawn with replacement, as large as the test set. Both systems
are scored on the same resample. By default there are a thousand resamples. The statistics of each sentence
are computed once and summed per resample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.evaluation.scores import check_equal_lengths, make_metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import floating
    from numpy.typing import NDArray

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many resamples are drawn, and the seed. The defaults are sacreBLEU's."""

    count: int = 1000
    seed: int = 12345


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems under one metric. Intervals contain 95 % of the resamples; `delta` is system − baseline.

    `p_value` is two-sided: the probability of a difference at least this large by chance. `wins` is the share
    of resamples in which the system's score is higher (with TER: worse), Koehn's original statistic.
    """

    metric: str
    baseline: float
    baseline_interval: Interval
    system: float
    system_interval: Interval
    delta: float
    delta_interval: Interval
    p_value: float
    wins: float
    signature: str


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    language: str = "",
    tokenize: str | None = None,
    lowercase: bool = False,
    metrics: Sequence[str] = ("bleu", "chrf"),
    resampling: Resampling | None = None,
) -> dict[str, Comparison]:
    """Compare the translations of two systems by paired bootstrap, one `Comparison` per metric.

    sacreBLEU's `--paired-bs` gives the same scores, and nearly the same widths of the intervals.
    """
    resampling = resampling or Resampling()
    check_equal_lengths(baseline=baseline, system=system, references=references)
    comparisons: dict[str, Comparison] = {}
    for name in metrics:
        metric = make_metric(name, language=language, tokenize=tokenize, lowercase=lowercase)
        baseline_samples = _resampled_scores(metric, baseline, references, resampling)
        system_samples = _resampled_scores(metric, system, references, resampling)
        scores = [float(metric.corpus_score(texts, [references]).score) for texts in (baseline, system)]
        signature = f"{metric.get_signature()}|bs:{resampling.count}|seed:{resampling.seed}"
        comparisons[name] = _comparison(name, scores, baseline_samples, system_samples, signature)
    return comparisons


def _comparison(
    name: str,
    scores: list[float],
    baseline_samples: NDArray[floating],
    system_samples: NDArray[floating],
    signature: str,
) -> Comparison:
    differences = system_samples - baseline_samples
    delta = scores[1] - scores[0]
    return Comparison(
        metric=name,
        baseline=scores[0],
        baseline_interval=_interval(baseline_samples),
        system=scores[1],
        system_interval=_interval(system_samples),
        delta=delta,
        delta_interval=_interval(differences),
        p_value=_p_value(differences, delta),
        wins=float((differences > 0).mean()),
        signature=signature,
    )


def _resampled_scores(
    metric: Any, hypotheses: Sequence[str], references: Sequence[str], resampling: Resampling
) -> NDArray[floating]:
    """Return the corpus score of each resample, from sums of the sentences' sufficient statistics."""
    import numpy  # start-up

    statistics = numpy.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=float)
    generator = numpy.random.default_rng(resampling.seed)
    scores = numpy.empty(resampling.count)
    for index in range(resampling.count):
        sentences = generator.choice(len(statistics), size=len(statistics), replace=True)
        counts = numpy.bincount(sentences, minlength=len(statistics))
        scores[index] = metric._compute_score_from_stats(list(counts @ statistics)).score
    return scores


def _interval(scores: NDArray[floating]) -> Interval:
    import numpy  # start-up

    low, high = numpy.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def _p_value(differences: NDArray[floating], delta: float) -> float:
    """Return the share of resamples whose difference, minus the mean difference, is at least `delta` in size.

    One is added to both counts, so p is never 0. sacreBLEU 2.6 counts only strictly larger differences: for
    two systems with the same translations it reports p = 0.001, and this function returns 1.
    """
    import numpy  # start-up

    centred = numpy.abs(differences - differences.mean())
    num_as_large = int((centred >= abs(delta)).sum())
    return (num_as_large + 1) / (len(differences) + 1)
