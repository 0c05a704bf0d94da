"""Scores of a classifier of pictures on a test set: accuracy, and the classes that it confuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.inference.picture_classifier import PictureClassifier
    from jumok.types import Pair


@dataclass(frozen=True, slots=True)
class ClassScores:
    """How many pictures are classified correctly, and up to ten confusions (class, answer, count)."""

    pictures: int
    correct: int
    confusions: tuple[tuple[str, str, int], ...]

    @property
    def accuracy(self) -> float:
        return self.correct / max(self.pictures, 1)

    def as_dict(self) -> dict[str, object]:
        """Return the scores for JSON."""
        confusions = [
            {"class": name, "answer": answer, "count": count} for name, answer, count in self.confusions
        ]
        return {
            "task": "classify",
            "pictures": self.pictures,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "confusions": confusions,
        }


def evaluate_classifier(classifier: PictureClassifier, pairs: Sequence[Pair]) -> ClassScores:
    """Classify the picture of every pair and compare the answer with its class."""
    unknown = sorted({pair.target for pair in pairs} - set(classifier.classes.names))
    if not pairs or unknown:
        received = f"unknown classes: {', '.join(unknown[:5])}" if pairs else "no picture"
        raise DataError(
            "The test set must have pictures, and no classes except those of the model: "
            f"{', '.join(classifier.classes.names[:10])}. "
            f"Received: {received}."
        )
    answers = [answer.name for answer in classifier.classify([pair.source for pair in pairs])]
    counts = Counter((pair.target, answer) for pair, answer in zip(pairs, answers, strict=True))
    wrong_counts = Counter({names: count for names, count in counts.items() if names[0] != names[1]})
    confusions = tuple((*names, count) for names, count in wrong_counts.most_common(10))
    return ClassScores(len(pairs), len(pairs) - wrong_counts.total(), confusions)
