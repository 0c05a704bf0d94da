"""Several processes make the same updates as one, up to rounding; repeated runs are equal bit for bit.

No process is left over, even after an error.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import jumok.training.loop.update
import jumok.training.run.preparation
import jumok.training.run.training_run
from jumok.config.derive import MachineFacts
from jumok.config.recipe import TrainingSettings
from jumok.data.store import open_store
from jumok.errors import TrainingError
from jumok.storage.model_folder import read_model_with_weights
from jumok.text.tokenizer_files import read_tokenizers
from jumok.training.events import Saved, StageDone, Started
from jumok.training.loop.optimiser import make_optimiser, optimiser_tensors
from jumok.training.parallel import group as parallel_group
from jumok.training.parallel.group import DataParallelGroup
from jumok.training.parallel.ownership import assign_owners
from jumok.training.parallel.shared_memory import SharedMemory
from jumok.training.parallel.single import SingleProcess
from jumok.training.run.factories import fresh_model, make_batches
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import training_events
from support.digits import TINY, digit_corpus

if TYPE_CHECKING:
    import subprocess

    from jumok.training.parallel.protocol import ParallelBackend

SHORT: dict[str, Any] = {
    **TINY,
    "training.steps": 12,
    "training.validate_every": 6,
    "training.warmup_steps": 2,
}


def small_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))


def make_backend(name: str, model: torch.nn.Module) -> ParallelBackend:
    if name == "single":
        return SingleProcess(model)
    memory = SharedMemory(model, rank=0, world_size=1, barrier=lambda: None)
    memory.close_block_fd()
    return memory


@pytest.mark.parametrize("name", ["single", "shared memory"])
def test_a_backend_of_one_rank_owns_all_parameters_and_sums_nothing(name: str) -> None:
    model = small_model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    backend = make_backend(name, model)
    assert (backend.rank, backend.world_size) == (0, 1)
    assert all(map(torch.equal, before, model.parameters()))
    optimiser = make_optimiser(model, TrainingSettings())
    backend.bind_optimiser(optimiser)
    state = optimiser_tensors(optimiser, model)
    assert {key.partition("/")[0] for key in state} == {"step", "exp_avg", "exp_avg_sq"}
    assert not any(bool(tensor.any()) for tensor in state.values())
    model[0](torch.ones(2, 3)).sum().backward()  # does not reach the other layers
    gradients = backend.reduce_gradients()
    assert len(gradients) == len(before)
    assert all(
        parameter.grad is gradient for parameter, gradient in zip(model.parameters(), gradients, strict=True)
    )
    assert bool(gradients[0].any())
    assert not bool(gradients[-1].any())
    assert backend.sum_over_ranks([1.5, math.inf]) == [1.5, math.inf]
    backend.share_parameters()
    optimiser.step()
    assert not torch.equal(before[0], model[0].weight)


def test_a_single_process_leaves_the_parameters_where_they_are() -> None:
    model = small_model()
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    SingleProcess(model)
    assert [parameter.data_ptr() for parameter in model.parameters()] == addresses


def test_a_single_process_keeps_state_on_the_models_device() -> None:
    """The device `meta` stands in for an accelerator that this machine does not have."""
    model = small_model().to("meta")
    backend = SingleProcess(model)
    optimiser = make_optimiser(model, TrainingSettings())
    backend.bind_optimiser(optimiser)
    assert {tensor.device.type for tensor in optimiser_tensors(optimiser, model).values()} == {"meta"}


def test_each_parameter_has_one_owner_and_the_loads_of_the_owners_are_balanced() -> None:
    assert assign_owners([16, 64, 32, 16], world_size=2) == [1, 0, 1, 1]
    assert assign_owners([16, 16], world_size=3) == [0, 1]  # rank 2 owns nothing


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run folder with everything that a `DataParallelGroup` needs."""
    path = tmp_path_factory.mktemp("group") / "run"
    settings = {**SHORT, "training.steps": 1, "model.dropout": 0.0}
    list(training_events(digit_corpus(300), out=path, **settings))
    return RunFolder(path)


def make_group(folder: RunFolder, world_size: int) -> DataParallelGroup:
    record = folder.record()
    assert record is not None
    tokenizers = read_tokenizers(folder.path, shared=record.recipe.text.shared)
    batches = make_batches(record.recipe, open_store(folder.data), tokenizers)
    model = fresh_model(folder, record.recipe, tokenizers)
    return DataParallelGroup(model, batches, record.recipe, folder, world_size=world_size)


