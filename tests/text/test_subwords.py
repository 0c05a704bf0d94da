"""Pieces there and back, drawn cuts, and the words that pieces belong to."""

from __future__ import annotations

import contextlib
import pickle
import random
from collections import Counter
from typing import TYPE_CHECKING

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError, ModelFolderError
from jumok.text import NO_WORD, Subwords, load_subwords, normalise, split_words
from jumok.text.cutting import NBest
from jumok.values import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path

ODD = [
    "",
    " ",
    "   ",
    " leading",
    "trailing ",
    "  two  spaces  ",
    "▁",
    "▁home ▁▁ \ufdd0\ufdd1\ufdd1\ufdd0",
    "<s>",
    "</s> <unk> <pad>",
    "<0x41><0xE2>",
    "<polite>",
    " <polite> <polite><polite>x<polite>",
    "tab\there\r\x00\x1b\x85",
    "new\nline\u2028",
    "\ufeff\u200b\u00ad\u202e",
    "⁇ ▅ \ufffd \uffff \U0010ffff \ue000",
    "half \ud83d pair",
    "👩🏽‍🚀 e\u0301 \u1100\u1161",
    "x" * 3000,
]

MIXED = st.text(st.sampled_from("▁ <>/su0x41polite가집.,\t\ufdd0\ufdd1é漢") | st.characters(), max_size=40)


@pytest.mark.parametrize("text", ODD)
def test_odd_text_survives(subwords: Subwords, text: str) -> None:
    assert subwords.decode(subwords.encode(text)) == normalise(text)
    assert subwords.encode_batch([text, "x"]) == [subwords.encode(text), subwords.encode("x")]


@given(MIXED)
@settings(deadline=None)
def test_any_text_survives(subwords: Subwords, text: str) -> None:
    assert subwords.decode(subwords.encode(text)) == normalise(text)


@given(MIXED, st.floats(0, 1), st.integers(0, 100))
@settings(deadline=None)
def test_any_drawn_cut_spells_the_text(subwords: Subwords, text: str, strength: float, seed: int) -> None:
    ids = subwords.sample(text, strength, numpy.random.default_rng(seed))
    assert ids == subwords.sample(text, strength, numpy.random.default_rng(seed))
    assert subwords.decode(ids) == normalise(text)


