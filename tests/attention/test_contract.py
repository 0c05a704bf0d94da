"""Every mechanism of the catalogue keeps every promise of the contract."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.attention import CATALOGUE, POSITIONS, MultiHead, ScaledDot, Supports, find_entry, make_attention
from jumok.attention import scaled_dot as scaled_dot_module
from jumok.config.recipe import AttentionSettings
from jumok.errors import RecipeError, UnsupportedError
from support.contract_checks import CASES, CHECKS, WIDTH, Case, Subject

RANDOM_CASES = st.builds(
    Case,
    batch=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 4]),
    queries=st.integers(1, 5),
    keys=st.integers(1, 6) | st.sampled_from([15, 16, 19]),
    density=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    seed=st.integers(0, 2**20),
)


def subject(name: str, dtype: torch.dtype) -> Subject:
    attention_settings = AttentionSettings(kind=name)
    return Subject(lambda **options: make_attention(attention_settings, width=WIDTH, **options), dtype)


def with_positions(positions: str) -> Subject:
    """Scaled dot product with a position encoding that acts inside each head (rotary, ALiBi, relative)."""
    attention_settings = AttentionSettings(kind="scaled-dot")
    return Subject(
        lambda **options: make_attention(attention_settings, width=WIDTH, positions=positions, **options),
        torch.float64,
    )


every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
every_mechanism = pytest.mark.parametrize("name", list(CATALOGUE))
both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
# Only positions that act inside the heads need something of the mechanism.
every_in_head_encoding = pytest.mark.parametrize(
    "positions", [name for name, kind in POSITIONS.items() if kind.needs]
)


@both_precisions
@every_check
@every_mechanism
def test_every_mechanism_keeps_the_contract(name, check, dtype):
    for case in CASES:
        check(subject(name, dtype), case)


@every_check
@every_in_head_encoding
def test_heads_with_positions_keep_the_contract(positions, check):
    for case in CASES:
        check(with_positions(positions), case)


@pytest.mark.slow
@both_precisions
@every_check
@every_mechanism
@settings(max_examples=50)
@given(case=RANDOM_CASES)
def test_every_mechanism_keeps_the_contract_in_random_cases(name, check, dtype, case):
    check(subject(name, dtype), case)


@pytest.mark.slow
@every_check
@every_in_head_encoding
@settings(max_examples=50)
# Rotary positions need heads of even width.
@given(case=RANDOM_CASES.filter(lambda case: WIDTH // case.heads % 2 == 0))
def test_heads_with_positions_keep_the_contract_in_random_cases(positions, check, case):
    check(with_positions(positions), case)


class Limited(ScaledDot):
    supports = Supports(causal=False, bias=False, edit=False, weights=False)


@pytest.mark.parametrize(
    "call",
    [{"bias": torch.zeros(1)}, {"edit": lambda weights, offset: weights}, {"need_weights": True}],
    ids=["bias", "edit", "weights"],
)
def test_an_unsupported_call_raises_an_error_that_names_an_alternative(call):
    attention = MultiHead(width=WIDTH, heads=2, mechanism=Limited())
    states = torch.randn(1, 3, WIDTH)
    with pytest.raises(UnsupportedError, match='"scaled-dot" does'):
        attention(states, attention.prepare(states, states), **call)


def test_causal_is_refused_if_it_is_not_supported():
    with pytest.raises(UnsupportedError, match="causal"):
        Limited(causal=True)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(RecipeError, match='Did you mean "scaled-dot"'):
        find_entry("scaled_dot")
    with pytest.raises(RecipeError, match=r'no positions called "rotery".* Did you mean "rotary"'):
        make_attention(AttentionSettings(), width=WIDTH, heads=2, positions="rotery")


def test_every_entry_has_defaults_a_paper_and_the_supports_of_its_mechanism():
    for entry in CATALOGUE.values():
        assert entry.settings()  # every option has a default
        assert entry.paper
        assert entry.supports is entry.mechanism.supports


def test_the_fused_path_is_taken(monkeypatch):
    """The contract would also hold without the fused kernel; this test fails if nothing calls the kernel."""
    calls = []
    fused = scaled_dot_module.scaled_dot_product_attention
    monkeypatch.setattr(
        scaled_dot_module,
        "scaled_dot_product_attention",
        lambda *tensors, **options: calls.append(1) or fused(*tensors, **options),
    )
    attention = MultiHead(width=WIDTH, heads=2, mechanism=ScaledDot(causal=True))
    attention.attend_self(torch.randn(2, 3, WIDTH))
    assert calls
    attention.attend_self(torch.randn(2, 3, WIDTH), need_weights=True)
    assert len(calls) == 1
