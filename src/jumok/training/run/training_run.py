"""A whole run: sentence pairs in, events out, a model folder at the end.

    for event in training_events("pairs.tsv", out="runs/mine", minutes=5):
        ...

Given the same folder again, it goes on where it stopped. What was decided before the first step (vocabulary,
encoded pairs, settings, number of steps) is stored, and read instead of decided again.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.corpus import Corpus, language_code, open_store, write_store
from jumok.errors import RecipeError, RunFolderError, StorageError, nearest
from jumok.models import check_recipe, fill_places
from jumok.pages import reuse_pages
from jumok.recipe import Recipe, TransformerSettings, make_recipe, setting_names
from jumok.storage import read_model_folder, write_file
from jumok.text import Vocabularies, learn_subwords, learn_vocabularies
from jumok.training.board import can_share_memory
from jumok.training.checkpoint import load_newest
from jumok.training.derive import (
    MINUTES_USED,
    Reason,
    derive,
    derive_pace,
    derive_search,
    step_limit,
    this_machine,
)
from jumok.training.events import Event, Finished, Stage, Started, Warned
from jumok.training.finish import finish_run, vocabulary_files
from jumok.training.folder import RunFolder, RunRecord
from jumok.training.loop import Budget, Trainer
from jumok.training.metrics import Metrics, tensorboard_writer
from jumok.training.opening import open_all
from jumok.training.pace import measure_pace, measure_team, reckon_pace
from jumok.training.prepared import fresh_model, load_vocabularies, make_batches
from jumok.training.schedule import Plan
from jumok.training.sentences import Sentences, read_sentences
from jumok.training.signals import watch_signals
from jumok.training.start import EncoderStart, keep_start, read_start
from jumok.training.tasks import make_validation
from jumok.training.team import Team

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from jumok.corpus import Batches, PairStore
    from jumok.recipe import TrainingSettings
    from jumok.training.metrics import CurveWriter
    from jumok.training.opening import Pairs
    from jumok.training.tasks import Validation

__all__ = ["train", "training_events"]

SHORTEST_FOR_A_TEAM = 1.0  # minutes: further processes take some seconds to start


def train(
    pairs: Pairs | Sequence[Pairs],
    *,
    out: str | Path,
    valid: Pairs | Sequence[Pairs] = (),
    recipe: Recipe | None = None,
    tensorboard: bool = False,
    **settings: Any,
) -> Path:
    """Train and return the model folder. The settings are those of `training_events`."""
    finished: Finished | None = None
    for event in training_events(
        pairs, out=out, valid=valid, recipe=recipe, tensorboard=tensorboard, **settings
    ):
        if isinstance(event, Finished):
            finished = event
    if finished is None or finished.model_folder is None:
        raise RunFolderError(f"Training in {out} was interrupted. Run the same command again to continue it.")
    return finished.model_folder


def training_events(
    pairs: Pairs | Sequence[Pairs],
    *,
    out: str | Path,
    valid: Pairs | Sequence[Pairs] = (),
    recipe: Recipe | None = None,
    tensorboard: bool = False,
    **settings: Any,
) -> Iterator[Event]:
    """Train on sentence pairs, or continue the run in `out`. Nothing happens until events are asked for.

    Settings may be given by name over those of `recipe`: `minutes=5`, or `**{"model.dropout": 0.2}` where a
    name alone does not say which section is meant.
    """
    asked = _asked(recipe, settings)
    folder = RunFolder(Path(out))
    draw = tensorboard_writer() if tensorboard else None
    reuse_pages()
    with folder.claimed():
        if folder.model.exists():
            yield _already_finished(folder, asked, _listed(pairs), _listed(valid))
            return
        run = yield from _prepare(folder, asked, _listed(pairs), _listed(valid))
        yield from _train(run, draw(str(folder.path / "tensorboard")) if draw else None)


@dataclass(frozen=True)
class _Run:
    """All that is decided before the first step."""

    folder: RunFolder
    record: RunRecord
    vocabularies: Vocabularies
    store: PairStore
    validation: Validation
    started: float
    team: Team | None = None  # where the measurement has gathered one already

    def batches(self) -> Batches:
        return make_batches(self.record.recipe, self.store, self.vocabularies)

    def gathered(self, members: int) -> Team:
        """A team at step 0."""
        recipe = self.record.recipe
        model = fresh_model(self.folder, recipe, self.vocabularies)
        return Team(model, self.batches(), recipe, self.folder, members=members)


# --- what was asked ---


def _asked(recipe: Recipe | None, settings: dict[str, Any]) -> Recipe:
    nested = recipe.model_dump(exclude_unset=True) if recipe is not None else {}
    asked = make_recipe(nested, **{_full_name(name): value for name, value in settings.items()})
    codes = {f"languages.{side}": language_code(word) for side, word in asked.languages if word}
    asked = make_recipe(asked.model_dump(exclude_unset=True), **codes)  # "Korean" and "kor" are ko
    _refuse_endless(asked.training)
    check_recipe(asked)
    return fill_places(asked)


def _refuse_endless(training: TrainingSettings) -> None:
    if (training.steps, training.epochs, training.minutes) != (None, None, None):
        return
    if "patience" in training.model_fields_set and training.patience == 0:
        raise RecipeError(
            "This run would never end: training.patience is 0 and neither steps, epochs nor minutes are set. "
            "Set one of them."
        )
    if "schedule" in training.model_fields_set and training.schedule == "cosine":
        raise RecipeError(
            'The schedule "cosine" falls to zero at the last step, but nothing says when that is. '
            'Set steps, epochs or minutes, or choose "inverse-sqrt".'
        )


def _full_name(name: str) -> str:
    """`minutes` → `training.minutes`; a name with a dot is taken as it is."""
    if "." in name:
        return name
    known = setting_names()
    found = [full for full in known if full.partition(".")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise RecipeError(
            f"There are several settings called {name!r}: {', '.join(found)}. Name one in full."
        )
    short = [full.partition(".")[2] for full in known]
    raise RecipeError(f"There is no setting called {name!r}.{nearest(name, short)}")


def _listed(pairs: Pairs | Sequence[Pairs]) -> list[Pairs]:
    return [pairs] if isinstance(pairs, str | Path | Corpus) else list(pairs)


def _already_finished(folder: RunFolder, asked: Recipe, pairs: list[Pairs], valid: list[Pairs]) -> Finished:
    card, _, _ = read_model_folder(folder.model)
    record = folder.record()
    if record is not None:
        folder.refuse_other_settings(asked, record)
        sentences = _read(pairs, valid, record.recipe)
        folder.refuse_other_sentences(sentences.fingerprint, record)
    scores = {name: score.value for name, score in card.scores.items()}
    steps, seconds = card.facts.get("steps"), card.facts.get("seconds")
    return Finished(
        "already finished",
        folder.model,
        steps if isinstance(steps, int) else 0,
        seconds if isinstance(seconds, float) else 0.0,
        scores,
    )


# --- before the first step ---


def _prepare(
    folder: RunFolder, asked: Recipe, pairs: list[Pairs], valid: list[Pairs]
) -> Generator[Event, None, _Run]:
    """Read the sentences, then decide everything, or find it decided."""
    started = time.perf_counter()
    record = folder.record()
    if record is not None:
        folder.refuse_other_settings(asked, record)  # before all is read: that may take minutes
    start, decided = _read_start(asked) if record is None else (None, [])
    if decided:
        settings = {reason.setting: reason.value for reason in decided}
        asked = make_recipe(asked.model_dump(exclude_unset=True), **settings)
        check_recipe(asked)
    sentences = _read(pairs, valid, asked if record is None else record.recipe)
    yield Stage("reading", _reading(sentences), time.perf_counter() - started)
    if record is not None:
        folder.refuse_other_sentences(sentences.fingerprint, record)
        return _reopen(folder, record, sentences, started)
    recipe, reasons = derive(asked, sentences.facts, this_machine())
    if start is not None:
        start.refuse_other_language(recipe.languages.source)
        named = {reason.setting for reason in decided}
        reasons = [*decided, *(reason for reason in reasons if reason.setting not in named)]
        keep_start(start, folder.encoder)
    vocabularies = yield from _learn(folder, recipe, sentences, start)
    encoding = time.perf_counter()
    store = _encode(folder, recipe, sentences, vocabularies)
    recipe, more = derive_search(recipe, asked, store)
    reasons += more
    validation = make_validation(sentences.validation, vocabularies, recipe)
    detail = _encoding(store, validation, recipe)
    yield Stage("encoding", detail, time.perf_counter() - encoding)
    run = _Run(
        folder, RunRecord(recipe, (), Plan(((0, None),)), ""), vocabularies, store, validation, started
    )
    record, team = yield from _decide(run, asked)
    record = replace(record, reasons=(*reasons, *record.reasons), fingerprint=sentences.fingerprint)
    folder.write_record(record)
    return replace(run, record=record, team=team)


def _read(pairs: list[Pairs], valid: list[Pairs], recipe: Recipe) -> Sentences:
    corpora, against = open_all(pairs, valid, recipe)
    return read_sentences(corpora, against, held_out=recipe.training.held_out)


def _read_start(asked: Recipe) -> tuple[EncoderStart | None, list[Reason]]:
    """The encoder to begin with, if one was asked for, and what it decides."""
    if not isinstance(asked.model, TransformerSettings) or asked.model.encoder_from is None:
        return None, []
    start = read_start(asked.model.encoder_from)
    return start, start.reasons(asked)


def _reading(sentences: Sentences) -> str:
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in sentences.skipped.items())
    left_out = f"; left out: {skipped}" if skipped else ""
    facts = sentences.facts
    return f"{facts.pairs:,} {facts.noun}, {len(sentences.validation):,} for validation{left_out}"


def _learn(
    folder: RunFolder, recipe: Recipe, sentences: Sentences, start: EncoderStart | None
) -> Generator[Event, None, Vocabularies]:
    started = time.perf_counter()
    targets = (pair.target for pair in sentences.pairs())
    if start is None:
        sources = (pair.source for pair in sentences.pairs())
        vocabularies = learn_vocabularies(sources, targets, recipe.text, recipe.text.pieces)
    else:
        learnt = learn_subwords(targets, recipe.text, pieces=recipe.text.pieces)
        vocabularies = Vocabularies(source=start.pieces, target=learnt, shared=False)
    for name, data in vocabulary_files(vocabularies).items():
        write_file(folder.path / name, data)
    sizes = sorted({vocabularies.source.size, vocabularies.target.size})
    detail = " and ".join(f"{size:,}" for size in sizes) + " pieces"
    yield Stage("learning pieces", detail, time.perf_counter() - started)
    return vocabularies


def _encode(folder: RunFolder, recipe: Recipe, sentences: Sentences, vocabularies: Vocabularies) -> PairStore:
    return write_store(
        folder.data,
        sentences.parts(),
        vocabularies,
        longest=recipe.training.longest,
        keep_text=recipe.text.sampling > 0,
    )


def _encoding(store: PairStore, validation: Validation, recipe: Recipe) -> str:
    pieces = int(store.target_lengths.sum()) - 2 * len(store)
    counts = {"": sum(store.skipped.values()), " for validation": validation.left_out}
    skipped = " and ".join(f"{count:,}{what}" for what, count in counts.items() if count)
    left_out = f"; left out: {skipped} of more than {recipe.training.longest} pieces" if skipped else ""
    nouns = ("pairs", "target pieces") if recipe.model.task == "translate" else ("sentences", "pieces")
    return f"{len(store):,} {nouns[0]}, {pieces:,} {nouns[1]}{left_out}"


def _decide(run: _Run, asked: Recipe) -> Generator[Event, None, tuple[RunRecord, Team | None]]:
    """How many processes and steps, and what goes with them."""
    recipe, batches, team = run.record.recipe, run.batches(), None
    reasons: list[Reason] = []
    if asked.training.minutes is None:
        pace = reckon_pace(batches, run.validation, recipe.training)
    else:
        started = time.perf_counter()
        team, update, reasons = _choose_team(run, asked)
        spent = time.perf_counter() - run.started
        pace = measure_pace(update, team.model, batches, run.validation, recipe.training, spent=spent)
        detail = f"{pace.update * 1000:.0f} ms an update, {pace.validation:.1f} s a validation"
        yield Stage("measuring", detail, time.perf_counter() - started)
        recipe = make_recipe(recipe.model_dump(exclude_unset=True), **{"training.processes": team.members})
    recipe, steps, more = derive_pace(recipe, asked, pace)
    record = RunRecord(recipe, (*reasons, *more), Plan(((0, steps),)), "", pace.validation, pace.finish)
    return record, team


def _choose_team(run: _Run, asked: Recipe) -> tuple[Team, float, list[Reason]]:
    """The faster of one process with all threads and a process a core; and its seconds an update."""
    settings, cores = run.record.recipe.training, this_machine().cores
    if "processes" in asked.training.model_fields_set:
        team = run.gathered(settings.processes)
        return team, measure_team(team, settings), []
    alone = run.gathered(1)
    seconds_alone = measure_team(alone, settings)
    too_short = (settings.minutes or 0) < SHORTEST_FOR_A_TEAM
    if cores == 1 or too_short or not can_share_memory():
        return alone, seconds_alone, []
    team = run.gathered(cores)
    seconds = measure_team(team, settings)
    if seconds < seconds_alone:
        why = f"{seconds * 1000:.0f} ms an update, and {seconds_alone * 1000:.0f} with threads alone"
        return team, seconds, [Reason("training.processes", cores, why)]
    team.close()
    why = f"{seconds_alone * 1000:.0f} ms an update, and {seconds * 1000:.0f} with {cores} processes"
    return alone, seconds_alone, [Reason("training.processes", 1, why)]


def _reopen(folder: RunFolder, record: RunRecord, sentences: Sentences, started: float) -> _Run:
    """What was prepared before: the vocabulary must be there; pairs that are gone are encoded again."""
    recipe = record.recipe
    vocabularies = load_vocabularies(folder, recipe)
    try:
        store = open_store(folder.data)
    except StorageError:
        if folder.data.exists():
            raise
        store = _encode(folder, recipe, sentences, vocabularies)
    validation = make_validation(sentences.validation, vocabularies, recipe)
    return _Run(folder, record, vocabularies, store, validation, started)


# --- the steps ---


def _train(run: _Run, curves: CurveWriter | None) -> Iterator[Event]:
    folder, record = run.folder, run.record
    checkpoint, damaged = load_newest(folder.checkpoints)
    for message in damaged:
        yield Warned(
            message, f"The checkpoint of step {checkpoint.step} is used instead." if checkpoint else ""
        )
    length = int(checkpoint.state["metrics_length"]) if checkpoint else 0
    team = run.team or run.gathered(record.recipe.training.processes)
    with ExitStack() as stack:
        stack.enter_context(team)
        metrics = stack.enter_context(closing(Metrics(folder.metrics, length=length, curves=curves)))
        interrupted = stack.enter_context(watch_signals())
        team.start_over(fresh_model(folder, record.recipe, run.vocabularies))
        trainer = _trainer(run, team, metrics, interrupted, checkpoint.step if checkpoint else 0)
        if checkpoint is not None:
            trainer.restore(checkpoint)
        yield _started(run, trainer, checkpoint.step if checkpoint else None)
        yield from trainer.events()
        team.close()
        if trainer.reason == "interrupted":
            yield Finished("interrupted", None, trainer.state.step, trainer.seconds)
            return
        yield from finish_run(
            trainer,
            recipe=record.recipe,
            vocabularies=run.vocabularies,
            store=run.store,
            folder=folder.model,
        )


def _trainer(run: _Run, team: Team, metrics: Metrics, interrupted: Any, step: int) -> Trainer:
    record, settings = run.record, run.record.recipe.training
    budget = Budget(
        total=None if settings.minutes is None else 60 * settings.minutes * MINUTES_USED,
        validation=record.validation_seconds,
        finish=record.finish_seconds,
        most_steps=step_limit(settings, run.batches().per_epoch),
    )
    return Trainer(
        team=team,
        validation=run.validation,
        settings=settings,
        plan=record.plan.until(step),  # what lost steps made of it is lost with them
        checkpoints=run.folder.checkpoints,
        metrics=metrics,
        interrupted=interrupted,
        revise=lambda plan: run.folder.write_record(replace(record, plan=plan)),
        budget=budget,
        spent=time.perf_counter() - run.started,
    )


def _started(run: _Run, trainer: Trainer, resumed_from: int | None) -> Started:
    return Started(
        recipe=run.record.recipe,
        reasons=run.record.reasons,
        parameters=sum(parameter.numel() for parameter in trainer.model.parameters()),
        pairs=len(run.store),
        validation_pairs=len(run.validation),
        steps=trainer.plan.steps,
        resumed_from=resumed_from,
    )
