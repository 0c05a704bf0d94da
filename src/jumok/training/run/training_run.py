"""A complete run: sentence pairs in, events out, a model folder at the end.

    for event in training_events("pairs.tsv", out="runs/mine", minutes=5):
        ...

With the folder of an earlier run it continues that run: everything that was decided before the first step
(`preparation.py`) is read from the folder.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.derive import USED_SHARE_OF_MINUTES, step_limit
from jumok.config.recipe import make_recipe
from jumok.errors import RunFolderError, UnsupportedError
from jumok.storage import read_model_with_weights
from jumok.system.memory import reuse_freed_memory
from jumok.system.signals import stop_on_signals
from jumok.training.events import Event, Finished, Started, Warned
from jumok.training.loop.checkpoint import load_newest_checkpoint
from jumok.training.loop.metrics import Metrics, tensorboard_writer
from jumok.training.loop.trainer import Budget, Trainer
from jumok.training.parallel.cluster import ClusterAddress, check_world_size, joined_cluster
from jumok.training.parallel.follower import follow
from jumok.training.run.fine_tuning import read_fine_tuning
from jumok.training.run.finish import finish_run
from jumok.training.run.inputs import Inputs, list_inputs
from jumok.training.run.overrides import make_overrides
from jumok.training.run.preparation import prepare_run, read_inputs
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.config.recipe import Recipe
    from jumok.training.loop.metrics import CurveWriter
    from jumok.training.parallel.group import DataParallelGroup
    from jumok.training.run.inputs import InputItems
    from jumok.training.run.preparation import PreparedRun

__all__ = ["train", "training_events"]


def train(
    pairs: InputItems,
    *,
    out: str | Path,
    valid: InputItems = (),
    recipe: Recipe | None = None,
    columns: str = "",
    encoding: str = "",
    tensorboard: bool = False,
    **settings: Any,
) -> Path:
    """Train and return the model folder, which is on the disk of rank 0 if there are several.

    The arguments are those of `training_events`.
    """
    finished: Finished | None = None
    address = ClusterAddress.from_environment()
    options: dict[str, Any] = {"columns": columns, "encoding": encoding, "tensorboard": tensorboard}
    for event in training_events(pairs, out=out, valid=valid, recipe=recipe, **options, **settings):
        if isinstance(event, Finished):
            finished = event
    if finished is None and address is not None and address.rank > 0:
        return RunFolder(Path(out)).model
    if finished is None or finished.model_folder is None:
        raise RunFolderError(f"Training in {out} was interrupted. Run the same command again to continue it.")
    return finished.model_folder


def training_events(
    pairs: InputItems,
    *,
    out: str | Path,
    valid: InputItems = (),
    recipe: Recipe | None = None,
    columns: str = "",
    encoding: str = "",
    tensorboard: bool = False,
    **settings: Any,
) -> Iterator[Event]:
    """Train on sentence pairs, or continue the run in `out`. Nothing happens before the first `next`.

    `pairs` are files, corpora, or pairs in memory: `[("Hello.", "안녕하세요."), …]`. `columns` chooses two
    columns of a table (`"en,ko"` or `"2,4"`), `encoding` is that of a text that is not UTF-8.

    Settings take precedence over `recipe`. Give a setting by its name, `minutes=5`, or with its section,
    `**{"model.dropout": 0.2}`.

    If torchrun has started this process as one of several, they train together (`parallel/cluster.py`): rank
    0 has all events and the folder; in the others there is no event, and the iteration ends with the run.
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
            overrides = _with_processes(overrides, folder, cluster.world_size)
        with folder.locked():
            if folder.model.exists():
                yield _finished_event(folder, overrides, inputs)
                return
            run = yield from prepare_run(folder, overrides, inputs)
            yield from _train(run, make_writer(str(folder.path / "tensorboard")) if make_writer else None)


