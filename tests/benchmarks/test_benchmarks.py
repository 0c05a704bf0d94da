"""The calculations, tables and pages of `make bench`. These tests measure nothing."""

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
from benchmarks.measure import Comparison, System, make_result
from benchmarks.model_flops import TransformerShape, flops_of_pairs, flops_per_target_token
from benchmarks.page import NOT_MEASURED, PAGE, PAGES, RESULTS, as_text, fill_page
from benchmarks.serve_load import PARTS, as_result
from benchmarks.serve_load import write as write_serving
from benchmarks.topics.decoding import write_models
from benchmarks.workbench import write_eole_corpus
from jumok.config.recipe import TextSettings, TransformerSettings
from jumok.data.batching import padded_batch
from jumok.data.store import CorpusPairs, write_store
from jumok.datasets.english_french import generate
from jumok.models.build import build_model
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

COMPARISON = Comparison(
    "jumok and a tortoise", "tokens/s", [System("jumok", "x"), System("tortoise", "x"), System("peak", "x")]
)
MEASURED: dict[str, list[dict[str, float]]] = {
    "jumok": [{"tokens/s": 90}, {"tokens/s": 100}, {"tokens/s": 1}],
    "tortoise": [{"tokens/s": 40}, {"tokens/s": 45}, {"tokens/s": 50}],
    "peak": [{"GFLOP/s": 7}, {"GFLOP/s": 8}, {"GFLOP/s": 9}],
}


def test_a_ratio_is_the_median_of_jumok_divided_by_that_of_the_system() -> None:
    jumok, tortoise, peak = make_result(COMPARISON, MEASURED).rows
    assert jumok.measures == {"tokens/s": 90}
    assert tortoise.ratio == pytest.approx(2.0)
    assert (peak.measures, peak.ratio) == ({"GFLOP/s": 8}, None)


def test_if_lower_is_better_a_slower_system_has_a_ratio_above_one() -> None:
    comparison = Comparison(
        "start", "seconds", [System("jumok", "x"), System("other", "x")], lower_is_better=True
    )
    result = make_result(comparison, {"jumok": [{"seconds": 0.5}], "other": [{"seconds": 2.0}]})
    assert [row.ratio for row in result.rows] == [1.0, 4.0]


def test_model_flops_are_what_torch_counts_in_a_training_step_without_masked_scores() -> None:
    layers, width, hidden, vocab_size, rows, source, target = 2, 16, 24, 40, 3, 32, 16
    settings = TransformerSettings(
        encoder_layers=layers, decoder_layers=layers, width=width, feed_forward=hidden, heads=2, dropout=0.0
    )
    model = build_model(settings, source_vocab_size=vocab_size, target_vocab_size=vocab_size, shared=True)
    batch = padded_batch([[9] * (source - 1)] * rows, [[9] * (target - 1)] * rows)
    # Torch does not count the FLOPs of its fused attention, so plain attention is used here.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        states = model(batch)
        torch.nn.functional.linear(states, model.output.weight).sum().backward()
    shape = TransformerShape(layers=layers, width=width, feed_forward=hidden, vocab_size=vocab_size)
    ours = rows * int(flops_of_pairs(shape, np.array([source]), np.array([target]))[0])
    masked_cells = target * target - target * (target + 1) // 2  # above the diagonal; torch counts them
    masked = rows * 12 * width * layers * masked_cells
    assert counter.get_total_flops() == ours + masked
    assert flops_per_target_token(shape, np.array([source]), np.array([target])) == ours / rows / target


def stored_results(**changes: Any) -> dict[str, Any]:
    machine = {"cpu": "an abacus", "cores": 2, "system": "Linux"}
    rows = [
        {"name": row.name, "measures": row.measures, "ratio": row.ratio}
        for row in make_result(COMPARISON, MEASURED).rows
    ]
    results = [{"title": COMPARISON.title, "measure": COMPARISON.measure, "rows": rows}]
    head = {"topic": "training", "date": "2026-11-16", "machine": machine, "versions": {"jumok": "1"}}
    return {
        **head,
        "rounds": 3,
        "busy_share": 0.4,
        "may_have_been_busy": False,
        "results": results,
        "remarks": ["Well."],
        **changes,
    }


