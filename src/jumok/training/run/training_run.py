"""A complete run: sentence pairs in, events out, a model folder at the end.

    for event in training_events("pairs.tsv", out="runs/mine", minutes=5):
        ...

If `out` is the folder of an earlier run, that run continues: everything that was decided before its first
step (`preparation.py`) is read from the folder.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.derive import USED_SHARE_OF_MINUTES, step_limit
from jumok.config.resolve import Overrides
from jumok.errors import RunFolderError, UnsupportedError
from jumok.storage.model_folder import read_model_with_weights
from jumok.system.memory import reuse_freed_memory
from jumok.system.signals import stop_on_signals
from jumok.training.events import Event, Finished, Saved, Started, Warned
from jumok.training.loop.checkpoint import load_newest_checkpoint, saved_steps
from jumok.training.loop.metrics import Metrics, tensorboard_writer
from jumok.training.loop.trainer import Budget, RunFiles, Trainer
from jumok.training.parallel.cluster import ClusterAddress, check_world_size, joined_cluster
from jumok.training.parallel.follower import follow
from jumok.training.run.best_model import BestModel
from jumok.training.run.fine_tuning import read_fine_tuning
from jumok.training.run.finish import finish_run, interrupted_event
from jumok.training.run.inputs import Inputs, has_same_sources, list_inputs
from jumok.training.run.more_training import (
    check_limits_are_larger,
    extend_record,
    must_complete_first,
    requested_limits,
)
from jumok.training.run.overrides import make_overrides
from jumok.training.run.preparation import (
    check_sentences_and_update_sources,
    prepare_from_folder,
    prepare_run,
    read_inputs,
)
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from jumok.config.recipe import Recipe
    from jumok.training.loop.metrics import CurveWriter
    from jumok.training.parallel.group import DataParallelGroup
    from jumok.training.run.inputs import InputItems
    from jumok.training.run.preparation import PreparedRun
    from jumok.training.run.run_folder import RunRecord


def train(
    pairs: InputItems = (),
    *,
    out: str | Path,
    valid: InputItems = (),
    recipe: Overrides | Recipe | None = None,
    columns: str = "",
    encoding: str = "",
    tensorboard: bool = False,
    **settings: Any,
) -> Path:
    """Train and return the model folder, which is on the disk of rank 0 if there are several ranks.

    The arguments are those of `training_events`. A RunFolderError is raised if the run is interrupted.
    """
    finished: Finished | None = None
    address = ClusterAddress.from_environment()
    options: dict[str, Any] = {"columns": columns, "encoding": encoding, "tensorboard": tensorboard}
    for event in training_events(pairs, out=out, valid=valid, recipe=recipe, **options, **settings):
        if isinstance(event, Finished):
            finished = event
    if finished is None and address is not None and address.rank > 0:
        return RunFolder(Path(out)).model
    if finished is None or finished.model_folder is None or finished.reason == "interrupted":
        best = finished.model_folder if finished is not None else None
        note = f" The best model so far is in {best}." if best is not None else ""
        raise RunFolderError(
            f"Training in {out} was interrupted.{note} Run the same command again to continue it."
        )
    return finished.model_folder


def training_events(
    pairs: InputItems = (),
    *,
    out: str | Path,
    valid: InputItems = (),
    recipe: Overrides | Recipe | None = None,
    columns: str = "",
    encoding: str = "",
    tensorboard: bool = False,
    **settings: Any,
) -> Iterator[Event]:
    """Train on sentence pairs, or continue the run in `out`. Nothing happens before the first `next`.

    `pairs` are files, corpora, or pairs in memory: `[("Hello.", "안녕하세요."), …]`. `columns` chooses two
    columns of a table (`"en,ko"` or `"2,4"`), `encoding` is for texts that are not UTF-8.

    To continue a run, `pairs` can be left out. Larger limits (`steps`, `epochs`, `minutes`) give a run more
    training (`more_training.py`); they count from the start of the run.

    Settings take precedence over `recipe`. Give a setting by its name, `minutes=5`, or with its section,
    `**{"model.dropout": 0.2}`. A recipe file is `Overrides.from_settings(read_recipe(path))`.

    If torchrun has started this process as one of several, they train together (`parallel/cluster.py`): only
    rank 0 has events and the run folder; on other ranks the iteration yields nothing and ends with the run.
    """
    overrides = make_overrides(recipe, settings)
    inputs = Inputs(list_inputs(pairs), list_inputs(valid), columns, encoding)
    folder = RunFolder(Path(out))
    make_writer = tensorboard_writer() if tensorboard else None
    reuse_freed_memory()
    with joined_cluster() as cluster:
        if cluster is not None:
            cluster.check_run_is_on_rank_0(has_run=folder.record_file.exists())
            if cluster.rank > 0:
                follow(cluster)
                return
            overrides = _with_world_size(overrides, folder, cluster.world_size)
        with folder.locked():
            record = folder.record()
            limits = None if record is None else requested_limits(overrides, record)
            if folder.is_finished(record) and limits is None:
                if record is not None:
                    _check_same_run(folder, record, overrides, inputs)
                yield _finished_event(folder)
                return
            prepared = yield from prepare_run(folder, record, overrides, inputs)
            with closing(prepared):
                if record is not None and not folder.is_finished(record):
                    # Older versions of jumok did not record whether a run has ended; a record without this
                    # entry counts as ended if there is a model folder. This run will write its best model
                    # before it ends, so store now that it has not ended.
                    folder.write_record(folder.record() or record)
                curves = make_writer(str(folder.path / "tensorboard")) if make_writer else None
                run = prepared if limits is None else (yield from _extend(prepared, limits, curves))
                if run is not None:
                    yield from _train(run, curves)


def _with_world_size(overrides: Overrides, folder: RunFolder, world_size: int) -> Overrides:
    """Return the overrides of a run on the ranks that torchrun has started."""
    record = folder.record() if folder.record_file.exists() else None
    if record is not None and not record.recipe.training.shares:
        check_world_size(record.recipe.training.processes, world_size)
    processes = overrides.get("training.processes")
    if processes not in (None, world_size):
        raise UnsupportedError(
            f"Received: training.processes = {processes}, and {world_size} ranks from "
            "torchrun. Leave the setting out: the ranks decide it."
        )
    return overrides.updated({"training.processes": world_size})


def _extend(
    run: PreparedRun, limits: dict[str, float], curves: CurveWriter | None
) -> Generator[Event, None, PreparedRun | None]:
    """Give the run a further phase; return None if it was interrupted before that phase began."""
    folder, record = run.data.folder, run.record
    per_epoch = run.data.batches(record.recipe).per_epoch
    checkpoint, _ = load_newest_checkpoint(folder.checkpoints)
    check_limits_are_larger(record, limits, checkpoint, per_epoch)
    if must_complete_first(record):
        for event in _train(run, curves):
            if not isinstance(event, Finished):
                yield event
            elif event.reason == "interrupted":
                yield event
                return None
        checkpoint, _ = load_newest_checkpoint(folder.checkpoints)
        record = folder.record() or record  # the record of the finished phase, whose plan may be revised
        run = replace(run, started=time.perf_counter())  # the checkpoint counts the seconds until now
    record = extend_record(record, limits, checkpoint, per_epoch)
    folder.write_record(record)
    return replace(run, record=record, measured_group=None)


def finish_events(out: str | Path) -> Iterator[Event]:
    """End the run in `out` now: make its model from the checkpoints, whatever steps were planned."""
    folder = RunFolder(Path(out))
    if not folder.record_file.is_file():
        raise RunFolderError(
            f"{out} is not a run folder: it has no run.json. Name the --out of `jumok train`."
        )
    with folder.locked():
        record = folder.record()
        if folder.is_finished(record):
            yield _finished_event(folder)
            return
        if record is None or not saved_steps(folder.checkpoints):
            raise RunFolderError(
                f"The run in {out} has no checkpoint yet, so there is nothing to make a model of. The "
                "command that started it continues it."
            )
        yield from _train(prepare_from_folder(folder, record), None, stop_now=True)


def _check_same_run(folder: RunFolder, record: RunRecord, overrides: Overrides, inputs: Inputs) -> None:
    """Raise if a finished run has other settings or other sentences."""
    folder.check_same_settings(overrides, record)
    if inputs.pairs and not has_same_sources(folder.sources_file, inputs):
        sentences = read_inputs(inputs, Overrides.from_recipe(record.recipe), folder)
        check_sentences_and_update_sources(folder, record, sentences)


def _finished_event(folder: RunFolder) -> Finished:
    """Return the last event of a finished run."""
    card, _, _ = read_model_with_weights(folder.model)
    scores = {name: score.value for name, score in card.scores.items()}
    steps, seconds = card.facts.get("steps"), card.facts.get("seconds")
    return Finished(
        "already finished",
        folder.model,
        steps if isinstance(steps, int) else 0,
        seconds if isinstance(seconds, float) else 0.0,
        scores,
    )


def _train(run: PreparedRun, curves: CurveWriter | None, *, stop_now: bool = False) -> Iterator[Event]:
    """Train from the newest checkpoint, or from step 0, to the model folder.

    With `stop_now`, train no further: make the model from the existing checkpoints.
    """
    folder, recipe = run.data.folder, run.record.recipe
    checkpoint, damage_messages = load_newest_checkpoint(folder.checkpoints)
    for message in damage_messages:
        advice = f"The checkpoint of step {checkpoint.step} is used instead." if checkpoint else ""
        yield Warned(message, advice)
    metrics_length = int(checkpoint.state["metrics_length"]) if checkpoint else 0
    with ExitStack() as stack:
        group = stack.enter_context(run.make_group(alone=stop_now))
        metrics = stack.enter_context(closing(Metrics(folder.metrics, length=metrics_length, curves=curves)))
        should_stop = stack.enter_context(stop_on_signals())
        trainer = _make_trainer(run, group, metrics, should_stop, checkpoint.step if checkpoint else 0)
        best_model = BestModel(trainer, run.data, recipe)
        if checkpoint is not None:
            trainer.restore(checkpoint)
            trainer.remove_old_checkpoints()  # an earlier session may have been killed before doing this
        if stop_now:
            trainer.stop_reason = "stopped"
        else:
            yield _started_event(run, trainer, trainer.state.step if run.resumed else None)
            best_model.update()  # an earlier session may have been killed before doing this
            if run.warning is not None:
                yield run.warning
            for event in trainer.events():
                if isinstance(event, Saved):
                    best_model.update()
                yield event
        group.close()
        if trainer.stop_reason == "interrupted":
            yield interrupted_event(trainer, folder.model)
        else:
            fine_tuning = read_fine_tuning(folder, recipe, run.data.tokenizers)
            yield from finish_run(trainer, run.data, recipe, fine_tuning)


def _make_trainer(
    run: PreparedRun,
    group: DataParallelGroup,
    metrics: Metrics,
    should_stop: Callable[[], bool],
    checkpoint_step: int,
) -> Trainer:
    record, recipe, folder = run.record, run.record.recipe, run.data.folder
    settings = recipe.training
    minutes = settings.minutes
    budget = Budget(
        total_seconds=None if minutes is None else 60 * minutes * USED_SHARE_OF_MINUTES,
        update_seconds=record.update_seconds,
        validation_seconds=record.validation_seconds,
        finish_seconds=record.finish_seconds,
        max_steps=step_limit(settings, run.data.batches(recipe).per_epoch),
    )
    return Trainer(
        group=group,
        validation=run.data.validation,
        settings=settings,
        # Steps after the checkpoint are lost, and so are the revisions of the plan in these steps.
        plan=record.plan.until(checkpoint_step),
        budget=budget,
        files=RunFiles(
            folder.checkpoints, metrics, lambda plan: folder.write_record(replace(record, plan=plan))
        ),
        should_stop=should_stop,
        seconds_spent=time.perf_counter() - run.started,
    )


def _started_event(run: PreparedRun, trainer: Trainer, resumed_from: int | None) -> Started:
    return Started(
        recipe=run.record.recipe,
        derived_settings=run.record.derived_settings,
        parameters=sum(parameter.numel() for parameter in trainer.model.parameters()),
        pairs=len(run.data.store),
        validation_pairs=len(run.data.validation),
        steps=trainer.plan.steps,
        resumed_from=resumed_from,
    )