def _with_processes(overrides: Recipe, folder: RunFolder, world_size: int) -> Recipe:
    """Return the overrides of a run on the ranks that torchrun has started."""
    record = folder.record() if folder.record_file.exists() else None
    if record is not None and not record.recipe.training.shares:
        check_world_size(record.recipe.training.processes, world_size)
    if "processes" in overrides.training.model_fields_set and overrides.training.processes != world_size:
        raise UnsupportedError(
            f"Received: training.processes = {overrides.training.processes}, and {world_size} ranks from "
            "torchrun. Leave the setting out: the ranks decide it."
        )
    return make_recipe(overrides.model_dump(exclude_unset=True), **{"training.processes": world_size})


def _finished_event(folder: RunFolder, overrides: Recipe, inputs: Inputs) -> Finished:
    """Return the last event of a finished run; raise if it has other settings or other sentences."""
    card, _, _ = read_model_with_weights(folder.model)
    record = folder.record()
    if record is not None:
        folder.check_same_settings(overrides, record)
        sentences = read_inputs(inputs, record.recipe)
        folder.check_same_sentences(sentences.fingerprint, record)
    scores = {name: score.value for name, score in card.scores.items()}
    steps, seconds = card.facts.get("steps"), card.facts.get("seconds")
    return Finished(
        "already finished",
        folder.model,
        steps if isinstance(steps, int) else 0,
        seconds if isinstance(seconds, float) else 0.0,
        scores,
    )


def _train(run: PreparedRun, curves: CurveWriter | None) -> Iterator[Event]:
    """Train from the newest checkpoint, or from step 0, to the model folder."""
    folder, recipe = run.data.folder, run.record.recipe
    checkpoint, damaged = load_newest_checkpoint(folder.checkpoints)
    for message in damaged:
        advice = f"The checkpoint of step {checkpoint.step} is used instead." if checkpoint else ""
        yield Warned(message, advice)
    metrics_length = int(checkpoint.state["metrics_length"]) if checkpoint else 0
    with ExitStack() as stack:
        group = stack.enter_context(run.make_group())
        metrics = stack.enter_context(closing(Metrics(folder.metrics, length=metrics_length, curves=curves)))
        should_stop = stack.enter_context(stop_on_signals())
        trainer = _make_trainer(run, group, metrics, should_stop, checkpoint.step if checkpoint else 0)
        if checkpoint is not None:
            trainer.restore(checkpoint)
            trainer.remove_old_checkpoints()  # an earlier session may have been killed before it did
        yield _started_event(run, trainer, checkpoint.step if checkpoint else None)
        if run.warning is not None:
            yield run.warning
        yield from trainer.events()
        group.close()
        if trainer.stop_reason == "interrupted":
            yield Finished("interrupted", None, trainer.state.step, trainer.seconds)
            return
        yield from finish_run(
            trainer,
            recipe=recipe,
            tokenizers=run.data.tokenizers,
            store=run.data.store,
            folder=folder.model,
            fine_tuning=read_fine_tuning(folder, recipe, run.data.tokenizers),
        )


def _make_trainer(
    run: PreparedRun,
    group: DataParallelGroup,
    metrics: Metrics,
    should_stop: Callable[[], bool],
    step: int,
) -> Trainer:
    record, recipe, folder = run.record, run.record.recipe, run.data.folder
    settings = recipe.training
    minutes = settings.minutes
    budget = Budget(
        total_seconds=None if minutes is None else 60 * minutes * USED_SHARE_OF_MINUTES,
        validation_seconds=record.validation_seconds,
        finish_seconds=record.finish_seconds,
        max_steps=step_limit(settings, run.data.batches(recipe).per_epoch),
    )
    return Trainer(
        group=group,
        validation=run.data.validation,
        settings=settings,
        plan=record.plan.until(step),  # revisions of later steps are lost with those steps
        checkpoints=folder.checkpoints,
        metrics=metrics,
        should_stop=should_stop,
        on_plan_revised=lambda plan: folder.write_record(replace(record, plan=plan)),
        budget=budget,
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
