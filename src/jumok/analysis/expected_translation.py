"""Contrast the model's own translation with an expected one, at the first step where they differ.

Before that step both translations have the same tokens, so the model is in the same state, and the
probabilities of the produced token and of the expected token are comparable. Each source word is then deleted
from the sentence to measure which of the two tokens the word supports (a contrastive explanation: Yin &
Neubig 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from jumok.analysis.explainer import explain
from jumok.errors import DataError
from jumok.types import END

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from jumok.analysis.changes import Change
    from jumok.analysis.cost import CostLimits
    from jumok.analysis.live_explanation import LiveExplanation
    from jumok.attention import Edit
    from jumok.inference.translator import Translator


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A model's own translation of a sentence and an expected one, both explained with this model."""

    own: LiveExplanation
    expected: LiveExplanation
    step: int | None
    """The first step at which the tokens differ; None if the translations are the same."""
    rank: int | None
    """How many tokens were more probable at `step` than the expected token; None if `step` is None."""
    source_effects: NDArray[np.float64] | None
    """Per source word: by how much it raises log p(own token) − log p(expected token) at `step`.
    If the number is positive, the word supports the model's own token. If it is negative, the word supports
    the expected token. None if `step` is None, if a change names single cells, because the deletion of a word
    would shift the indices of these cells, or if the source is a picture, which has no words."""

    @property
    def preference(self) -> float:
        """log p(own) − log p(expected) of the whole translations."""
        return self.own.log_prob - self.expected.log_prob

    def tokens(self) -> tuple[str, str]:
        """Return the model's own token and the expected token at `step`.

        At the step after the last token of a translation, its token is `</s>`, even if the translation was
        cut at its maximum length.
        """
        if self.step is None:
            raise DataError("The translations do not differ: all their tokens are the same.")
        own, expected = (
            (*explanation.target.tokens, "</s>")[self.step] for explanation in (self.own, self.expected)
        )
        return own, expected


def contrast(
    translator: Translator,
    sentence: str,
    expected: str,
    *,
    edit: Change | Sequence[Change] | Edit | None = None,
    limits: CostLimits | None = None,
) -> Contrast:
    """Explain the model's own translation and an expected one, and find the first step where they differ.

    If the texts are equal, `expected` of the result is the explanation of the model's own translation.
    """
    if not expected.strip():
        raise DataError("Give the translation that you expected. Received: an empty text.")
    own = explain(translator, sentence, edit=edit, limits=limits)
    if expected.strip() == own.text:  # equal, even if the tokenizer splits the text into other tokens
        return Contrast(own, own, None, None, None)
    expected_explanation = explain(translator, sentence, target=expected, edit=edit, limits=limits)
    own_ids, expected_ids = ((*explanation.target.ids, END) for explanation in (own, expected_explanation))
    id_pairs = enumerate(zip_longest(own_ids, expected_ids))
    step = next((i for i, (own_id, expected_id) in id_pairs if own_id != expected_id), None)
    if step is None:
        return Contrast(own, expected_explanation, None, None, None)
    log_probs = expected_explanation.bound_model.log_probs(expected_explanation.target.ids)[step]
    rank = int((log_probs > log_probs[expected_ids[step]]).sum())
    effects = None
    if own.picture is None and not any(change.named_indices()[0] for change in own.changes):
        erased = [own.source.tokens_of(word) for word in range(len(own.source.words))]
        own_effects, expected_effects = (
            explanation.bound_model.erasing_effects(explanation.target.ids, erased)[:, step]
            for explanation in (own, expected_explanation)
        )
        effects = expected_effects - own_effects
    return Contrast(own, expected_explanation, step, rank, effects)
