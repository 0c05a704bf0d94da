"""Search with a real Transformer equals brute force, teacher forcing and greedy search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from jumok.config.recipe import TransformerSettings
from jumok.data.batching import padded_batch
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.models.build import build_model
from support.forced import forced_log_probs
from support.table_steppers import batch_of, brute_force, ordinary_tokens, single_sentence, was_cut

if TYPE_CHECKING:
    from jumok.models.model import TranslationModel

VOCAB_SIZE = 7


def transformer(seed: int, *, norm: str = "pre") -> TranslationModel:
    torch.manual_seed(seed)
    settings = TransformerSettings(
        encoder_layers=2, decoder_layers=2, width=16, feed_forward=32, heads=2, norm=norm
    )
    return build_model(settings, source_vocab_size=12, target_vocab_size=VOCAB_SIZE, shared=False).eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("penalty", [0.6, 1.0])
def test_a_wide_beam_equals_brute_force(norm: str, penalty: float) -> None:
    tokens, max_length = ordinary_tokens(VOCAB_SIZE), 3
    plan = SearchPlan(
        beam=len(tokens) ** max_length + 1,
        n_best=10,
        length_penalty=penalty,
        min_length=0,
        max_length_ratio=0.0,
        extra_tokens=max_length,
    )
    batch = batch_of([4, 11, 6], [5], [9, 9, 4, 7])
    for seed in range(3):
        model = transformer(seed, norm=norm)
        with torch.inference_mode():
            # A large patience factor lets the search go on until it has finished every translation.
            results = beam_search(model, batch, replace(plan, patience_factor=9.0))
            for row, hypotheses in enumerate(results):
                expected = brute_force(model, single_sentence(batch, row), tokens, plan)[:10]
                assert [h.ids for h in hypotheses] == [h.ids for h in expected]
                assert [h.score for h in hypotheses] == pytest.approx([h.score for h in expected], abs=1e-5)


def test_scores_are_those_of_a_teacher_forced_pass() -> None:
    batch = batch_of([4, 11, 6, 8, 10], [5], [9, 9, 4, 7])
    plan = SearchPlan(beam=4, n_best=4, length_penalty=0.8, max_length_ratio=1.0, extra_tokens=6)
    max_lengths = plan.max_lengths(batch).tolist()
    for seed in range(4):
        model = transformer(seed)
        with torch.inference_mode():
            for row, hypotheses in enumerate(beam_search(model, batch, plan)):
                for hypothesis in hypotheses:
                    ended = not was_cut(hypothesis, max_lengths[row])
                    sentence = single_sentence(batch, row)
                    stepwise = forced_log_probs(model, sentence, [hypothesis.ids], score_end=ended).sum()
                    pair = padded_batch([sentence.source[0, :-1].tolist()], [hypothesis.ids])
                    log_probs = model.output.log_probs(model(pair))[0]
                    next_tokens = pair.target[0, 1:] if pair.target is not None else torch.empty(0)
                    teacher_forced = log_probs.gather(1, next_tokens[:, None])[:, 0]
                    teacher_forced = teacher_forced if ended else teacher_forced[:-1]
                    assert float(stepwise) == pytest.approx(hypothesis.log_prob, abs=1e-4)
                    assert float(teacher_forced.sum()) == pytest.approx(hypothesis.log_prob, abs=1e-4)


def test_a_beam_of_one_equals_greedy_search_and_begins_with_the_prefix() -> None:
    batch = batch_of([4, 11, 6, 8, 10], [5], [9, 9, 4, 7])
    plan = SearchPlan(beam=1, max_length_ratio=1.0, extra_tokens=6)
    prefixes = [[4, 5], [], [6]]
    for seed in range(4):
        model = transformer(seed)
        actual = beam_search(model, batch, plan, prefixes=prefixes)
        expected = greedy_search(model, batch, plan, prefixes=prefixes)
        assert [h.ids for [h] in actual] == [h.ids for [h] in expected]
        assert [h.score for [h] in actual] == pytest.approx([h.score for [h] in expected], abs=1e-5)
        assert all(list(h.ids[: len(prefix)]) == prefix for [h], prefix in zip(actual, prefixes, strict=True))
