"""The rules of search are those of CTranslate2: the real one finds the same translations and scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from decoding_steppers import batch_of

from jumok.decoding import SearchPlan, beam, greedy
from jumok.values import BEGIN, Batch, LogProbs

ctranslate2 = pytest.importorskip("ctranslate2")

from ctranslate2_twin import random_transformer, token, twin  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

PIECES = 24
BASE = SearchPlan(beam=4, n_best=4, longest=0.0, extra=12)
PLANS = {
    "plain": BASE,
    "greedy": replace(BASE, beam=1, n_best=1),
    "no length penalty": replace(BASE, length_penalty=0.0, n_best=1),
    "no length penalty, n best": replace(BASE, length_penalty=0.0, n_best=3),
    "weak length penalty": replace(BASE, length_penalty=0.6),
    "wider than the vocabulary": replace(BASE, beam=14, n_best=3),
    "patience": replace(BASE, patience=2.0, n_best=8),
    "impatience": replace(BASE, patience=0.5, n_best=2),
    "at least five": replace(BASE, shortest=5),
    "no bigram twice": replace(BASE, no_repeat=2),
    "no unigram twice": replace(BASE, no_repeat=1, beam=2, n_best=2),
    "coverage": replace(BASE, coverage_penalty=0.3),
    "coverage, no length penalty": replace(BASE, coverage_penalty=0.3, length_penalty=0.0),
    "longer": replace(BASE, extra=40),
}


@dataclass
class Remembered:
    state: Any
    batch: Batch
    pieces: Tensor  # (row, step)


class Attending:
    """A Transformer that tells its attention: the last layer's, averaged over heads, by teacher forcing."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def begin(self, source: Batch) -> Remembered:
        return Remembered(self.model.begin(source), source, torch.empty(len(source), 0, dtype=torch.int64))

    def step(self, state: Remembered, last: Tensor) -> tuple[LogProbs, Remembered]:
        log_probs, inner = self.model.step(state.state, last)
        return log_probs, Remembered(inner, state.batch, torch.cat([state.pieces, last[:, None]], dim=1))

    def reorder(self, state: Remembered, order: Tensor) -> Remembered:
        batch = Batch(state.batch.source[order], state.batch.source_lengths[order])
        return Remembered(self.model.reorder(state.state, order), batch, state.pieces[order])

    def step_with_attention(self, state: Remembered, last: Tensor) -> tuple[LogProbs, Remembered, Tensor]:
        log_probs, state = self.step(state, last)
        target = torch.cat([state.pieces, torch.full((len(last), 1), BEGIN)], dim=1)
        lengths = torch.full((len(last),), target.shape[1])
        batch = Batch(state.batch.source, state.batch.source_lengths, target, lengths)
        return log_probs, state, self.model.attention(batch)["cross"][:, -1, :, -1].mean(dim=1)


def sources(seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (6,), generator=generator).tolist()
    return [torch.randint(4, PIECES, (length,), generator=generator).tolist() for length in lengths]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("with_prefix", [False, True])
@pytest.mark.medium
def test_the_real_engine_agrees(name: str, with_prefix: bool, tmp_path: Path) -> None:
    plan = PLANS[name]
    different = 0
    for seed in range(8):
        model = random_transformer(pieces=PIECES, seed=seed)
        inputs = sources(seed)
        prefixes = [source[: seed % 3 + 1] for source in inputs] if with_prefix else None
        search = greedy if plan.beam == 1 else beam
        with torch.inference_mode():
            ours = search(Attending(model), batch_of(*inputs), plan, prefixes=prefixes)
        theirs = twin(model, tmp_path / str(seed)).translate_batch(
            [[token(piece) for piece in source] for source in inputs],
            [[token(piece) for piece in prefix] for prefix in prefixes] if prefixes else None,
            beam_size=plan.beam,
            num_hypotheses=plan.n_best,
            patience=plan.patience,
            length_penalty=plan.length_penalty,
            coverage_penalty=plan.coverage_penalty,
            no_repeat_ngram_size=plan.no_repeat,
            min_decoding_length=plan.shortest,
            max_decoding_length=plan.extra,
            return_scores=True,
            # In a batch, its coverage counts the first step of another sentence (4.8.4).
            max_batch_size=1 if plan.coverage_penalty else 0,
        )
        for mine, other in zip(ours, theirs, strict=True):
            different += [[token(piece) for piece in h.ids] for h in mine] != other.hypotheses
            assert [h.score for h in mine] == pytest.approx(other.scores, abs=2e-4)
    assert different == 0
