"""The operations of a live page return what Python computes, with and without changes."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import jumok
from jumok.analysis import sentence_scores
from jumok.analysis.cost import CostLimits, count_weights
from jumok.analysis.explainer import explain
from jumok.analysis.json_format import explanation_from_json, layers_to_document
from jumok.analysis.packing import unpack_floats, unpack_weights
from jumok.data.batching import padded_batch
from jumok.errors import DataError, UnsupportedError
from jumok.pictures.reading import picture_data_url, write_picture
from jumok.server.viewer.run_monitor import RunMonitor, is_run_folder
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.text.sentences import text_spans
from jumok.training.events import Saved
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import training_events
from jumok.types import END
from support.digit_lines import TINY, digit_lines, write_tsv
from support.picture_files import half_bright
from support.random_translators import (
    SENTENCE,
    SMALL_MODELS,
    TARGET,
    make_translator,
    picture_classifier,
    picture_translator,
    small_translator,
)
from support.serve_process import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.attention import AttentionSite


def request(service: ExplanationService, operation: str, **fields: Any) -> Any:
    return json.loads(service.handle(operation, json.dumps(fields).encode()))


def service_of(name: str) -> ExplanationService:
    return ExplanationService([NamedTranslator(name, small_translator(name))])


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_without_changes_the_text_is_that_of_translate(name: str) -> None:
    response = request(service_of(name), "explain", sentence=SENTENCE)
    assert response["target"]["text"] == small_translator(name).translate([SENTENCE])[0].text
    assert explanation_from_json(json.dumps(response)).text == response["target"]["text"]


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_painting_a_weight_equals_an_edit_hook(name: str) -> None:
    """A painted weight and an edit hook that sets the same weight give the same log-probability."""
    translator = small_translator(name)
    change = {"kind": "paint", "site": "cross", "layer": 0, "head": 0, "query": 1, "key": 2, "weight": 0.75}
    response = request(service_of(name), "explain", sentence=SENTENCE, target=TARGET, changes=[change])

    def paint(weights: Any, site: AttentionSite, /) -> Any:
        is_painted = (site.name, site.layer) == ("cross", 0)
        if not is_painted or not site.query_offset <= 1 < site.query_offset + weights.shape[2]:
            return weights
        edited, row = weights.clone(), 1 - site.query_offset
        others = edited[:, 0, row].sum(-1) - edited[:, 0, row, 2]
        edited[:, 0, row] *= (0.25 / others)[:, None]
        edited[:, 0, row, 2] = 0.75
        return edited

    source, target = (
        tokenizer.encode(text)
        for tokenizer, text in (
            (translator.tokenizers.source, SENTENCE),
            (translator.tokenizers.target, TARGET),
        )
    )
    batch = padded_batch([source], [target])
    log_probs = translator.model.output.log_probs(translator.model(batch, edit=paint))[0]
    expected = log_probs.gather(1, batch.target[0, 1:, None]).sum().item()
    assert response["log_prob"] == pytest.approx(expected, abs=1e-3)
    assert response["before"]["log_prob"] != pytest.approx(expected, abs=1e-4)


def test_each_part_of_a_sentence_that_is_too_long_is_explained() -> None:
    [settings, *_] = SMALL_MODELS.values()
    translator = make_translator(settings, max_source_tokens=12)
    service = ExplanationService([NamedTranslator("model", translator)])
    sentence = "the old house sees a small tree, and the small tree sees the old house and a river. A river."
    parts = translator.translate([sentence])[0].parts
    assert len(parts) > len(text_spans(sentence))
    for index in (0, len(parts) - 1):
        response = request(service, "explain", sentence=sentence, index=index)
        assert response["whole_text"]["parts"] == [{"source": source, "text": text} for source, text in parts]
        assert (response["source"]["text"], response["target"]["text"]) == parts[index]


def test_a_forced_candidate_begins_the_translation() -> None:
    service = service_of("transformer")
    plain = request(service, "explain", sentence=SENTENCE)
    other = next(id_ for id_, _, _ in plain["candidates"][0] if id_ not in {END, plain["target"]["ids"][0]})
    forced = request(service, "explain", sentence=SENTENCE, prefix=[other])
    assert forced["target"]["ids"][0] == other
    assert forced["forced"] == 1  # the number of tokens that the request forced


def test_steps_and_effects_are_those_of_the_explanation() -> None:
    service, translator = service_of("transformer"), small_translator("transformer")
    cell = {"site": "cross", "layer": 1, "head": 1, "query": 0, "key": 2}
    response = request(service, "steps", sentence=SENTENCE, cell=cell)
    assert {name: response[name] for name in cell} == cell
    assert [step["name"] for step in response["steps"]][-1] == "log-probability"
    response = request(service, "rank-heads", sentence=SENTENCE)
    expected, groups = explain(translator, SENTENCE).effects()
    for site, table in expected.items():
        assert np.allclose(response["effect"][site], table.sum(axis=2), atol=1e-5)
        assert np.allclose(unpack_floats(response["token_effect"][site]), table)
    assert [group["effect"] for group in response["group_effects"]] == pytest.approx(
        [group.effect for group in groups], abs=1e-5
    )


def test_weights_are_exact_to_four_decimals() -> None:
    response = request(service_of("transformer"), "explain", sentence=SENTENCE)
    exact = explain(small_translator("transformer"), SENTENCE)
    for site, attention in exact.attention.items():
        assert np.allclose(unpack_weights(response["attention"][site]), attention.weights, atol=3e-5)
    assert np.allclose(unpack_weights(response["roll_out"]["encoder"]), exact.roll_out("encoder"), atol=3e-5)


def test_steps_without_a_cell_are_refused() -> None:
    with pytest.raises(DataError, match="no cell"):
        request(service_of("transformer"), "steps", sentence=SENTENCE)


@pytest.mark.parametrize(
    ("change", "location"),
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
def test_a_badly_typed_change_is_refused_before_a_model_sees_it(
    change: dict[str, Any], location: str
) -> None:
    with pytest.raises(DataError, match=f"is not valid: {location}: "):
        request(service_of("transformer"), "explain", sentence=SENTENCE, changes=[change])


@pytest.mark.parametrize("operation", ["explain", "rank-heads", "steps"])
@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"target": "😀" * 1000}, r"8 source and 4,001 target tokens"),  # four bytes each, and the space
        ({"sentence": "😀" * 1000, "target": "x"}, r"4,001 source and 2 target tokens"),
    ],
)
def test_an_explanation_of_too_many_tokens_is_refused_before_a_model_computes_it(
    operation: str, fields: dict[str, str], tokens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, a request of 4 KB took 4.5 GB, because the translation was limited in characters only."""
    service = service_of("transformer")
    # `count_weights` runs one forward pass to count the heads, and caches their number. This call is needed
    # because `forward` is replaced below.
    count_weights(small_translator("transformer").model, 1, 1)

    def compute(*_: Any, **__: Any) -> None:
        raise AssertionError("the model has computed something")

    monkeypatch.setattr(small_translator("transformer").model, "forward", compute)
    monkeypatch.setattr(small_translator("transformer").model, "attention", compute)
    cell = {"site": "cross", "layer": 0, "head": 0, "query": 0, "key": 0}
    with pytest.raises(DataError, match=rf"[\d,]+ attention weights; at most 4,000,000 .* {tokens}"):
        request(service, operation, **{"sentence": SENTENCE, "cell": cell, **fields})


