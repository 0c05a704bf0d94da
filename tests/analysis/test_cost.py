"""The cost of an explanation is counted before the explanation is computed, and is limited."""

from __future__ import annotations

import pytest

from jumok.analysis.cost import CostLimits, count_weights
from jumok.analysis.explainer import explain
from jumok.config.recipe import AttentionSettings, RecurrentSettings
from jumok.errors import DataError
from support.random_translators import SENTENCE, SMALL_MODELS, TARGET, make_translator, small_translator


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_the_counted_weights_equal_the_weights_of_the_maps(name: str) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET)
    lengths = len(explanation.source.ids), len(explanation.target.ids)
    expected = sum(attention.weights.size for attention in explanation.attention.values())
    assert count_weights(translator.model, *lengths) == expected


def test_a_model_without_attention_has_no_weights() -> None:
    translator = make_translator(
        RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="none"))
    )
    assert count_weights(translator.model, 100, 100) == 0
    assert not explain(translator, SENTENCE, limits=CostLimits(max_weights=0)).attention


@pytest.mark.parametrize(
    ("limits", "target", "message"),
    [
        (CostLimits(max_weights=100), TARGET, r"attention weights; at most 100 are allowed. It has 8 source"),
        (CostLimits(max_weights=100), None, r"attention weights; at most 100 are allowed"),
        (CostLimits(max_log_probs=1000), TARGET, r"log-probabilities; at most 1,000"),
        # One pass has fewer than 1,500 weights. The passes for all hypotheses of a search have more.
        (CostLimits(max_total_weights=1500), None, r"in all passes together; at most 1,500 .* passes"),
    ],
)
def test_an_explanation_that_exceeds_a_limit_is_refused(
    limits: CostLimits, target: str | None, message: str
) -> None:
    translator = small_translator("transformer")
    assert explain(translator, SENTENCE, target=target, limits=CostLimits()).text
    with pytest.raises(DataError, match=message):
        explain(translator, SENTENCE, target=target, limits=limits)


def test_effects_of_heads_are_refused_if_they_need_too_many_passes() -> None:
    limits = CostLimits(max_total_weights=10_000)  # enough for the explanation, not for its effects
    explanation = explain(small_translator("transformer"), SENTENCE, target=TARGET, limits=limits)
    with pytest.raises(DataError, match="It needs 21 passes"):  # one per head (12), layer (6) and site (3)
        explanation.effects()