def test_the_page_shows_the_results_and_says_which_are_missing(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(json.dumps(stored_results()), encoding="utf-8")
    page = fill_page(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert "| tortoise | 45 | 2.00 × | – |" in page
    assert page.count(NOT_MEASURED) == 6  # the sections of all other topics
    assert fill_page(page, tmp_path) == page


def test_a_table_shows_the_range_of_the_rounds(tmp_path: Path) -> None:
    ranged = stored_results(results=[asdict(make_result(COMPARISON, MEASURED))])
    assert "45 40 to 50 2.00 × 1.80 ×" in " ".join(as_text(ranged).split())
    (tmp_path / "training.json").write_text(json.dumps(ranged), encoding="utf-8")
    page = fill_page(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert "| jumok | 90 | 1 to 100 | 1.00 × | 0.90 × | – |" in page
    assert "| peak | – | – | – | – | 8 |" in page
    assert "Medians of 3 rounds" in as_text(ranged)
    assert "One round" in as_text(stored_results(rounds=1))


def test_the_best_round_of_a_time_is_its_shortest() -> None:
    rounds = {"jumok": [2.0, 3.0], "snail": [4.0, 6.0]}
    measured = {name: [{"seconds": seconds} for seconds in of_system] for name, of_system in rounds.items()}
    systems = [System(name, "sleep") for name in rounds]
    comparison = Comparison("naps", "seconds", systems, lower_is_better=True)
    times = stored_results(results=[asdict(make_result(comparison, measured))])
    assert "snail 5 4 to 6 2.00 × 1.60 ×" in " ".join(as_text(times).split())


def test_every_topic_has_a_section_on_a_page() -> None:
    page = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for topic in TOPICS:
        assert f"<!-- results: {topic} -->" in page
        names = (f"`{topic}`", f"ARGS={topic}`", f'ARGS="{topic} ', f"-m benchmarks {topic} ")
        assert any(name in page for name in names)
        assert callable(import_module(f"benchmarks.topics.{topic}").comparisons)


def test_a_busy_machine_between_two_systems_ends_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    busy_shares = iter([0.0, 0.0, 0.9])  # before the first, the second and the third system
    monkeypatch.setattr(measure, "busy_share", lambda: next(busy_shares))
    monkeypatch.setattr(measure, "MAX_WAIT_SECONDS", 0.0)
    called: list[str] = []

    def run_and_measure(program: str, options: object) -> dict[str, float]:
        called.append(program)
        return {"tokens/s": 1.0}

    monkeypatch.setattr(measure, "run_and_measure", run_and_measure)
    with pytest.raises(measure.BusyMachineError, match="90% of its cores' time"):
        measure.run_comparison(COMPARISON, rounds=1, log=lambda _: None)
    assert len(called) == 2


def test_a_measurement_waits_until_a_short_load_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([0.9, 0.4, 0.0])
    monkeypatch.setattr(measure, "busy_share", lambda: next(busy))
    measure.wait_until_idle()
    assert next(busy, None) is None


def test_the_pages_of_this_repository_are_filled_from_its_results() -> None:
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        assert fill_page(page, RESULTS) == page


def test_a_part_of_serving_replaces_only_its_own_earlier_result(tmp_path: Path) -> None:
    path = tmp_path / "serving.json"
    kill_title, kill_measure, _ = PARTS["kill"]
    kill = as_result(kill_title, kill_measure, [("jumok serve", {kill_measure: 2.0})])
    single_title, single_measure, _ = PARTS["single"]
    rows = [("jumok serve", {single_measure: 4.0}), ("the library", {single_measure: 3.0})]
    single, repeated = (as_result(single_title, single_measure, part) for part in (rows, rows[:1]))
    write_serving([kill], 0.4, True, path)
    both = write_serving([single], 0.0, False, path)
    assert [result["title"] for result in both["results"]] == [single_title, kill_title]
    assert both["results"][0]["rows"][1]["ratio"] == pytest.approx(0.75)
    assert both["may_have_been_busy"]  # one of the two was measured on a busy machine
    assert not write_serving([repeated, kill], 0.0, False, path)["may_have_been_busy"]
    assert single_title in as_text(json.loads(path.read_text(encoding="utf-8")))


def test_a_working_folder_can_be_used_again(tmp_path: Path) -> None:
    """The option --work names a folder that an earlier command may have used."""
    pairs = list(generate("train", 200))
    lines = [line for pair in pairs for line in (pair.source, pair.target)]
    tokenizer = train_tokenizer(lines, TextSettings(), vocab_size=300)
    tokenizers = TokenizerPair(tokenizer, tokenizer, shared=True)
    run = tmp_path / "transformer"
    run.mkdir()
    (run / "pieces.model").write_bytes(tokenizer.to_bytes())
    write_store(run / "data", [CorpusPairs("text", pairs)], tokenizers, max_tokens=100)
    for _ in range(2):
        assert (write_eole_corpus(run) / "vocabulary.txt").is_file()
        assert all(folder.is_dir() for folder in write_models(tmp_path / "tiny", "tiny", tokenizer))


def test_a_table_says_if_the_machine_may_have_been_busy() -> None:
    assert "BUSY (40% at the start)" in as_text(stored_results(may_have_been_busy=True))
    assert "BUSY" not in as_text(stored_results())
