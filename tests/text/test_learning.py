from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jumok.errors import DataError
from jumok.recipe import TextSettings
from jumok.text import learn_subwords, learn_vocabularies
from jumok.text.learning import _rare_characters, _sample
from jumok.values import UNKNOWN

KINDS = pytest.mark.parametrize("kind", ["unigram", "bpe"])


@KINDS
def test_the_same_sentences_give_the_same_pieces(kind: str, sentences: list[str]) -> None:
    learnt = [learn_subwords(sentences, TextSettings(kind=kind), pieces=350) for _ in range(2)]
    assert learnt[0].fingerprint == learnt[1].fingerprint


@KINDS
def test_as_many_pieces_as_asked_for(kind: str, sentences: list[str]) -> None:
    assert learn_subwords(iter(sentences), TextSettings(kind=kind), pieces=350).size == 350


@KINDS
@pytest.mark.parametrize("corpus", [["a"], ["a b"], [" a"], ["집"] * 3, ["ab ab ab"] * 10, ["\t\0▅a\n"]])
def test_a_tiny_corpus_gives_what_it_has(kind: str, corpus: list[str]) -> None:
    subwords = learn_subwords(corpus, TextSettings(kind=kind), pieces=8000)
    assert 260 < subwords.size < 280
    assert subwords.decode(subwords.encode(corpus[0])) == corpus[0]


@KINDS
def test_too_few_pieces_become_as_many_as_it_takes(kind: str, sentences: list[str]) -> None:
    subwords = learn_subwords(sentences, TextSettings(kind=kind), pieces=64)
    assert 261 <= subwords.size <= 300
    assert subwords.decode(subwords.encode("understand 집에")) == "understand 집에"


@pytest.mark.parametrize("corpus", [[], ["", " ", "\t"]])
def test_nothing_to_learn_from(corpus: list[str]) -> None:
    with pytest.raises(DataError, match="no sentence to learn pieces from"):
        learn_subwords(corpus, TextSettings(), pieces=300)


def test_lines_that_are_no_sentences_are_learnt_from_too() -> None:
    subwords = learn_subwords(["home " * 5000], TextSettings(), pieces=300)
    assert "▁home" in subwords.pieces(subwords.encode("home"))


def test_rare_tags_and_marks_are_ordinary_text() -> None:
    corpus = [*["a <s> b </s> <0x41> <pad>"] * 50, *["plain text"] * 5000, "<seen-once> x"]
    subwords = learn_subwords(corpus, TextSettings(), pieces=400)
    for text in ["<s>", "a <s> b", "</s>", "<0x41>", "<pad>", "<seen-once> x"]:
        assert subwords.decode(subwords.encode(text)) == text
    assert len(subwords.encode("<s>")) == 1
    assert len(subwords.encode("<seen-once>")) > 1


@pytest.mark.parametrize("hash_seed", ["1", "2", "3"])
def test_the_hash_seed_of_the_process_does_not_matter(hash_seed: str) -> None:
    program = (
        "from jumok.recipe import TextSettings\n"
        "from jumok.text import learn_subwords\n"
        "corpus = ['<a> <b> <c> <d> <e> one', '<e> <d> <c> <b> <a> two 집 漢'] * 5\n"
        "print(learn_subwords(corpus, TextSettings(), pieces=300).fingerprint)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    corpus = ["<a> <b> <c> <d> <e> one", "<e> <d> <c> <b> <a> two 집 漢"] * 5
    assert done.stdout.strip() == learn_subwords(corpus, TextSettings(), pieces=300).fingerprint


def test_without_bytes_a_character_never_seen_is_unknown(sentences: list[str]) -> None:
    subwords = learn_subwords(sentences, TextSettings(byte_fallback=False), pieces=150)
    assert subwords.size <= 150
    assert subwords.encode("I ж")[-1] == UNKNOWN
    assert subwords.decode(subwords.encode("I ж")) == "I ⁇"


def test_letters_become_pieces_but_rare_ideographs_do_not(sentences: list[str]) -> None:
    assert _rare_characters(sentences, room=200, bytes_too=True) == set()
    ideographs = ["的" * 1_000_000 + "".join(chr(0x4E00 + i) for i in range(2000))]
    assert len(_rare_characters(ideographs, room=5000, bytes_too=True)) == pytest.approx(
        1002_000 * 0.0005, abs=1
    )
    assert len(_rare_characters(ideographs, room=5000, bytes_too=False)) == 0
    assert len(_rare_characters(ideographs, room=100, bytes_too=True)) == 1901
    assert len(_rare_characters(ideographs, room=100, bytes_too=False)) == 1901


def test_equal_lines_do_not_slow_learning_down() -> None:
    # Given to SentencePiece as they are, these take it minutes.
    subwords = learn_subwords([*["plain text"] * 10_000, "and another"], TextSettings(), pieces=400)
    assert subwords.pieces(subwords.encode("plain text")) == ["▁plain", "▁text"]


def test_a_large_corpus_is_sampled_evenly_and_always_alike() -> None:
    corpus = [str(i) for i in range(10_000)]
    sample = _sample(iter(corpus), most=1000)
    assert sample == _sample(iter(corpus), most=1000)
    assert len(set(sample)) == 1000
    assert sum(map(int, sample)) / 1000 == pytest.approx(5000, rel=0.05)


def test_vocabularies_shared_and_apart() -> None:
    english, korean = ["I go home", "I read books"] * 3, ["집에 가요", "책을 읽어요"] * 3
    shared = learn_vocabularies(english, korean, TextSettings(shared=True), 300)
    assert shared.shared
    assert shared.source is shared.target
    apart = learn_vocabularies(english, korean, TextSettings(shared=False), 300)
    assert not apart.shared
    assert len(apart.source.encode("home")) < len(apart.target.encode("home"))
    assert apart == learn_vocabularies(english, korean, TextSettings(shared=False), 300)
