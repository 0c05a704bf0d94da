"""What `make bench` reckons and draws, without measuring anything."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import measure
from benchmarks.__main__ import TOPICS
from benchmarks.measure import Contender, Contest, make_result
from benchmarks.model_flops import TransformerShape, flops_of_pairs, flops_per_target_token
from benchmarks.page import NOT_MEASURED, PAGE, RESULTS, as_text, draw_page
from benchmarks.serve_load import as_result
from benchmarks.serve_load import write as write_serving
from jumok.corpus.batches import padded_batch
from jumok.models import build_model
from jumok.recipe import TransformerSettings

if TYPE_CHECKING:
    from pathlib import Path

CONTEST = Contest(
    "a race", "tokens/s", [Contender("jumok", "x"), Contender("tortoise", "x"), Contender("peak", "x")]
)
SEEN: dict[str, list[dict[str, float]]] = {
    "jumok": [{"tokens/s": 90}, {"tokens/s": 100}, {"tokens/s": 1}],
    "tortoise": [{"tokens/s": 40}, {"tokens/s": 45}, {"tokens/s": 50}],
    "peak": [{"GFLOP/s": 7}, {"GFLOP/s": 8}, {"GFLOP/s": 9}],
}


def test_ratios_are_of_medians_and_say_how_many_times_better_jumok_is() -> None:
    jumok, tortoise, peak = make_result(CONTEST, SEEN).rows
    assert jumok.measures == {"tokens/s": 90}
    assert tortoise.ratio == pytest.approx(2.0)
    assert (peak.measures, peak.ratio) == ({"GFLOP/s": 8}, None)


def test_where_fewer_is_better_the_slower_has_a_ratio_above_one() -> None:
    contest = Contest(
        "start", "seconds", [Contender("jumok", "x"), Contender("other", "x")], fewer_is_better=True
    )
    result = make_result(contest, {"jumok": [{"seconds": 0.5}], "other": [{"seconds": 2.0}]})
    assert [row.ratio for row in result.rows] == [1.0, 4.0]


def test_model_flops_are_those_that_torch_counts_in_a_training_step() -> None:
    layers, width, hidden, pieces, rows, source, target = 2, 16, 24, 40, 3, 32, 16
    settings = TransformerSettings(
        encoder_layers=layers, decoder_layers=layers, width=width, feed_forward=hidden, heads=2, dropout=0.0
    )
    model = build_model(settings, source_pieces=pieces, target_pieces=pieces, shared=True)
    batch = padded_batch([[9] * (source - 1)] * rows, [[9] * (target - 1)] * rows)
    # Torch does not count what its fused attention computes, so that is spelt out here.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        states = model(batch)
        torch.nn.functional.linear(states, model.output.weight).sum().backward()
    shape = TransformerShape(layers=layers, width=width, feed_forward=hidden, pieces=pieces)
    ours = rows * int(flops_of_pairs(shape, np.array([source]), np.array([target]))[0])
    masked = rows * 12 * width * layers * (target * target - target * (target + 1) // 2)  # torch counts these
    assert counter.get_total_flops() == ours + masked
    assert flops_per_target_token(shape, np.array([source]), np.array([target])) == ours / rows / target


def content(**changes: Any) -> dict[str, Any]:
    machine = {"cpu": "an abacus", "cores": 2, "system": "Linux"}
    rows = [
        {"name": row.name, "measures": row.measures, "ratio": row.ratio}
        for row in make_result(CONTEST, SEEN).rows
    ]
    results = [{"title": CONTEST.title, "measure": CONTEST.measure, "rows": rows}]
    told = {"topic": "training", "date": "2026-11-16", "machine": machine, "versions": {"jumok": "1"}}
    return {
        **told,
        "rounds": 3,
        "busy": 0.4,
        "anyway": False,
        "results": results,
        "remarks": ["Well."],
        **changes,
    }


def test_the_page_shows_what_stands_in_the_results_and_nothing_where_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(json.dumps(content()), encoding="utf-8")
    page = draw_page(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert "| tortoise | 45 | 2.00 × | – |" in page
    assert page.count(NOT_MEASURED) == 5
    assert draw_page(page, tmp_path) == page


def test_a_table_shows_how_far_the_rounds_agree(tmp_path: Path) -> None:
    told = content(results=[asdict(make_result(CONTEST, SEEN))])
    assert "45     40 to 50     2.00 ×" in as_text(told)
    (tmp_path / "training.json").write_text(json.dumps(told), encoding="utf-8")
    page = draw_page(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert "| jumok | 90 | 1 to 100 | 1.00 × | – |" in page
    assert "| peak | – | – | – | 8 |" in page
    assert "Medians of 3 rounds" in as_text(told)
    assert "One round" in as_text(content(rounds=1))


def test_every_topic_has_its_place_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for topic in TOPICS:
        assert f"<!-- results: {topic} -->" in page
        assert f"`{topic}`" in page or f"ARGS={topic}`" in page
        assert callable(import_module(f"benchmarks.topics.{topic}").contests)


def test_no_contender_begins_or_ends_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([0.0, 0.0, 0.9])
    monkeypatch.setattr(measure, "busy_share", lambda: next(busy))
    monkeypatch.setattr(measure, "PATIENCE", 0.0)
    called: list[str] = []

    def call(program: str, arguments: object) -> dict[str, float]:
        called.append(program)
        return {"tokens/s": 1.0}

    monkeypatch.setattr(measure, "call", call)
    with pytest.raises(measure.BusyMachineError, match="90% of its cores' time"):
        measure.hold_contest(CONTEST, rounds=1, tell=lambda _: None)
    assert len(called) == 2


def test_a_moment_of_noise_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([0.9, 0.4, 0.0])
    monkeypatch.setattr(measure, "busy_share", lambda: next(busy))
    measure.check_quiet(True)
    assert next(busy, None) is None


def test_the_page_of_this_repository_is_drawn_from_its_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert draw_page(page, RESULTS) == page


def test_a_part_of_serving_takes_its_place_among_the_others(tmp_path: Path) -> None:
    path = tmp_path / "serving.json"
    kill = as_result(
        "a worker killed under 64 clients",
        "seconds until back",
        [("jumok serve", {"seconds until back": 2.0})],
    )
    single = [("jumok serve", {"ms": 4.0}), ("the library", {"ms": 3.0})]
    once, again = (as_result("one short sentence, one client", "ms", rows) for rows in (single, single[:1]))
    write_serving([kill], 0.4, True, path)
    both = write_serving([once], 0.0, False, path)
    assert [result["title"] for result in both["results"]] == [once["title"], kill["title"]]
    assert both["results"][0]["rows"][1]["ratio"] == pytest.approx(0.75)
    assert both["anyway"]  # one of the two was measured on a busy machine
    assert not write_serving([again, kill], 0.0, False, path)["anyway"]
    assert "one short sentence" in as_text(json.loads(path.read_text(encoding="utf-8")))


def test_a_table_says_that_the_machine_was_busy_and_measured_anyway() -> None:
    assert "BUSY (40% at the start)" in as_text(content(anyway=True))
    assert "BUSY" not in as_text(content())
