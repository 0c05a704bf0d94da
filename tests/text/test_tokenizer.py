"""Tokenizers: round trips, sampled segmentations, and the words that tokens belong to."""

from __future__ import annotations

import contextlib
import pickle
import random
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError, ModelFolderError
from jumok.storage.model_folder import IMPORTED_VOCABULARY
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.normalisation import normalise
from jumok.text.subword_sampling import NBestSampler
from jumok.text.tokenizer import Tokenizer, TokenizerPair, load_tokenizer
from jumok.text.tokenizer_files import read_tokenizers, tokenizers_to_files
from jumok.text.word_mapping import NO_WORD
from jumok.text.words import split_words
from jumok.types import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path

UNUSUAL_TEXTS = [
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


@pytest.mark.parametrize("text", UNUSUAL_TEXTS)
def test_unusual_text_survives_the_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)
    assert tokenizer.encode_batch([text, "x"]) == [tokenizer.encode(text), tokenizer.encode("x")]


@given(MIXED)
@settings(deadline=None)
def test_any_text_survives_the_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)


@given(MIXED, st.floats(0, 1), st.integers(0, 100))
@settings(deadline=None)
def test_any_sampled_segmentation_decodes_to_the_text(
    tokenizer: Tokenizer, text: str, strength: float, seed: int
) -> None:
    ids = tokenizer.sample(text, strength, numpy.random.default_rng(seed))
    assert ids == tokenizer.sample(text, strength, numpy.random.default_rng(seed))
    assert tokenizer.decode(ids) == normalise(text)


