"""The sentences of a run: the same from memory and from files, and none of the validation set among them."""

from __future__ import annotations

import pytest
from digits import digit_corpus, digit_pairs

import jumok.training.sentences
from jumok.corpus import check_up, corpus_of_pairs
from jumok.errors import DataError
from jumok.text import split_words
from jumok.training.sentences import read_sentences
from jumok.values import Pair


def test_too_many_for_memory_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = [digit_corpus(300, 1), digit_corpus(200, 2)]
    small = read_sentences(corpora, [], held_out=20)
    monkeypatch.setattr(jumok.training.sentences, "MOST_IN_MEMORY", 100)
    large = read_sentences(corpora, [], held_out=20)
    assert small.kept is not None
    assert large.kept is None
    assert large.fingerprint == small.fingerprint
    assert large.facts == small.facts
    assert large.validation == small.validation
    texts = [[(pair.source, pair.target) for pair in sentences.pairs()] for sentences in (small, large)]
    assert texts[0] == texts[1]
    for sentences in (small, large):  # and once more
        assert [(pair.source, pair.target) for pair in sentences.pairs()] == texts[0]


def test_held_out_pairs_are_not_trained_on_and_keep_their_gold() -> None:
    sentences = read_sentences([digit_corpus(300)], [], held_out=20)
    assert 0 < len(sentences.validation) <= 20
    assert all(pair.alignment is not None for pair in sentences.validation)
    trained = {pair.source for pair in sentences.pairs()}
    assert trained.isdisjoint(pair.source for pair in sentences.validation)
    assert sentences.facts.pairs == len(list(sentences.pairs()))


def test_a_given_set_is_kept_apart() -> None:
    valid = digit_corpus(40, 9)
    sentences = read_sentences([digit_corpus(300)], [valid], held_out=20)
    assert len(sentences.validation) == 40
    assert sentences.skipped["leaked"] > 0
    trained = {pair.source for pair in sentences.pairs()}
    assert trained.isdisjoint(pair.source for pair in sentences.validation)


def test_the_fingerprint_sees_every_change() -> None:
    pairs = digit_pairs(100)
    changed = [*pairs[:50], Pair(pairs[50].source, pairs[50].target + " acht"), *pairs[51:]]
    corpora = [
        [corpus_of_pairs(pairs)],
        [corpus_of_pairs(changed)],
        [corpus_of_pairs(pairs[:-30])],
        [corpus_of_pairs(pairs, weight=2)],
        [corpus_of_pairs(pairs[::-1])],
    ]
    prints = {read_sentences(corpus, [], held_out=5).fingerprint for corpus in corpora}
    assert len(prints) == len(corpora)


def test_facts() -> None:
    pairs = [Pair("No, I go.", f"Nein, ich {word}.") for word in ("gehe", "laufe")] * 10
    facts = read_sentences(
        [corpus_of_pairs(pairs, source="en", target="de")], [corpus_of_pairs(digit_pairs(3))], held_out=0
    ).facts
    assert (facts.pairs, facts.source_words, facts.distinct_source_words) == (2, 10, 5)  # the comma is a word
    assert (facts.distinct_target_words, facts.target_language) == (6, "de")


def test_the_check_up_counts_the_same_words() -> None:
    pairs = [
        Pair("No, I go (home).", "<polite> 아니요, 집에 갑니다."),
        Pair("You read it.", "당신은 그것을 읽습니다."),
        Pair("He reads “it”!", "他读了，书。"),
    ]
    corpus = corpus_of_pairs(pairs, source="en", target="ko")
    facts = read_sentences([corpus], [corpus_of_pairs(digit_pairs(3))], held_out=0).facts
    report = check_up([corpus])
    assert facts.pairs == report.kept == 3
    assert (report.source.words, report.target.words) == (facts.source_words, facts.target_words)
    assert report.source.distinct_words == facts.distinct_source_words
    assert report.target.distinct_words == facts.distinct_target_words
    assert report.source.percentile(100) == len(split_words(pairs[0].source))


def test_nothing_is_left_to_train_on() -> None:
    pairs = [Pair("", "leer"), Pair("one", "eins"), Pair("one", "eins")]
    with pytest.raises(
        DataError, match=r"No pair was left.*: 3 pairs; skipped: 1 empty, 1 duplicate, 1 leaked\."
    ):
        read_sentences([corpus_of_pairs(pairs)], [corpus_of_pairs([Pair("One", "eins")])], held_out=0)
    with pytest.raises(DataError, match=r"0 pairs; skipped: none"):
        read_sentences([corpus_of_pairs([])], [], held_out=10)


def test_nothing_to_validate_on() -> None:
    with pytest.raises(DataError, match="no sentence to validate on"):
        read_sentences([digit_corpus(5)], [], held_out=100)
    same = corpus_of_pairs([Pair("No, I go.", f"Nein {number}.") for number in range(40)])
    with pytest.raises(
        DataError, match=r"40 pairs after cleaning, all of 'No, I go.', 0 .* different sources"
    ):
        read_sentences([same], [], held_out=100)
