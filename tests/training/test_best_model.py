"""A run has a model from its first validation on: the best so far. `jumok finish` ends a run with a model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

import jumok
from jumok.errors import ModelFolderError, RunFolderError
from jumok.storage.folders import json_with_checksum
from jumok.storage.model_folder import read_model_with_weights, read_stored_model, save_model
from jumok.training.events import Event, Finished, Saved, Started, Validated
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import finish_events, training_events
from support.digits import TINY, digit_corpus

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    **TINY,
    "training.steps": 20,
    "training.validate_every": 5,
    "training.warmup_steps": 2,
    "training.average_checkpoints": 2,
}


def events(out: Path, **settings: Any) -> Any:
    return training_events(digit_corpus(200), out=out, **{**SETTINGS, **settings})


def abandon_after(out: Path, step: int, **settings: Any) -> list[Event]:
    """Abandon a run after the checkpoint of this step, as if its process were killed."""
    past_events, stream = [], events(out, **settings)
    for event in stream:
        past_events.append(event)
        if isinstance(event, Saved) and event.step >= step:
            break
    stream.close()
    return past_events


def weights(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


@pytest.fixture
def killed_run(tmp_path: Path) -> Path:
    """The folder of a run that was killed after step 10."""
    abandon_after(tmp_path / "run", 10)
    return tmp_path / "run"


def test_the_model_of_a_run_has_the_weights_of_the_best_validation_so_far(tmp_path: Path) -> None:
    best = 0
    for event in events(tmp_path / "run"):
        if isinstance(event, Validated) and event.best:
            best = event.step
        if isinstance(event, Saved):
            card, _, _ = read_model_with_weights(tmp_path / "run")
            assert card.facts["steps"] == best
            checkpoint = tmp_path / "run" / "checkpoints" / f"step-{best}" / "weights.safetensors"
            assert weights(tmp_path / "run" / "model") == checkpoint.read_bytes()
            assert card.scores["chrf"].signature.startswith("nrefs:1")
    assert isinstance(event, Finished)
    assert event.reason == "done"
    card, _, _ = read_model_with_weights(tmp_path / "run" / "model")
    assert (card.facts["steps"], card.facts["best_step"]) == (20, best)


def test_a_killed_run_translates(killed_run: Path) -> None:
    translator = jumok.load(killed_run)
    assert translator.translate(["one two"])[0].text
    assert "the best so far of an unfinished run" in str(read_stored_model(killed_run).card.facts["weights"])


def test_the_next_session_writes_the_model_that_a_killed_session_did_not_write(killed_run: Path) -> None:
    before = weights(killed_run / "model")
    shutil.rmtree(killed_run / "model")
    stream = events(killed_run)
    for event in stream:
        if isinstance(event, Saved):
            break
    stream.close()
    # The model is that of the best validation so far, whichever that is.
    assert read_stored_model(killed_run).card.facts["steps"] in (5, 10, 15)
    # The folder is now as after the kill at step 10, but without a model and without metrics.
    shutil.rmtree(killed_run / "model")
    shutil.rmtree(killed_run / "checkpoints" / "step-15")
    (killed_run / "metrics.jsonl").write_bytes(b"")
    stream = events(killed_run)
    assert any(isinstance(event, Started) for event in stream)
    next(stream, None)  # a session writes a missing model after `Started` and before its next event
    stream.close()
    assert weights(killed_run / "model") == before


def test_a_run_without_a_validation_has_no_model(tmp_path: Path) -> None:
    stream = events(tmp_path / "run")
    assert any(isinstance(event, Started) for event in stream)
    stream.close()
    with pytest.raises(ModelFolderError, match="has no model yet: it gets one at its first validation"):
        jumok.load(tmp_path / "run")
    with pytest.raises(RunFolderError, match="has no checkpoint yet"):
        list(finish_events(tmp_path / "run"))


def test_finish_makes_the_model_without_the_corpus(killed_run: Path) -> None:
    last = list(finish_events(killed_run))[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.steps, last.model_folder) == ("stopped", 10, killed_run / "model")
    card, _, _ = read_model_with_weights(killed_run)
    assert card.read_out is not None
    average = "the average of the last 2 checkpoints up to step 10"
    assert card.facts["weights"] in (average, "the checkpoint of step 10")
    assert RunFolder(killed_run).record().end_reason == "stopped"  # type: ignore[union-attr]
    again = list(finish_events(killed_run))
    assert [event.reason for event in again if isinstance(event, Finished)] == ["already finished"]


def test_finish_of_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    list(events(tmp_path / "run"))
    before = weights(tmp_path / "run" / "model")
    [event] = finish_events(tmp_path / "run")
    assert isinstance(event, Finished)
    assert event.reason == "already finished"
    assert weights(tmp_path / "run" / "model") == before


def test_finish_needs_a_run_folder(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder"):
        list(finish_events(tmp_path))


def test_finish_refuses_a_run_that_stored_no_validation_pairs(killed_run: Path) -> None:
    (killed_run / "validation.jsonl").unlink()
    with pytest.raises(RunFolderError, match="Repeat the `jumok train` command of this run"):
        list(finish_events(killed_run))


def test_finish_is_refused_while_another_process_trains_the_run(killed_run: Path) -> None:
    stream = events(killed_run)
    next(stream)
    with pytest.raises(RunFolderError, match="Another process is training"):
        list(finish_events(killed_run))
    stream.close()


def test_a_run_of_an_older_jumok_counts_as_finished_if_it_has_a_model(tmp_path: Path) -> None:
    list(events(tmp_path / "run"))
    record_file = tmp_path / "run" / "run.json"
    content = json.loads(record_file.read_text())
    for key in ("finished", "checksum"):
        content.pop(key)
    record_file.write_bytes(json_with_checksum(content))
    assert [type(event) for event in events(tmp_path / "run")] == [Finished]


def test_an_unfinished_run_of_an_older_jumok_still_continues_after_it_gets_a_model(killed_run: Path) -> None:
    shutil.rmtree(killed_run / "model")  # an older jumok wrote the model only at the end
    record_file = killed_run / "run.json"
    content = json.loads(record_file.read_text())
    for key in ("finished", "checksum"):
        content.pop(key)
    record_file.write_bytes(json_with_checksum(content))
    stream = events(killed_run)
    assert any(isinstance(event, Started) for event in stream)
    next(stream, None)  # a session writes a missing model after `Started` and before its next event
    stream.close()
    assert (killed_run / "model").exists()
    assert any(isinstance(event, Started) for event in events(killed_run))


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(
    killed_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that misses a file, because the folder is being replaced, reads the new folder."""
    import jumok.storage.model_folder as module

    replacement = killed_run.parent / "replacement"
    shutil.copytree(killed_run / "model", replacement)
    real, removed_while_reading = module.read_listed_file, []

    def read(folder: Path, name: str, entry: object) -> bytes:
        if not removed_while_reading:
            removed_while_reading.append(name)
            shutil.rmtree(killed_run / "model")
        data = real(folder, name, entry) if (killed_run / "model").exists() else b""
        if not data:
            shutil.copytree(replacement, killed_run / "model")
            raise ModelFolderError("missing")
        return data

    monkeypatch.setattr(module, "read_listed_file", read)
    steps = [read_stored_model(folder).card.facts["steps"] for folder in (killed_run, replacement)]
    assert steps[0] == steps[1]
    assert removed_while_reading


def test_a_loaded_model_keeps_its_weights_when_its_folder_is_replaced(killed_run: Path) -> None:
    """The weights are read later, when torch is needed. The folder may have been replaced by then."""
    stored = read_stored_model(killed_run)
    before, loaded = stored.weights(), stored.without_weights()
    newer = {name: weight + 1 for name, weight in before.items()}
    save_model(killed_run / "model", stored.card, newer, stored.tokenizers, replace=True)
    loaded_weights = loaded.weights()
    assert all(torch.equal(loaded_weights[name], weight) for name, weight in before.items())
    with pytest.raises(ModelFolderError, match="was replaced by a newer model"):
        replace(loaded, weights_file=None).weights()