def test_the_cache_keeps_only_as_many_large_explanations_as_its_limit_allows() -> None:
    translator = small_translator("transformer")
    # The sentence has 8 tokens. There is room for three explanations with 10 target tokens each.
    limits = CostLimits(max_weights=3 * count_weights(translator.model, 8, 10))
    service = ExplanationService([NamedTranslator("tiny", translator)], limits=limits)
    for target in ("a", "a a", "a a a", *("a " * 9 + word for word in ("tree", "house", "river", "home"))):
        request(service, "explain", sentence=SENTENCE, target=target)
    assert len(service._cache) == 3


def test_an_answer_that_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.server.viewer.service.MAX_ANSWER_BYTES", 1000)
    with pytest.raises(DataError, match=r"[\d,]+ bytes; at most 1,000 are sent"):
        request(service_of("transformer"), "explain", sentence=SENTENCE)


def test_a_page_with_the_model_in_it_is_written_if_its_settings_are_known() -> None:
    model = NamedTranslator("mine", small_translator("bahdanau"), SMALL_MODELS["bahdanau"])
    service = ExplanationService([model])
    [entry] = service.page_data()["live"]["models"]
    assert entry["can_be_saved"]
    page = request(service, "file", model=0, sentence=SENTENCE)["html"]
    assert 'id="jumok-weights"' in page
    assert SENTENCE in page
    with pytest.raises(UnsupportedError, match="cannot be saved into a page here"):
        request(service_of("bahdanau"), "file", model=0)
    with pytest.raises(DataError, match="There are 1 models"):
        request(service, "file", model=1)


