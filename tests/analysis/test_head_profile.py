"""A head's profile over a corpus, and the scores of every sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sacrebleu

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import explain
from jumok.analysis.head_profile import ALL_ON_SPECIAL, profile_head
from jumok.analysis.sentence_scores import _count_repeats, score_sentences
from jumok.errors import DataError
from jumok.types import Alignment, Pair
from support.random_translators import SMALL_MODELS, make_translator, small_translator

PAIRS = [
    Pair("the old house sees a small tree.", "a river knows the old tree.", Alignment(frozenset({(0, 3)}))),
    Pair("a tree and a river.", "the house.", Alignment(frozenset({(1, 1), (0, 0)}))),
    Pair("home", "near the tree and near a river."),
]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("transformer", Silence("cross", 1, 0)),
        ("transformer", Silence("decoder", 0, 1)),
        ("decoder-only", Silence("encoder", 1, 1)),
        ("luong", Silence("cross", 0, 0)),
    ],
)
def test_a_profile_is_the_mean_over_explanations_of_each_pair(name: str, change: Silence) -> None:
    translator = small_translator(name)
    profile = profile_head(translator, PAIRS, change, strongest=2)
    plain = [explain(translator, pair.source, target=pair.target) for pair in PAIRS]
    silenced = [explain(translator, pair.source, target=pair.target, edit=change) for pair in PAIRS]
    effects = [after.log_prob - before.log_prob for before, after in zip(plain, silenced, strict=True)]
    assert profile.effect == pytest.approx(np.mean(effects), abs=1e-3)
    assert profile.strongest[0].effect == pytest.approx(min(effects), abs=1e-3)
    assert profile.strongest[0].source == PAIRS[int(np.argmin(effects))].source
    assert len(profile.strongest) == 2
    head = (change.layer, change.head)
    entropies = [one.statistics[change.site].entropy[head] for one in plain]
    assert profile.entropy == pytest.approx(np.mean(entropies), abs=1e-5)
    special = [one.statistics[change.site].on_special for one in plain]
    assert profile.on_special == pytest.approx(
        np.mean([table[head] for table in special if table is not None])
    )
    with_head = [explain(translator, pair.source).text for pair in PAIRS]
    without = [explain(translator, pair.source, edit=change).text for pair in PAIRS]
    assert profile.changed == sum(one != other for one, other in zip(with_head, without, strict=True))
    references = [[pair.target for pair in PAIRS]]
    expected = sacrebleu.corpus_bleu(without, references, force=True).score
    assert profile.bleu_without == pytest.approx(expected)
    assert (profile.error is None) == (change.site != "cross")


def test_the_offset_leaves_out_the_special_token_and_queries_that_attend_only_to_it() -> None:
    translator = make_translator(SMALL_MODELS["transformer"])
    weights = explain(translator, PAIRS[0].source, target=PAIRS[0].target).attention["decoder"].weights[1, 0]
    profile = profile_head(translator, PAIRS[:1], Silence("decoder", 1, 0))
    offsets = []
    for query, row in enumerate(weights):
        on_words = row[1:]
        if row[0] < ALL_ON_SPECIAL and on_words.sum() > 0:
            offsets.append((on_words * np.arange(1, len(row))).sum() / on_words.sum() - query)
    assert profile.offset == pytest.approx(np.mean(offsets), abs=1e-5)


def test_a_profile_needs_one_head_of_the_model_and_pairs() -> None:
    translator = small_translator("transformer")
    with pytest.raises(DataError, match="One head"):
        profile_head(translator, PAIRS, Silence("cross", 1))
    with pytest.raises(DataError, match="no layer 7"):
        profile_head(translator, PAIRS, Silence("cross", 7, 0))
    with pytest.raises(DataError, match="short enough"):
        profile_head(translator, [], Silence("cross", 0, 0))


@pytest.mark.parametrize("name", ["transformer", "luong", "decoder-only"])
def test_every_sentence_has_its_scores(name: str) -> None:
    translator = small_translator(name)
    other = make_translator(SMALL_MODELS["post-norm"])
    rows = score_sentences(translator, PAIRS, previous=other)
    for pair, row in zip(PAIRS, rows, strict=True):
        plain = explain(translator, pair.source)
        assert row.hypothesis == plain.text
        assert row.chrf == pytest.approx(sacrebleu.sentence_chrf(plain.text, [pair.target]).score)
        given = explain(translator, pair.source, target=pair.target)
        assert row.loss == pytest.approx(-given.log_prob / len(given.log_probs), abs=1e-4)
        links = translator.align(pair.source, plain.text).sure
        words = plain.source.words
        missing = [word for i, word in enumerate(words) if i not in {source for source, _ in links}]
        assert list(row.uncovered) == [word for word in missing if word.isalnum()]
        before = sacrebleu.sentence_chrf(explain(other, pair.source).text, [pair.target]).score
        assert row.change == pytest.approx(row.chrf - before)
    assert score_sentences(translator, PAIRS[:1])[0].change is None


def test_a_pair_that_is_too_long_has_no_loss() -> None:
    translator = make_translator(SMALL_MODELS["transformer"], max_source_tokens=8)
    [row] = score_sentences(translator, [replace(PAIRS[0], target="a river " * 9)])
    assert row.loss is None


@pytest.mark.parametrize(
    ("words", "count"),
    [("a b c", 0), ("a a b", 1), ("a b a b", 2), ("a b c a b d", 0), ("x a b a b a b", 4), ("", 0)],
)
def test_repeated_words_are_counted(words: str, count: int) -> None:
    assert _count_repeats(words.split()) == count
