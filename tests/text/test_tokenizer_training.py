"""Training is deterministic, works on any corpus, and reaches the vocabulary size if possible."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jumok.config.recipe import TextSettings
from jumok.errors import DataError
from jumok.text.tokenizer_training import _rare_characters, _sample, train_tokenizer, train_tokenizers
from jumok.types import UNKNOWN

KINDS = pytest.mark.parametrize("kind", ["unigram", "bpe"])


@KINDS
def test_the_same_sentences_give_the_same_tokenizer(kind: str, sentences: list[str]) -> None:
    trained = [train_tokenizer(sentences, TextSettings(kind=kind), vocab_size=350) for _ in range(2)]
    assert trained[0].fingerprint == trained[1].fingerprint


@KINDS
def test_the_vocabulary_has_the_requested_size(kind: str, sentences: list[str]) -> None:
    assert train_tokenizer(iter(sentences), TextSettings(kind=kind), vocab_size=350).vocab_size == 350


@KINDS
@pytest.mark.parametrize("corpus", [["a"], ["a b"], [" a"], ["집"] * 3, ["ab ab ab"] * 10, ["\t\0▅a\n"]])
def test_a_tiny_corpus_gives_a_smaller_vocabulary(kind: str, corpus: list[str]) -> None:
    tokenizer = train_tokenizer(corpus, TextSettings(kind=kind), vocab_size=8000)
    assert 260 < tokenizer.vocab_size < 280  # 4 special tokens, 256 bytes, and a few characters and words
    assert tokenizer.decode(tokenizer.encode(corpus[0])) == corpus[0]


@KINDS
def test_a_vocab_size_too_small_for_bytes_and_letters_is_increased(kind: str, sentences: list[str]) -> None:
    tokenizer = train_tokenizer(sentences, TextSettings(kind=kind), vocab_size=64)
    assert 261 <= tokenizer.vocab_size <= 300  # 4 special tokens, 256 bytes, and letters
    assert tokenizer.decode(tokenizer.encode("understand 집에")) == "understand 집에"


@pytest.mark.parametrize("corpus", [[], ["", " ", "\t"]])
def test_an_empty_corpus_is_refused(corpus: list[str]) -> None:
    with pytest.raises(DataError, match="no sentence to train a tokenizer on"):
        train_tokenizer(corpus, TextSettings(), vocab_size=300)


def test_very_long_lines_are_used_for_training() -> None:
    tokenizer = train_tokenizer(["home " * 5000], TextSettings(), vocab_size=300)
    assert "▁home" in tokenizer.tokens(tokenizer.encode("home"))


def test_rare_tags_and_names_of_special_tokens_in_the_text_are_decoded_as_text() -> None:
    corpus = [*["a <s> b </s> <0x41> <pad>"] * 50, *["plain text"] * 5000, "<seen-once> x"]
    tokenizer = train_tokenizer(corpus, TextSettings(), vocab_size=400)
    for text in ["<s>", "a <s> b", "</s>", "<0x41>", "<pad>", "<seen-once> x"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode("<s>")) == 1  # the frequent tag "▁<s>", not the special token <s>
    assert len(tokenizer.encode("<seen-once>")) > 1


@pytest.mark.parametrize("hash_seed", ["1", "2", "3"])
def test_the_hash_seed_of_the_process_does_not_matter(hash_seed: str) -> None:
    program = (
        "from jumok.config.recipe import TextSettings\n"
        "from jumok.text.tokenizer_training import train_tokenizer\n"
        "corpus = ['<a> <b> <c> <d> <e> one', '<e> <d> <c> <b> <a> two 집 漢'] * 5\n"
        "print(train_tokenizer(corpus, TextSettings(), vocab_size=300).fingerprint)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    corpus = ["<a> <b> <c> <d> <e> one", "<e> <d> <c> <b> <a> two 집 漢"] * 5
    assert result.stdout.strip() == train_tokenizer(corpus, TextSettings(), vocab_size=300).fingerprint


def test_without_byte_fallback_an_unseen_character_is_unknown(sentences: list[str]) -> None:
    tokenizer = train_tokenizer(sentences, TextSettings(byte_fallback=False), vocab_size=150)
    assert tokenizer.vocab_size <= 150
    assert tokenizer.encode("I ж")[-1] == UNKNOWN
    assert tokenizer.decode(tokenizer.encode("I ж")) == "I ⁇"


def test_all_letters_become_tokens_but_rare_ideographs_do_not(sentences: list[str]) -> None:
    assert _rare_characters(sentences, max_characters=200, byte_fallback=True) == set()
    ideographs = ["的" * 1_000_000 + "".join(chr(0x4E00 + i) for i in range(2000))]
    # With byte fallback, 0.05 % of the text may be rare characters.
    assert len(_rare_characters(ideographs, max_characters=5000, byte_fallback=True)) == pytest.approx(
        1_002_000 * 0.0005, abs=1
    )
    assert len(_rare_characters(ideographs, max_characters=5000, byte_fallback=False)) == 0
    # `max_characters` allows tokens for 100 of the 2001 different characters.
    assert len(_rare_characters(ideographs, max_characters=100, byte_fallback=True)) == 1901
    assert len(_rare_characters(ideographs, max_characters=100, byte_fallback=False)) == 1901


def test_equal_lines_do_not_slow_training_down() -> None:
    # SentencePiece takes minutes for these lines in this order.
    tokenizer = train_tokenizer([*["plain text"] * 10_000, "and another"], TextSettings(), vocab_size=400)
    assert tokenizer.tokens(tokenizer.encode("plain text")) == ["▁plain", "▁text"]


def test_a_large_corpus_is_sampled_uniformly_and_deterministically() -> None:
    corpus = [str(i) for i in range(10_000)]
    sample = _sample(iter(corpus), max_size=1000)
    assert sample == _sample(iter(corpus), max_size=1000)
    assert len(set(sample)) == 1000
    assert sum(map(int, sample)) / 1000 == pytest.approx(5000, rel=0.05)


def test_source_and_target_have_one_tokenizer_if_shared_and_two_if_not() -> None:
    english, korean = ["I go home", "I read books"] * 3, ["집에 가요", "책을 읽어요"] * 3
    shared = train_tokenizers(english, korean, TextSettings(shared=True), 300)
    assert shared.shared
    assert shared.source is shared.target
    separate = train_tokenizers(english, korean, TextSettings(shared=False), 300)
    assert not separate.shared
    # The target tokenizer has not seen "home" in training, so it needs more tokens for this word.
    assert len(separate.source.encode("home")) < len(separate.target.encode("home"))
    assert separate == train_tokenizers(english, korean, TextSettings(shared=False), 300)
