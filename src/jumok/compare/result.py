"""The result of a comparison: one row per system, all scored on the same test sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from statistics import median
from typing import TYPE_CHECKING, Any

from jumok.compare.system_result import read_peak_memory, read_system_result
from jumok.compare.systems import BUDGET_NAMES, describe_budget, describe_unequal_settings
from jumok.errors import RunFolderError
from jumok.evaluation.bootstrap import compare as paired_bootstrap
from jumok.evaluation.scores import score
from jumok.text.words import split_words
from jumok.training.loop.metrics import read_metrics
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jumok.compare.split import Split
    from jumok.compare.system_result import SystemResult
    from jumok.compare.systems import System
    from jumok.config.recipe import Recipe
    from jumok.types import AttentionMap, Pair

NUM_QUARTERS = 4


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A validation, and the approximate time at which it ended, in seconds since the start of the run.

    The time of updates between the last training report and the validation is not counted. `seconds` is None
    if there was no training report before the validation.
    """

    step: int
    seconds: float | None
    loss: float
    bleu: float


@dataclass(frozen=True, slots=True)
class Quarter:
    """A quarter of the test set: the word counts of its shortest and longest source, and its sentences.

    If the test set has fewer than four sentences, each sentence is a quarter of its own.
    """

    min_words: int
    max_words: int
    sentences: tuple[int, ...]  # indices in the test set


@dataclass(frozen=True, slots=True)
class Row:
    """The scores and speeds of one system.

    `p_value` is that of the comparison with the first system by paired bootstrap; None for the first system.
    `alignment_error` is None if the test set has no gold alignments, or the model has no cross-attention.
    The training speed is the median of all training reports. The peak memory is the peak during training.
    """

    name: str
    bleu: float
    bleu_interval: tuple[float, float]
    p_value: float | None
    chrf: float
    alignment_error: float | None
    parameters: int
    steps: int
    training_seconds: float
    training_tokens_per_second: float | None
    decoding_tokens_per_second: float
    decoding_sentences_per_second: float
    peak_memory_mb: float | None
    curve: tuple[CurvePoint, ...]
    bleu_by_length: tuple[float, ...]
    translation: str
    attention: AttentionMap | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values. The attention is left out; it is in the system's `outcome.json`."""
        values = {
            _JSON_KEYS.get(item.name, item.name): getattr(self, item.name)
            for item in fields(self)
            if item.name != "attention"
        }
        return {**values, "curve": [asdict(point) for point in self.curve]}


# Keys of `compare.json` that differ from the names of the fields, because earlier versions wrote these keys.
_JSON_KEYS = {
    "training_tokens_per_second": "training_tokens",
    "decoding_tokens_per_second": "decoding_tokens",
    "decoding_sentences_per_second": "decoding_sentences",
    "peak_memory_mb": "peak_memory",
}


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The whole comparison. `sentence` is the source whose translation and attention are shown.

    `budget` is the training budget of each system, such as "5 minutes".
    `unequal_settings` has one sentence for each setting that should be equal in all systems but differs.
    """

    rows: tuple[Row, ...]
    quarters: tuple[Quarter, ...]
    num_sentences: int
    sentence: str
    bleu_signature: str
    budget: str
    unequal_settings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values, as `compare.json` stores them."""
        return {
            "systems": [row.as_dict() for row in self.rows],
            "quarters": [
                {"shortest": part.min_words, "longest": part.max_words, "sentences": len(part.sentences)}
                for part in self.quarters
            ],
            "sentences": self.num_sentences,
            "sentence": self.sentence,
            "bleu_signature": self.bleu_signature,
            "budget": self.budget,
            "unequal": list(self.unequal_settings),
        }