@given(st.binary(max_size=12), st.booleans())
@settings(deadline=None)
def test_any_ids_decode(unigram: Subwords, data: bytes, marks: bool) -> None:
    ids = [unigram.size * byte // 256 for byte in data] + [END] * marks
    text = unigram.decode(ids)
    text.encode()
    words = unigram.word_of_piece(text, ids)
    assert len(words) == len(ids)
    assert all(word == NO_WORD or 0 <= word < len(split_words(text)) for word in words)


def test_bytes_that_form_no_character(unigram: Subwords) -> None:
    first_of_three = unigram.encode("ऄ")[-3]
    assert unigram.decode([first_of_three]) == "\ufffd"


def test_marks_have_the_first_ids_and_are_silent(subwords: Subwords) -> None:
    assert subwords.pieces([PAD, UNKNOWN, BEGIN, END]) == ["<pad>", "<unk>", "<s>", "</s>"]
    ids = subwords.encode("I go home.")
    assert subwords.decode([BEGIN, *ids, END, PAD, PAD]) == "I go home."


def test_a_frequent_tag_is_one_piece(subwords: Subwords) -> None:
    assert subwords.pieces(subwords.encode("<polite> I go"))[0] == "▁<polite>"


def test_a_number_is_cut_into_digits(subwords: Subwords) -> None:
    assert subwords.pieces(subwords.encode("17 books"))[-3:] == ["1", "7", "▁books"]


def test_an_id_of_another_vocabulary_is_refused(subwords: Subwords) -> None:
    for wrong in (-1, subwords.size):
        with pytest.raises(DataError, match=rf"no piece {wrong}.*0 to {subwords.size - 1}"):
            subwords.decode([5, wrong])
        with pytest.raises(DataError):
            subwords.pieces([wrong])


class TestSample:
    def test_strength_zero_is_the_best_cut(self, subwords: Subwords) -> None:
        text = "The teacher read 17 books today."
        assert subwords.sample(text, 0, numpy.random.default_rng(1)) == subwords.encode(text)

    def test_a_vanishing_strength_is_the_best_cut(self, bpe: Subwords, sentences: list[str]) -> None:
        # Our own merging must agree with SentencePiece's where nothing is dropped.
        for text in sentences:
            assert bpe.sample(text, 1e-12, numpy.random.default_rng(1)) == bpe.encode(text)

    def test_full_dropout_leaves_characters(self, bpe: Subwords) -> None:
        ids = bpe.sample("books today", 1, numpy.random.default_rng(1))
        assert bpe.pieces(ids) == list("▁books▁today")

    def test_strength_is_the_share_of_words_cut_otherwise(self, unigram: Subwords) -> None:
        generator = numpy.random.default_rng(1)
        best = unigram.encode("understand")
        changed = [unigram.sample("understand", 0.3, generator) != best for _ in range(2000)]
        assert numpy.mean(changed) == pytest.approx(0.3, abs=0.03)

    def test_likely_cuts_come_more_often(self) -> None:
        cuts = [[4], [5, 6], [7, 8], [5, 9, 8]]
        scores = [0.0, 0, 0, 0, -1, -2, -3, -4, -6, -9]
        cutter = NBest(lambda text, count: cuts[:count], scores)
        generator = numpy.random.default_rng(1)
        drawn = Counter(tuple(cutter.cut("text", [4], 1.0, generator)) for _ in range(20_000))
        expected = numpy.exp(0.2 * numpy.array([-5, -10, -17]))
        for cut, share in zip(cuts[1:], expected / expected.sum(), strict=True):
            assert drawn[tuple(cut)] / 20_000 == pytest.approx(share, abs=0.01)

    def test_a_word_with_one_cut_keeps_it(self, subwords: Subwords) -> None:
        assert subwords.sample("ж", 1.0, numpy.random.default_rng(1))[1:] == subwords.encode("ж")[1:]

    def test_a_text_without_spaces_varies_too(self, subwords: Subwords) -> None:
        generator = numpy.random.default_rng(1)
        text = "understandingovertaking" * 10
        assert len({tuple(subwords.sample(text, 0.5, generator)) for _ in range(10)}) == 10


class TestWordOfPiece:
    def check(self, subwords: Subwords, text: str, expected: dict[str, int]) -> None:
        """`expected` gives the word of each piece that is listed."""
        ids = subwords.encode(text)
        found = dict(zip(subwords.pieces(ids), subwords.word_of_piece(text, ids), strict=True))
        assert {piece: found[piece] for piece in expected} == expected

    def test_words_and_punctuation(self, subwords: Subwords) -> None:
        self.check(subwords, "<polite> I go home.", {"▁<polite>": 0, "▁I": 1, ".": 4})

    @pytest.mark.parametrize(
        "text", ["  The  teacher ", "나는 집에 가요!", "understand, 친구가 1999?", "▁ ▁x"]
    )
    def test_every_word_is_reached_in_order(self, subwords: Subwords, text: str) -> None:
        words = subwords.word_of_piece(text, subwords.encode(text))
        assert words == sorted(words)
        assert set(words) == set(range(len(split_words(text))))

    def test_all_bytes_of_a_character(self, subwords: Subwords) -> None:
        ids = subwords.encode("ж ऄ")
        assert subwords.pieces(ids)[1:3] == ["<0xD0>", "<0xB6>"]
        assert subwords.word_of_piece("ж ऄ", ids) == [0, 0, 0, 1, 1, 1, 1]

    def test_marks_have_no_word(self, subwords: Subwords) -> None:
        ids = subwords.encode("I go")
        assert subwords.word_of_piece("I go", [BEGIN, *ids, END, PAD])[0] == NO_WORD
        assert subwords.word_of_piece("I go", [BEGIN, *ids, END, PAD])[-2:] == [NO_WORD] * 2

    def test_whitespace_alone_has_no_word(self, subwords: Subwords) -> None:
        assert subwords.word_of_piece("  ", subwords.encode("  ")) == [NO_WORD] * 3

    def test_any_cut_of_the_text(self, subwords: Subwords) -> None:
        text = "I understand nothing."
        ids = subwords.sample(text, 0.9, numpy.random.default_rng(3))
        for piece, word in zip(subwords.pieces(ids), subwords.word_of_piece(text, ids), strict=True):
            assert piece.strip("▁") in split_words(text)[word]

    def test_text_in_another_normal_form(self, subwords: Subwords) -> None:
        text = "e\u0301te\u0301 x"
        assert subwords.word_of_piece(text, subwords.encode(text))[-1] == 1

    def test_unknown_characters(self, without_bytes: Subwords) -> None:
        text = "I жжжж take something"
        ids = without_bytes.encode(text)
        assert UNKNOWN in ids
        words = dict(zip(without_bytes.pieces(ids), without_bytes.word_of_piece(text, ids), strict=True))
        assert words["<unk>"] == 1
        assert words["▁take"] == 2

    @given(MIXED)
    @example("\u0345\u0344")
    @settings(deadline=None)
    def test_any_text(self, subwords: Subwords, text: str) -> None:
        words = subwords.word_of_piece(text, subwords.encode(text))
        count = len(split_words(text))
        assert all(0 <= word < count for word in words) if count else set(words) <= {NO_WORD}
        assert words == sorted(words)


class TestStorage:
    def test_bytes_there_and_back(self, subwords: Subwords) -> None:
        again = Subwords.from_bytes(subwords.to_bytes())
        assert again == subwords
        assert hash(again) == hash(subwords)
        assert again.fingerprint == subwords.fingerprint
        assert len(again.fingerprint) == 64
        assert again.encode("I go home.") == subwords.encode("I go home.")

    def test_pickled_for_worker_processes(self, subwords: Subwords) -> None:
        assert pickle.loads(pickle.dumps(subwords)) == subwords

    def test_file(self, subwords: Subwords, tmp_path: Path) -> None:
        path = tmp_path / "pieces.model"
        path.write_bytes(subwords.to_bytes())
        assert load_subwords(path) == subwords

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFolderError, match=r"pieces\.model.*No such file"):
            load_subwords(tmp_path / "pieces.model")

    @pytest.mark.parametrize("data", [b"", b"not a model", bytes(1000)])
    def test_a_foreign_file_is_named(self, data: bytes, tmp_path: Path) -> None:
        path = tmp_path / "pieces.model"
        path.write_bytes(data)
        with pytest.raises(ModelFolderError, match=r"pieces\.model: these are not pieces that jumok wrote"):
            load_subwords(path)

    def test_pieces_with_other_marks_are_refused(self, subwords: Subwords) -> None:
        with pytest.raises(ModelFolderError, match="the first four are <qad> <unk> <s> </s>"):
            Subwords.from_bytes(subwords.to_bytes().replace(b"<pad>", b"<qad>"))

    def test_damaged_bytes_never_crash(self, subwords: Subwords) -> None:
        generator = random.Random(1)
        for _ in range(200):
            data = bytearray(subwords.to_bytes())
            for _ in range(generator.randrange(1, 4)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            if generator.random() < 0.3:
                del data[generator.randrange(len(data)) :]
            with contextlib.suppress(ModelFolderError):
                Subwords.from_bytes(bytes(data)).encode("I go home.")