def test_the_response_repeats_the_changes_of_the_request() -> None:
    changes: list[dict[str, Any]] = [
        {"kind": "silence", "site": "cross", "layer": 0, "head": None},
        {"kind": "paint", "site": "encoder", "layer": 0, "head": 0, "query": 1, "key": 2, "weight": 1},
        {
            "kind": "pin",
            "site": "cross",
            "layer": None,
            "head": 1,
            "queries": [0, 1],
            "keys": [1],
            "weight": 0.5,
        },
    ]
    response = request(service_of("transformer"), "explain", sentence=SENTENCE, changes=changes)
    assert response["changes"] == changes


def test_several_models_are_selected_by_index() -> None:
    names = ["transformer", "bahdanau"]
    service = ExplanationService([NamedTranslator(name, small_translator(name)) for name in names])
    entries = service.page_data()["live"]["models"]
    assert [entry["facts"]["family"] for entry in entries] == ["transformer", "recurrent"]
    for index, name in enumerate(names):
        response = request(service, "explain", model=index, sentence=SENTENCE)
        assert response["target"]["text"] == small_translator(name).translate([SENTENCE])[0].text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("monitored")
    pairs = write_tsv(folder / "digits.en-de.tsv", digit_lines(60))
    jumok.train(pairs, out=folder / "run", **TINY)
    return folder / "run"


def test_a_run_reports_its_metrics_and_checkpoints(run: Path) -> None:
    assert is_run_folder(run)
    assert not is_run_folder(run / "model")
    monitor = RunMonitor(run)
    service = ExplanationService([], run=monitor)
    report = request(service, "run")
    assert report["finished"]
    assert report["metrics"][-1]["kind"] == "validation"
    assert (report["source_language"], report["target_language"]) == ("en", "de")
    step = report["checkpoints"][-1]
    snapshot = request(service, "snapshot", step=step, sentence="one two")
    assert snapshot["target"]["text"] == monitor.translator(step).translate(["one two"])[0].text
    with pytest.raises(DataError, match="has no checkpoint of step 99, or no longer"):
        request(service, "snapshot", step=99, sentence="one")


def test_the_report_of_a_run_has_the_metrics_of_other_runs(run: Path) -> None:
    service = ExplanationService([], run=RunMonitor(run), other_runs=[RunMonitor(run)])
    report = request(service, "run")
    [other] = report["others"]
    assert other["name"] == report["name"]
    losses = [[line.get("loss") for line in lines] for lines in (report["metrics"], other["metrics"])]
    assert losses[0] == losses[1]
    assert not any(isinstance(value, list | dict) for line in other["metrics"] for value in line.values())
    assert request(ExplanationService([], run=RunMonitor(run)), "run")["others"] == []


def run_service(run: Path) -> ExplanationService:
    translator = jumok.load(run / "model", engine="torch")
    return ExplanationService([NamedTranslator("digits", translator)], run=RunMonitor(run))


def test_a_head_is_profiled_over_the_validation_set_of_a_run(run: Path) -> None:
    service, (pairs, available) = run_service(run), RunMonitor(run).validation_pairs(4)
    profile = request(service, "head_profile", site="cross", layer=0, head=0, sentences=4)
    assert (profile["sentences"], profile["available"], profile["model"]) == (4, available, "digits")
    assert profile["strongest"][0]["source"] in {pair.source for pair in pairs}
    with pytest.raises(DataError, match="no layer 9"):
        request(service, "head_profile", site="cross", layer=9, head=0)
    with pytest.raises(DataError, match="1 models"):
        request(service, "head_profile", site="cross", layer=0, head=0, model=1)


