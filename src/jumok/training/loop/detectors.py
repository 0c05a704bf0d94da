"""Detectors of a run that goes wrong. Each returns the problem and what to do, or None.

A detector is a function of the evidence from one validation. Only `training_diverged` looks at the training
loss alone, which is known earlier. Half of the detectors are silent early in a run (`Evidence.is_late`),
because an untrained model always gives the same translation, and its attention is nearly uniform.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.training.loop.state import USELESS_RATIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from jumok.training.loop.state import ValidationRecord

# A run is late after the warm-up, after LATE_STEPS steps, and after LATE_SHARE of the planned steps or, if no
# end is planned, LATE_VALIDATIONS earlier validations.
LATE_STEPS, LATE_SHARE, LATE_VALIDATIONS = 200, 0.33, 4
MIN_SENTENCES = 8  # fewer translations say nothing about lengths or repetition
SAME_OUTPUT_SHARE = 0.4  # share of the hypotheses that are equal
MAX_BYTE_TOKEN_SHARE = 0.05
MAX_FLATNESS = 0.93  # entropy / maximum entropy
OVERFITTING_RISE, OVERFITTING_VALIDATIONS = 0.05, 3  # share of the best loss; validations since the best
STUCK_RATIO = 0.93  # loss / unigram entropy
MIN_LENGTH_RATIO, MAX_LENGTH_RATIO = 0.6, 1.7  # characters of hypotheses / characters of references
DIVERGED_RATIO = 1.5  # loss / uniform loss; new weights give about 1.1


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts about a run after a validation. NaN means not measured."""

    step: int
    steps: int | None
    warmup_steps: int
    validations: Sequence[ValidationRecord]  # all earlier validations
    validation_loss: float
    training_loss: float
    hypotheses: Sequence[str]
    references: Sequence[str]
    uniform_loss: float = math.inf  # the loss of equal probabilities for all tokens: ln(vocabulary size)
    unigram_entropy: float = math.nan  # the loss of a model that knows only how often each token occurs
    byte_token_share: float = 0.0  # share of byte-fallback and unknown tokens
    flatness: float = math.nan  # of the most peaked head of cross-attention: 1 is uniform

    @property
    def is_late(self) -> bool:
        """Whether the model should have learnt something by now."""
        if self.step <= max(self.warmup_steps, LATE_STEPS):
            return False
        if self.steps is None:
            return len(self.validations) >= LATE_VALIDATIONS
        return self.step > LATE_SHARE * self.steps


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and what to do about it. A run reports each kind once."""

    kind: str
    message: str
    advice: str


def run_detectors(evidence: Evidence) -> list[Finding]:
    """Return the findings of all detectors."""
    findings = [detector(evidence) for detector in DETECTORS]
    return [finding for finding in findings if finding is not None]


def same_output(evidence: Evidence) -> Finding | None:
    """The same translation for many different sentences."""
    if not evidence.is_late or len(evidence.hypotheses) < MIN_SENTENCES:
        return None
    text, count = Counter(evidence.hypotheses).most_common(1)[0]
    share = count / len(evidence.hypotheses)
    expected = sum(reference == text for reference in evidence.references) / len(evidence.references)
    if share < SAME_OUTPUT_SHARE or expected > share / 2:
        return None
    return Finding(
        "same output",
        f"{share:.0%} of the validation sentences get the same translation: {text[:60]!r}",
        "The model does not use its source. Check that both files have the translation on the same line "
        "(`jumok check`), then lower training.learning_rate or raise training.warmup_steps.",
    )


def byte_tokens(evidence: Evidence) -> Finding | None:
    """Text that the vocabulary covers badly."""
    if evidence.byte_token_share < MAX_BYTE_TOKEN_SHARE:
        return None
    return Finding(
        "odd tokens",
        f"{evidence.byte_token_share:.0%} of the validation tokens are single bytes or unknown",
        "The validation text has characters that hardly occur in the training text. That is usual if the "
        "training text is small; more text helps. If the training text is large, check the languages and "
        "the encoding of both texts.",
    )


def flat_attention(evidence: Evidence) -> Finding | None:
    """Cross-attention that is nearly uniform."""
    if not evidence.is_late or math.isnan(evidence.flatness) or evidence.flatness < MAX_FLATNESS:
        return None
    return Finding(
        "flat attention",
        "every head of the cross-attention is nearly uniform: the lowest entropy is "
        f"{evidence.flatness:.0%} of the maximum",
        "The decoder does not use the source. Check that the pairs are translations of each "
        "other (`jumok check`), then lower training.learning_rate.",
    )


def not_finite(evidence: Evidence) -> Finding | None:
    """A loss that is NaN or infinite."""
    if math.isfinite(evidence.validation_loss):
        return None
    return Finding(
        "not finite",
        f"the validation loss is {evidence.validation_loss}: the weights have diverged",
        "The best earlier checkpoint is stored. Start a new run with a lower training.learning_rate or more "
        "training.warmup_steps.",
    )


def diverged(evidence: Evidence) -> Finding | None:
    """A validation loss above the uniform loss or, early in a run, far above the uniform loss.

    If the training loss is not above the uniform loss, the model has overfitted rather than diverged
    (`overfitting`). This detector then reports it only if the weights are useless: the validation loss is
    above `USELESS_RATIO` times the uniform loss.
    """
    loss, uniform_loss = evidence.validation_loss, evidence.uniform_loss
    if not math.isfinite(loss) or loss <= uniform_loss * (1.0 if evidence.is_late else DIVERGED_RATIO):
        return None
    if evidence.training_loss <= uniform_loss and loss <= USELESS_RATIO * uniform_loss:
        return None
    return _diverged("validation", loss, uniform_loss)


def training_diverged(loss: float, uniform_loss: float) -> Finding | None:
    """A training loss far above the uniform loss. The first validation may come much later."""
    # NaN is not above it: no update was applied yet, and the trainer warns of each skipped update.
    if not loss > DIVERGED_RATIO * uniform_loss:
        return None
    return _diverged("training", loss, uniform_loss)


def _diverged(which: str, loss: float, uniform_loss: float) -> Finding:
    return Finding(
        "diverged",
        f"the {which} loss is {loss:,.2f}; giving every token the same probability gives {uniform_loss:.2f}",
        "The model is worse than guessing. The learning rate is most likely too high: start a new run with "
        "training.learning_rate divided by 10, or with more training.warmup_steps.",
    )


def overfitting(evidence: Evidence) -> Finding | None:
    """A validation loss that has risen since the best validation, while the training loss has fallen."""
    if len(evidence.validations) < OVERFITTING_VALIDATIONS:
        return None
    best = min(evidence.validations, key=lambda record: record.loss)
    num_since_best = sum(record.step > best.step for record in evidence.validations) + 1
    rises = evidence.validation_loss > best.loss * (1 + OVERFITTING_RISE)
    falls = evidence.training_loss < best.training_loss  # False if either is NaN
    if num_since_best < OVERFITTING_VALIDATIONS or not rises or not falls:
        return None
    return Finding(
        "overfitting",
        f"the validation loss rose from {best.loss:.2f} (step {best.step:,}) to "
        f"{evidence.validation_loss:.2f} while the training loss still falls",
        "The model memorises its corpus. The best checkpoint is stored. For a better one: more pairs, a "
        "higher model.dropout, a smaller model.size, or text.sampling = 0.1.",
    )


def stuck_at_frequencies(evidence: Evidence) -> Finding | None:
    """A loss no better than that of token frequencies."""
    if not evidence.is_late or math.isnan(evidence.unigram_entropy):
        return None
    if evidence.validation_loss < STUCK_RATIO * evidence.unigram_entropy:
        return None
    return Finding(
        "stuck",
        f"the validation loss is {evidence.validation_loss:.2f}; knowing only how often each token occurs "
        f"gives {evidence.unigram_entropy:.2f}",
        "The learning rate is most likely too high: divide training.learning_rate by 4, or raise "
        "training.warmup_steps.",
    )


def wrong_length(evidence: Evidence) -> Finding | None:
    """Translations that end too early or too late."""
    hypothesis_length = sum(map(len, evidence.hypotheses))
    reference_length = sum(map(len, evidence.references))
    if not evidence.is_late or len(evidence.hypotheses) < MIN_SENTENCES or reference_length == 0:
        return None
    ratio = hypothesis_length / reference_length
    if MIN_LENGTH_RATIO <= ratio <= MAX_LENGTH_RATIO:
        return None
    problem = "too short" if ratio < MIN_LENGTH_RATIO else "too long"
    return Finding(
        problem,
        f"translations are {problem}: {ratio:.2f} times the length of the references",
        "If this lasts to the end, look for cut-off or merged lines in the corpus (`jumok check` shows pairs "
        "of very different length); search.length_penalty changes the length a little.",
    )


DETECTORS: tuple[Callable[[Evidence], Finding | None], ...] = (
    not_finite,
    diverged,
    same_output,
    byte_tokens,
    flat_attention,
    overfitting,
    stuck_at_frequencies,
    wrong_length,
)


def unigram_entropy(counts: Counter[int]) -> float:
    """Return -Σ p log p over the tokens, in nats."""
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else math.nan


def byte_token_share(tokens: Sequence[str]) -> float:
    """Return the share of tokens that are bytes (`<0xE2>`) or unknown (`<unk>`)."""
    count = sum(token.startswith("<0x") or token == "<unk>" for token in tokens)
    return count / len(tokens) if tokens else 0.0


def flatness(weights: Tensor, target_lengths: Tensor, source_lengths: Tensor) -> float:
    """Return entropy / log(source length) of the most peaked head, averaged over queries.

    `weights` is (batch, layer, head, query, key), 0 at padded keys. Sources of one token are ignored.
    """
    entropy = -(weights * weights.clamp(min=1e-12).log()).sum(dim=-1)  # (batch, layer, head, query)
    maximum = source_lengths.clamp(min=2).log().to(entropy.dtype)[:, None, None, None]
    is_query = entropy.new_ones(entropy.shape[-1]).cumsum(0)[None] <= (target_lengths - 1)[:, None]
    is_counted = (is_query & (source_lengths > 1)[:, None])[:, None, None]  # (batch, 1, 1, query)
    if not bool(is_counted.any()):
        return math.nan
    by_head = (entropy / maximum * is_counted).sum(dim=(0, 3)) / is_counted.sum()  # (layer, head)
    return float(by_head.min())