def make_updates(folder: RunFolder, world_size: int, steps: int = 4) -> tuple[list[Any], list[torch.Tensor]]:
    """Return the results of the first updates of a new group, and the weights after them."""
    with make_group(folder, world_size) as group:
        updates = [group.update(step, 1e-3) for step in range(1, steps + 1)]
        return updates, [parameter.detach().clone() for parameter in group.model.parameters()]


@pytest.mark.medium
@pytest.mark.parametrize("world_size", [2, 3])
def test_several_processes_make_the_same_updates_as_one(folder: RunFolder, world_size: int) -> None:
    """They are equal up to rounding, and bit for bit if the same number of processes repeats them."""
    single_updates, single_weights = make_updates(folder, 1)
    updates, weights = make_updates(folder, world_size)
    for single, shared in zip(single_updates, updates, strict=True):
        assert shared.tokens == single.tokens
        assert shared.loss == pytest.approx(single.loss, rel=1e-4)
        assert shared.nll == pytest.approx(single.nll, rel=1e-4)
        assert shared.gradient_norm == pytest.approx(single.gradient_norm, rel=1e-3)
    for expected, actual in zip(single_weights, weights, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=2e-4)
    repeated = make_updates(folder, world_size)[1]
    assert all(map(torch.equal, repeated, weights))


@pytest.mark.medium
@pytest.mark.parametrize("world_size", [1, 2])
def test_a_reset_group_trains_like_a_new_one(folder: RunFolder, world_size: int) -> None:
    with make_group(folder, world_size) as group:
        group.update(1, 1e-2)
        record = folder.record()
        assert record is not None
        tokenizers = read_tokenizers(folder.path, shared=record.recipe.text.shared)
        group.reset(fresh_model(folder, record.recipe, tokenizers))
        for step in range(1, 5):
            group.update(step, 1e-3)
        after_reset = [parameter.detach().clone() for parameter in group.model.parameters()]
    assert all(map(torch.equal, after_reset, make_updates(folder, world_size)[1]))


@pytest.mark.medium
def test_a_killed_worker_is_reported_and_nothing_hangs(folder: RunFolder) -> None:
    with make_group(folder, 2) as group:
        group.update(1, 1e-3)
        os.kill(group.pids[0], signal.SIGKILL)
        with pytest.raises(TrainingError, match=r"has ended.*run the same command again"):
            group.update(2, 1e-3)


