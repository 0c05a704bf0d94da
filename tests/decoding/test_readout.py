"""Alignments from attention: hand-made maps, and a choice that finds the head that was planted."""

from __future__ import annotations

import time

import numpy
import pytest

from jumok.decoding import AttendedPair, choose_read_out, read_alignment
from jumok.decoding.readout import default_read_out
from jumok.errors import DataError
from jumok.values import Alignment, ReadOut

RNG = numpy.random.default_rng


def links(alignment: Alignment) -> set[tuple[int, int]]:
    return set(alignment.sure)


def hand_made() -> AttendedPair:
    """Two source words of two pieces and one; two target words of one piece and two. One layer, two heads."""
    first = [
        # s0a  s0b  s1   </s>
        [0.3, 0.3, 0.4, 0.0],  # produces t0: word 0 by its sum, though the largest single weight is word 1
        [0.1, 0.0, 0.2, 0.7],  # produces t1a: rests on </s>, which counts for the last word
        [0.3, 0.0, 0.6, 0.1],  # produces t1b
        [0.0, 0.0, 0.0, 1.0],  # produces </s>
    ]
    second = [
        [0.0, 0.0, 0.0, 1.0],  # reads <s>
        [0.0, 0.0, 0.9, 0.1],  # reads t0
        [0.5, 0.4, 0.0, 0.1],  # reads t1a
        [0.5, 0.4, 0.0, 0.1],  # reads t1b
    ]
    weights = numpy.array([[first, second]])
    return AttendedPair(weights, source_words=[0, 0, 1], target_words=[0, 1, 1])


def test_keys_are_added_and_queries_averaged() -> None:
    pair = hand_made()
    assert links(read_alignment(pair, ReadOut(layer=0, head=0))) == {(0, 0), (1, 1)}
    assert links(read_alignment(pair, ReadOut(layer=0, head=1, shift=1))) == {(1, 0), (0, 1)}


def test_the_end_counts_for_the_last_word() -> None:
    assert links(read_alignment(hand_made(), ReadOut(layer=0, head=1))) == {(1, 0), (1, 1)}


def test_no_head_is_the_average_of_the_heads() -> None:
    pair = hand_made()
    average = AttendedPair(
        pair.weights.mean(axis=1, keepdims=True), source_words=[0, 0, 1], target_words=[0, 1, 1]
    )
    for shift in (0, 1):
        expected = read_alignment(average, ReadOut(layer=0, head=0, shift=shift))
        assert read_alignment(pair, ReadOut(layer=0, shift=shift)) == expected


def test_an_empty_side_has_an_empty_alignment() -> None:
    empty = AttendedPair(numpy.ones((1, 1, 3, 1)), source_words=[], target_words=[0, 1])
    assert links(read_alignment(empty, ReadOut(layer=0))) == set()


def planted(
    generator: numpy.random.Generator, read_out: ReadOut, *, gold: bool, layers: int = 3, heads: int = 4
) -> AttendedPair:
    """Random attention, but for one head in which each target piece looks at its own source piece."""
    source, target = (int(n) for n in generator.integers(4, 20, size=2))
    weights = generator.dirichlet(numpy.ones(source + 1), size=(layers, heads, target + 1))
    order = generator.permutation(max(source, target))
    behind = order[:target] % source
    chosen = range(heads) if read_out.head is None else [read_out.head]
    for j in range(target):
        for head in chosen:
            row = weights[read_out.layer, head, j + read_out.shift]
            row *= 0.5
            row[behind[j]] += 0.5 if read_out.head is not None or generator.random() < 0.6 else 0.0
    alignment = Alignment(frozenset((int(behind[j]), j) for j in range(target))) if gold else None
    return AttendedPair(weights, list(range(source)), list(range(target)), alignment)


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize(
    "read_out", [ReadOut(1, 2, 0), ReadOut(2, 0, 1), ReadOut(0, None, 1), ReadOut(2, None, 0)]
)
def test_the_planted_head_is_found(read_out: ReadOut, gold: bool) -> None:
    generator = RNG(7)
    samples = [planted(generator, read_out, gold=gold) for _ in range(40)]
    assert choose_read_out(samples) == read_out


def test_gold_decides_where_there_is_some() -> None:
    generator = RNG(3)
    unmarked = [planted(generator, ReadOut(0, 1, 0), gold=False) for _ in range(40)]
    marked = [planted(generator, ReadOut(2, 3, 1), gold=True) for _ in range(10)]
    assert choose_read_out([*unmarked, *marked]) == ReadOut(2, 3, 1)


def test_the_choice_minimises_the_alignment_error() -> None:
    """Against the definition of the error, worked out link by link."""
    generator = RNG(11)
    samples = []
    for _ in range(12):
        pair = planted(generator, ReadOut(0, 0, 0), gold=True, layers=2, heads=2)
        noise = generator.dirichlet(numpy.ones(pair.weights.shape[-1]), size=pair.weights.shape[:-1])
        sure = frozenset(list(pair.gold.sure)[::2]) if pair.gold else frozenset()
        gold = Alignment(sure, pair.gold.sure if pair.gold else frozenset())
        samples.append(
            AttendedPair(pair.weights * 0.3 + noise * 0.7, pair.source_words, pair.target_words, gold)
        )
    errors = {}
    for layer in range(2):
        for head in (0, 1, None):
            for shift in (0, 1):
                errors[ReadOut(layer, head, shift)] = error_of(samples, ReadOut(layer, head, shift))
    assert errors[choose_read_out(samples)] == pytest.approx(min(errors.values()))


def error_of(samples: list[AttendedPair], read_out: ReadOut) -> float:
    agreed = total = 0
    for pair in samples:
        found, gold = links(read_alignment(pair, read_out)), pair.gold
        assert gold is not None
        agreed += len(found & gold.sure) + len(found & gold.possible)
        total += len(found) + len(gold.sure)
    return 1 - agreed / total


def test_three_hundred_sentences_take_a_moment() -> None:
    generator = RNG(1)
    samples = [planted(generator, ReadOut(3, 2, 1), gold=False, layers=6, heads=8) for _ in range(300)]
    start = time.perf_counter()
    assert choose_read_out(samples) == ReadOut(3, 2, 1)
    assert time.perf_counter() - start < 5


def test_what_cannot_be_read_is_refused() -> None:
    pair = hand_made()
    with pytest.raises(DataError, match="1 layers and 2 heads"):
        read_alignment(pair, ReadOut(layer=1))
    with pytest.raises(DataError, match="1 layers and 2 heads"):
        read_alignment(pair, ReadOut(layer=0, head=2))
    with pytest.raises(DataError, match=r"\(layer, head, 3, 4\), marks included. Received: \(1, 2, 4, 4\)"):
        AttendedPair(pair.weights, source_words=[0, 0, 1], target_words=[0, 1])
    with pytest.raises(DataError, match="0 samples"):
        choose_read_out([])


def test_the_default_is_the_last_layer_but_one() -> None:
    assert [default_read_out(layers).layer for layers in (1, 2, 4)] == [0, 0, 2]
