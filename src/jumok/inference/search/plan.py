"""The options of a search (`SearchPlan`) and of sampling (`Sampling`), and the report of a `SearchStep`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypedDict

from jumok.config.recipe import EXTRA_TOKENS, make_recipe
from jumok.errors import RecipeError, UnsupportedError

if TYPE_CHECKING:
    from typing import Unpack

    from torch import Tensor

    from jumok.config.recipe import SearchSettings
    from jumok.types import Batch

MAX_LENGTH_PENALTY = 20
# If the temperature is in this range, log-probabilities divided by it are finite in float32.
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-6, 1e6
# The difference between the seeds of two consecutive blocks of a stream. It is large, so that the blocks of
# two runs whose first seeds are close, e.g. 1 and 2, have different seeds.
_SEED_STEP = 1_000_003


class SearchOverrides(TypedDict, total=False):
    """Values that replace the settings `search.*` of the recipe. None keeps the value of the recipe."""

    beam: int | None
    patience_factor: float | None
    length_penalty: float | None
    coverage_penalty: float | None
    no_repeat_ngram_size: int | None
    max_length_ratio: float | None


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The options of a search, the same for all sentences of a batch.

    Lengths count tokens without `<s>` and `</s>`. A translation has at least `min_length` tokens if tokens
    are allowed. It is cut at ⌊max_length_ratio · source tokens⌋ + extra_tokens, but not before it has one
    token more than its prefix. Beam search of a sentence ends with beam · patience_factor finished hypotheses
    (Kasai et al. 2022, "A call for clarity in beam search"; exceptions in `beam.py`). With a factor of 1, a
    search can end with poor short hypotheses before a better, longer hypothesis is finished.
    """

    beam: int = 4
    n_best: int = 1
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    min_length: int = 1
    max_length_ratio: float = 3.0
    extra_tokens: int = EXTRA_TOKENS
    patience_factor: float = 2.0

    def __post_init__(self) -> None:
        _check_at_least("beam", self.beam, 1)
        _check_at_least("n_best", self.n_best, 1)
        _check_at_least("no_repeat_ngram_size", self.no_repeat_ngram_size, 0)
        _check_at_least("min_length", self.min_length, 0)
        _check_at_least("extra_tokens", self.extra_tokens, 1)
        if not -MAX_LENGTH_PENALTY <= self.length_penalty <= MAX_LENGTH_PENALTY:
            raise RecipeError(
                f"length_penalty must be between -{MAX_LENGTH_PENALTY} and {MAX_LENGTH_PENALTY}; with 1, "
                f"scores are mean log-probabilities per token. Received: {self.length_penalty}."
            )
        if self.patience_factor <= 0:
            raise RecipeError(f"patience_factor must be above 0. Received: {self.patience_factor}.")

    @classmethod
    def from_settings(
        cls, settings: SearchSettings, *, n_best: int = 1, **overrides: Unpack[SearchOverrides]
    ) -> Self:
        """Return the plan for the settings `search.*` of a recipe with overrides."""
        if any(value is not None for value in overrides.values()):
            changes = {f"search.{name}": value for name, value in overrides.items()}
            settings = make_recipe({"search": settings.model_dump()}, **changes).search
        if overrides.get("patience_factor") is not None and settings.beam == 1:
            raise UnsupportedError(
                "A beam of 1 ends with its first translation, so patience_factor would be ignored. Use a "
                "larger beam, or leave patience_factor out."
            )
        return cls(
            beam=settings.beam,
            n_best=n_best,
            length_penalty=settings.length_penalty,
            coverage_penalty=settings.coverage_penalty,
            no_repeat_ngram_size=settings.no_repeat_ngram_size,
            max_length_ratio=settings.max_length_ratio,
            patience_factor=settings.patience_factor,
        )

    @property
    def max_finished(self) -> int:
        """The number of finished hypotheses that ends the search of a sentence; 1 for a beam of 1.

        Without a length penalty and a coverage penalty, a search may end earlier (see `beam.py`).
        """
        return max(1, math.floor(self.beam * self.patience_factor + 0.5)) if self.beam > 1 else 1

    def max_lengths(self, batch: Batch) -> Tensor:
        """Return the maximum number of tokens in the translation of each sentence: (batch,).

        Prefixes are not considered.
        """
        special_tokens = int(batch.source.ndim == 2)  # a text ends with </s>; a picture does not
        lengths = [length - special_tokens for length in batch.source_lengths.tolist()]
        return batch.source_lengths.new_tensor([self.max_length(length) for length in lengths])

    def max_length(self, source_length: int, *, prefix_length: int = 0) -> int:
        """Return the maximum number of tokens in a translation, at least one more than in its prefix."""
        return max(int(source_length * self.max_length_ratio) + self.extra_tokens, prefix_length + 1)

    def check_n_best(self) -> None:
        """Raise if n_best is above the number of hypotheses with which a beam search ends."""
        if self.n_best <= self.max_finished:
            return
        if self.beam == 1:
            raise RecipeError(
                "A beam of 1 finds one hypothesis per sentence. Received: n_best "
                f"{self.n_best} with beam 1. Use a larger beam, or n_best 1."
            )
        raise RecipeError(
            "Beam search ends with beam × patience_factor finished hypotheses per sentence. Received: n_best "
            f"{self.n_best} with beam {self.beam} and patience_factor {self.patience_factor:g}. Use n_best "
            f"{self.max_finished} or less, a larger beam or a larger patience_factor."
        )


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draw each token from softmax(log p / temperature) instead of taking the best.

    `top_k` limits the draw to the k most probable tokens (0: no limit; Fan et al. 2018), `top_p` to the
    smallest set of most probable tokens whose probabilities sum to at least p (Holtzman et al. 2020). The
    probabilities for `top_p` are those of the softmax above, over the k tokens only. `seed` seeds the random
    generator.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        _check_at_least("top_k", self.top_k, 0)
        if not 0 < self.top_p <= 1:
            raise RecipeError(f"top_p is a probability above 0 and at most 1. Received: {self.top_p}.")
        if not MIN_TEMPERATURE <= self.temperature <= MAX_TEMPERATURE:
            raise RecipeError(
                f"The temperature must be between {MIN_TEMPERATURE:g} and {MAX_TEMPERATURE:g}. Received: "
                f"{self.temperature}. To always take the most probable token, use greedy search (beam 1)."
            )

    def with_next_seed(self, blocks: int = 1) -> Self:
        """Return a copy with the seed of the block that comes `blocks` blocks later in a stream."""
        return replace(self, seed=(self.seed + blocks * _SEED_STEP) % 2**32)


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The candidates of one step of a search. Each candidate is kept, finished or pruned.

    Candidate c of sentence s continues candidate parents[s, c] of the previous step of the same sentence. At
    step 0, it continues `<s>`. A candidate was pruned if `kept` and `finished` are both false. At places
    without a candidate, both are false too.

    In greedy search and sampling, each of the n_best hypotheses of a sentence has its own row with one
    candidate: row i · n_best + d is hypothesis d of sentence i. `sentences` then has the indices of rows.

    Constrained log-probabilities are the log-probabilities after the constraints of the search. The tokens of
    a forced prefix have 0, and disallowed tokens have -inf.
    """

    step: int
    sentences: Tensor  # (sentence,) indices of the sentences that are not done
    parents: Tensor  # (sentence, candidate) int64
    tokens: Tensor  # (sentence, candidate) int64
    constrained_log_probs: Tensor  # (sentence, candidate) sums; -inf: no candidate
    log_probs: Tensor  # (sentence, candidate) sum of the model's own log-probabilities, prefixes included
    scores: Tensor  # (sentence, candidate) the score of the hypothesis if it finishes in this step
    kept: Tensor  # (sentence, candidate) bool: continued in the next step
    finished: Tensor  # (sentence, candidate) bool: became a finished hypothesis


OnStep = Callable[[SearchStep], None]
"""Called after every step of a search."""


def _check_at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise RecipeError(f"{name} must be at least {minimum}. Received: {value}.")
