"""A shortlist limits what translations are made of, in the same way on both engines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from random_models import random_model, searched, sentences, small_vocabularies, write_model

from jumok.decoding import Sampling, SearchPlan, Shortlist, TorchEngine, Translator
from jumok.engines import ConvertedEngine, load
from jumok.engines.export import export
from jumok.errors import ModelFolderError, UnsupportedError
from jumok.models import build_model
from jumok.recipe import make_recipe
from jumok.storage import store_shortlist
from jumok.values import BEGIN, PAD

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.models import TranslationModel

PIECES = 24
FEW = Shortlist(always=(5, 6, 9), beside={piece: (piece, (piece * 7) % 20 + 4) for piece in range(4, PIECES)})
PLAN = SearchPlan(beam=4, n_best=3, longest=0.0, extra=12)
PLANS = {
    "beam": PLAN,
    "greedy": replace(PLAN, beam=1, n_best=1),
    "wider than the shortlist": replace(PLAN, beam=8, n_best=2),
    "at least five": replace(PLAN, shortest=5),
    "no bigram twice": replace(PLAN, no_repeat=2),
    "coverage": replace(PLAN, coverage_penalty=0.3),
}


def both_engines(model: TranslationModel, shortlist: Shortlist) -> tuple[TorchEngine, ConvertedEngine]:
    pieces = len(model.output.weight)
    converted = ConvertedEngine(export(model, places=64), pieces=pieces, shortlist=shortlist)
    return TorchEngine(model, shortlist=shortlist), converted


def sources(seed: int, count: int = 6) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, PIECES, (1 + i % 3,), generator=generator).tolist() for i in range(count)]


@pytest.mark.medium
@pytest.mark.parametrize("name", PLANS)
def test_the_engines_agree_and_say_nothing_else(name: str) -> None:
    plan, limited = PLANS[name], 0
    for seed in range(4):
        model = random_model(pieces=PIECES, seed=seed)
        plain, converted = both_engines(model, FEW)
        unlimited = TorchEngine(model)
        for source in sources(seed):  # alone, so that the batches of both engines are the same
            [ours], [theirs] = (searched(engine, [source], plan) for engine in (plain, converted))
            assert [h.ids for h in ours] == [h.ids for h in theirs]
            assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=2e-4)
            assert {piece for h in ours for piece in h.ids} <= set(FEW.pieces([source]))
            limited += [h.ids for h in ours] != [h.ids for h in searched(unlimited, [source], plan)[0]]
    assert limited > 10


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, beam=1, n_best=1)], ids=["beam", "greedy"])
def test_a_shortlist_of_everything_changes_nothing(plan: SearchPlan) -> None:
    model = random_model(pieces=PIECES)
    whole = searched(TorchEngine(model), sources(1), plan)
    for engine in both_engines(model, Shortlist(tuple(range(4, PIECES)), {})):
        found = searched(engine, sources(1), plan)
        assert [[h.ids for h in one] for one in found] == [[h.ids for h in one] for one in whole]
        for mine, other in zip(found, whole, strict=True):
            assert [h.score for h in mine] == pytest.approx([h.score for h in other], abs=2e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"family": "recurrent", "cell": "gru", "width": 16, "embedding": 16, "attention": "bahdanau"},
        {"family": "decoder-only", "layers": 1, "width": 16, "feed_forward": 32, "heads": 2},
    ],
    ids=lambda settings: settings["family"],
)
def test_every_family_is_limited(settings: dict[str, Any]) -> None:
    torch.manual_seed(1)
    chosen = make_recipe({"model": settings}).model
    model: Any = build_model(chosen, source_pieces=PIECES, target_pieces=PIECES, shared=True)
    with torch.no_grad():
        model.output.weight.mul_(4)
        model.output.weight[[PAD, BEGIN]] = 0
    model.eval()
    few, everything, whole = (
        searched(TorchEngine(model, shortlist=shortlist), sources(2), PLAN)
        for shortlist in (FEW, Shortlist(tuple(range(4, PIECES)), {}), None)
    )
    assert {piece for one in few for h in one for piece in h.ids} <= set(FEW.pieces(sources(2)))
    assert [one[0].ids for one in everything] == [one[0].ids for one in whole]


def test_a_prefix_may_lie_outside_and_is_not_limited() -> None:
    """On both engines, also after other shortlists."""
    model = random_model(pieces=PIECES)
    begins = [[20, 21], [22], [23, 10], [11], [12, 20], [13]]
    whole = searched(TorchEngine(model), sources(1), PLAN, prefixes=begins)
    for engine in both_engines(model, FEW):
        for source in sources(3):
            searched(engine, [source], PLAN)
        found = searched(engine, sources(1), PLAN, prefixes=begins)
        assert [[h.ids for h in one] for one in found] == [[h.ids for h in one] for one in whole]
        assert [list(one[0].ids[: len(begin)]) for one, begin in zip(found, begins, strict=True)] == begins


def test_draws_stay_within() -> None:
    model = random_model(pieces=PIECES)
    for engine in both_engines(model, FEW):
        found = searched(engine, [[7, 8]] * 50, replace(PLAN, beam=1), sampling=Sampling(temperature=3))
        said = {piece for one in found for h in one for piece in h.ids}
        assert said <= set(FEW.pieces([[7, 8]]))
        assert len(said) > 4


def test_what_the_converted_engine_cannot_draw_is_limited_too() -> None:
    vocabularies = small_vocabularies()
    model = random_model(pieces=vocabularies.target.size)
    few = Shortlist(tuple(range(4, 30)), {})
    _, converted = both_engines(model, few)
    translator = Translator(model, vocabularies, engine=converted, shortlist=few)
    engine = translator.engine_for(Sampling(temperature=0.8, top_p=0.9))
    assert engine.name == "torch"
    [found] = searched(engine, [[40, 41]], PLAN)
    assert max(piece for h in found for piece in h.ids) < 30


def test_more_pieces_than_a_shortlist_has_are_drawn_from_by_torch() -> None:
    vocabularies = small_vocabularies()
    model = random_model(pieces=vocabularies.target.size)
    few = Shortlist((5, 6, 9, 20), {})
    _, converted = both_engines(model, few)
    translator = Translator(model, vocabularies, engine=converted, shortlist=few, longest_source=16)
    assert translator.engine_for(Sampling(top_k=4)) is converted
    assert "top_k" in translator.engine_for(Sampling(top_k=5)).why
    for top_k in (4, 5, 500):
        [found] = translator.translate(["the house."], n_best=5, sampling=Sampling(top_k=top_k))
        assert found.pieces
    converted._strict = True
    with pytest.raises(UnsupportedError, match="engine torch or auto"):
        translator.translate(["the house."], sampling=Sampling(top_k=500))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_stored_shortlist_is_used_where_it_is_asked_for(folder: Path, engine: str) -> None:
    with pytest.raises(UnsupportedError, match=r"has no shortlist\. Learn one with `jumok shortlist"):
        load(folder, engine=engine, shortlist=True)
    pieces = small_vocabularies().target
    few = Shortlist(tuple(range(4, 60)), {})
    store_shortlist(folder, few.to_bytes(), {"shortlist_costs": 0.5})
    lines = sentences(20)
    whole, limited = (
        load(folder, engine=engine, shortlist=wanted).translate(lines, beam=2) for wanted in (False, True)
    )
    allowed = set(pieces.pieces(range(60)))
    assert all(set(found.pieces) <= allowed for found in limited)
    assert not all(set(found.pieces) <= allowed for found in whole)
    given = load(folder, engine=engine, shortlist=few).translate(lines, beam=2)
    assert [found.text for found in given] == [found.text for found in limited]


@pytest.mark.parametrize(
    "data", [b"", b"\t5 x\n", b"\t5 6\n7\t2\n", b"\t5\n9999\t5\n", b"\t5\n7\t99999\n", b"\xff"]
)
def test_an_odd_shortlist_is_refused(folder: Path, data: bytes) -> None:
    store_shortlist(folder, data, {})
    with pytest.raises(ModelFolderError, match="Learn it again with `jumok shortlist`"):
        load(folder, shortlist=True)
    assert load(folder).translate(["the house."])


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize(
    "few", [Shortlist((5, 99_999), {}), Shortlist((5,), {99_999: (5,)}), Shortlist((2,), {})], ids=str
)
def test_the_shortlist_of_another_model_is_refused(folder: Path, few: Shortlist, engine: str) -> None:
    with pytest.raises(ModelFolderError, match="the vocabulary of the model has"):
        load(folder, engine=engine, shortlist=few)
