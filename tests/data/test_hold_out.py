"""The hold-out has as many pairs as requested, at most a tenth, and no source is also in training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.hold_out import HoldOut, choose_hold_out, sentence_key
from jumok.types import Pair


@given(st.lists(st.integers(0, 60), max_size=200), st.integers(0, 30))
def test_at_most_the_requested_pairs_and_a_tenth_are_held_out_and_no_source_is_in_both_sets(
    sources: list[int], count: int
) -> None:
    pairs = [
        Pair(f"Sentence {source}!" if i % 2 else f"sentence  {source}", str(i))
        for i, source in enumerate(sources)
    ]
    hold_out = choose_hold_out(pairs, count=count)
    held_out = [pair for pair in pairs if pair in hold_out]
    trained_on = [pair for pair in pairs if pair not in hold_out]
    assert len(held_out) <= min(count, len(pairs) // 10)
    held_out_keys = {sentence_key(pair.source) for pair in held_out}
    assert not {sentence_key(pair.source) for pair in trained_on} & held_out_keys


def test_exactly_the_requested_number_of_distinct_sources_is_held_out() -> None:
    pairs = [Pair(f"Sentence {n}.", "x") for n in range(5000)]
    few, many = choose_hold_out(pairs, count=137), choose_hold_out(pairs, count=1000)
    assert sum(pair in few for pair in pairs) == 137
    assert sum(pair in many for pair in pairs) == 500  # a tenth of all pairs


def test_the_hold_out_ignores_the_order_and_changes_little_if_pairs_are_added() -> None:
    pairs = [Pair(f"Sentence {n}.", "x") for n in range(3000)]
    hold_out = choose_hold_out(pairs, count=100)
    assert choose_hold_out(pairs[::-1], count=100) == hold_out
    with_added_pairs = choose_hold_out([*pairs, *(Pair(f"New {n}.", "y") for n in range(300))], count=100)
    assert sum(pair in with_added_pairs for pair in pairs if pair in hold_out) > 80


def test_the_hold_out_does_not_depend_on_the_process() -> None:
    """The expected threshold was recorded once. A resumed run must hold out the same pairs."""
    assert choose_hold_out([Pair(f"Sentence {n}.", "x") for n in range(100)], count=5) == HoldOut(
        2127704574415660406
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, world!", "hello world"),
        ("  Two   spaces ", "two spaces"),
        ("«Où ?»", "où"),
        ("e\u0301te\u0301", "ÉTÉ"),
        ("안녕, 세계。", "안녕 세계"),
        ("Straße", "STRASSE"),
    ],
)
def test_copies_of_a_sentence_have_the_same_key(one: str, other: str) -> None:
    assert sentence_key(one) == sentence_key(other)


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_path_for_ascii_gives_the_same_key(text: str) -> None:
    """With an é at the end, `sentence_key` does not take the fast path."""
    assert sentence_key(f"{text} é") == f"{sentence_key(text)} é".strip()


@pytest.mark.parametrize(("one", "other"), [("a b", "ab"), ("कि", "की"), ("1.5", "2.5"), ("가", "나")])
def test_different_sentences_have_different_keys(one: str, other: str) -> None:
    assert sentence_key(one) != sentence_key(other)