def test_the_newest_model_of_a_run_translates_its_validation_sentences(run: Path) -> None:
    """The newest model translates them even if the page shows another model."""
    monitor = RunMonitor(run)
    service = ExplanationService([NamedTranslator("other", small_translator("luong"))], run=monitor)
    response = request(service, "sentences", sentences=3)
    rows, (pairs, available) = response["sentences"], monitor.validation_pairs(3)
    assert [row["source"] for row in rows] == [pair.source for pair in pairs]
    newest = jumok.load(run / "model", engine="torch")
    hypotheses = [translation.text for translation in newest.translate([row["source"] for row in rows])]
    assert [row["hypothesis"] for row in rows] == hypotheses
    assert (response["available"], response["step"]) == (available, None)
    steps = request(service, "run")["checkpoints"]
    assert response["previous_step"] == (steps[-2] if len(steps) > 1 else None)
    with pytest.raises(DataError, match="less than or equal to 500"):
        request(service, "sentences", sentences=501)


@pytest.mark.parametrize(
    ("operation", "fields"),
    [("sentences", {}), ("head_profile", {"site": "cross", "layer": 0, "head": 0})],
)
def test_the_explanation_of_a_sentence_does_not_wait_for_long_work(
    run: Path, monkeypatch: pytest.MonkeyPatch, operation: str, fields: dict[str, Any]
) -> None:
    monkeypatch.setattr(sentence_scores, "BLOCK_PAIRS", 2)
    service = run_service(run)
    events: list[Any] = []
    clients: list[threading.Thread] = []

    def on_partial(partial: dict[str, Any]) -> None:
        events.append(partial["progress"])
        if not clients:
            clients.append(threading.Thread(target=explain_one))
            clients[0].start()
            wait_until(lambda: service._lock._num_waiting == 1)

    def explain_one() -> None:
        request(service, "explain", sentence="one two")
        events.append("explained")

    service.handle(operation, json.dumps({"sentences": 6} | fields).encode(), on_partial)
    clients[0].join(20)
    assert events.index("explained") < len(events) - 1  # the long work continues after the explanation
    progress = [event for event in events if event != "explained"]
    assert progress == sorted(progress)
    assert progress[-1][0] == progress[-1][1]
    assert len(progress) > 1


def test_long_work_ends_when_nobody_waits_for_it(run: Path) -> None:
    service = run_service(run)
    calls: list[dict[str, Any]] = []

    def on_partial(partial: dict[str, Any]) -> None:
        calls.append(partial)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        service.handle("sentences", b'{"sentences": 16}', on_partial)
    assert len(calls) == 1
    assert request(service, "explain", sentence="one two")["source"]["text"] == "one two"


def test_a_run_without_a_model_has_no_scored_sentences(run: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    service = ExplanationService([], run=RunMonitor(tmp_path))
    with pytest.raises(DataError, match="no checkpoint"):
        request(service, "sentences")


@pytest.mark.parametrize("name", ["transformer", "luong"])
def test_measures_and_layers_are_those_of_the_explanation(name: str) -> None:
    service, translator = service_of(name), small_translator(name)
    explanation = explain(translator, SENTENCE)
    response, expected = request(service, "measures", sentence=SENTENCE), explanation.measures()
    assert expected.erasure is not None
    assert np.allclose(unpack_floats(response["erasure"]), expected.erasure)
    assert np.allclose(unpack_floats(response["gradient"]["cross"]), expected.gradient["cross"])
    for site, norms in expected.value_norms.items():
        assert np.allclose(unpack_weights(response["value_norms"][site]), norms, rtol=1e-3, atol=1e-3)
    layers = request(service, "layers", sentence=SENTENCE)["layers"]
    expected_layers = explanation.with_layer_predictions().layers if name == "transformer" else ()
    assert layers == json.loads(json.dumps(layers_to_document(expected_layers)))


def test_the_explanation_has_the_training_facts_of_the_model(run: Path) -> None:
    translator = jumok.load(run / "model")
    facts = explain(translator, "one two").facts["training"]
    assert facts == {
        "schedule": "cosine",
        "steps": 3,
        "plan": [[0, 3]],
        **{
            name: facts[name] for name in ("learning_rate", "warmup")
        },  # derived, so any value is accepted here
    }
    assert 0 < facts["learning_rate"] < 1
    assert "training" not in explain(small_translator("transformer"), SENTENCE).facts


def test_an_unfinished_line_of_metrics_is_ignored(run: Path, tmp_path: Path) -> None:
    run_copy = shutil.copytree(run, tmp_path / "run")
    (run_copy / "metrics.jsonl").write_bytes(b'{"step": 1}\n{"st')
    assert RunMonitor(run_copy).report()["metrics"] == [{"step": 1}]


@pytest.mark.parametrize(
    "line",
    [b'{"step": 2', b"\x00\xff\xfe", b"", b"7", b'{"loss": NaN}', b"[" * 100_000],
    ids=["torn", "bytes", "empty", "number", "nan", "nested"],
)
def test_damaged_lines_of_metrics_are_skipped(line: bytes, run: Path, tmp_path: Path) -> None:
    run_copy = shutil.copytree(run, tmp_path / "run")
    (run_copy / "metrics.jsonl").write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3}\n')
    report = request(ExplanationService([], run=RunMonitor(run_copy)), "run")
    assert report["metrics"] == [{"step": 1}, {"step": 3}]


