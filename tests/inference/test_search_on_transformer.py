"""Search over the real Transformer: brute force, forced scores, and the cache of every hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from decoding_steppers import batch_of, brute_force, one_of, ordinary_pieces, was_cut

from jumok.corpus.batches import padded_batch
from jumok.decoding import SearchPlan, beam, force, greedy
from jumok.models import build_model
from jumok.recipe import TransformerSettings

if TYPE_CHECKING:
    from jumok.models import TranslationModel

PIECES = 7


def transformer(seed: int, *, norm: str = "pre") -> TranslationModel:
    torch.manual_seed(seed)
    settings = TransformerSettings(
        encoder_layers=2, decoder_layers=2, width=16, feed_forward=32, heads=2, norm=norm
    )
    return build_model(settings, source_pieces=12, target_pieces=PIECES, shared=False).eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("penalty", [0.6, 1.0])
def test_a_wide_beam_is_brute_force(norm: str, penalty: float) -> None:
    pieces, limit = ordinary_pieces(PIECES), 3
    plan = SearchPlan(
        beam=len(pieces) ** limit + 1, n_best=10, length_penalty=penalty, shortest=0, longest=0.0, extra=limit
    )
    batch = batch_of([4, 11, 6], [5], [9, 9, 4, 7])
    for seed in range(3):
        model = transformer(seed, norm=norm)
        with torch.inference_mode():
            found = beam(model, batch, replace(plan, patience=9.0))
            for row, hypotheses in enumerate(found):
                expected = brute_force(model, one_of(batch, row), pieces, plan)[:10]
                assert [h.ids for h in hypotheses] == [h.ids for h in expected]
                assert [h.score for h in hypotheses] == pytest.approx([h.score for h in expected], abs=1e-5)


def test_scores_are_those_of_a_teacher_forced_pass() -> None:
    batch = batch_of([4, 11, 6, 8, 10], [5], [9, 9, 4, 7])
    plan = SearchPlan(beam=4, n_best=4, length_penalty=0.8, longest=1.0, extra=6)
    limits = plan.limits(batch).tolist()
    for seed in range(4):
        model = transformer(seed)
        with torch.inference_mode():
            for row, hypotheses in enumerate(beam(model, batch, plan)):
                for hypothesis in hypotheses:
                    ended = not was_cut(hypothesis, limits[row])
                    sentence = one_of(batch, row)
                    stepped = force(model, sentence, [hypothesis.ids], ended=ended).sum()
                    whole = padded_batch([sentence.source[0, :-1].tolist()], [hypothesis.ids])
                    log_probs = model.output.log_probs(model(whole))[0]
                    following = whole.target[0, 1:] if whole.target is not None else torch.empty(0)
                    taught = log_probs.gather(1, following[:, None])[:, 0]
                    taught = taught if ended else taught[:-1]
                    assert float(stepped) == pytest.approx(hypothesis.log_prob, abs=1e-4)
                    assert float(taught.sum()) == pytest.approx(hypothesis.log_prob, abs=1e-4)


def test_beam_one_is_greedy_and_prefixes_hold() -> None:
    batch = batch_of([4, 11, 6, 8, 10], [5], [9, 9, 4, 7])
    plan = SearchPlan(beam=1, longest=1.0, extra=6)
    prefixes = [[4, 5], [], [6]]
    for seed in range(4):
        model = transformer(seed)
        one = beam(model, batch, plan, prefixes=prefixes)
        other = greedy(model, batch, plan, prefixes=prefixes)
        assert [h.ids for [h] in one] == [h.ids for [h] in other]
        assert [h.score for [h] in one] == pytest.approx([h.score for [h] in other], abs=1e-5)
        assert all(list(h.ids[: len(prefix)]) == prefix for [h], prefix in zip(one, prefixes, strict=True))
