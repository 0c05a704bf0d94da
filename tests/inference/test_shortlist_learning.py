"""A shortlist: its tokens for a batch, its file format, and how it is learnt from alignments."""

from __future__ import annotations

import numpy
import pytest
import torch

from jumok.config.recipe import TextSettings, make_recipe
from jumok.errors import DataError, UnsupportedError
from jumok.inference.shortlist import Shortlist
from jumok.inference.shortlist_learning import (
    MAX_PER_SOURCE_TOKEN,
    _LinkSums,
    _strongest_targets,
    learn_shortlist,
)
from jumok.inference.translator import Translator
from jumok.models.build import build_model
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer
from jumok.types import BEGIN, END, PAD, UNKNOWN, Pair, ReadOut

ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "zero"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "null"]


def make_translator(*, shared: bool = False, attention: str = "bahdanau") -> Translator:
    english, german = (
        train_tokenizer([" ".join(words)] * 20, TextSettings(), vocab_size=300) for words in (ENGLISH, GERMAN)
    )
    joint = train_tokenizer([" ".join(ENGLISH), " ".join(GERMAN)] * 20, TextSettings(), vocab_size=320)
    tokenizers = TokenizerPair(joint, joint, True) if shared else TokenizerPair(english, german, False)
    torch.manual_seed(1)
    settings = make_recipe({"model": {"family": "recurrent", "width": 16, "attention": attention}}).model
    model = build_model(
        settings,
        source_vocab_size=tokenizers.source.vocab_size,
        target_vocab_size=tokenizers.target.vocab_size,
        shared=shared,
    )
    return Translator(model, tokenizers, read_out=ReadOut(((0, 0),)))  # type: ignore[arg-type]


PAIRS = [Pair(f"{ENGLISH[i]} {ENGLISH[j]}", f"{GERMAN[i]} {GERMAN[j]}") for i in range(10) for j in range(10)]


def test_unk_and_end_and_the_tokens_for_all_and_for_the_given_sources_are_allowed() -> None:
    shortlist = Shortlist((9, 5), {7: (20, 21), 8: (21, 22)})
    assert shortlist.tokens([]) == [UNKNOWN, END, 5, 9]
    assert shortlist.tokens([[7], [8, 30]]) == [UNKNOWN, END, 5, 9, 20, 21, 22]


def test_the_file_has_the_format_of_a_vocabulary_map_of_ctranslate2() -> None:
    shortlist = Shortlist((5, 9), {8: (21, 22), 7: (20, 21), 11: ()})
    assert shortlist.to_bytes() == b"\t5 9\n7\t20 21\n8\t21 22\n11\t\n"
    assert Shortlist.from_bytes(shortlist.to_bytes(), make_translator().tokenizers) == shortlist
    empty = Shortlist((), {})
    assert Shortlist.from_bytes(empty.to_bytes(), make_translator().tokenizers) == empty


def test_every_token_of_the_training_pairs_is_allowed() -> None:
    translator = make_translator()
    shortlist = learn_shortlist(translator, PAIRS)
    source, target = translator.tokenizers.source, translator.tokenizers.target
    for pair in PAIRS:
        assert set(target.encode(pair.target)) <= set(shortlist.tokens([source.encode(pair.source)]))
    assert not {PAD, UNKNOWN, BEGIN, END} & {*shortlist.always, *shortlist.by_source}
    assert learn_shortlist(translator, iter(PAIRS)) == shortlist


def test_a_special_space_in_a_source_changes_no_link() -> None:
    """The model reads an ordinary space instead, and so does a translation with the shortlist."""
    translator = make_translator()
    ordinary, special = (
        learn_shortlist(translator, [Pair(f"one{space}two", "eins zwei")]) for space in (" ", "\u00a0")
    )
    assert special == ordinary


def test_with_a_shared_vocabulary_every_token_may_be_copied() -> None:
    translator = make_translator(shared=True)
    shortlist = learn_shortlist(translator, PAIRS)
    assert all(
        token in shortlist.by_source[token]
        for token in range(END + 1, translator.tokenizers.target.vocab_size)
    )


def test_the_strongest_links_are_chosen() -> None:
    vocab_size = 100

    def link(source: int, target: int) -> int:
        return source * vocab_size + target

    links = _LinkSums()
    stop = 10 + MAX_PER_SOURCE_TOKEN + 5
    for target in range(10, stop):  # five too many for source token 7; larger ids have larger weights
        links.add(numpy.array([link(7, target), link(8, 50)]), numpy.array([0.5 + target, 1.0]))
    # Token 10 becomes the strongest, so the weakest five are 11 to 15. Links of </s> are ignored.
    links.add(numpy.array([link(7, 10), link(7, END), link(END, 60)]), numpy.array([500.0, 900.0, 900.0]))
    targets = _strongest_targets(*links.sums(), vocab_size)
    assert targets == {7: [10, *range(16, stop)], 8: [50]}
    assert _strongest_targets(numpy.array([], dtype=numpy.int64), numpy.array([]), vocab_size) == {}


def test_learning_without_pairs_or_attention_is_refused() -> None:
    with pytest.raises(DataError, match="no pair to learn a shortlist from"):
        learn_shortlist(make_translator(), [])
    with pytest.raises(DataError, match="no pair to learn a shortlist from"):
        learn_shortlist(make_translator(), [Pair("one " * 300, "eins " * 300)])
    with pytest.raises(UnsupportedError, match="no cross-attention"):
        learn_shortlist(make_translator(attention="none"), PAIRS)
