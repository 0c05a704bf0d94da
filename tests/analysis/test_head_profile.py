"""A head's profile over a corpus."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import explain
from jumok.analysis.head_profile import ALL_ON_SPECIAL, profile_head
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
    entropies = [explanation.statistics[change.site].entropy[head] for explanation in plain]
    assert profile.entropy == pytest.approx(np.mean(entropies), abs=1e-5)
    special = [explanation.statistics[change.site].on_special for explanation in plain]
    assert profile.on_special == pytest.approx(
        np.mean([table[head] for table in special if table is not None])
    )
    with_head = [explain(translator, pair.source).text for pair in PAIRS]
    without = [explain(translator, pair.source, edit=change).text for pair in PAIRS]
    assert profile.changed == sum(text != other for text, other in zip(with_head, without, strict=True))
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
        on_words = row[1:]  # key 0 is `<s>`
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
