"""Signs that a run goes wrong, said plainly, with what to do.

Each detector is a function of the evidence that a validation leaves. Most hold their tongue until a third
of the run is over: in its first steps every model says the same of all sentences and looks at nothing in
particular.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from jumok.training.state import ValidationRecord

__all__ = ["Evidence", "Finding", "flatness", "inspect", "odd_piece_share", "unigram_entropy"]

LATE_SHARE, LATE_VALIDATIONS, LATE_STEPS = 0.33, 4, 200
FEWEST_SENTENCES = 8
SAME_SHARE = 0.4
ODD_SHARE = 0.05
FLAT = 0.93
OVERFITTED, OVERFITTED_VALIDATIONS = 0.05, 3
STUCK = 0.93
SHORT, LONG = 0.6, 1.7


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known after a validation. NaN stands for what could not be measured."""

    step: int
    steps: int | None
    warmup: int
    validations: Sequence[ValidationRecord]  # before this one
    loss: float
    training_loss: float
    hypotheses: Sequence[str]
    references: Sequence[str]
    unigram_entropy: float = (
        math.nan
    )  # of the target pieces: the loss of a model that knows only their frequency
    odd_pieces: float = 0.0  # share of unknown and byte pieces
    flatness: float = math.nan  # of the most pointed head of cross-attention: 1 looks at everything alike

    @property
    def late(self) -> bool:
        """Whether a model should have learnt something by now."""
        if self.step <= max(self.warmup, LATE_STEPS):
            return False
        if self.steps is None:
            return len(self.validations) >= LATE_VALIDATIONS
        return self.step > LATE_SHARE * self.steps


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what to do about it. A run reports each kind once."""

    kind: str
    message: str
    advice: str


def inspect(evidence: Evidence) -> list[Finding]:
    """All that the detectors find."""
    found = [detector(evidence) for detector in DETECTORS]
    return [finding for finding in found if finding is not None]


def same_output(evidence: Evidence) -> Finding | None:
    """One translation for very different sentences."""
    if not evidence.late or len(evidence.hypotheses) < FEWEST_SENTENCES:
        return None
    text, count = Counter(evidence.hypotheses).most_common(1)[0]
    share = count / len(evidence.hypotheses)
    rightly = sum(reference == text for reference in evidence.references) / len(evidence.references)
    if share < SAME_SHARE or rightly > share / 2:
        return None
    return Finding(
        "same output",
        f"{share:.0%} of the validation sentences get the same translation: {text[:60]!r}",
        "The model does not use its source. Check that both files have the translation on the same line "
        "(`jumok check`), then lower training.learning_rate or lengthen training.warmup.",
    )


def odd_pieces(evidence: Evidence) -> Finding | None:
    """Text that the vocabulary cannot spell."""
    if evidence.odd_pieces < ODD_SHARE:
        return None
    return Finding(
        "odd pieces",
        f"{evidence.odd_pieces:.0%} of the validation pieces are single bytes or unknown",
        "The validation text is written in characters that the training text hardly has. Check the languages "
        "and the encoding of both, or raise text.pieces.",
    )


def flat_attention(evidence: Evidence) -> Finding | None:
    """Cross-attention that points nowhere."""
    if not evidence.late or math.isnan(evidence.flatness) or evidence.flatness < FLAT:
        return None
    return Finding(
        "flat attention",
        f"no head of the cross-attention points at anything: its entropy is {evidence.flatness:.0%} of the "
        "most there can be",
        "The decoder writes without looking at the source. Check that the pairs are translations of each "
        "other (`jumok check`), then lower training.learning_rate.",
    )


def not_finite(evidence: Evidence) -> Finding | None:
    """A loss that is no number, or infinite."""
    if math.isfinite(evidence.loss):
        return None
    return Finding(
        "not finite",
        f"the validation loss is {evidence.loss}: the weights have grown beyond what can be computed with",
        "The best checkpoint before is kept. Start a new run with a lower training.learning_rate or a longer "
        "training.warmup.",
    )


def overfitting(evidence: Evidence) -> Finding | None:
    """Better and better on what it has seen, worse and worse on what it has not."""
    if len(evidence.validations) < OVERFITTED_VALIDATIONS:
        return None
    best = min(evidence.validations, key=lambda record: record.loss)
    since = sum(record.step > best.step for record in evidence.validations) + 1
    risen = evidence.loss > best.loss * (1 + OVERFITTED)
    falls = evidence.training_loss < best.training_loss  # False where either is NaN
    if since < OVERFITTED_VALIDATIONS or not risen or not falls:
        return None
    return Finding(
        "overfitting",
        f"the validation loss rose from {best.loss:.2f} (step {best.step:,}) to {evidence.loss:.2f} while "
        "the training loss still falls",
        "The model learns its corpus by heart. The best checkpoint is kept. For a better one: more pairs, a "
        "higher model.dropout, a smaller model.size, or text.sampling = 0.1.",
    )


def stuck_at_frequencies(evidence: Evidence) -> Finding | None:
    """A loss that knows how often pieces occur, and no more."""
    if not evidence.late or math.isnan(evidence.unigram_entropy):
        return None
    if evidence.loss < STUCK * evidence.unigram_entropy:
        return None
    return Finding(
        "stuck",
        f"the validation loss is {evidence.loss:.2f}; knowing only how often each piece occurs gives "
        f"{evidence.unigram_entropy:.2f}",
        "The learning rate is most likely too high: divide training.learning_rate by 4, or lengthen "
        "training.warmup.",
    )


def wrong_length(evidence: Evidence) -> Finding | None:
    """Translations that stop too soon or do not stop."""
    written = sum(map(len, evidence.hypotheses))
    expected = sum(map(len, evidence.references))
    if not evidence.late or len(evidence.hypotheses) < FEWEST_SENTENCES or expected == 0:
        return None
    ratio = written / expected
    if SHORT <= ratio <= LONG:
        return None
    word = "short" if ratio < SHORT else "long"
    return Finding(
        f"too {word}",
        f"translations are too {word}: {ratio:.2f} times the length of the references",
        "If it stays so to the end, look for cut-off or merged lines in the corpus (`jumok check` shows "
        "pairs of very different length); search.length_penalty moves the length a little.",
    )


DETECTORS: tuple[Callable[[Evidence], Finding | None], ...] = (
    not_finite,
    same_output,
    odd_pieces,
    flat_attention,
    overfitting,
    stuck_at_frequencies,
    wrong_length,
)


def unigram_entropy(counts: Counter[int]) -> float:
    """-Σ p log p over the pieces, in nats."""
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else math.nan


def odd_piece_share(pieces: Sequence[str]) -> float:
    """The share of pieces that are bytes (`<0xE2>`) or unknown (`<unk>`)."""
    odd = sum(piece.startswith("<0x") or piece == "<unk>" for piece in pieces)
    return odd / len(pieces) if pieces else 0.0


def flatness(weights: Tensor, target_lengths: Tensor, source_lengths: Tensor) -> float:
    """Entropy over log n, averaged over queries, of the head where it is smallest.

    `weights` is (batch, layer, head, query, key), 0 at padded keys; a source of one piece says nothing.
    """
    entropy = -(weights * weights.clamp(min=1e-12).log()).sum(dim=-1)  # (batch, layer, head, query)
    most = source_lengths.clamp(min=2).log().to(entropy.dtype)[:, None, None, None]
    queries = entropy.new_ones(entropy.shape[-1]).cumsum(0)[None] <= (target_lengths - 1)[:, None]
    real = (queries & (source_lengths > 1)[:, None])[:, None, None]  # (batch, 1, 1, query)
    if not bool(real.any()):
        return math.nan
    by_head = (entropy / most * real).sum(dim=(0, 3)) / real.sum()  # (layer, head)
    return float(by_head.min())
