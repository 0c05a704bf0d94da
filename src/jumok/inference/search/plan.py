"""What a search is asked for, and what it reports while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypedDict

from jumok.errors import RecipeError, UnsupportedError
from jumok.recipe import make_recipe

if TYPE_CHECKING:
    from typing import Unpack

    from torch import Tensor

    from jumok.recipe import SearchSettings
    from jumok.values import Batch

MOST_PENALTY = 20
# Between these, log-probabilities divided by a temperature stay within single precision.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-6, 1e6
_NEXT_SEED = 1_000_003

__all__ = ["Listener", "Sampling", "SearchChoices", "SearchPlan", "SearchStep"]


class SearchChoices(TypedDict, total=False):
    """What a call may choose in place of the recipe's `search.*`, under the same names; None is no choice."""

    beam: int | None
    patience_factor: float | None
    length_penalty: float | None
    coverage_penalty: float | None
    no_repeat: int | None
    longest: float | None


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Everything that steers a search; the same for all sentences of a batch.

    Lengths count pieces without `<s>` and `</s>`. A translation has at least `shortest` pieces and at most
    ⌊longest · source pieces⌋ + extra, where it is cut. `patience` scales how many finished hypotheses end the
    search of a sentence (Kasai et al. 2022, "A call for clarity in beam search"): at 1, the poor and short
    guesses of a model that is sure can all be finished, and end the search, before its good one is.
    """

    beam: int = 4
    n_best: int = 1
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    no_repeat: int = 0
    shortest: int = 1
    longest: float = 3.0
    extra: int = 10
    patience: float = 2.0

    def __post_init__(self) -> None:
        _at_least("beam", self.beam, 1)
        _at_least("n_best", self.n_best, 1)
        _at_least("no_repeat", self.no_repeat, 0)
        _at_least("shortest", self.shortest, 0)
        _at_least("extra", self.extra, 1)
        if not -MOST_PENALTY <= self.length_penalty <= MOST_PENALTY:
            raise RecipeError(
                f"length_penalty lies between -{MOST_PENALTY} and {MOST_PENALTY}; 1 is the mean score of a "
                f"piece. Received: {self.length_penalty}."
            )
        if self.patience <= 0:
            raise RecipeError(f"A search's patience must be above 0. Received: {self.patience}.")

    @classmethod
    def of(cls, settings: SearchSettings, *, n_best: int = 1, **choices: Unpack[SearchChoices]) -> Self:
        """The plan that stands in a recipe, but for what was chosen."""
        chosen = {f"search.{name}": value for name, value in choices.items()}
        settings = make_recipe({"search": settings.model_dump()}, **chosen).search
        if choices.get("patience_factor") is not None and settings.beam == 1:
            raise UnsupportedError(
                "A beam of 1 ends with its first translation, so patience_factor would be ignored. Widen the "
                "beam, or leave patience_factor out."
            )
        return cls(
            beam=settings.beam,
            n_best=n_best,
            length_penalty=settings.length_penalty,
            coverage_penalty=settings.coverage_penalty,
            no_repeat=settings.no_repeat,
            longest=settings.longest,
            patience=settings.patience_factor,
        )

    @property
    def wanted(self) -> int:
        """How many finished hypotheses end the search of a sentence. A beam of 1, greedy, ends with one."""
        return max(1, math.floor(self.beam * self.patience + 0.5)) if self.beam > 1 else 1

    def limits(self, batch: Batch) -> Tensor:
        """The most pieces that the translation of each sentence may have: (batch,)."""
        lengths = batch.source_lengths.tolist()
        return batch.source_lengths.new_tensor([self.limit(length - 1) for length in lengths])

    def limit(self, pieces: int, *, prefix: int = 0) -> int:
        """The same for one source of so many pieces; a forced prefix of so many has room, and one more."""
        return max(int(pieces * self.longest) + self.extra, prefix + 1)

    def check_n_best(self) -> None:
        """Refuse to look for more hypotheses than a beam search finds."""
        if self.n_best > self.wanted:
            raise RecipeError(
                f"Beam search finds beam × patience hypotheses. Received: n_best {self.n_best} with beam "
                f"{self.beam} and patience {self.patience:g}. Ask for at most {self.wanted}, or widen the "
                "beam."
            )


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draw each piece instead of taking the best: from softmax(log p / temperature), cut to its likely part.

    `top_k` keeps the k likeliest pieces (0 keeps all; Fan et al. 2018); `top_p` keeps the fewest likeliest
    pieces whose probabilities sum to at least p (Holtzman et al. 2020). `seed` is where a Translator's draws
    start.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        _at_least("top_k", self.top_k, 0)
        if not 0 < self.top_p <= 1:
            raise RecipeError(f"top_p is a probability above 0 and at most 1. Received: {self.top_p}.")
        if not LEAST_TEMPERATURE <= self.temperature <= MOST_TEMPERATURE:
            raise RecipeError(
                f"The temperature of sampling lies between {LEAST_TEMPERATURE:g} and {MOST_TEMPERATURE:g}. "
                f"Received: {self.temperature}. To take the likeliest piece always, use greedy search (beam "
                "1)."
            )

    def onward(self) -> Self:
        """The same for the next sentences of a stream, which draw from a seed of their own."""
        return replace(self, seed=(self.seed + _NEXT_SEED) % 2**32)


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One step of a search, as told to a listener: all candidates and what became of them.

    Candidate c of sentence s continues candidate parents[s, c] of the step before (of the same sentence); at
    step 0 it continues `<s>`. Those that are neither kept nor finished were pruned. Greedy search and
    sampling have one candidate a row; draw d of sentence i then stands as "sentence" i · n_best + d.
    """

    step: int
    sentences: Tensor  # (sentence,) those of the batch that are still being searched
    parents: Tensor  # (sentence, candidate) int64
    tokens: Tensor  # (sentence, candidate) int64
    scores: Tensor  # (sentence, candidate) sum of log-probabilities, -inf where there is no candidate
    log_probs: Tensor  # (sentence, candidate) the model's own sum: nothing forbidden, a prefix not for free
    ranking: Tensor  # (sentence, candidate) what a candidate is ranked by if it is finished here
    kept: Tensor  # (sentence, candidate) bool: continued in the next step
    finished: Tensor  # (sentence, candidate) bool: became a hypothesis


Listener = Callable[[SearchStep], None]


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise RecipeError(f"{name} must be at least {least}. Received: {value}.")
