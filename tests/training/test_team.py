"""Several processes on one update: the same as one, in the same bits each time, and gone when it goes."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from digits import TINY, digit_corpus

import jumok.training.run
import jumok.training.update
from jumok.corpus import open_store
from jumok.errors import TrainingError
from jumok.storage import read_model_folder
from jumok.training import Started, training_events
from jumok.training.derive import MachineFacts
from jumok.training.folder import RunFolder
from jumok.training.prepared import fresh_model, load_vocabularies, make_batches
from jumok.training.team import Team

SHORT: dict[str, Any] = {**TINY, "training.steps": 12, "training.validate_every": 6, "training.warmup": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run folder with everything that a team needs."""
    path = tmp_path_factory.mktemp("team") / "run"
    settings = {**SHORT, "training.steps": 1, "model.dropout": 0.0}
    list(training_events(digit_corpus(300), out=path, **settings))
    return RunFolder(path)


def gathered(folder: RunFolder, members: int) -> Team:
    record = folder.record()
    assert record is not None
    vocabularies = load_vocabularies(folder, record.recipe)
    batches = make_batches(record.recipe, open_store(folder.data), vocabularies)
    model = fresh_model(folder, record.recipe, vocabularies)
    return Team(model, batches, record.recipe, folder, members=members)


def after_updates(folder: RunFolder, members: int, steps: int = 4) -> tuple[list[Any], list[torch.Tensor]]:
    with gathered(folder, members) as team:
        updates = [team.update(step, 1e-3) for step in range(1, steps + 1)]
        return updates, [parameter.detach().clone() for parameter in team.model.parameters()]


@pytest.mark.medium
@pytest.mark.parametrize("members", [2, 3])
def test_a_team_makes_the_updates_of_one(folder: RunFolder, members: int) -> None:
    updates, weights = after_updates(folder, 1)
    shared_updates, shared_weights = after_updates(folder, members)
    for one, many in zip(updates, shared_updates, strict=True):
        assert many.tokens == one.tokens
        assert many.loss == pytest.approx(one.loss, rel=1e-4)
        assert many.nll == pytest.approx(one.nll, rel=1e-4)
        assert many.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-3)
    for alone, shared in zip(weights, shared_weights, strict=True):
        torch.testing.assert_close(shared, alone, rtol=1e-3, atol=2e-4)
    again = after_updates(folder, members)[1]
    assert all(map(torch.equal, again, shared_weights))


@pytest.mark.medium
def test_what_was_measured_with_leaves_no_trace(folder: RunFolder) -> None:
    with gathered(folder, 2) as team:
        team.update(1, 1e-2)
        record = folder.record()
        assert record is not None
        team.start_over(fresh_model(folder, record.recipe, load_vocabularies(folder, record.recipe)))
        for step in range(1, 5):
            team.update(step, 1e-3)
        measured_before = [parameter.detach().clone() for parameter in team.model.parameters()]
    assert all(map(torch.equal, measured_before, after_updates(folder, 2)[1]))


@pytest.mark.medium
def test_a_lost_member_is_told_and_nothing_hangs(folder: RunFolder) -> None:
    with gathered(folder, 2) as team:
        team.update(1, 1e-3)
        os.kill(team.pids[0], signal.SIGKILL)
        with pytest.raises(TrainingError, match=r"has ended.*run the same command again"):
            team.update(2, 1e-3)


@pytest.mark.medium
def test_poison_in_one_member_stops_the_update_in_all(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gathered(folder, 2) as team:
        team.update(1, 1e-3)
        before = [parameter.detach().clone() for parameter in team.model.parameters()]
        monkeypatch.setattr(jumok.training.update, "squared_norm", lambda gradients: math.nan)
        assert not team.update(2, 1e-3).applied
        assert all(map(torch.equal, before, team.model.parameters()))
        monkeypatch.undo()
        assert team.update(3, 1e-3).applied
        assert not any(map(torch.equal, before, team.model.parameters()))


@pytest.mark.medium
def test_members_do_not_import_from_the_working_folder(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    with gathered(folder, 2) as team:
        assert team.update(1, 1e-3).applied


@pytest.mark.medium
def test_members_leave_when_the_first_one_is_killed(folder: RunFolder) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        team = gathered(folder, 2)
        team.await_all()
        os.write(writing, str(team.pids[0]).encode())
        time.sleep(60)
        os._exit(1)
    member = int(os.read(reading, 100))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert _gone_within(member, seconds=20)


def _gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.medium
def test_a_run_of_two_processes_continues_in_the_same_bits(tmp_path: Path) -> None:
    settings = {**SHORT, "training.processes": 2}
    list(training_events(digit_corpus(300), out=tmp_path / "whole", **settings))
    for event in training_events(digit_corpus(300), out=tmp_path / "parts", **settings):
        if type(event).__name__ == "Saved":
            break  # left in the middle, as by an exception
    events = list(training_events(digit_corpus(300), out=tmp_path / "parts", **settings))
    assert next(event for event in events if isinstance(event, Started)).resumed_from == 6
    (_, whole, _), (_, parts, _) = (read_model_folder(tmp_path / n / "model") for n in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.medium
def test_where_minutes_are_set_the_faster_way_is_measured_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jumok.training.run, "SHORTEST_FOR_A_TEAM", 0.0)
    monkeypatch.setattr(jumok.training.run, "this_machine", lambda: MachineFacts(cores=2))
    settings = {key: value for key, value in SHORT.items() if not key.startswith("training.")}
    events = list(training_events(digit_corpus(300), out=tmp_path, minutes=0.1, **settings))
    started = next(event for event in events if isinstance(event, Started))
    reasons = {reason.setting: reason for reason in started.reasons}
    assert started.recipe.training.processes == reasons["training.processes"].value
    assert "ms an update, and" in reasons["training.processes"].why
