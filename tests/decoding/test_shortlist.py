"""A shortlist: what it says of sources, how it is written down, and what is learnt from alignments."""

from __future__ import annotations

import numpy
import pytest
import torch

from jumok.decoding import Shortlist, Translator, learn_shortlist
from jumok.decoding.shortlist_learning import MOST_BESIDE, _heaviest, _Links
from jumok.errors import DataError, UnsupportedError
from jumok.models import build_model
from jumok.recipe import TextSettings, make_recipe
from jumok.text import Vocabularies, learn_subwords
from jumok.values import END, UNKNOWN, Pair, ReadOut

ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "zero"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "null"]


def make_translator(*, shared: bool = False, attention: str = "bahdanau") -> Translator:
    english, german = (
        learn_subwords([" ".join(words)] * 20, TextSettings(), pieces=300) for words in (ENGLISH, GERMAN)
    )
    both = learn_subwords([" ".join(ENGLISH), " ".join(GERMAN)] * 20, TextSettings(), pieces=320)
    vocabularies = Vocabularies(both, both, True) if shared else Vocabularies(english, german, False)
    torch.manual_seed(1)
    settings = make_recipe({"model": {"family": "recurrent", "width": 16, "attention": attention}}).model
    model = build_model(
        settings,
        source_pieces=vocabularies.source.size,
        target_pieces=vocabularies.target.size,
        shared=shared,
    )
    return Translator(model, vocabularies, read_out=ReadOut(((0, 0),)))  # type: ignore[arg-type]


PAIRS = [Pair(f"{ENGLISH[i]} {ENGLISH[j]}", f"{GERMAN[i]} {GERMAN[j]}") for i in range(10) for j in range(10)]


def test_a_batch_may_say_what_any_of_its_sources_may_and_the_end() -> None:
    few = Shortlist((9, 5), {7: (20, 21), 8: (21, 22)})
    assert few.pieces([]) == [UNKNOWN, END, 5, 9]
    assert few.pieces([[7], [8, 30]]) == [UNKNOWN, END, 5, 9, 20, 21, 22]


def test_it_is_written_down_as_a_vocabulary_map() -> None:
    few = Shortlist((5, 9), {8: (21, 22), 7: (20, 21), 11: ()})
    assert few.to_bytes() == b"\t5 9\n7\t20 21\n8\t21 22\n11\t\n"
    assert Shortlist.from_bytes(few.to_bytes(), make_translator().vocabularies) == few
    nothing = Shortlist((), {})
    assert Shortlist.from_bytes(nothing.to_bytes(), make_translator().vocabularies) == nothing


def test_every_piece_of_the_training_pairs_can_be_said_again() -> None:
    translator = make_translator()
    few = learn_shortlist(translator, PAIRS)
    source, target = translator.vocabularies.source, translator.vocabularies.target
    for pair in PAIRS:
        assert set(target.encode(pair.target)) <= set(few.pieces([source.encode(pair.source)]))
    assert not {0, 1, 2, END} & {*few.always, *few.beside}
    assert learn_shortlist(translator, iter(PAIRS)) == few


def test_where_pieces_are_shared_each_may_be_copied() -> None:
    translator = make_translator(shared=True)
    few = learn_shortlist(translator, PAIRS)
    assert all(piece in few.beside[piece] for piece in range(END + 1, translator.vocabularies.target.size))


def test_the_heaviest_partners_are_kept() -> None:
    links = _Links()
    size = 100
    for target in range(10, 10 + MOST_BESIDE + 5):
        links.add(numpy.array([7 * size + target, 8 * size + 50]), numpy.array([0.5 + target, 1.0]))
    links.add(
        numpy.array([7 * size + 10, 7 * size + END, END * size + 60]), numpy.array([500.0, 900.0, 900.0])
    )
    found = _heaviest(*links.sums(), size)
    assert found == {7: [10, *range(16, 10 + MOST_BESIDE + 5)], 8: [50]}
    assert _heaviest(numpy.array([], dtype=numpy.int64), numpy.array([]), size) == {}


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(DataError, match="no pair to learn a shortlist from"):
        learn_shortlist(make_translator(), [])
    with pytest.raises(DataError, match="no pair to learn a shortlist from"):
        learn_shortlist(make_translator(), [Pair("one " * 300, "eins " * 300)])
    with pytest.raises(UnsupportedError, match="no attention to its source"):
        learn_shortlist(make_translator(attention="none"), PAIRS)