def test_a_run_without_a_checkpoint_has_no_model_yet(run: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    assert RunMonitor(tmp_path).newest() is None
    assert RunMonitor(tmp_path).report() == {
        "name": tmp_path.name,
        "finished": False,
        "source_language": "en",
        "target_language": "de",
        "checkpoints": [],
        "metrics": [],
    }


def test_an_unfinished_run_uses_its_newest_checkpoint(run: Path, tmp_path: Path) -> None:
    unfinished = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    newest = RunMonitor(unfinished).newest()
    assert newest is not None
    assert newest.step == 3
    expected = RunMonitor(run).translator(3).translate(["one"])[0].text
    assert newest.translator.translate(["one"])[0].text == expected
    assert newest.translator.facts.training == jumok.load(run / "model").facts.training


def test_a_revised_plan_is_stored_with_the_model(tmp_path: Path) -> None:
    """With all plans, the page can draw the learning rate of every past step."""
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
    facts = jumok.load(tmp_path / "run" / "model").facts.training
    assert (facts["steps"], facts["plan"]) == (5, [[0, 6], [3, 5]])


def test_models_that_read_pictures_answer_with_captions_classes_and_maps(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", half_bright("top", 1))
    url = picture_data_url(tmp_path / "a.png")
    models = [
        NamedTranslator("captioner", picture_translator()),
        NamedTranslator("classifier", picture_classifier()),
    ]
    service = ExplanationService(models, picture=url)
    data = service.page_data()["live"]
    assert data["picture"] == url
    assert [model["reads_pictures"] for model in data["models"]] == [True, True]
    partial: list[str] = []
    body = json.dumps({"sentence": "", "picture": url}).encode()
    caption = json.loads(service.handle("explain", body, lambda fields: partial.append(fields["partial"])))
    assert caption["target"]["text"] == picture_translator().translate([str(tmp_path / "a.png")])[0].text
    assert partial[-1] == caption["target"]["text"]
    assert caption["picture"]["rows"] == 4
    assert (
        request(service, "rank-heads", sentence="", picture=url)["effect"].keys()
        == caption["attention"].keys()
    )
    classification = request(service, "explain", model=1, sentence="", picture=url)
    assert classification["target"]["text"] == picture_classifier().classify([url])[0].name
    assert classification["roll_out"]["encoder"]["shape"] == [17, 17]  # a class token and 16 patches
    with pytest.raises(UnsupportedError, match="Received: a classifier"):
        request(service, "rank-heads", model=1, sentence="", picture=url)
    with pytest.raises(UnsupportedError, match="takes no changes, no prefix and no caption"):
        request(service, "explain", model=1, sentence="", picture=url, target="left")


def test_a_picture_must_be_sent_and_must_not_be_a_path(tmp_path: Path) -> None:
    service = ExplanationService([NamedTranslator("captioner", picture_translator())])
    with pytest.raises(DataError, match="send one as a data: URL"):
        request(service, "explain", sentence="a")
    write_picture(tmp_path / "a.png", half_bright("top", 1))
    with pytest.raises(DataError, match="not valid"):
        request(service, "explain", sentence="", picture=str(tmp_path / "a.png"))
    assert service.max_picture_characters > service_of("transformer").max_picture_characters == 0