@pytest.mark.medium
def test_a_gradient_that_is_not_finite_on_rank_0_skips_the_update_on_all_ranks(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_group(folder, 2) as group:
        group.update(1, 1e-3)
        before = [parameter.detach().clone() for parameter in group.model.parameters()]
        monkeypatch.setattr(jumok.training.loop.update, "squared_norm", lambda gradients: math.nan)
        assert not group.update(2, 1e-3).applied
        assert all(map(torch.equal, before, group.model.parameters()))
        monkeypatch.undo()
        assert group.update(3, 1e-3).applied
        assert not any(map(torch.equal, before, group.model.parameters()))


@pytest.mark.medium
def test_a_gradient_that_is_not_finite_on_rank_1_skips_the_update_on_all_ranks(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only rank 1, a separate process, computes NaN, in its second update."""
    poison = (
        "import math; from jumok.training.loop import update; "
        "real, calls = update.squared_norm, iter([0, 1]); "
        "update.squared_norm = lambda gradients: math.nan if next(calls, 0) else real(gradients); "
    )
    monkeypatch.setattr(parallel_group, "WORKER_CODE", poison + parallel_group.WORKER_CODE)
    with make_group(folder, 2) as group:
        assert group.update(1, 1e-3).applied
        before = [parameter.detach().clone() for parameter in group.model.parameters()]
        assert not group.update(2, 1e-3).applied
        assert all(map(torch.equal, before, group.model.parameters()))
        assert group.update(3, 1e-3).applied
        assert not any(map(torch.equal, before, group.model.parameters()))


@pytest.mark.medium
def test_workers_do_not_import_from_the_working_folder(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    with make_group(folder, 2) as group:
        assert group.update(1, 1e-3).applied


@pytest.mark.medium
def test_workers_exit_when_rank_0_is_killed(folder: RunFolder) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        group = make_group(folder, 2)
        group.wait_until_ready()
        os.write(writing, str(group.pids[0]).encode())
        time.sleep(60)
        os._exit(1)
    worker = int(os.read(reading, 100))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert _exits_within(worker, seconds=20)


def _exits_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.medium
def test_a_resumed_run_of_two_processes_ends_with_the_same_weights(tmp_path: Path) -> None:
    settings = {**SHORT, "training.processes": 2}
    list(training_events(digit_corpus(300), out=tmp_path / "uninterrupted", **settings))
    for event in training_events(digit_corpus(300), out=tmp_path / "resumed", **settings):
        if isinstance(event, Saved):
            break  # abandons the run in the middle, as an exception would
    events = list(training_events(digit_corpus(300), out=tmp_path / "resumed", **settings))
    assert next(event for event in events if isinstance(event, Started)).resumed_from == 6
    (_, uninterrupted, _), (_, resumed, _) = (
        read_model_with_weights(tmp_path / name / "model") for name in ("uninterrupted", "resumed")
    )
    assert all(torch.equal(uninterrupted[name], resumed[name]) for name in uninterrupted)


@pytest.mark.medium
@pytest.mark.parametrize("limit", [{"minutes": 0.1}, {"steps": 300}, {"epochs": 100}], ids=str)
def test_the_number_of_processes_is_chosen_by_measurement_explained_and_stored(
    limit: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The speed is measured for every kind of limit.

    A resumed run does not measure it again, since another number of processes would give other bits.
    """
    monkeypatch.setattr(jumok.training.run.preparation, "MIN_SECONDS_FOR_PROCESSES", 0.0)
    monkeypatch.setattr(jumok.training.run.preparation, "this_machine", lambda: MachineFacts(cores=2))
    settings = {key: value for key, value in SHORT.items() if not key.startswith("training.")}
    settings |= {**limit, "training.batch_tokens": 256}
    events = training_events(digit_corpus(300), out=tmp_path, **settings)
    started = next(event for event in events if isinstance(event, Started))
    events.close()  # type: ignore[attr-defined]
    derived = {setting.name: setting for setting in started.derived_settings}
    assert started.recipe.training.processes == derived["training.processes"].value
    assert "ms per update; " in derived["training.processes"].reason

    def measure_again(*arguments: object) -> float:
        pytest.fail("a resumed run was measured again")

    monkeypatch.setattr(jumok.training.run.preparation, "measure_update_seconds", measure_again)
    events = training_events(digit_corpus(300), out=tmp_path, **settings)
    resumed = next(event for event in events if isinstance(event, Started))
    events.close()  # type: ignore[attr-defined]
    assert resumed.recipe.training.processes == started.recipe.training.processes


@pytest.mark.medium
@pytest.mark.parametrize("end", ["closed while it is prepared", "error after the preparation"])
def test_a_run_that_ends_before_its_first_step_ends_its_workers(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers end at once. Garbage collection, which would end them much later, is off here."""
    worker_pids: list[int] = []
    start_worker = parallel_group._start_worker

    def remember(task: dict[str, Any]) -> subprocess.Popen[bytes]:
        process = start_worker(task)
        worker_pids.append(process.pid)
        return process

    def fail(folder: Path) -> None:
        raise OSError(f"{folder} cannot be read")

    monkeypatch.setattr(parallel_group, "_start_worker", remember)
    settings = {**SHORT, "training.processes": 2, "training.minutes": 0.1}
    events = training_events(digit_corpus(300), out=tmp_path, **settings)
    gc.disable()
    try:
        if end == "closed while it is prepared":
            next(event for event in events if isinstance(event, StageDone) and event.name == "measuring")
            events.close()  # type: ignore[attr-defined]
        else:
            monkeypatch.setattr(jumok.training.run.training_run, "load_newest_checkpoint", fail)
            with pytest.raises(OSError, match="cannot be read"):
                list(events)
        assert len(worker_pids) == 1
        assert [pid for pid in worker_pids if Path(f"/proc/{pid}").exists()] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("limit", [{"steps": 150}, {"steps": 300}], ids=str)
def test_a_short_run_uses_one_process(
    limit: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of less than a minute uses one process, since starting workers takes some seconds.

    The speed may be measured in 1.5% of the planned steps. In a run of 150 steps these are too few, so the
    speed is not measured at all.
    """
    monkeypatch.setattr(jumok.training.run.preparation, "this_machine", lambda: MachineFacts(cores=2))
    settings = {key: value for key, value in SHORT.items() if not key.startswith("training.")}
    events = training_events(digit_corpus(300), out=tmp_path, **settings, **limit)
    past_events = []
    for event in events:
        past_events.append(event)
        if isinstance(event, Started):
            break
    events.close()  # type: ignore[attr-defined]
    assert past_events[-1].recipe.training.processes == 1  # type: ignore[union-attr]
    stages = [event.name for event in past_events if isinstance(event, StageDone)]
    assert ("measuring" in stages) == (limit["steps"] == 300)
