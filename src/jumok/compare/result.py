"""What a comparison found, in values: a row a contender, the same test sentences behind every number."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from statistics import median
from typing import TYPE_CHECKING, Any

from jumok.compare.contenders import BUDGET, unequal
from jumok.compare.outcome import read_memory, read_outcome
from jumok.errors import RunFolderError
from jumok.evaluation import compare as paired_bootstrap
from jumok.evaluation import score
from jumok.text import split_words
from jumok.training.folder import RunFolder
from jumok.training.metrics import read_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jumok.compare.contenders import Contender
    from jumok.compare.outcome import Outcome
    from jumok.compare.split import Split
    from jumok.recipe import Recipe
    from jumok.values import AttentionMap, Pair

__all__ = ["CurvePoint", "Quarter", "Result", "Row", "collect_result", "quarters_by_length", "read_curve"]

QUARTERS = 4


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A validation. `seconds` since the run began, None where no report of training came before it."""

    step: int
    seconds: float | None
    loss: float
    bleu: float


@dataclass(frozen=True, slots=True)
class Quarter:
    """A quarter of the test set: the fewest and the most source words in it, and which sentences."""

    shortest: int
    longest: int
    sentences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A contender. `p_value` is against the first one, by paired bootstrap; the first itself has none.

    Speeds are a second: target pieces trained on (the median of all reports), target pieces and sentences
    translated. The memory is the peak of the training process, in megabytes.
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
    training_tokens: float | None
    decoding_pieces: float
    decoding_sentences: float
    peak_memory: float | None
    curve: tuple[CurvePoint, ...]
    bleu_by_length: tuple[float, ...]
    translation: str
    attention: AttentionMap | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; the attention stays with the contender, in its `outcome.json`."""
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "attention"}
        return {**plain, "curve": [asdict(point) for point in self.curve]}


@dataclass(frozen=True, slots=True)
class Result:
    """The whole comparison. `sentence` is the one whose attention is shown; `unequal` what is not fair."""

    rows: tuple[Row, ...]
    quarters: tuple[Quarter, ...]
    sentences: int
    sentence: str
    bleu_signature: str
    budget: str
    unequal: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "contenders": [row.as_dict() for row in self.rows],
            "quarters": [
                {"shortest": one.shortest, "longest": one.longest, "sentences": len(one.sentences)}
                for one in self.quarters
            ],
            "sentences": self.sentences,
            "sentence": self.sentence,
            "bleu_signature": self.bleu_signature,
            "budget": self.budget,
            "unequal": list(self.unequal),
        }


def collect_result(contenders: Sequence[Contender], split: Split, *, out: Path, sentence: str) -> Result:
    """Score what the contenders have left in their folders."""
    pairs = split.test_pairs()
    quarters = quarters_by_length([pair.source for pair in pairs])
    left = [_left(out / contender.name, len(pairs)) for contender in contenders]
    first, recipe = left[0]
    language, references = recipe.languages.target, [pair.target for pair in pairs]
    rows = []
    for contender, (outcome, _) in zip(contenders, left, strict=True):
        compared = paired_bootstrap(
            first.translations, outcome.translations, references, language=language, metrics=("bleu",)
        )["bleu"]
        curve, training_tokens = read_curve(RunFolder(out / contender.name).metrics)
        peak = read_memory(out / contender.name)
        rows.append(
            Row(
                name=contender.name,
                bleu=compared.system,
                bleu_interval=compared.system_interval,
                p_value=None if outcome is first else compared.p_value,
                chrf=score(outcome.translations, references, language=language, metrics=("chrf",)).chrf,
                alignment_error=outcome.alignment_error,
                parameters=outcome.parameters,
                steps=outcome.steps,
                training_seconds=outcome.training_seconds,
                training_tokens=training_tokens,
                decoding_pieces=outcome.pieces / max(outcome.seconds, 1e-9),
                decoding_sentences=len(pairs) / max(outcome.seconds, 1e-9),
                peak_memory=None if peak is None else peak / 1e6,
                curve=curve,
                bleu_by_length=_bleu_by_length(outcome, pairs, quarters, language),
                translation=outcome.sentence_translation,
                attention=outcome.attention,
            )
        )
    return Result(
        rows=tuple(rows),
        quarters=quarters,
        sentences=len(pairs),
        sentence=sentence,
        bleu_signature=compared.signature,
        budget=_budget(recipe),
        unequal=unequal({one.name: kept for one, (_, kept) in zip(contenders, left, strict=True)}),
    )


def quarters_by_length(sources: Sequence[str]) -> tuple[Quarter, ...]:
    """The sentences in four equal parts, from few words to many; fewer parts where there are fewer."""
    words = [len(split_words(source)) for source in sources]
    order = sorted(range(len(sources)), key=lambda index: words[index])
    quarters = []
    for number in range(QUARTERS):
        part = order[number * len(order) // QUARTERS : (number + 1) * len(order) // QUARTERS]
        if part:
            quarters.append(Quarter(words[part[0]], words[part[-1]], tuple(part)))
    return tuple(quarters)


def read_curve(metrics: Path) -> tuple[tuple[CurvePoint, ...], float | None]:
    """The validations of a run in their order, and the median of the target pieces trained a second."""
    points: list[CurvePoint] = []
    speeds: list[float] = []
    seconds: float | None = None
    for record in read_metrics(metrics):
        match record:
            case {"kind": "train", "tokens_per_second": float(speed), "seconds": float(spent)}:
                speeds.append(speed)
                seconds = spent
            case {
                "kind": "validation",
                "step": int(step),
                "loss": float(loss),
                "bleu": float(bleu),
                "seconds": float(took),
            }:
                # A validation tells how long it took, and training how long all has taken.
                seconds = None if seconds is None else round(seconds + took, 2)
                points.append(CurvePoint(step, seconds, loss, bleu))
    return tuple(points), median(speeds) if speeds else None


def _left(folder: Path, sentences: int) -> tuple[Outcome, Recipe]:
    """The outcome in a contender's folder, and the recipe that its run has decided on."""
    outcome = read_outcome(folder)
    record = RunFolder(folder).record() if outcome is not None else None
    if outcome is None or record is None or len(outcome.translations) != sentences:
        raise RunFolderError(
            f"{folder} does not hold the translations of {sentences:,} test sentences. Run the same command "
            "again to finish the comparison."
        )
    return outcome, record.recipe


def _bleu_by_length(
    outcome: Outcome, pairs: Sequence[Pair], quarters: Sequence[Quarter], language: str
) -> tuple[float, ...]:
    return tuple(
        score(
            [outcome.translations[index] for index in quarter.sentences],
            [pairs[index].target for index in quarter.sentences],
            language=language,
            metrics=("bleu",),
        ).bleu
        for quarter in quarters
    )


def _budget(recipe: Recipe) -> str:
    limits = {name: getattr(recipe.training, name) for name in BUDGET}
    return ", ".join(f"{value:g} {name}" for name, value in limits.items() if value is not None)
