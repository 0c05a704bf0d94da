"""Reading the sentences of a run, from memory or from files, without the sentences of the validation set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jumok.data.picture_corpora
import jumok.training.run.corpus_reader
from jumok.data.corpora import corpus_of_pairs, open_corpus
from jumok.data.corpus_report import check_corpora
from jumok.errors import DataError
from jumok.pictures.reading import measure_picture
from jumok.text.words import split_words
from jumok.training.run.corpus_reader import read_sentences
from jumok.types import Pair
from support.digits import digit_corpus, digit_pairs
from support.picture_files import write_classes

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.pictures.reading import PictureFacts


def test_more_pairs_than_may_be_kept_in_memory_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = [digit_corpus(300, 1), digit_corpus(200, 2)]
    small = read_sentences(corpora, [], held_out_pairs=20)
    monkeypatch.setattr(jumok.training.run.corpus_reader, "MAX_CACHED_PAIRS", 100)
    large = read_sentences(corpora, [], held_out_pairs=20)
    assert small.cached_pairs is not None
    assert large.cached_pairs is None
    assert large.fingerprint == small.fingerprint
    assert large.facts == small.facts
    assert large.validation_pairs == small.validation_pairs
    texts = [[(pair.source, pair.target) for pair in sentences.pairs()] for sentences in (small, large)]
    assert texts[0] == texts[1]
    for sentences in (small, large):  # pairs() can be called a second time
        assert [(pair.source, pair.target) for pair in sentences.pairs()] == texts[0]


def test_an_evenly_spaced_sample_of_pictures_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(write_classes(tmp_path / "halves", 5))
    measured: list[str] = []

    def measure(path: str) -> PictureFacts:
        measured.append(path)
        return measure_picture(path)

    monkeypatch.setattr(jumok.data.picture_corpora, "measure_picture", measure)
    monkeypatch.setattr(jumok.training.run.corpus_reader, "MIN_MEASURED_PICTURES", 3)
    monkeypatch.setattr(jumok.training.run.corpus_reader, "MAX_CACHED_PAIRS", 4)
    facts = read_sentences([corpus], [], held_out_pairs=2).facts
    assert (facts.picture_side, facts.grey_pictures) == (8, True)
    assert measured == [pair.source for pair in corpus.pairs()][::3]  # the stride is 10 pictures // 3


def test_held_out_pairs_are_not_trained_on_and_keep_their_gold_alignments() -> None:
    sentences = read_sentences([digit_corpus(300)], [], held_out_pairs=20)
    assert 0 < len(sentences.validation_pairs) <= 20
    assert all(pair.alignment is not None for pair in sentences.validation_pairs)
    training_sources = {pair.source for pair in sentences.pairs()}
    assert training_sources.isdisjoint(pair.source for pair in sentences.validation_pairs)
    assert sentences.facts.pairs == len(list(sentences.pairs()))


def test_a_given_validation_set_is_not_trained_on() -> None:
    valid = digit_corpus(40, 9)
    sentences = read_sentences([digit_corpus(300)], [valid], held_out_pairs=20)
    assert len(sentences.validation_pairs) == 40
    assert sentences.skipped["leaked"] > 0
    training_sources = {pair.source for pair in sentences.pairs()}
    assert training_sources.isdisjoint(pair.source for pair in sentences.validation_pairs)


def test_any_change_of_the_corpus_changes_the_fingerprint() -> None:
    pairs = digit_pairs(100)
    changed = [*pairs[:50], Pair(pairs[50].source, pairs[50].target + " acht"), *pairs[51:]]
    corpora = [
        [corpus_of_pairs(pairs)],
        [corpus_of_pairs(changed)],
        [corpus_of_pairs(pairs[:-30])],
        [corpus_of_pairs(pairs, weight=2)],
        [corpus_of_pairs(pairs[::-1])],
    ]
    fingerprints = {read_sentences(corpus, [], held_out_pairs=5).fingerprint for corpus in corpora}
    assert len(fingerprints) == len(corpora)


def test_corpus_facts_count_words_after_duplicates_are_skipped() -> None:
    pairs = [Pair("No, I go.", f"Nein, ich {word}.") for word in ("gehe", "laufe")] * 10
    facts = read_sentences(
        [corpus_of_pairs(pairs, source="en", target="de")],
        [corpus_of_pairs(digit_pairs(3))],
        held_out_pairs=0,
    ).facts
    # Each source has 5 words: punctuation marks are words.
    assert (facts.pairs, facts.source_words, facts.distinct_source_words) == (2, 10, 5)
    assert (facts.distinct_target_words, facts.target_language) == (6, "de")


def test_the_corpus_report_counts_the_same_words_as_training() -> None:
    pairs = [
        Pair("No, I go (home).", "<polite> 아니요, 집에 갑니다."),
        Pair("You read it.", "당신은 그것을 읽습니다."),
        Pair("He reads “it”!", "他读了，书。"),
    ]
    corpus = corpus_of_pairs(pairs, source="en", target="ko")
    facts = read_sentences([corpus], [corpus_of_pairs(digit_pairs(3))], held_out_pairs=0).facts
    report = check_corpora([corpus])
    assert facts.pairs == report.kept == 3
    assert (report.source.words, report.target.words) == (facts.source_words, facts.target_words)
    assert report.source.distinct_words == facts.distinct_source_words
    assert report.target.distinct_words == facts.distinct_target_words
    assert report.source.percentile(100) == len(split_words(pairs[0].source))


def test_no_pair_left_to_train_on_is_an_error() -> None:
    pairs = [Pair("", "leer"), Pair("one", "eins"), Pair("one", "eins")]
    with pytest.raises(
        DataError, match=r"No pair was left.*: 3 pairs; skipped: 1 empty, 1 duplicate, 1 leaked\."
    ):
        read_sentences([corpus_of_pairs(pairs)], [corpus_of_pairs([Pair("One", "eins")])], held_out_pairs=0)
    with pytest.raises(DataError, match=r"0 pairs; skipped: none"):
        read_sentences([corpus_of_pairs([])], [], held_out_pairs=10)


def test_too_few_sources_to_hold_out_a_validation_set_are_an_error() -> None:
    with pytest.raises(DataError, match="no sentence to validate on"):
        read_sentences([digit_corpus(5)], [], held_out_pairs=100)
    with pytest.raises(DataError, match="Received: 1 pair after cleaning"):
        read_sentences([digit_corpus(1)], [], held_out_pairs=100)
    same = corpus_of_pairs([Pair("No, I go.", f"Nein {number}.") for number in range(40)])
    with pytest.raises(
        DataError, match=r"40 pairs after cleaning, all with the sentence 'No, I go.', 0 .* different sources"
    ):
        read_sentences([same], [], held_out_pairs=100)
