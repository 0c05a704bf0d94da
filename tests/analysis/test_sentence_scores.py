"""The scores of every sentence of a corpus."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sacrebleu

from jumok.analysis.explainer import explain
from jumok.analysis.sentence_scores import _count_repeats, score_sentences
from jumok.types import Pair
from support.random_translators import SMALL_MODELS, make_translator, small_translator

PAIRS = [
    Pair("the old house sees a small tree.", "a river knows the old tree."),
    Pair("a tree and a river.", "the house."),
    Pair("home", "near the tree and near a river."),
]


@pytest.mark.parametrize("name", ["transformer", "luong", "decoder-only"])
def test_the_scores_of_a_sentence_equal_numbers_computed_one_by_one(name: str) -> None:
    translator = small_translator(name)
    other = make_translator(SMALL_MODELS["post-norm"])
    rows = score_sentences(translator, PAIRS, previous=other)
    for pair, row in zip(PAIRS, rows, strict=True):
        plain = explain(translator, pair.source)
        assert row.hypothesis == plain.text
        assert row.chrf == pytest.approx(sacrebleu.sentence_chrf(plain.text, [pair.target]).score)
        explanation = explain(translator, pair.source, target=pair.target)
        assert row.loss == pytest.approx(-explanation.log_prob / len(explanation.log_probs), abs=1e-4)
        links = translator.align(pair.source, plain.text).sure
        words = plain.source.words
        unaligned = [word for i, word in enumerate(words) if i not in {source for source, _ in links}]
        assert list(row.uncovered) == [word for word in unaligned if word.isalnum()]
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
