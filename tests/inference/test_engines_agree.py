"""Both engines follow the same rules of search: a converted model gives the same translations and scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch

from jumok.errors import RecipeError, UnsupportedError
from jumok.inference.search.plan import Sampling, SearchPlan
from jumok.inference.translator import Translator
from jumok.types import END
from support.random_models import all_ids, both_engines, random_model, run_search, sentences, small_tokenizers

if TYPE_CHECKING:
    from collections.abc import Sequence

VOCAB_SIZE = 24
BASE = SearchPlan(beam=4, n_best=4, max_length_ratio=0.0, extra_tokens=12)
PLANS = {
    "plain": BASE,
    "greedy": replace(BASE, beam=1, n_best=1),
    "no length penalty": replace(BASE, length_penalty=0.0, n_best=1),
    "no length penalty, n best": replace(BASE, length_penalty=0.0, n_best=3),
    "weak length penalty": replace(BASE, length_penalty=0.6),
    "more candidates (2 × beam) than tokens": replace(BASE, beam=14, n_best=3),
    "n_best = beam × patience_factor": replace(BASE, patience_factor=2.0, n_best=8),
    "a patience factor below 1": replace(BASE, patience_factor=0.5, n_best=2),
    "beam × patience_factor rounds to 0": replace(BASE, patience_factor=0.1, n_best=1),
    "at least five tokens": replace(BASE, min_length=5),
    "no repeated bigram": replace(BASE, no_repeat_ngram_size=2),
    "no repeated unigram": replace(BASE, no_repeat_ngram_size=1, beam=2, n_best=2),
    "coverage": replace(BASE, coverage_penalty=0.3),
    "coverage, no length penalty": replace(BASE, coverage_penalty=0.3, length_penalty=0.0),
    "longer": replace(BASE, extra_tokens=40),
    "a maximum length per sentence, greedy": replace(
        BASE, max_length_ratio=1.0, extra_tokens=1, beam=1, n_best=1
    ),
}


def sources(seed: int, count: int = 6) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (count,), generator=generator).tolist()
    return [torch.randint(4, VOCAB_SIZE, (length,), generator=generator).tolist() for length in lengths]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("with_prefix", [False, True])
@pytest.mark.medium
def test_the_engines_agree(name: str, with_prefix: bool) -> None:
    plan = PLANS[name]
    for seed in range(8):
        torch_engine, converted = both_engines(random_model(vocab_size=VOCAB_SIZE, seed=seed))
        inputs = sources(seed)
        prefixes = [source[: seed % 3 + 1] for source in inputs] if with_prefix else None
        expected = run_search(torch_engine, inputs, plan, prefixes=prefixes)
        actual = run_search(converted, inputs, plan, prefixes=prefixes)
        assert all_ids(actual) == all_ids(expected)
        for actual_list, expected_list in zip(actual, expected, strict=True):
            scores = [h.score for h in expected_list]
            assert [h.score for h in actual_list] == pytest.approx(scores, abs=2e-4)


def test_both_engines_drop_a_candidate_that_ends_right_after_the_prefix_without_replacing_it() -> None:
    """The candidate `</s>` is dropped unless it is the best, so one hypothesis fewer continues.

    If another candidate replaced it, five of these sentences would have other hypotheses.
    """
    inputs = sources(3, count=40)
    expected, actual = (
        run_search(
            engine, inputs, replace(BASE, beam=3, n_best=3), prefixes=[source[:1] for source in inputs]
        )
        for engine in both_engines(random_model(vocab_size=VOCAB_SIZE, seed=3))
    )
    assert all_ids(actual) == all_ids(expected)


@pytest.mark.parametrize("settings", [{"norm": "post"}, {"encoder_layers": 1, "heads": 4}, {"tied": True}])
def test_the_engines_agree_on_other_transformers(settings: dict[str, object]) -> None:
    engines = both_engines(random_model(vocab_size=VOCAB_SIZE, **settings))
    plan = replace(BASE, beam=3, n_best=2)
    expected, actual = (run_search(engine, sources(3), plan) for engine in engines)
    # With tied weights `<pad>` and `<s>` have some probability; only CTranslate2 removes them before the
    # softmax, which gives their probability to the other tokens.
    tolerance = 0.2 if settings.get("tied") else 2e-4
    for [actual_best, *_], [expected_best, *_] in zip(actual, expected, strict=True):
        assert actual_best.score == pytest.approx(expected_best.score, abs=tolerance)


@pytest.mark.medium
@pytest.mark.parametrize("beam", [1, 4])
def test_99_percent_of_200_sentences_have_the_same_translations(beam: int) -> None:
    tokenizers = small_tokenizers()
    model = random_model(vocab_size=tokenizers.target.vocab_size, seed=7)
    with_torch, converted = (Translator(model, tokenizers, engine=engine) for engine in both_engines(model))
    lines = [*sentences(200, seed=5), "", "  "]
    expected, actual = (translator.translate(lines, beam=beam) for translator in (with_torch, converted))
    num_same_texts = sum(a.text == e.text for a, e in zip(actual, expected, strict=True))
    num_close_scores = sum(abs(a.score - e.score) < 1e-3 for a, e in zip(actual, expected, strict=True))
    assert num_same_texts >= 0.99 * len(lines)
    assert num_close_scores >= 0.99 * len(lines)
    # Empty translations would agree trivially, so there must be few.
    assert sum(not translation.tokens for translation in expected) < 10
    streamed = list(converted.stream(lines, beam=beam, look_ahead=30))
    assert [translation.text for translation in streamed] == [translation.text for translation in actual]


@pytest.mark.medium
def test_with_a_maximum_length_per_sentence_the_engines_agree_on_uncut_translations() -> None:
    plan = replace(BASE, max_length_ratio=1.0, extra_tokens=1, n_best=1)
    num_cut = 0
    for seed in range(8):
        torch_engine, converted = both_engines(random_model(vocab_size=VOCAB_SIZE, seed=seed))
        inputs = sources(seed, count=12)
        expected, actual = (run_search(engine, inputs, plan) for engine in (torch_engine, converted))
        for source, [expected_best], [actual_best] in zip(inputs, expected, actual, strict=True):
            max_length = plan.max_length(len(source))
            assert len(actual_best.ids) <= max_length
            was_cut = len(expected_best.ids) == max_length
            num_cut += was_cut
            assert was_cut or actual_best.ids == expected_best.ids
    assert num_cut > 10  # the maximum lengths do limit the search


def test_no_translation_exceeds_its_own_maximum_length() -> None:
    """CTranslate2 has one maximum length per batch, a plan has one per sentence."""
    model = random_model(vocab_size=VOCAB_SIZE)
    with torch.no_grad():
        model.output.bias[END] = -1e4  # type: ignore[index]  # no translation ends
    _, converted = both_engines(model)
    plan = SearchPlan(beam=2, max_length_ratio=2.0, extra_tokens=1)
    inputs = sources(1, count=20)
    actual = run_search(converted, inputs, plan)
    assert [len(best.ids) for best, *_ in actual] == [2 * len(source) + 1 for source in inputs]


def test_more_hypotheses_than_a_beam_finds_are_refused() -> None:
    _, converted = both_engines(random_model(vocab_size=VOCAB_SIZE))
    with pytest.raises(RecipeError, match="Use n_best 4 or less"):
        run_search(converted, sources(1), SearchPlan(beam=2, n_best=5))


def test_a_source_beyond_the_positions_is_refused() -> None:
    _, converted = both_engines(random_model(vocab_size=VOCAB_SIZE), max_positions=16)
    run_search(converted, [[5] * 15], BASE)  # no error: the source and </s> have 16 positions
    with pytest.raises(UnsupportedError, match=r"15 tokens of a source. Received: 16"):
        run_search(converted, [[5] * 16], BASE)


def test_a_translation_beyond_the_positions_is_refused_and_not_cut() -> None:
    _, converted = both_engines(random_model(vocab_size=VOCAB_SIZE), max_positions=16)
    run_search(converted, [[5] * 4], replace(BASE, extra_tokens=16))  # raises no error
    with pytest.raises(UnsupportedError, match="16 tokens of a translation"):
        run_search(converted, [[5] * 4], replace(BASE, extra_tokens=17))
    with pytest.raises(UnsupportedError, match="16 tokens of a translation"):
        run_search(converted, [[5] * 4], BASE, prefixes=[[6] * 16])


def test_a_long_prefix_or_maximum_length_falls_back_to_torch_or_is_refused() -> None:
    tokenizers = small_tokenizers()
    model = random_model(vocab_size=tokenizers.target.vocab_size)
    _, converted = both_engines(model, max_positions=64)
    translator = Translator(model, tokenizers, engine=converted, max_source_tokens=16)
    assert translator.engine_for() is converted
    assert translator.engine_for(max_length_ratio=4.0).name == "torch"
    assert "positions for 64 tokens" in translator.engine_for(max_length_ratio=4.0).fallback_reason
    prefix = "the house and " * 40
    assert translator.engine_for(prefix=prefix).name == "torch"
    [translation] = translator.translate(["the house."], prefix=prefix)
    assert translation.text.startswith(prefix.strip())
    converted._strict = True  # as with the engine "ctranslate2" instead of "auto"
    with pytest.raises(UnsupportedError, match="choose the engine torch"):
        translator.translate(["the house."], prefix=prefix)


def test_the_same_seed_gives_the_same_samples_sorted_by_score() -> None:
    _, converted = both_engines(random_model(vocab_size=VOCAB_SIZE))
    plan = replace(BASE, beam=1, n_best=3)
    first, repeated, other_seed = (
        run_search(converted, sources(1), plan, sampling=Sampling(seed=seed)) for seed in (1, 1, 2)
    )
    assert all_ids(first) == all_ids(repeated) != all_ids(other_seed)
    for hypotheses in first:
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


@pytest.mark.parametrize("top_k", [VOCAB_SIZE, VOCAB_SIZE + 1, 10**12])
def test_a_top_k_above_the_vocabulary_size_has_no_effect(top_k: int) -> None:
    plan = replace(BASE, beam=1, n_best=3)
    for engine in both_engines(random_model(vocab_size=VOCAB_SIZE)):
        unlimited, limited = (
            run_search(engine, sources(1), plan, sampling=Sampling(top_k=count)) for count in (0, top_k)
        )
        assert not engine.unsupported_reason(plan, Sampling(top_k=top_k))
        assert all_ids(unlimited) == all_ids(limited)


@pytest.mark.medium
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.5),
        Sampling(top_k=3),
        Sampling(top_p=0.6),
        Sampling(temperature=2, top_k=4),
    ],
    ids=str,
)
def test_both_engines_sample_from_the_same_distribution(sampling: Sampling) -> None:
    torch_engine, converted = both_engines(random_model(vocab_size=VOCAB_SIZE, seed=3))
    plan = SearchPlan(beam=1, n_best=50, max_length_ratio=0.0, extra_tokens=2, min_length=1)
    inputs = [[7, 9, 12]] * 80
    torch_counts, converted_counts = (
        Counter(
            h.ids[0]  # there is one, because of `min_length`
            for hypotheses in run_search(engine, inputs, plan, sampling=sampling)
            for h in hypotheses
        )
        for engine in (torch_engine, converted)
    )
    assert not torch_engine.unsupported_reason(plan, sampling)
    assert not converted.unsupported_reason(plan, sampling)
    assert set(torch_counts) == set(converted_counts) or not sampling.top_k
    # Each engine drew 80 · 50 = 4,000 first tokens. The standard error of the share of a token is at most
    # 0.8 %, and that of the difference of two shares 1.1 %.
    drawn_tokens = torch_counts | converted_counts
    assert max(abs(torch_counts[token] - converted_counts[token]) / 4000 for token in drawn_tokens) < 0.04


def test_unsupported_sampling_falls_back_to_torch_or_is_refused() -> None:
    model = random_model(vocab_size=small_tokenizers().target.vocab_size)
    _, converted = both_engines(model)
    translator = Translator(model, small_tokenizers(), engine=converted)
    mixed = Sampling(temperature=0.8, top_p=0.9)
    assert translator.engine_for(mixed).name == "torch"
    assert "top_p" in translator.engine_for(mixed).fallback_reason
    assert translator.engine_for(Sampling(top_p=0.9)) is translator.engine_for() is converted
    assert translator.translate(["the house."], sampling=mixed)[0].tokens
    converted._strict = True  # as with the engine "ctranslate2" instead of "auto"
    with pytest.raises(UnsupportedError, match="engine torch or auto"):
        translator.translate(["the house."], sampling=mixed)


@pytest.mark.parametrize("name", ["greedy", "a maximum length per sentence, greedy"])
def test_a_greedy_search_reports_its_tokens_after_every_step(name: str) -> None:
    inputs = sources(3)
    prefixes = [[], [5, 6], [], [7], [], []]
    for engine in both_engines(random_model(vocab_size=VOCAB_SIZE)):
        partial: dict[int, list[list[int]]] = {i: [] for i in range(len(inputs))}

        def on_token(i: int, ids: Sequence[int], partial: Any = partial) -> None:
            partial[i].append(list(ids))

        search = engine.search(inputs, PLANS[name], prefixes=prefixes, on_token=on_token)
        actual = {
            i: list(ranked[0].ids) for group, rows in search for i, ranked in zip(group, rows, strict=True)
        }
        last_reports = {i: reports[-1] for i, reports in partial.items() if reports}
        assert last_reports == {i: ids for i, ids in actual.items() if ids}
        for reports in partial.values():
            lengths = [len(ids) for ids in reports]
            assert not lengths or lengths[0] == 1
            # A sentence that reaches its own maximum length is searched again by CTranslate2, from the start.
            assert all(after in (before + 1, 1) for before, after in pairwise(lengths))


def test_a_beam_search_reports_no_tokens() -> None:
    for engine in both_engines(random_model(vocab_size=VOCAB_SIZE)):
        reported: list[int] = []
        search = engine.search(
            sources(3), BASE, prefixes=[[]] * 6, on_token=lambda i, _, reported=reported: reported.append(i)
        )
        assert len(list(search)) >= 1
        assert not reported


@pytest.mark.parametrize("converted", [False, True])
def test_a_translator_reports_partial_texts_except_for_split_texts(converted: bool) -> None:
    tokenizers = small_tokenizers()
    size = tokenizers.source.vocab_size
    model = random_model(vocab_size=size)
    engine = both_engines(model)[converted]
    translator = Translator(model, tokenizers, engine=engine, max_source_tokens=30)
    texts = [*sentences(4), "", " ".join(sentences(12))]
    partial: dict[int, list[str]] = {}

    def on_partial(text_index: int, text: str) -> None:
        partial.setdefault(text_index, []).append(text)

    translations = translator.translate(texts, beam=1, max_length_ratio=1.0, on_partial=on_partial)
    assert len(translations[5].parts) > 1
    assert partial.keys() == {0, 1, 2, 3}
    for text_index, reports in partial.items():
        assert reports[-1] == translations[text_index].text.rstrip("\ufffd")
        assert len(reports) > 2


def test_an_engine_may_be_deleted_right_after_a_search_with_a_callback() -> None:
    """No thread of the engine may destroy the engine: the program would abort."""
    for _ in range(30):
        _, engine = both_engines(random_model(vocab_size=VOCAB_SIZE))
        reported: list[object] = [engine]  # the callback may own the engine
        search = engine.search(
            sources(3),
            PLANS["greedy"],
            prefixes=[[]] * 6,
            on_token=lambda i, _, reported=reported: reported.append(i),
        )
        assert list(search)
        assert len(reported) > 6
        del engine, search, reported


def test_a_coverage_penalty_without_a_beam_falls_back_to_torch_or_is_refused() -> None:
    """CTranslate2 4.8.4 crashes on this combination."""
    tokenizers = small_tokenizers()
    model = random_model(vocab_size=tokenizers.target.vocab_size)
    plain, converted = both_engines(model)
    translator = Translator(model, tokenizers, engine=converted)
    expected = Translator(model, tokenizers, engine=plain)
    options: Any = {"beam": 1, "coverage_penalty": 0.3}
    assert translator.engine_for(**options).name == "torch"
    assert translator.translate(["the house."], **options) == expected.translate(["the house."], **options)
    assert translator.translate(["the house."], sampling=Sampling(), coverage_penalty=0.3)[0].tokens
    assert translator.translate(["the house."], beam=2, coverage_penalty=0.3)[0].tokens
    converted._strict = True  # as with the engine "ctranslate2" instead of "auto"
    with pytest.raises(UnsupportedError, match="coverage penalty without a beam"):
        translator.translate(["the house."], beam=1, coverage_penalty=0.3)
