"""A shortlist limits the tokens of translations, in the same way on both engines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from jumok.config.recipe import make_recipe
from jumok.errors import ModelFolderError, UnsupportedError
from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine
from jumok.inference.engines.ctranslate2_export import export
from jumok.inference.engines.torch_engine import TorchEngine
from jumok.inference.loading import load
from jumok.inference.search.plan import Sampling, SearchPlan
from jumok.inference.shortlist import Shortlist
from jumok.inference.translator import Translator
from jumok.models.build import build_model
from jumok.storage.model_folder import store_shortlist
from jumok.types import BEGIN, PAD
from support.random_models import all_ids, random_model, run_search, sentences, small_tokenizers, write_model

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.models.model import TranslationModel

VOCAB_SIZE = 24
# Each source token allows itself and one other token.
SHORTLIST = Shortlist(
    always=(5, 6, 9), by_source={token: (token, (token * 7) % 20 + 4) for token in range(4, VOCAB_SIZE)}
)
PLAN = SearchPlan(beam=4, n_best=3, max_length_ratio=0.0, extra_tokens=12)
PLANS = {
    "beam": PLAN,
    "greedy": replace(PLAN, beam=1, n_best=1),
    "wider than the shortlist": replace(PLAN, beam=8, n_best=2),
    "at least five tokens": replace(PLAN, min_length=5),
    "no repeated bigram": replace(PLAN, no_repeat_ngram_size=2),
    "coverage": replace(PLAN, coverage_penalty=0.3),
}


def both_engines(model: TranslationModel, shortlist: Shortlist) -> tuple[TorchEngine, CTranslate2Engine]:
    files = export(model, max_positions=64)
    converted = CTranslate2Engine(files, vocab_size=len(model.output.weight), shortlist=shortlist)
    return TorchEngine(model, shortlist=shortlist), converted


def sources(seed: int, count: int = 6) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, VOCAB_SIZE, (1 + i % 3,), generator=generator).tolist() for i in range(count)]


@pytest.mark.medium
@pytest.mark.parametrize("name", PLANS)
def test_both_engines_agree_and_use_only_tokens_of_the_shortlist(name: str) -> None:
    plan, num_changed = PLANS[name], 0
    for seed in range(4):
        model = random_model(vocab_size=VOCAB_SIZE, seed=seed)
        torch_engine, converted = both_engines(model, SHORTLIST)
        unlimited = TorchEngine(model)
        # All sources of a batch share one shortlist. Each source is searched alone, because the engines would
        # divide several sources into different batches.
        for source in sources(seed):
            [results] = run_search(torch_engine, [source], plan)
            [converted_results] = run_search(converted, [source], plan)
            assert [h.ids for h in results] == [h.ids for h in converted_results]
            assert [h.score for h in results] == pytest.approx([h.score for h in converted_results], abs=2e-4)
            assert {token for h in results for token in h.ids} <= set(SHORTLIST.tokens([source]))
            [without_shortlist] = run_search(unlimited, [source], plan)
            num_changed += [h.ids for h in results] != [h.ids for h in without_shortlist]
    assert num_changed > 10  # of 24 (4 seeds, 6 sources): the shortlist does limit the search


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, beam=1, n_best=1)], ids=["beam", "greedy"])
def test_a_shortlist_of_all_tokens_changes_nothing(plan: SearchPlan) -> None:
    model = random_model(vocab_size=VOCAB_SIZE)
    unlimited = run_search(TorchEngine(model), sources(1), plan)
    for engine in both_engines(model, Shortlist(tuple(range(4, VOCAB_SIZE)), {})):
        results = run_search(engine, sources(1), plan)
        assert all_ids(results) == all_ids(unlimited)
        for hypotheses, expected in zip(results, unlimited, strict=True):
            assert [h.score for h in hypotheses] == pytest.approx([h.score for h in expected], abs=2e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"family": "recurrent", "cell": "gru", "width": 16, "embedding": 16, "attention": "bahdanau"},
        {"family": "decoder-only", "layers": 1, "width": 16, "feed_forward": 32, "heads": 2},
    ],
    ids=lambda settings: settings["family"],
)
def test_the_shortlist_limits_every_family(settings: dict[str, Any]) -> None:
    torch.manual_seed(1)
    model_settings = make_recipe({"model": settings}).model
    model: Any = build_model(
        model_settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True
    )
    with torch.no_grad():
        model.output.weight.mul_(4)
        model.output.weight[[PAD, BEGIN]] = 0
    model.eval()
    shortlisted, all_listed, unlimited = (
        run_search(TorchEngine(model, shortlist=shortlist), sources(2), PLAN)
        for shortlist in (SHORTLIST, Shortlist(tuple(range(4, VOCAB_SIZE)), {}), None)
    )
    produced = {token for hypotheses in shortlisted for h in hypotheses for token in h.ids}
    assert produced <= set(SHORTLIST.tokens(sources(2)))
    assert [hypotheses[0].ids for hypotheses in all_listed] == [hypotheses[0].ids for hypotheses in unlimited]


def test_translations_with_a_prefix_are_not_limited() -> None:
    """This holds for both engines, also after searches with other shortlists."""
    model = random_model(vocab_size=VOCAB_SIZE)
    prefixes = [[20, 21], [22], [23, 10], [11], [12, 20], [13]]
    unlimited = run_search(TorchEngine(model), sources(1), PLAN, prefixes=prefixes)
    for engine in both_engines(model, SHORTLIST):
        for source in sources(3):
            run_search(engine, [source], PLAN)
        results = run_search(engine, sources(1), PLAN, prefixes=prefixes)
        assert all_ids(results) == all_ids(unlimited)
        for hypotheses, prefix in zip(results, prefixes, strict=True):
            assert list(hypotheses[0].ids[: len(prefix)]) == prefix


def test_sampling_uses_only_the_shortlist() -> None:
    model = random_model(vocab_size=VOCAB_SIZE)
    for engine in both_engines(model, SHORTLIST):
        results = run_search(engine, [[7, 8]] * 50, replace(PLAN, beam=1), sampling=Sampling(temperature=3))
        drawn = {token for hypotheses in results for h in hypotheses for token in h.ids}
        assert drawn <= set(SHORTLIST.tokens([[7, 8]]))
        assert len(drawn) > 4


def test_the_shortlist_also_limits_sampling_that_falls_back_to_torch() -> None:
    tokenizers = small_tokenizers()
    model = random_model(vocab_size=tokenizers.target.vocab_size)
    shortlist = Shortlist(tuple(range(4, 30)), {})
    _, converted = both_engines(model, shortlist)
    translator = Translator(model, tokenizers, engine=converted, shortlist=shortlist)
    sampling = Sampling(temperature=0.8, top_p=0.9)
    engine = translator.engine_for(sampling)
    assert engine.name == "torch"
    results = run_search(engine, [[40, 41]] * 20, replace(PLAN, beam=1), sampling=sampling)
    assert max(token for hypotheses in results for h in hypotheses for token in h.ids) < 30


def test_a_top_k_above_the_number_of_always_allowed_tokens_falls_back_to_torch() -> None:
    tokenizers = small_tokenizers()
    model = random_model(vocab_size=tokenizers.target.vocab_size)
    shortlist = Shortlist((5, 6, 9, 20), {})
    _, converted = both_engines(model, shortlist)
    translator = Translator(model, tokenizers, engine=converted, shortlist=shortlist, max_source_tokens=16)
    assert translator.engine_for(Sampling(top_k=4)) is converted
    assert "top_k" in translator.engine_for(Sampling(top_k=5)).fallback_reason
    for top_k in (4, 5, 500):
        [translation] = translator.translate(["the house."], n_best=5, sampling=Sampling(top_k=top_k))
        assert translation.tokens
    converted._strict = True  # as with the engine "ctranslate2" instead of "auto"
    with pytest.raises(UnsupportedError, match="engine torch or auto"):
        translator.translate(["the house."], sampling=Sampling(top_k=500))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_stored_shortlist_is_used_on_request(folder: Path, engine: str) -> None:
    with pytest.raises(UnsupportedError, match=r"has no shortlist\. Learn one with `jumok shortlist"):
        load(folder, engine=engine, shortlist=True)
    tokenizer = small_tokenizers().target
    shortlist = Shortlist(tuple(range(4, 60)), {})
    store_shortlist(folder, shortlist.to_bytes(), {"shortlist_costs": 0.5})
    lines = sentences(20)
    unlimited, limited = (
        load(folder, engine=engine, shortlist=requested).translate(lines, beam=2)
        for requested in (False, True)
    )
    allowed = set(tokenizer.tokens(range(60)))
    assert all(set(translation.tokens) <= allowed for translation in limited)
    assert not all(set(translation.tokens) <= allowed for translation in unlimited)
    limited_by_argument = load(folder, engine=engine, shortlist=shortlist).translate(lines, beam=2)
    assert [translation.text for translation in limited_by_argument] == [
        translation.text for translation in limited
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"\t5 x\n", b"\t5 6\n7\t2\n", b"\t5\n9999\t5\n", b"\t5\n7\t99999\n", b"\xff"],
    ids=["empty", "not a number", "special token", "unknown source", "unknown target", "not UTF-8"],
)
def test_an_invalid_shortlist_is_refused(folder: Path, data: bytes) -> None:
    store_shortlist(folder, data, {})
    with pytest.raises(ModelFolderError, match="Learn it again with `jumok shortlist`"):
        load(folder, shortlist=True)
    assert load(folder).translate(["the house."])


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize(
    "shortlist", [Shortlist((5, 99_999), {}), Shortlist((5,), {99_999: (5,)}), Shortlist((2,), {})], ids=str
)
def test_the_shortlist_of_another_model_is_refused(folder: Path, shortlist: Shortlist, engine: str) -> None:
    with pytest.raises(ModelFolderError, match="the vocabulary of the model has"):
        load(folder, engine=engine, shortlist=shortlist)