def collect_result(systems: Sequence[System], split: Split, *, out: Path, sentence: str) -> ComparisonResult:
    """Read the stored results of the systems and score them."""
    pairs = split.test_pairs()
    quarters = quarters_by_length([pair.source for pair in pairs])
    stored_results = [_read_stored_result(out / system.name, len(pairs)) for system in systems]
    first, recipe = stored_results[0]
    language, references = recipe.languages.target, [pair.target for pair in pairs]
    rows = []
    for system, (result, _) in zip(systems, stored_results, strict=True):
        bootstrap_result = paired_bootstrap(
            first.translations, result.translations, references, language=language, metrics=("bleu",)
        )["bleu"]
        curve, training_speed = read_curve_and_speed(RunFolder(out / system.name).metrics)
        peak_bytes = read_peak_memory(out / system.name)
        translation_seconds = max(result.translation_seconds, 1e-9)  # not 0, since it is a divisor below
        rows.append(
            Row(
                name=system.name,
                bleu=bootstrap_result.system,
                bleu_interval=bootstrap_result.system_interval,
                p_value=None if result is first else bootstrap_result.p_value,
                chrf=score(result.translations, references, language=language, metrics=("chrf",)).chrf,
                alignment_error=result.alignment_error,
                parameters=result.parameters,
                steps=result.steps,
                training_seconds=result.training_seconds,
                training_tokens_per_second=training_speed,
                decoding_tokens_per_second=result.output_tokens / translation_seconds,
                decoding_sentences_per_second=len(pairs) / translation_seconds,
                peak_memory_mb=None if peak_bytes is None else peak_bytes / 1e6,
                curve=curve,
                bleu_by_length=_bleu_by_length(result, pairs, quarters, language),
                translation=result.sentence_translation,
                attention=result.attention,
            )
        )
    return ComparisonResult(
        rows=tuple(rows),
        quarters=quarters,
        num_sentences=len(pairs),
        sentence=sentence,
        bleu_signature=bootstrap_result.signature,
        budget=describe_budget([getattr(recipe.training, name) for name in BUDGET_NAMES]),
        unequal_settings=describe_unequal_settings(
            {system.name: trained for system, (_, trained) in zip(systems, stored_results, strict=True)}
        ),
    )


def quarters_by_length(sources: Sequence[str]) -> tuple[Quarter, ...]:
    """Split the sentences, sorted by the number of words, into four parts whose sizes differ by at most 1.

    If there are fewer than four sentences, each is a part.
    """
    words = [len(split_words(source)) for source in sources]
    order = sorted(range(len(sources)), key=lambda index: words[index])
    quarters = []
    for number in range(NUM_QUARTERS):
        part = order[number * len(order) // NUM_QUARTERS : (number + 1) * len(order) // NUM_QUARTERS]
        if part:
            quarters.append(Quarter(words[part[0]], words[part[-1]], tuple(part)))
    return tuple(quarters)


def read_curve_and_speed(metrics: Path) -> tuple[tuple[CurvePoint, ...], float | None]:
    """Return the validations of a run in order, and the median training speed in target tokens per second."""
    points: list[CurvePoint] = []
    speeds: list[float] = []
    seconds: float | None = None
    for record in read_metrics(metrics):
        match record:
            case {"kind": "train", "tokens_per_second": float(speed), "seconds": float(elapsed)}:
                speeds.append(speed)
                seconds = elapsed
            case {
                "kind": "validation",
                "step": int(step),
                "loss": float(loss),
                "bleu": float(bleu),
                "seconds": float(duration),
            }:
                # A validation reports its own duration. A training report has the time since the start.
                seconds = None if seconds is None else round(seconds + duration, 2)
                points.append(CurvePoint(step, seconds, loss, bleu))
    return tuple(points), median(speeds) if speeds else None


def _read_stored_result(folder: Path, num_sentences: int) -> tuple[SystemResult, Recipe]:
    """Return the result in a system's run folder, and the recipe that its run was trained with."""
    result = read_system_result(folder)
    record = RunFolder(folder).record() if result is not None else None
    if result is None or record is None or len(result.translations) != num_sentences:
        raise RunFolderError(
            f"{folder} does not hold the translations of {num_sentences:,} test sentences. Run the same "
            "command again to finish the comparison."
        )
    return result, record.recipe


def _bleu_by_length(
    result: SystemResult, pairs: Sequence[Pair], quarters: Sequence[Quarter], language: str
) -> tuple[float, ...]:
    return tuple(
        score(
            [result.translations[index] for index in quarter.sentences],
            [pairs[index].target for index in quarter.sentences],
            language=language,
            metrics=("bleu",),
        ).bleu
        for quarter in quarters
    )
