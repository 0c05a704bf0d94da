"""Estimates how long sentences and questions take. Speeds are measured on batches.

Each choice of a model and options has its own speed. Batches with terms are measured separately from batches
without terms. For questions, their seconds are measured instead.

Seconds are CPU seconds of a worker, so that other work on the machine does not make texts seem slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.server.workers.pending import BatchKey, PendingSentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from jumok.server.workers.pending import Pending, TranslateOptions

    WorkKind = tuple[BatchKey, bool]
    """Model and options, and whether the translations need terms or protected strings."""

__all__ = ["WorkSpeed", "text_size"]

SENTENCE_SIZE = 16
"""The fixed cost of a sentence, in ASCII letters. It matters, for example, in 50,000 lines of one letter.

Measured with the demo's model: a line of one letter takes 0.4 ms, a letter in a long sentence 0.03 ms."""
UNKNOWN_BYTE_SIZE = 10
"""The cost of each byte of a character that the model's vocabulary does not have, in letters.

Each such byte is a token, and the model often answers with a meaningless translation of maximum length.
Measured with the demo's model: a byte of Chinese characters costs as much as 12 letters, a byte of combining
marks 6, and a byte of emoji 7."""
CHARACTERS_PER_SENTENCE = 100
"""A guess for texts that have not been split yet."""
SMOOTHING = 0.2
"""The weight of a new measurement. All earlier measurements together have the rest."""
FIRST_QUESTION_SECONDS = 1.0
"""The estimate for a question that has not been measured yet."""


def text_size(text: str, alphabet: Set[str] | None = None) -> int:
    """Return the estimated cost of a sentence, in ASCII letters. The model's tokenizer is not needed.

    Each byte of a non-ASCII character costs one letter, or `UNKNOWN_BYTE_SIZE` letters if the vocabulary
    lacks the character. `alphabet` has the characters of the vocabulary beyond ASCII. Without `alphabet`, the
    function assumes that the vocabulary has all characters.
    """
    if text.isascii():
        return len(text) + SENTENCE_SIZE
    size = len(text.encode("utf-8", "surrogatepass")) + SENTENCE_SIZE
    unknown = set() if alphabet is None else set(text) - alphabet
    if unknown:
        unknown_text = "".join(
            character for character in text if character in unknown and not character.isascii()
        )
        size += (UNKNOWN_BYTE_SIZE - 1) * len(unknown_text.encode("utf-8", "surrogatepass"))
    return size


class WorkSpeed:
    """Estimates the seconds that one worker needs: 0 for sentences of a model without measurements."""

    def __init__(self) -> None:
        self._speed_of_kind: dict[WorkKind, float] = {}  # letters per second
        self._speed_of_model: dict[int, float] = {}  # letters per second with the default options
        self._seconds_of_operation: dict[str, float] = {}  # seconds of a question
        self._alphabets: dict[int, Set[str]] = {}  # of each model

    def set_first(self, speeds: Sequence[float], alphabets: Sequence[str] = ()) -> None:
        """Store the alphabets and speeds of all models, which a worker reports at its start.

        A speed that is already stored is not replaced.
        """
        for model_index, speed in enumerate(speeds):
            self._speed_of_model.setdefault(model_index, speed)
        self._alphabets = {index: frozenset(alphabet) for index, alphabet in enumerate(alphabets)}

    def seconds(self, item: Pending) -> float:
        """Return the estimated seconds of one sentence in a batch, or of a question."""
        if not isinstance(item, PendingSentence):
            return self._seconds_of_operation.get(item.question.operation, FIRST_QUESTION_SECONDS)
        return self._size(item.key, item.text) * self._seconds_per_letter((item.key, bool(item.terms)))

    def seconds_of_texts(self, key: BatchKey, texts: Iterable[str], *, terms: bool = False) -> float:
        """Return the estimated seconds of texts that have not been split into sentences yet.

        `terms` says that their translations may need terms or protected strings.
        """
        size = sum(self._size(key, text) + _sentence_breaks(text) * SENTENCE_SIZE for text in texts)
        return size * self._seconds_per_letter((key, terms))

    def min_seconds_of_text(self, text: str, options: TranslateOptions) -> float:
        """Return the estimated seconds that the fastest model needs for a text."""
        size = text_size(text) + _sentence_breaks(text) * SENTENCE_SIZE
        keys = [BatchKey(model_index, options) for model_index in self._speed_of_model]
        return size * min((self._seconds_per_letter((key, False)) for key in keys), default=0.0)

    def measure_batch(self, batch: Sequence[PendingSentence], seconds: float) -> None:
        key, num_with_terms = batch[0].key, sum(bool(item.terms) for item in batch)
        if 0 < num_with_terms < len(batch):
            return  # how much of the time belongs to each of the two kinds is not known
        kind = (key, num_with_terms > 0)
        speed = sum(self._size(key, item.text) for item in batch) / max(seconds, 1e-3)
        self._speed_of_kind[kind] = _smooth(self._speed_of_kind.get(kind), speed)
        default_speed = speed * _relative_work(*kind)
        before = self._speed_of_model.get(key.model_index)
        self._speed_of_model[key.model_index] = _smooth(before, default_speed)

    def measure_question(self, operation: str, seconds: float) -> None:
        before = self._seconds_of_operation.get(operation, FIRST_QUESTION_SECONDS)
        self._seconds_of_operation[operation] = _smooth(before, seconds)

    def _size(self, key: BatchKey, text: str) -> int:
        return text_size(text, self._alphabets.get(key.model_index))

    def _seconds_per_letter(self, kind: WorkKind) -> float:
        if speed := self._speed_of_kind.get(kind):
            return 1 / speed
        speed = self._speed_of_model.get(kind[0].model_index)
        return _relative_work(*kind) / speed if speed else 0.0


def _sentence_breaks(text: str) -> int:
    """Estimate how often a text will be split into sentences, from its length and its line breaks."""
    if len(text) < CHARACTERS_PER_SENTENCE and text.isprintable():
        return 0  # no line break is printable
    lines = sum(1 for line in text.splitlines() if not line.isspace() and line)
    return max(len(text) // CHARACTERS_PER_SENTENCE, lines - 1)


def _smooth(before: float | None, new: float) -> float:
    return new if before is None else before + SMOOTHING * (new - before)


def _relative_work(key: BatchKey, terms: bool) -> float:
    """Estimate the work of this kind relative to the default options.

    With this factor, a measurement of one kind gives a first estimate for all other kinds.
    """
    options = key.options
    work = 0.5 if options.greedy else (3 + options.n_best) / 4  # the beam has at least n_best hypotheses
    passes = (options.align or terms) + options.words  # over each of the n_best translations
    # A sentence whose translation lacks a protected string is translated again.
    return (2 * work if terms else work) + 0.4 * options.n_best * passes
