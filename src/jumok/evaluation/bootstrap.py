"""Is one system better than another, or was it the choice of test sentences?

Paired bootstrap (Koehn 2004): draw as many sentences as there are, with replacement, the same for both
systems, and score both again; do so a thousand times. No sentence is matched anew: the counts of each are
summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.evaluation.scores import check_counts, make_metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import floating
    from numpy.typing import NDArray

__all__ = ["Comparison", "compare"]

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems under one metric. Intervals hold 95 % of the resamples; `delta` is system − baseline.

    `p_value` is two-sided: how often chance alone moves the difference at least this far from zero. `wins` is
    the share of resamples in which the system scores higher, Koehn's original statistic.
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
    samples: int = 1000,
    seed: int = 12345,
) -> dict[str, Comparison]:
    """Compare the translations of two systems by paired bootstrap; a `Comparison` a metric.

    The seed is sacreBLEU's, and so are the resamples: its `--paired-bs` gives the same scores and intervals.
    """
    check_counts(baseline=baseline, system=system, references=references)
    compared: dict[str, Comparison] = {}
    for name in metrics:
        metric = make_metric(name, language=language, tokenize=tokenize, lowercase=lowercase)
        drawn_baseline = _resampled_scores(metric, baseline, references, samples, seed)
        drawn_system = _resampled_scores(metric, system, references, samples, seed)
        whole = [float(metric.corpus_score(side, [references]).score) for side in (baseline, system)]
        signature = f"{metric.get_signature()}|bs:{samples}|seed:{seed}"
        compared[name] = _comparison(name, whole, drawn_baseline, drawn_system, signature)
    return compared


def _comparison(
    name: str,
    whole: list[float],
    drawn_baseline: NDArray[floating],
    drawn_system: NDArray[floating],
    signature: str,
) -> Comparison:
    differences = drawn_system - drawn_baseline
    delta = whole[1] - whole[0]
    return Comparison(
        metric=name,
        baseline=whole[0],
        baseline_interval=_interval(drawn_baseline),
        system=whole[1],
        system_interval=_interval(drawn_system),
        delta=delta,
        delta_interval=_interval(differences),
        p_value=_p_value(differences, delta),
        wins=float((differences > 0).mean()),
        signature=signature,
    )


def _resampled_scores(
    metric: Any, hypotheses: Sequence[str], references: Sequence[str], samples: int, seed: int
) -> NDArray[floating]:
    """The corpus score of each resample, from sums of the sentences' sufficient statistics."""
    import numpy

    statistics = numpy.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=float)
    generator = numpy.random.default_rng(seed)
    scores = numpy.empty(samples)
    for sample in range(samples):
        chosen = generator.choice(len(statistics), size=len(statistics), replace=True)
        times = numpy.bincount(chosen, minlength=len(statistics))
        scores[sample] = metric._compute_score_from_stats(list(times @ statistics)).score
    return scores


def _interval(scores: NDArray[floating]) -> Interval:
    import numpy

    low, high = numpy.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def _p_value(differences: NDArray[floating], delta: float) -> float:
    """The share of resamples whose difference, moved to mean zero, is at least as large as the observed one.

    sacreBLEU 2.6 counts strictly larger absolute differences only, which makes two equal systems differ with
    p = 0.001; here they do not differ, p = 1.
    """
    import numpy

    centred = numpy.abs(differences - differences.mean())
    as_far = int((centred >= abs(delta)).sum())
    return (as_far + 1) / (len(differences) + 1)
