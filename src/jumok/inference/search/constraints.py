"""Constraints on the next token: special tokens, a minimum length, repeated n-grams, a forced prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import torch

from jumok.errors import DataError
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.inference.search.plan import SearchPlan
    from jumok.types import LogProbs

NEG_INF = float("-inf")
MAX_MASKED_PROBABILITY = 0.5
"""How a row is renormalised: if its masked tokens have more probability than this, by a new softmax.

Otherwise the probabilities of the row are divided by 1 - masked probability. For a larger masked probability,
rounding makes this difference inexact.
"""


def tokens_of(ids: Tensor | None, columns: Tensor) -> Tensor:
    """Return the token of each column, in the shape of `columns`. `ids` is `LogProbs.ids`."""
    return columns if ids is None else ids[columns]


def columns_of(ids: Tensor | None, tokens: Tensor) -> Tensor:
    """Return the column of each token, in the shape of `tokens`; -1 for a token outside the shortlist."""
    if ids is None:
        return tokens
    largest = int(torch.cat([ids, tokens.flatten()]).max())
    table = ids.new_full((largest + 1,), -1)
    table[ids] = torch.arange(len(ids), device=ids.device)
    return table[tokens]


def mask_disallowed(log_probs: LogProbs, history: Tensor, plan: SearchPlan) -> tuple[Tensor, Tensor]:
    """Return the model's log-probabilities and the constrained log-probabilities, (row, column) each.

    The model's log-probabilities are -inf for `<pad>` and `<s>`, which are never produced, and are not
    renormalised. The constrained log-probabilities are also -inf for every token that the plan disallows
    after the tokens so far, `history` (row, step). Only rows with a token that the plan disallows are
    renormalised over the allowed tokens, because CTranslate2 masks before its softmax. If no token is
    allowed, `</s>` has probability 1.

    To save a copy of a whole vocabulary, the first result overwrites `log_probs.values`. If the plan
    disallows nothing, both results are the same tensor.
    """
    model_log_probs = log_probs.values
    special_probability = _mask_special_tokens(log_probs)
    rows, tokens = _repeating_tokens(history, plan.no_repeat_ngram_size)
    if history.shape[1] < plan.min_length:
        all_rows = torch.arange(len(history), device=history.device)
        rows = torch.cat([rows, all_rows])
        tokens = torch.cat([tokens, torch.full_like(all_rows, END)])
    if not len(rows):
        return model_log_probs, model_log_probs
    columns = columns_of(log_probs.ids, tokens)
    num_columns = model_log_probs.shape[1]
    # Each disallowed entry may be listed only once, because the probabilities of the entries are summed.
    disallowed = torch.unique((rows * num_columns + columns)[columns >= 0])
    rows, columns = disallowed // num_columns, disallowed % num_columns
    affected = torch.zeros(len(history), dtype=torch.bool, device=rows.device).index_fill(0, rows, True)
    disallowed_probability = model_log_probs[rows, columns].exp()
    masked_probability = special_probability.index_add(0, rows, disallowed_probability)
    masked_probability = masked_probability.masked_fill(~affected, 0.0)
    needs_softmax = ~(masked_probability <= MAX_MASKED_PROBABILITY)
    values = model_log_probs - torch.log1p(-masked_probability).masked_fill(needs_softmax, 0.0)[:, None]
    values[rows, columns] = NEG_INF
    softmax_rows = needs_softmax.nonzero().squeeze(1)
    if len(softmax_rows):
        values[softmax_rows] = _renormalise(values[softmax_rows], log_probs.ids)
    return model_log_probs, values


def _mask_special_tokens(log_probs: LogProbs) -> Tensor:
    """Mask `<pad>` and `<s>` in place, and return the probability that they had, (row,)."""
    special = torch.tensor([PAD, BEGIN], device=log_probs.values.device)
    columns = columns_of(log_probs.ids, special)
    columns = columns[columns >= 0]
    probability = log_probs.values[:, columns].exp().sum(dim=1)
    log_probs.values[:, columns] = NEG_INF
    return probability


def _renormalise(values: Tensor, ids: Tensor | None) -> Tensor:
    """Return the log-softmax of rows. In a row without any allowed token, `</s>` gets probability 1."""
    empty = values.amax(dim=-1) == NEG_INF
    if empty.any():
        end = columns_of(ids, torch.tensor([END], device=values.device))
        values[empty.nonzero(), end] = 0.0
    return values.log_softmax(dim=-1)


def _repeating_tokens(history: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return rows and tokens, (n,) each: each token would repeat an n-gram of `size` tokens of its row."""
    if size == 0 or history.shape[1] < size:
        empty = history.new_empty(0)
        return empty, empty
    ngrams = history.unfold(1, size, 1)  # (row, start, size)
    current = history[:, history.shape[1] - size + 1 :]  # (row, size - 1), the n-gram being completed
    same = (ngrams[:, :, :-1] == current[:, None]).all(dim=-1)  # (row, start)
    rows, starts = same.nonzero(as_tuple=True)
    return rows, ngrams[rows, starts, -1]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The forced prefix of each translation. `tokens` is padded with PAD."""

    tokens: Tensor  # (batch, prefix) int64
    lengths: Tensor  # (batch,) int64

    @classmethod
    def from_lists(
        cls, prefixes: Sequence[Sequence[int]] | None, *, num_sentences: int, device: torch.device
    ) -> Self:
        """Check and pad the prefixes; None means no prefix for any sentence."""
        lists = [list(prefix) for prefix in prefixes] if prefixes is not None else [[]] * num_sentences
        _check_prefixes(lists, num_sentences)
        lengths = torch.tensor([len(prefix) for prefix in lists], dtype=torch.int64, device=device)
        longest = max((len(prefix) for prefix in lists), default=0)
        padded = [prefix + [PAD] * (longest - len(prefix)) for prefix in lists]
        tokens = torch.tensor(padded, dtype=torch.int64, device=device).view(num_sentences, longest)
        return cls(tokens, lengths)

    def any_at(self, step: int) -> bool:
        """Whether any prefix has a token at this step, counted from 0."""
        return step < self.tokens.shape[1]

    def at(self, step: int, sentences: Tensor) -> tuple[Tensor, Tensor]:
        """Return the forced token of each sentence, and whether there is one: (sentence,) each.

        `any_at(step)` must be true.
        """
        return self.tokens[sentences, step], step < self.lengths[sentences]

    def just_ended(self, step: int, sentences: Tensor) -> Tensor:
        """Whether this is the first step after a prefix: (sentence,) bool."""
        lengths = self.lengths[sentences]
        return (lengths == step) & (lengths > 0)


def _check_prefixes(prefixes: list[list[int]], num_sentences: int) -> None:
    if len(prefixes) != num_sentences:
        raise DataError(
            f"There must be one prefix per sentence. Received: {len(prefixes)} prefixes for {num_sentences} "
            "sentences. Give an empty prefix for a translation without one."
        )
    for prefix in prefixes:
        if {PAD, BEGIN, END}.intersection(prefix):
            raise DataError(
                f"A prefix must have no special tokens. Received: {prefix}. Leave out <pad> ({PAD}), "
                f"<s> ({BEGIN}) and </s> ({END}): search adds them."
            )
