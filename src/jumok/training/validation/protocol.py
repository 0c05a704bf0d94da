"""The interface between the training loop and the validation sets of all tasks.

    translate         pairs; the loss, and translations with scores     `translation.py`
    language-model    plain text; the loss of the next token            `plain_text.py`, Radford et al. 2018
    masked            plain text with masked tokens; their loss         `plain_text.py`, Devlin et al. 2019
    classify          pictures with their class; the loss and accuracy  `classification.py`, Dosovitskiy 2021

A batch of plain text is a batch of pairs without a source, so the training loop is the same for all tasks
(`run/factories.py` makes the batches and the validation set).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jumok.models.model import Model
    from jumok.storage.model_folder import ScoreRecord
    from jumok.training.events import Sample
    from jumok.types import AttentionMap, Pair

Item = TypeVar("Item")

MAX_PAIRS = 2000  # of a validation set; a larger set is reduced to evenly spaced pairs


def never_stop() -> bool:
    """The default of `should_stop`."""
    return False


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The loss per token in nats, the scores with their signatures, and the translations, if any."""

    loss: float
    scores: Mapping[str, ScoreRecord]
    hypotheses: tuple[str, ...]
    references: tuple[str, ...]
    samples: tuple[Sample, ...]

    def score_values(self) -> dict[str, float]:
        return {name: record.value for name, record in self.scores.items()}

    def signatures(self) -> dict[str, str]:
        return {name: record.signature for name, record in self.scores.items()}


class Validation(Protocol):
    """A validation set, encoded and batched once."""

    num_too_long: int  # pairs that were left out
    fingerprint: str  # of all pairs, including those that are too long
    uniform_loss: float  # the loss of equal probabilities for all tokens
    unigram_entropy: float  # the loss of a model that knows only how often each target token occurs
    byte_token_share: float  # share of byte-fallback and unknown tokens

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def __len__(self) -> int: ...

    def validate(
        self, model: Model, beam: int, *, should_stop: Callable[[], bool] = never_stop
    ) -> ValidationResult | None:
        """Return the loss and the scores; None if `should_stop` returned True before they were complete."""

    def flatness(self, model: Model) -> float:
        """Return how uniform the cross-attention is (`detectors.flatness`); NaN if the model has none."""

    def attention_snapshot(self, model: Model) -> AttentionMap | None:
        """Return the attention map of one fixed sentence; None if there is nothing to show."""

    def estimate_seconds(self, model: Model) -> float:
        """Return about how many seconds a validation will take."""

    def cost_in_tokens(self) -> float:
        """Return the number of training tokens that cost as much as a validation."""


def drop_too_long(items: Sequence[Item], lengths: Sequence[int], max_tokens: int) -> list[Item]:
    """Return the items of at most `max_tokens` tokens, which is also the limit of training pairs.

    Raise if no item is left.
    """
    short = [item for item, length in zip(items, lengths, strict=True) if length <= max_tokens]
    if not short:
        raise DataError(
            f"There is no sentence to validate on: all {len(items):,} validation pairs have more than "
            f"{max_tokens} tokens on a side. Raise training.max_sentence_tokens, or give shorter pairs with "
            "--valid."
        )
    return short


def evenly_spaced(items: Sequence[Item], max_count: int) -> list[Item]:
    """Return at most `max_count` items, evenly spaced, the same ones every time."""
    if len(items) <= max_count:
        return list(items)
    return [items[i * len(items) // max_count] for i in range(max_count)]
