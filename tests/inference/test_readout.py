"""Alignments are read from hand-made attention, and planted heads are found in random attention.

A planted head attends to the aligned source tokens: see `planted_pair`.
"""

from __future__ import annotations

import itertools
import time

import numpy
import pytest

from jumok.errors import DataError
from jumok.inference.alignment.readout import (
    MIN_GAIN_PER_HEAD,
    AttendedPair,
    choose_read_out,
    default_read_out,
    read_alignment,
)
from jumok.types import Alignment, ReadOut


def links(alignment: Alignment) -> set[tuple[int, int]]:
    return set(alignment.sure)


def hand_made_pair() -> AttendedPair:
    """Return attention of one layer and two heads.

    The two source words have two tokens and one token. The two target words have one token and two tokens.
    """
    first = [
        # s0a  s0b  s1   </s>
        [0.3, 0.3, 0.4, 0.0],  # produces t0: word 0 has the larger sum, word 1 the larger single weight
        [0.1, 0.0, 0.2, 0.7],  # produces t1a: attends to </s>, whose weight is added to the last word
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


def one_head(layer: int, head: int, shift: int = 0) -> ReadOut:
    return ReadOut(((layer, head),), shift)


def test_weights_are_summed_over_the_keys_of_a_word_and_averaged_over_its_queries() -> None:
    pair = hand_made_pair()
    assert links(read_alignment(pair, one_head(0, 0))) == {(0, 0), (1, 1)}
    assert links(read_alignment(pair, one_head(0, 1, 1))) == {(1, 0), (0, 1)}


def test_the_weight_of_the_end_token_is_added_to_the_last_word() -> None:
    assert links(read_alignment(hand_made_pair(), one_head(0, 1))) == {(1, 0), (1, 1)}


def test_several_heads_are_averaged() -> None:
    pair = hand_made_pair()
    average = AttendedPair(
        pair.weights.mean(axis=1, keepdims=True), source_words=[0, 0, 1], target_words=[0, 1, 1]
    )
    for shift in (0, 1):
        expected = read_alignment(average, one_head(0, 0, shift))
        assert read_alignment(pair, ReadOut(((0, 0), (0, 1)), shift)) == expected


def test_an_empty_sentence_has_an_empty_alignment() -> None:
    empty = AttendedPair(numpy.ones((1, 1, 3, 1)), source_words=[], target_words=[0, 1])
    assert links(read_alignment(empty, one_head(0, 0))) == set()


def planted_pair(
    generator: numpy.random.Generator, read_out: ReadOut, *, gold: bool, layers: int = 3, heads: int = 4
) -> AttendedPair:
    """Return random attention in which the heads of the read-out attend to the aligned source tokens.

    If the read-out has one head, this head attends to the aligned token at every position. If it has several
    heads, each head attends to the aligned token at 60% of the positions.
    """
    source, target = (int(n) for n in generator.integers(4, 20, size=2))
    weights = generator.dirichlet(numpy.ones(source + 1), size=(layers, heads, target + 1))
    order = generator.permutation(max(source, target))
    aligned = order[:target] % source
    is_single = len(read_out.heads) == 1
    for j in range(target):
        for layer, head in read_out.heads:
            row = weights[layer, head, j + read_out.shift]
            row *= 0.5
            row[aligned[j]] += 0.5 if is_single or generator.random() < 0.6 else 0.0
    alignment = Alignment(frozenset((int(aligned[j]), j) for j in range(target))) if gold else None
    return AttendedPair(weights, list(range(source)), list(range(target)), alignment)


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("read_out", [one_head(1, 2, 0), one_head(2, 0, 1)])
def test_the_planted_head_is_found(read_out: ReadOut, gold: bool) -> None:
    generator = numpy.random.default_rng(7)
    samples = [planted_pair(generator, read_out, gold=gold) for _ in range(40)]
    assert choose_read_out(samples) == read_out


@pytest.mark.parametrize(
    "read_out",
    [ReadOut(((0, 0), (0, 1), (0, 2), (0, 3)), 1), ReadOut(((0, 1), (2, 0), (2, 3)), 0)],
    ids=["a layer", "heads of two layers"],
)
def test_heads_that_improve_each_other_are_combined(read_out: ReadOut) -> None:
    generator = numpy.random.default_rng(7)
    samples = [planted_pair(generator, read_out, gold=True) for _ in range(60)]
    chosen = choose_read_out(samples)
    assert set(chosen.heads) == set(read_out.heads)
    assert chosen.shift == read_out.shift
    best_single_error = min(error_of(samples, one_head(*head, chosen.shift)) for head in chosen.heads)
    assert error_of(samples, chosen) < best_single_error - 0.1


def test_if_some_samples_have_gold_alignments_the_others_are_not_used() -> None:
    generator = numpy.random.default_rng(3)
    without_gold = [planted_pair(generator, one_head(0, 1), gold=False) for _ in range(40)]
    with_gold = [planted_pair(generator, one_head(2, 3, 1), gold=True) for _ in range(10)]
    assert choose_read_out([*without_gold, *with_gold]) == one_head(2, 3, 1)


def test_links_are_also_chosen_per_source_word_if_gold_alignments_show_that_this_helps() -> None:
    # Source word 1 is not the best choice of any target word. Its largest weight is 0.35, at target word 0.
    weights = numpy.array([[[[0.5, 0.35, 0.05, 0.1], [0.0, 0.1, 0.8, 0.1], [0.1, 0.1, 0.1, 0.7]]]])
    two_to_one = Alignment(frozenset({(0, 0), (1, 0), (2, 1)}))
    pair = AttendedPair(weights, [0, 1, 2], [0, 1], two_to_one)
    assert links(read_alignment(pair, one_head(0, 0))) == {(0, 0), (2, 1)}
    assert links(read_alignment(pair, ReadOut(((0, 0),), 0, min_source_weight=0.3))) == set(two_to_one.sure)
    assert links(read_alignment(pair, ReadOut(((0, 0),), 0, min_source_weight=0.4))) == {(0, 0), (2, 1)}
    chosen = choose_read_out([pair])
    assert links(read_alignment(pair, chosen)) == set(two_to_one.sure)
    assert chosen.min_source_weight is not None
    one_to_one = AttendedPair(weights, [0, 1, 2], [0, 1], Alignment(frozenset({(0, 0), (2, 1)})))
    assert choose_read_out([one_to_one]).min_source_weight is None
    assert choose_read_out([AttendedPair(weights, [0, 1, 2], [0, 1])]).min_source_weight is None


def test_the_choice_has_nearly_the_lowest_alignment_error() -> None:
    """The error is computed by its definition, link by link."""
    generator = numpy.random.default_rng(11)
    samples = []
    for _ in range(12):
        pair = planted_pair(generator, one_head(0, 0), gold=True, layers=2, heads=2)
        noise = generator.dirichlet(numpy.ones(pair.weights.shape[-1]), size=pair.weights.shape[:-1])
        # Every second gold link is sure. The other gold links are only possible.
        sure = frozenset(list(pair.gold.sure)[::2]) if pair.gold else frozenset()
        gold = Alignment(sure, pair.gold.sure if pair.gold else frozenset())
        samples.append(
            AttendedPair(pair.weights * 0.3 + noise * 0.7, pair.source_words, pair.target_words, gold)
        )
    all_heads = [(layer, head) for layer in range(2) for head in range(2)]
    all_read_outs = [
        ReadOut(heads, shift)
        for count in range(1, 5)
        for heads in itertools.combinations(all_heads, count)
        for shift in (0, 1)
    ]
    lowest = min(error_of(samples, read_out) for read_out in all_read_outs)
    assert error_of(samples, choose_read_out(samples)) <= lowest + MIN_GAIN_PER_HEAD


def error_of(samples: list[AttendedPair], read_out: ReadOut) -> float:
    """Return the alignment error (AER) of a read-out on samples with gold alignments."""
    agreed = total = 0
    for pair in samples:
        read_links, gold = links(read_alignment(pair, read_out)), pair.gold
        assert gold is not None
        agreed += len(read_links & gold.sure) + len(read_links & gold.possible)
        total += len(read_links) + len(gold.sure)
    return 1 - agreed / total


def test_three_hundred_sentences_take_less_than_five_seconds_of_the_processor() -> None:
    generator = numpy.random.default_rng(1)
    samples = [planted_pair(generator, one_head(3, 2, 1), gold=False, layers=6, heads=8) for _ in range(300)]
    start = time.process_time()
    assert choose_read_out(samples) == one_head(3, 2, 1)
    assert time.process_time() - start < 5


def test_invalid_read_outs_and_shapes_are_refused() -> None:
    pair = hand_made_pair()
    with pytest.raises(DataError, match="1 layers and 2 heads"):
        read_alignment(pair, one_head(1, 0))
    with pytest.raises(DataError, match="1 layers and 2 heads"):
        read_alignment(pair, one_head(0, 2))
    with pytest.raises(DataError, match=r"\(layer, head, 3, 4\), with `</s>`. Received: \(1, 2, 4, 4\)"):
        AttendedPair(pair.weights, source_words=[0, 0, 1], target_words=[0, 1])
    with pytest.raises(DataError, match="0 samples"):
        choose_read_out([])


def test_the_default_read_out_is_the_second_to_last_layer() -> None:
    assert [default_read_out(layers, 1).heads for layers in (1, 2, 4)] == [((0, 0),), ((0, 0),), ((2, 0),)]
