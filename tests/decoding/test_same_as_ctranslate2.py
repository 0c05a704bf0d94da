"""The rules of search are those of CTranslate2: the real one finds the same translations and scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from decoding_steppers import batch_of

from jumok.decoding import SearchPlan, beam, greedy

ctranslate2 = pytest.importorskip("ctranslate2")

from ctranslate2_twin import random_transformer, token, twin  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

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
            ours = search(model, batch_of(*inputs), plan, prefixes=prefixes)
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