@given(st.binary(max_size=12), st.booleans())
@settings(deadline=None)
def test_any_sequence_of_ids_can_be_decoded(unigram: Tokenizer, data: bytes, with_end: bool) -> None:
    # Each byte becomes an id, so that the 256 bytes are spread over the whole vocabulary.
    ids = [unigram.vocab_size * byte // 256 for byte in data] + [END] * with_end
    text = unigram.decode(ids)
    text.encode()  # raises an error if the text has a lone surrogate
    words = unigram.word_of_token(text, ids)
    assert len(words) == len(ids)
    assert all(word == NO_WORD or 0 <= word < len(split_words(text)) for word in words)


def test_bytes_that_form_no_character_become_the_replacement_character(unigram: Tokenizer) -> None:
    first_of_three_bytes = unigram.encode("ऄ")[-3]  # this letter is not in the training data
    assert unigram.decode([first_of_three_bytes]) == "\ufffd"


def test_special_tokens_have_the_first_ids_and_no_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.tokens([PAD, UNKNOWN, BEGIN, END]) == ["<pad>", "<unk>", "<s>", "</s>"]
    ids = tokenizer.encode("I go home.")
    assert tokenizer.decode([BEGIN, *ids, END, PAD, PAD]) == "I go home."


def test_a_frequent_tag_is_one_token(tokenizer: Tokenizer) -> None:
    assert tokenizer.tokens(tokenizer.encode("<polite> I go"))[0] == "▁<polite>"


def test_a_number_is_split_into_digits(tokenizer: Tokenizer) -> None:
    assert tokenizer.tokens(tokenizer.encode("17 books"))[-3:] == ["1", "7", "▁books"]


def test_an_id_of_another_vocabulary_is_refused(tokenizer: Tokenizer) -> None:
    for wrong in (-1, tokenizer.vocab_size):
        with pytest.raises(DataError, match=rf"no token {wrong}.*0 to {tokenizer.vocab_size - 1}"):
            tokenizer.decode([5, wrong])
        with pytest.raises(DataError):
            tokenizer.tokens([wrong])


class TestSample:
    def test_strength_zero_is_the_best_segmentation(self, tokenizer: Tokenizer) -> None:
        text = "The teacher read 17 books today."
        assert tokenizer.sample(text, 0, numpy.random.default_rng(1)) == tokenizer.encode(text)

    def test_bpe_without_dropped_merges_equals_sentencepiece(
        self, bpe: Tokenizer, sentences: list[str]
    ) -> None:
        for text in sentences:
            # At strength 0, `sample` would only return `encode`.
            assert bpe.sample(text, 1e-12, numpy.random.default_rng(1)) == bpe.encode(text)

    def test_full_dropout_leaves_characters(self, bpe: Tokenizer) -> None:
        ids = bpe.sample("books today", 1, numpy.random.default_rng(1))
        assert bpe.tokens(ids) == list("▁books▁today")

    def test_strength_is_the_share_of_words_with_another_segmentation(self, unigram: Tokenizer) -> None:
        generator = numpy.random.default_rng(1)
        best = unigram.encode("understand")
        changed = [unigram.sample("understand", 0.3, generator) != best for _ in range(2000)]
        assert numpy.mean(changed) == pytest.approx(0.3, abs=0.03)

    def test_likely_segmentations_are_sampled_more_often(self) -> None:
        segmentations = [[4], [5, 6], [7, 8], [5, 9, 8]]
        scores = [0.0, 0, 0, 0, -1, -2, -3, -4, -6, -9]
        sampler = NBestSampler(lambda text, n: segmentations[:n], scores)
        generator = numpy.random.default_rng(1)
        counts = Counter(tuple(sampler.sample("text", [4], 1.0, generator)) for _ in range(20_000))
        # The sums of the scores times the smoothing of 0.2. At strength 1, the best segmentation is never
        # drawn.
        expected = numpy.exp(0.2 * numpy.array([-5, -10, -17]))
        for ids, share in zip(segmentations[1:], expected / expected.sum(), strict=True):
            assert counts[tuple(ids)] / 20_000 == pytest.approx(share, abs=0.01)

    def test_a_word_with_one_segmentation_keeps_it(self, tokenizer: Tokenizer) -> None:
        # Only bytes follow "▁". They are never sampled.
        assert tokenizer.sample("ж", 1.0, numpy.random.default_rng(1))[1:] == tokenizer.encode("ж")[1:]

    def test_a_long_text_without_spaces_gets_different_segmentations(self, tokenizer: Tokenizer) -> None:
        generator = numpy.random.default_rng(1)
        text = "understandingovertaking" * 10
        assert len({tuple(tokenizer.sample(text, 0.5, generator)) for _ in range(10)}) == 10


class TestWordOfToken:
    def check(self, tokenizer: Tokenizer, text: str, expected: dict[str, int]) -> None:
        """Check the word index of the tokens in `expected`."""
        ids = tokenizer.encode(text)
        words = dict(zip(tokenizer.tokens(ids), tokenizer.word_of_token(text, ids), strict=True))
        assert {token: words[token] for token in expected} == expected

    def test_tags_words_and_punctuation_are_words(self, tokenizer: Tokenizer) -> None:
        self.check(tokenizer, "<polite> I go home.", {"▁<polite>": 0, "▁I": 1, ".": 4})

    @pytest.mark.parametrize(
        "text", ["  The  teacher ", "나는 집에 가요!", "understand, 친구가 1999?", "▁ ▁x"]
    )
    def test_every_word_has_a_token_and_words_are_in_order(self, tokenizer: Tokenizer, text: str) -> None:
        words = tokenizer.word_of_token(text, tokenizer.encode(text))
        assert words == sorted(words)
        assert set(words) == set(range(len(split_words(text))))

    def test_all_bytes_of_a_character_belong_to_its_word(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.encode("ж ऄ")
        assert tokenizer.tokens(ids)[1:3] == ["<0xD0>", "<0xB6>"]
        assert tokenizer.word_of_token("ж ऄ", ids) == [0, 0, 0, 1, 1, 1, 1]

    def test_special_tokens_have_no_word(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.encode("I go")
        assert tokenizer.word_of_token("I go", [BEGIN, *ids, END, PAD])[0] == NO_WORD
        assert tokenizer.word_of_token("I go", [BEGIN, *ids, END, PAD])[-2:] == [NO_WORD] * 2

    def test_whitespace_alone_has_no_word(self, tokenizer: Tokenizer) -> None:
        # SentencePiece puts a third space before the text.
        assert tokenizer.word_of_token("  ", tokenizer.encode("  ")) == [NO_WORD] * 3

    def test_sampled_segmentations_have_words_too(self, tokenizer: Tokenizer) -> None:
        text = "I understand nothing."
        ids = tokenizer.sample(text, 0.9, numpy.random.default_rng(3))
        for token, word in zip(tokenizer.tokens(ids), tokenizer.word_of_token(text, ids), strict=True):
            assert token.strip("▁") in split_words(text)[word]

    def test_a_text_in_another_normal_form_keeps_its_word_indices(self, tokenizer: Tokenizer) -> None:
        text = "e\u0301te\u0301 x"
        assert tokenizer.word_of_token(text, tokenizer.encode(text))[-1] == 1

    def test_an_unknown_character_belongs_to_its_word(self, tokenizer_without_bytes: Tokenizer) -> None:
        text = "I жжжж take something"
        tokenizer = tokenizer_without_bytes
        ids = tokenizer.encode(text)
        assert UNKNOWN in ids
        words = dict(zip(tokenizer.tokens(ids), tokenizer.word_of_token(text, ids), strict=True))
        assert words["<unk>"] == 1
        assert words["▁take"] == 2

    @given(MIXED)
    @example("\u0345\u0344")
    @settings(deadline=None)
    def test_every_token_of_any_text_has_a_word(self, tokenizer: Tokenizer, text: str) -> None:
        words = tokenizer.word_of_token(text, tokenizer.encode(text))
        count = len(split_words(text))
        assert all(0 <= word < count for word in words) if count else set(words) <= {NO_WORD}
        assert words == sorted(words)


class TestStorage:
    def test_bytes_restore_an_equal_tokenizer(self, tokenizer: Tokenizer) -> None:
        restored = Tokenizer.from_bytes(tokenizer.to_bytes())
        assert restored == tokenizer
        assert hash(restored) == hash(tokenizer)
        assert restored.fingerprint == tokenizer.fingerprint
        assert len(restored.fingerprint) == 64
        assert restored.encode("I go home.") == tokenizer.encode("I go home.")

    def test_pickling_restores_an_equal_tokenizer(self, tokenizer: Tokenizer) -> None:
        assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer

    def test_a_file_restores_an_equal_tokenizer(self, tokenizer: Tokenizer, tmp_path: Path) -> None:
        path = tmp_path / "pieces.model"
        path.write_bytes(tokenizer.to_bytes())
        assert load_tokenizer(path) == tokenizer

    def test_the_error_for_a_missing_file_names_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFolderError, match=r"pieces\.model.*No such file"):
            load_tokenizer(tmp_path / "pieces.model")

    @pytest.mark.parametrize("data", [b"", b"not a model", bytes(1000)])
    def test_the_error_for_a_foreign_file_names_the_file(self, data: bytes, tmp_path: Path) -> None:
        path = tmp_path / "pieces.model"
        path.write_bytes(data)
        with pytest.raises(
            ModelFolderError, match=r"pieces\.model: this is not a tokenizer that jumok wrote"
        ):
            load_tokenizer(path)

    @pytest.mark.parametrize("name", IMPORTED_VOCABULARY[:2])  # source.spm and target.spm
    def test_the_error_for_a_damaged_file_of_an_imported_model_names_the_file(
        self, name: str, tokenizer: Tokenizer, tmp_path: Path
    ) -> None:
        vocabulary = tokenizer.tokens(range(4, tokenizer.vocab_size))
        source, target = (
            JointVocabularyTokenizer(tokenizer.to_bytes(), vocabulary, is_source=is_source)
            for is_source in (True, False)
        )
        pair = TokenizerPair(source=source, target=target, shared=True)
        for file_name, data in tokenizers_to_files(pair).items():
            (tmp_path / file_name).write_bytes(data)
        assert read_tokenizers(tmp_path, shared=True).source.fingerprint == source.fingerprint
        (tmp_path / name).write_bytes(b"not a model")
        with pytest.raises(ModelFolderError, match=f"{re.escape(str(tmp_path))}: {name}: "):
            read_tokenizers(tmp_path, shared=True)
        (tmp_path / name).unlink()
        with pytest.raises(ModelFolderError, match=f"{name} cannot be read: No such file"):
            read_tokenizers(tmp_path, shared=True)

    def test_other_special_tokens_are_refused(self, tokenizer: Tokenizer) -> None:
        with pytest.raises(ModelFolderError, match="the first four tokens are <qad> <unk> <s> </s>"):
            Tokenizer.from_bytes(tokenizer.to_bytes().replace(b"<pad>", b"<qad>"))

    def test_damaged_bytes_never_crash(self, tokenizer: Tokenizer) -> None:
        generator = random.Random(1)
        num_loaded = 0
        for _ in range(200):
            data = bytearray(tokenizer.to_bytes())
            for _ in range(generator.randrange(1, 4)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            if generator.random() < 0.3:
                del data[generator.randrange(len(data)) :]
            with contextlib.suppress(ModelFolderError):
                Tokenizer.from_bytes(bytes(data)).encode("I go home.")
                num_loaded += 1
        assert 0 < num_loaded < 150  # a broken format is detected, but not a changed letter of a token


def test_spaces_without_a_token_become_plain_spaces(tokenizer: Tokenizer) -> None:
    assert tokenizer.normalise_spaces("I\u00a0take \u202f17\tbooks\u00ad.\u200b\u061c") == "I take 17 books."
    for text in ("", " two  spaces ", "<polite> 집에서\u200d", "a\nb"):
        assert tokenizer.normalise_spaces(text) == text
    # Encoding itself stays lossless.
    assert tokenizer.decode(tokenizer.encode("I\u00a0take\u200b")) == "I\u00a0take\u200b"


def test_an_imported_tokenizer_normalises_spaces_too(tokenizer: Tokenizer) -> None:
    tokens = [tokenizer.tokens([token])[0] for token in range(4, tokenizer.vocab_size)]
    imported = JointVocabularyTokenizer(tokenizer.to_bytes(), tokens)
    assert imported.normalise_spaces("I\u00a0take\u200b it") == "I take it"
