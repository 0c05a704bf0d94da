"""What a live page is told is what Python says, with and without changes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import jumok
from digit_lines import TINY, digit_lines, write_tsv
from explain_translators import FAMILIES, SENTENCE, TARGET, family_translator
from jumok.corpus.batches import padded_batch
from jumok.errors import DataError
from jumok.explain import Explanation
from jumok.explain.packing import unpack_weights
from jumok.training import Saved, training_events
from jumok.training.folder import RunFolder
from jumok.viewer import Viewed, Viewer, WatchedRun, is_run

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.attention import Place


def ask(viewer: Viewer, what: str, **question: Any) -> Any:
    return json.loads(viewer.answer(what, json.dumps(question).encode()))


def viewer_of(name: str) -> Viewer:
    return Viewer([Viewed(name, family_translator(name))])


@pytest.mark.parametrize("name", FAMILIES)
def test_with_no_edit_the_text_is_that_of_translate(name: str) -> None:
    answer = ask(viewer_of(name), "explain", sentence=SENTENCE)
    assert answer["target"]["text"] == family_translator(name).translate([SENTENCE])[0].text
    assert Explanation.from_json(json.dumps(answer)).text == answer["target"]["text"]


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_a_painted_weight_does_what_the_edit_hook_does(name: str) -> None:
    """The log-probability under a painted weight is that of the model with the same edit by hand."""
    translator = family_translator(name)
    change = {"kind": "paint", "site": "cross", "layer": 0, "head": 0, "query": 1, "key": 2, "weight": 0.75}
    answer = ask(viewer_of(name), "explain", sentence=SENTENCE, target=TARGET, changes=[change])

    def paint(weights: Any, place: Place, /) -> Any:
        if (place.site, place.layer) != ("cross", 0) or not place.first <= 1 < place.first + weights.shape[2]:
            return weights
        edited, row = weights.clone(), 1 - place.first
        others = edited[:, 0, row].sum(-1) - edited[:, 0, row, 2]
        edited[:, 0, row] *= (0.25 / others)[:, None]
        edited[:, 0, row, 2] = 0.75
        return edited

    source, target = (
        vocabulary.encode(text)
        for vocabulary, text in (
            (translator.vocabularies.source, SENTENCE),
            (translator.vocabularies.target, TARGET),
        )
    )
    batch = padded_batch([source], [target])
    log_probs = translator.model.output.log_probs(translator.model(batch, edit=paint))[0]
    expected = log_probs.gather(1, batch.target[0, 1:, None]).sum().item()
    assert answer["log_prob"] == pytest.approx(expected, abs=1e-3)
    assert answer["before"]["log_prob"] != pytest.approx(expected, abs=1e-4)


def test_a_forced_candidate_begins_the_translation() -> None:
    viewer = viewer_of("transformer")
    plain = ask(viewer, "explain", sentence=SENTENCE)
    other = next(id_ for id_, _, _ in plain["candidates"][0] if id_ not in {3, plain["target"]["ids"][0]})
    forced = ask(viewer, "explain", sentence=SENTENCE, forced_prefix=[other])
    assert forced["target"]["ids"][0] == other
    assert forced["forced"] == 1


def test_steps_and_effects_are_those_of_the_explanation() -> None:
    viewer, translator = viewer_of("transformer"), family_translator("transformer")
    cell = {"site": "cross", "layer": 1, "head": 1, "query": 0, "key": 2}
    told = ask(viewer, "steps", sentence=SENTENCE, cell=cell)
    assert {name: told[name] for name in cell} == cell
    assert [step["name"] for step in told["steps"]][-1] == "added"
    told = ask(viewer, "rank-heads", sentence=SENTENCE)
    expected, groups = translator.explain(SENTENCE).effects()
    for site, table in expected.items():
        assert np.allclose(told["effect"][site], table, atol=1e-5)
    assert [one["effect"] for one in told["group_effects"]] == pytest.approx(
        [one.effect for one in groups], abs=1e-5
    )


def test_weights_are_told_to_four_decimals() -> None:
    told = ask(viewer_of("transformer"), "explain", sentence=SENTENCE)
    exact = family_translator("transformer").explain(SENTENCE)
    for site, attention in exact.attention.items():
        assert np.allclose(unpack_weights(told["attention"][site]), attention.weights, atol=3e-5)
    assert np.allclose(unpack_weights(told["roll_out"]["encoder"]), exact.roll_out("encoder"), atol=3e-5)


def test_steps_of_no_cell_are_refused() -> None:
    with pytest.raises(DataError, match="no cell"):
        ask(viewer_of("transformer"), "steps", sentence=SENTENCE)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"kind": "pin", "site": "cross", "queries": 5, "keys": [1]}, "changes.0.pin.queries"),
        ({"kind": "pin", "site": "cross", "queries": [1.0], "keys": [1]}, "changes.0.pin.queries.0"),
        ({"kind": "silence", "site": {}}, "changes.0.silence.site"),
        ({"kind": "silence", "site": "cross", "layer": 0.0, "head": 0.0}, "changes.0.silence.layer"),
        ({"kind": "silence", "site": "cross", "layer": -1}, "changes.0.silence.layer"),
        ({"kind": "paint", "site": "cross", "query": 1.0, "key": 1, "weight": 1}, "changes.0.paint.query"),
        ({"kind": "paint", "site": "cross", "query": 1, "key": 1, "weight": "1"}, "changes.0.paint.weight"),
        ({"kind": "shout", "site": "cross"}, "changes.0"),
        ({"kind": ["pin"], "site": "cross"}, "changes.0"),
        ({}, "changes.0"),
    ],
)
def test_a_badly_typed_change_is_refused_before_a_model_sees_it(change: dict[str, Any], place: str) -> None:
    with pytest.raises(DataError, match=f"cannot be answered: {place}: "):
        ask(viewer_of("transformer"), "explain", sentence=SENTENCE, changes=[change])


def test_changes_are_taken_as_a_page_sends_them() -> None:
    changes: list[dict[str, Any]] = [
        {"kind": "silence", "site": "cross", "layer": 0, "head": None},
        {"kind": "paint", "site": "encoder", "layer": 0, "head": 0, "query": 1, "key": 2, "weight": 1},
        {"kind": "pin", "site": "cross", "layer": None, "head": 1, "queries": [0, 1], "keys": [1]},
    ]
    answer = ask(viewer_of("transformer"), "explain", sentence=SENTENCE, changes=changes)
    assert answer["changes"] == changes


def test_several_models_are_asked_by_their_place() -> None:
    names = ["transformer", "bahdanau"]
    viewer = Viewer([Viewed(name, family_translator(name)) for name in names])
    cards = viewer.data()["live"]["models"]
    assert [card["facts"]["family"] for card in cards] == ["transformer", "recurrent"]
    for place, name in enumerate(names):
        answer = ask(viewer, "explain", model=place, sentence=SENTENCE)
        assert answer["target"]["text"] == family_translator(name).translate([SENTENCE])[0].text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    pairs = write_tsv(folder / "digits.en-de.tsv", digit_lines(60))
    jumok.train(pairs, out=folder / "run", **TINY)
    return folder / "run"


def test_a_run_is_watched_by_its_curves_and_checkpoints(run: Path) -> None:
    assert is_run(run)
    assert not is_run(run / "model")
    watched = WatchedRun(run)
    viewer = Viewer([], run=watched)
    report = ask(viewer, "run")
    assert report["finished"]
    assert report["metrics"][-1]["kind"] == "validation"
    assert (report["source_language"], report["target_language"]) == ("en", "de")
    step = report["checkpoints"][-1]
    told = ask(viewer, "snapshot", step=step, sentence="one two")
    assert told["target"]["text"] == watched.translator(step).translate(["one two"])[0].text
    with pytest.raises(DataError, match="no checkpoint of step 99"):
        ask(viewer, "snapshot", step=99, sentence="one")


def test_how_the_model_was_trained_is_told(run: Path) -> None:
    translator = jumok.load(run / "model")
    told = translator.explain("one two").facts["training"]
    assert told == {
        "schedule": "cosine",
        "steps": 3,
        "plan": [[0, 3]],
        **{name: told[name] for name in ("learning_rate", "warmup")},
    }
    assert 0 < told["learning_rate"] < 1
    assert "training" not in family_translator("transformer").explain(SENTENCE).facts


def test_a_line_on_its_way_is_left_for_the_next_time(run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "run")
    (copied / "metrics.jsonl").write_bytes(b'{"step": 1}\n{"st')
    assert WatchedRun(copied).report()["metrics"] == [{"step": 1}]


@pytest.mark.parametrize(
    "line",
    [b'{"step": 2', b"\x00\xff\xfe", b"", b"7", b'{"loss": NaN}', b"[" * 100_000],
    ids=["torn", "bytes", "empty", "number", "nan", "nested"],
)
def test_a_damaged_line_does_not_hide_the_curves(line: bytes, run: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(run, tmp_path / "run")
    (copied / "metrics.jsonl").write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3}\n')
    report = ask(Viewer([], run=WatchedRun(copied)), "run")
    assert report["metrics"] == [{"step": 1}, {"step": 3}]


def test_a_run_without_a_checkpoint_has_no_model_yet(run: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    assert WatchedRun(tmp_path).newest() is None
    assert WatchedRun(tmp_path).report() == {
        "name": tmp_path.name,
        "finished": False,
        "source_language": "en",
        "target_language": "de",
        "checkpoints": [],
        "metrics": [],
    }


def test_while_it_trains_the_newest_checkpoint_is_asked(run: Path, tmp_path: Path) -> None:
    unfinished = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    newest = WatchedRun(unfinished).newest()
    assert newest is not None
    assert newest.translate(["one"])[0].text == WatchedRun(run).translator(3).translate(["one"])[0].text
    assert newest.training == jumok.load(run / "model").training


def test_a_revised_plan_is_told_with_the_model(tmp_path: Path) -> None:
    """The rate of every step that was made can be drawn, also where a run of minutes changed its mind."""
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", digit_lines(60))
    settings = {**TINY, "training.steps": 6, "training.validate_every": 3}
    events = training_events(pairs, out=tmp_path / "run", **settings)
    next(event for event in events if isinstance(event, Saved))
    events.close()  # type: ignore[attr-defined]
    folder = RunFolder(tmp_path / "run")
    record = folder.record()
    assert record is not None
    folder.write_record(replace(record, plan=record.plan.revised(3, 5)))
    jumok.train(pairs, out=tmp_path / "run", **settings)
    told = jumok.load(tmp_path / "run" / "model").training
    assert (told["steps"], told["plan"]) == (5, [[0, 6], [3, 5]])
