"""Everything that is decided before the first step: vocabulary, encoded pairs, settings, number of steps.

A new run makes these decisions and stores them in its folder. A resumed run reads them from the folder. A run
that takes over a stored model, or its encoder, is a new run in which that model decides some of the settings.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jumok.config.derive import derive, derive_schedule, derive_search, step_limit, this_machine
from jumok.config.resolve import DerivedSetting, Overrides, with_settings
from jumok.data.spool import spool_folder
from jumok.data.store import SORTED, open_store, write_store
from jumok.errors import DataError, RunFolderError
from jumok.models.validate import check_overrides, check_recipe, max_translation_tokens
from jumok.storage.folders import write_file
from jumok.text.class_names import ClassNames
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_files import read_tokenizers, tokenizers_to_files
from jumok.text.tokenizer_training import train_tokenizer, train_tokenizers
from jumok.training.events import Event, StageDone, StageStarted
from jumok.training.loop.schedule import Plan
from jumok.training.parallel.group import DataParallelGroup
from jumok.training.parallel.shared_memory import can_share_memory
from jumok.training.run.corpus_reader import read_sentences
from jumok.training.run.device import check_device, derive_device
from jumok.training.run.factories import fresh_model, make_batches, make_validation
from jumok.training.run.fine_tuning import NUM_EXTRA_VALIDATIONS
from jumok.training.run.inputs import describe_sources, has_same_sources, open_inputs, write_sources
from jumok.training.run.pretrained_encoder import read_encoder
from jumok.training.run.run_folder import RunRecord, smaller_vocab_reason
from jumok.training.run.speed import (
    estimate_costs,
    measure_costs,
    measure_update_seconds,
    num_measured_updates,
    warn_about_plan,
)
from jumok.training.run.start_model import read_start_model, read_stored_start

if TYPE_CHECKING:
    from collections.abc import Generator

    from jumok.config.derive import TrainingCosts
    from jumok.config.recipe import Recipe, TrainingSettings
    from jumok.config.resolve import Resolved
    from jumok.data.batching import Batches
    from jumok.data.store import PairStore
    from jumok.text.tokenizer import Tokenizer
    from jumok.training.events import Warned
    from jumok.training.run.corpus_reader import Sentences
    from jumok.training.run.initial_model import InitialModel
    from jumok.training.run.inputs import Inputs
    from jumok.training.run.run_folder import RunFolder
    from jumok.training.validation.protocol import Validation

MIN_VOCAB_SETTING = 64  # the minimum of the setting; an alphabet without byte fallback may need fewer tokens
# Shorter training uses one process by default, because worker processes take some seconds to start.
MIN_SECONDS_FOR_PROCESSES = 60.0


@dataclass(frozen=True)
class TrainingData:
    """The tokenizers, the encoded pairs and the validation set of a run."""

    folder: RunFolder
    tokenizers: TokenizerPair
    store: PairStore
    validation: Validation

    def batches(self, recipe: Recipe) -> Batches:
        return make_batches(recipe, self.store, self.tokenizers)

    def make_group(self, recipe: Recipe, world_size: int) -> DataParallelGroup:
        """Return a group at step 0."""
        model = fresh_model(self.folder, recipe, self.tokenizers)
        return DataParallelGroup(model, self.batches(recipe), recipe, self.folder, world_size=world_size)


@dataclass(frozen=True)
class PreparedRun:
    """A run before its first step. `started` is the time at which its preparation began."""

    data: TrainingData
    record: RunRecord
    started: float
    measured_group: DataParallelGroup | None = None  # processes whose speed was measured; they will train
    warning: Warned | None = None  # about the number of steps
    resumed: bool = False  # whether an earlier session has prepared the run

    def make_group(self, *, alone: bool = False) -> DataParallelGroup:
        """Return the processes of this run, at step 0.

        `alone` is for a run that will not train any further: no other process is started.
        """
        recipe = self.record.recipe
        if self.measured_group is None:
            return self.data.make_group(recipe, 1 if alone else recipe.training.processes)
        self.measured_group.reset(fresh_model(self.data.folder, recipe, self.data.tokenizers))
        return self.measured_group

    def close(self) -> None:
        """End the processes that were started to measure their speed."""
        if self.measured_group is not None:
            self.measured_group.close()


def prepare_run(
    folder: RunFolder, record: RunRecord | None, overrides: Overrides, inputs: Inputs
) -> Generator[Event, None, PreparedRun]:
    """Prepare the run in the folder. `record` is None for a new run."""
    if record is not None and not inputs.pairs:
        folder.check_same_settings(overrides, record)
        return prepare_from_folder(folder, _with_requested_processes(record, overrides))
    if not inputs.pairs:
        raise DataError(f"Name the sentence pairs to train on: there is no run in {folder.path} to continue.")
    if record is not None:
        return (yield from _prepare_resumed(folder, record, overrides, inputs))
    check_device(overrides)
    initial = _initial_model(overrides, inputs)
    if initial is not None:
        return (yield from _prepare_from(initial, folder, overrides, inputs))
    return (yield from _prepare_new(folder, overrides, inputs))


def _initial_model(overrides: Overrides, inputs: Inputs) -> InitialModel | None:
    """Return the stored model that a new run takes over; None if it starts from scratch."""
    if "fine_tuning.start_from" in overrides:
        return read_start_model(overrides["fine_tuning.start_from"], inputs)
    if "model.encoder_from" in overrides:
        return read_encoder(overrides["model.encoder_from"])
    return None


def read_inputs(inputs: Inputs, overrides: Overrides, folder: RunFolder) -> Sentences:
    """Read the files of a run. If they did not change meanwhile, note their sizes and times."""
    sources = describe_sources(inputs)
    corpora, validation = open_inputs(inputs, overrides)
    held_out_pairs = overrides.with_defaults().training.held_out_pairs
    work = spool_folder(folder.path)
    sentences = read_sentences(corpora, validation, held_out_pairs=held_out_pairs, work=work)
    has_changed = sources != describe_sources(inputs)
    return sentences if has_changed else replace(sentences, sources=sources)


def check_sentences_and_update_sources(folder: RunFolder, record: RunRecord, sentences: Sentences) -> None:
    """Raise if the run began with other sentences.

    Otherwise update the times in `sources.json`, which exists for a large corpus. With the old times, every
    later session would read the files again.
    """
    folder.check_same_sentences(sentences.fingerprint, record)
    if folder.sources_file.exists() and sentences.sources is not None:
        write_sources(folder.sources_file, sentences.sources)


# --- the three kinds of run ---


def _prepare_resumed(
    folder: RunFolder,
    record: RunRecord,
    overrides: Overrides,
    inputs: Inputs,
) -> Generator[Event, None, PreparedRun]:
    """Read the preparation of the first session from the run folder.

    The files of the corpus are not read again if `sources.json` shows that they are unchanged, and `data/`
    exists, and the validation pairs can be read. A damaged `data/` raises a StorageError. Damaged validation
    pairs are written again.
    """
    started, recipe = time.perf_counter(), record.recipe
    folder.check_same_settings(overrides, record)  # before the sentences are read, which may take minutes
    if has_same_sources(folder.sources_file, inputs) and folder.data.exists() and _has_validation(folder):
        return prepare_from_folder(folder, _with_requested_processes(record, overrides))
    sentences = yield from _read(inputs, Overrides.from_recipe(recipe), folder, started)
    check_sentences_and_update_sources(folder, record, sentences)
    record = _with_requested_processes(record, overrides)
    tokenizers = read_tokenizers(folder.path, shared=recipe.text.shared)
    if folder.data.exists():
        store = open_store(folder.data)
    else:
        order = record.order or _unrecorded_order(folder)
        store = _encode(folder, recipe, sentences, tokenizers, order)
    folder.write_validation_pairs(sentences.validation_pairs)  # the file may be damaged or missing
    validation = make_validation(sentences.validation_pairs, tokenizers, recipe)
    data = TrainingData(folder, tokenizers, store, validation)
    return PreparedRun(data, record, started, resumed=True)


def _has_validation(folder: RunFolder) -> bool:
    """Whether the validation pairs can be read from the folder."""
    try:
        folder.read_validation_pairs()
    except RunFolderError:
        return False
    return True


def _unrecorded_order(folder: RunFolder) -> str | None:
    """Return the order of batches for a run whose record does not name it.

    Versions of jumok that did not write `sources.json` always used the sorted order. For later versions the
    result is None, which means that the number of pairs decides.
    """
    return None if folder.sources_file.exists() else SORTED


def prepare_from_folder(folder: RunFolder, record: RunRecord) -> PreparedRun:
    """Read the preparation of the first session from the run folder, without the files of the corpus."""
    started, recipe = time.perf_counter(), record.recipe
    tokenizers = read_tokenizers(folder.path, shared=recipe.text.shared)
    store = open_store(folder.data)
    validation = make_validation(folder.read_validation_pairs(), tokenizers, recipe)
    data = TrainingData(folder, tokenizers, store, validation)
    return PreparedRun(data, record, started, resumed=True)


def _with_requested_processes(record: RunRecord, overrides: Overrides) -> RunRecord:
    """Return the record with the requested number of processes.

    Only a run with `training.shares` can change it: its weights do not depend on the number of processes.
    """
    if not record.recipe.training.shares or "training.processes" not in overrides:
        return record
    processes = {"training.processes": overrides["training.processes"]}
    return replace(record, recipe=with_settings(record.recipe, processes))


def _prepare_new(
    folder: RunFolder, overrides: Overrides, inputs: Inputs
) -> Generator[Event, None, PreparedRun]:
    started = time.perf_counter()
    sentences = yield from _read(inputs, overrides, folder, started)
    resolved = derive(overrides, sentences.facts, this_machine())
    check_recipe(resolved.recipe)  # a setting derived for pictures may contradict an override
    yield StageStarted("learning vocabulary")
    learning_started = time.perf_counter()
    tokenizers = _learn_tokenizers(sentences, resolved.recipe)
    size = LearnedVocabSize(resolved, max(tokenizers.source.vocab_size, tokenizers.target.vocab_size))
    yield _store_tokenizers(folder, tokenizers, learning_started, size.reason)
    if not isinstance(tokenizers.target, ClassNames):
        resolved = size.apply()
    new_run = _NewRun(folder, sentences, tokenizers, started)
    return (yield from _finish_preparation(new_run, resolved))


def _prepare_from(
    initial: InitialModel, folder: RunFolder, overrides: Overrides, inputs: Inputs
) -> Generator[Event, None, PreparedRun]:
    """Prepare a new run that takes over a stored model, or its encoder."""
    started = time.perf_counter()
    decided = initial.decided_settings(overrides)
    overrides = overrides.updated({setting.name: setting.value for setting in decided})
    check_overrides(overrides)
    sentences = yield from _read(inputs, overrides, folder, started)
    resolved = initial.adjust(derive(overrides, sentences.facts, this_machine()))
    recipe = resolved.recipe
    initial.check_languages(recipe.languages)
    yield from initial.store(folder, sentences, recipe)
    yield StageStarted("learning vocabulary")
    learning_started = time.perf_counter()
    tokenizers = initial.make_tokenizers(sentences, recipe)
    if any(setting.name == "text.vocab_size" for setting in decided):  # the stored model has all tokenizers
        yield _store_tokenizers(folder, tokenizers, learning_started)
    else:
        size = LearnedVocabSize(resolved, tokenizers.target.vocab_size)
        yield _store_tokenizers(folder, tokenizers, learning_started, size.reason)
        resolved = size.apply()
    new_run = _NewRun(folder, sentences, tokenizers, started)
    return (yield from _finish_preparation(new_run, replace(resolved, reasons=(*decided, *resolved.reasons))))


# --- the stages of a new run ---


@dataclass(frozen=True)
class _NewRun:
    """A new run, once its tokenizers are learnt."""

    folder: RunFolder
    sentences: Sentences
    tokenizers: TokenizerPair
    started: float


def _read(
    inputs: Inputs, overrides: Overrides, folder: RunFolder, started: float
) -> Generator[Event, None, Sentences]:
    yield StageStarted("reading")
    sentences = read_inputs(inputs, overrides, folder)
    yield StageDone("reading", _describe_reading(sentences), time.perf_counter() - started)
    return sentences


def _describe_reading(sentences: Sentences) -> str:
    counts = ", ".join(f"{count:,} {reason}" for reason, count in sentences.skipped.items())
    skipped = f"; skipped: {counts}" if counts else ""
    facts = sentences.facts
    return f"{facts.pairs:,} {facts.noun}, {len(sentences.validation_pairs):,} for validation{skipped}"


def _learn_tokenizers(sentences: Sentences, recipe: Recipe) -> TokenizerPair:
    """Return the tokenizers of both sides. The tokenizers of pictures and of classes need no training."""
    targets = (pair.target for pair in sentences.pairs())
    if recipe.source.kind == "text":
        sources = (pair.source for pair in sentences.pairs())
        return train_tokenizers(sources, targets, recipe.text, recipe.text.vocab_size)
    target: Tokenizer
    if recipe.model.task == "classify":
        target = _learn_classes(sentences)
    else:
        target = train_tokenizer(targets, recipe.text, vocab_size=recipe.text.vocab_size)
    return TokenizerPair(PictureTokenizer.from_settings(recipe.source), target, shared=False)


def _learn_classes(sentences: Sentences) -> ClassNames:
    """Return the classes of all pictures, also of held-out ones: a rare class may be held out entirely."""
    held_out = {pair.target for pair in sentences.validation_pairs}
    trained = {pair.target for pair in sentences.pairs()}
    unknown = sorted(held_out - trained) if sentences.validation_corpora else []
    if len(trained) < 2 or unknown:
        received = f"validation pictures of {', '.join(unknown[:5])}" if unknown else f"only {min(trained)!r}"
        raise DataError(
            "A classifier learns to tell at least two classes apart, and is validated on these classes. "
            f"Received: {received}."
        )
    return ClassNames(sorted(held_out | trained))


def _store_tokenizers(
    folder: RunFolder, tokenizers: TokenizerPair, started: float, reason: str = ""
) -> StageDone:
    for name, data in tokenizers_to_files(tokenizers).items():
        write_file(folder.path / name, data)
    if isinstance(tokenizers.target, ClassNames):
        classes = f"{len(tokenizers.target.names):,} classes"
        return StageDone("learning vocabulary", classes, time.perf_counter() - started)
    sizes = sorted({tokenizers.source.vocab_size, tokenizers.target.vocab_size} - {0})  # pictures have 0
    detail = " and ".join(f"{size:,}" for size in sizes) + " tokens" + (f"; {reason}" if reason else "")
    return StageDone("learning vocabulary", detail, time.perf_counter() - started)


@dataclass(frozen=True)
class LearnedVocabSize:
    """The size of the learnt vocabulary. A small text may have fewer tokens than the recipe requests."""

    resolved: Resolved
    num_tokens: int

    @property
    def reason(self) -> str:
        """Why the vocabulary is smaller than the user requested; "" if it is not or no size was requested."""
        requested = self.resolved.overrides.get("text.vocab_size")
        return (
            smaller_vocab_reason(requested) if requested is not None and self.num_tokens < requested else ""
        )

    def apply(self) -> Resolved:
        """Return the settings with the size that was learnt, if it is smaller."""
        name, resolved = "text.vocab_size", self.resolved
        if self.num_tokens >= resolved.recipe.text.vocab_size:
            return resolved
        why = self.reason or resolved.reason_for(name)
        return resolved.corrected(DerivedSetting(name, max(self.num_tokens, MIN_VOCAB_SETTING), why))


def _finish_preparation(new_run: _NewRun, resolved: Resolved) -> Generator[Event, None, PreparedRun]:
    """Encode the pairs, then measure and plan."""
    yield StageStarted("encoding")
    encoding_started = time.perf_counter()
    folder, sentences, tokenizers = new_run.folder, new_run.sentences, new_run.tokenizers
    resolved = derive_device(resolved)
    store = _encode(folder, resolved.recipe, sentences, tokenizers)
    resolved = derive_search(resolved, store, max_tokens=max_translation_tokens(resolved.recipe))
    recipe = resolved.recipe
    validation = make_validation(sentences.validation_pairs, tokenizers, recipe)
    folder.write_validation_pairs(sentences.validation_pairs)
    data = TrainingData(folder, tokenizers, store, validation)
    yield StageDone("encoding", _describe_encoding(data, recipe), time.perf_counter() - encoding_started)
    with ExitStack() as on_error:  # ends the workers after an error, since Ctrl-C does not reach them
        prepared = yield from _plan(new_run, data, resolved, on_error)
        on_error.pop_all()
    return prepared


def _plan(
    new_run: _NewRun, data: TrainingData, resolved: Resolved, on_error: ExitStack
) -> Generator[Event, None, PreparedRun]:
    """Measure the speed, decide the number of processes and steps, write the record.

    `on_error` closes the processes that were started.
    """
    folder, sentences, recipe = new_run.folder, new_run.sentences, resolved.recipe
    if recipe.training.minutes is None:
        costs = estimate_costs(data.batches(recipe), data.validation, recipe.training)
        group, process_settings = yield from _measure_processes(data, resolved, on_error)
    else:
        group, costs, process_settings = yield from _measure(
            data, resolved, on_error, started=new_run.started
        )
    if recipe.fine_tuning.start_from is not None:
        seconds = costs.finish_seconds + NUM_EXTRA_VALIDATIONS * costs.validation_seconds
        costs = replace(costs, finish_seconds=seconds)
    resolved = resolved.with_derived(process_settings)
    resolved, steps = derive_schedule(resolved, costs)
    record = RunRecord(
        recipe=resolved.recipe,
        derived_settings=resolved.reasons,
        plan=Plan(((0, steps),)),
        fingerprint=sentences.fingerprint,
        update_seconds=costs.update_seconds,
        validation_seconds=costs.validation_seconds,
        finish_seconds=costs.finish_seconds,
        order=data.store.order,
    )
    if sentences.spool is not None and sentences.sources is not None:  # a large corpus is not read again
        write_sources(folder.sources_file, sentences.sources)
    folder.write_record(record)
    warning = warn_about_plan(resolved.recipe.training, steps, costs)
    return PreparedRun(data, record, new_run.started, group, warning)


def _encode(
    folder: RunFolder,
    recipe: Recipe,
    sentences: Sentences,
    tokenizers: TokenizerPair,
    order: str | None = None,
) -> PairStore:
    corpora, tuning = sentences.corpus_pairs(), recipe.fine_tuning
    if tuning.start_from is not None:
        old_pairs = read_stored_start(folder).old_pairs
        corpora += old_pairs.corpus_pairs(sentences.facts.pairs, tuning.replay_share)
    return write_store(
        folder.data,
        corpora,
        tokenizers,
        max_tokens=recipe.training.max_sentence_tokens,
        store_text=recipe.text.sampling > 0,
        order=order,
    )


def _describe_encoding(data: TrainingData, recipe: Recipe) -> str:
    store, max_tokens = data.store, recipe.training.max_sentence_tokens
    num_tokens = int(store.target_lengths.sum()) - 2 * len(store)  # without <s> and </s>
    counts = {"": sum(store.skipped.values()), " for validation": data.validation.num_too_long}
    too_long = " and ".join(f"{count:,}{purpose}" for purpose, count in counts.items() if count)
    skipped = f"; skipped: {too_long} with more than {max_tokens} tokens" if too_long else ""
    if recipe.source.kind == "pictures":
        captions = f", {num_tokens:,} target tokens" if recipe.model.task == "translate" else ""
        return f"{len(store):,} pictures of {recipe.source.num_patches} patches{captions}{skipped}"
    nouns = ("pairs", "target tokens") if recipe.model.task == "translate" else ("sentences", "tokens")
    return f"{len(store):,} {nouns[0]}, {num_tokens:,} {nouns[1]}{skipped}"


# --- how many processes ---


def _measure(
    data: TrainingData, resolved: Resolved, on_error: ExitStack, *, started: float
) -> Generator[Event, None, tuple[DataParallelGroup, TrainingCosts, list[DerivedSetting]]]:
    """Measure how fast this machine trains; return the fastest processes, the costs and derived settings."""
    yield StageStarted("measuring")
    measuring_started, recipe = time.perf_counter(), resolved.recipe
    group, update_seconds, derived = _choose_group(data, resolved, on_error)
    costs = measure_costs(
        update_seconds,
        group.model,
        data.batches(recipe),
        data.validation,
        recipe.training,
        seconds_spent=time.perf_counter() - started,
    )
    milliseconds, validation_seconds = costs.update_seconds * 1000, costs.validation_seconds
    detail = f"{milliseconds:.0f} ms per update, {validation_seconds:.1f} s per validation"
    yield StageDone("measuring", detail, time.perf_counter() - measuring_started)
    return group, costs, derived


def _measure_processes(
    data: TrainingData, resolved: Resolved, on_error: ExitStack
) -> Generator[Event, None, tuple[DataParallelGroup | None, list[DerivedSetting]]]:
    """Return the fastest group of processes for a run without a time limit; None if none is measured.

    The number of processes is stored with the run, because the bits of the weights depend on it.
    """
    training = resolved.recipe.training
    steps = step_limit(training, data.batches(resolved.recipe).per_epoch)
    is_set = "training.processes" in resolved.overrides
    if is_set or not num_measured_updates(steps) or not _can_use_processes(training):
        return None, []
    yield StageStarted("measuring")
    started = time.perf_counter()
    group, update_seconds, derived = _choose_group(data, resolved, on_error, steps)
    detail = f"{update_seconds * 1000:.0f} ms per update"
    yield StageDone("measuring", detail, time.perf_counter() - started)
    return group, derived


def _can_use_processes(settings: TrainingSettings) -> bool:
    cores = this_machine().cores
    enough_shares = not settings.shares or cores <= settings.shares
    return cores > 1 and enough_shares and settings.device == "cpu" and can_share_memory()


def _choose_group(
    data: TrainingData, resolved: Resolved, on_error: ExitStack, steps: int | None = None
) -> tuple[DataParallelGroup, float, list[DerivedSetting]]:
    """Start the processes; return them, their seconds per update, and the reason for their number.

    If the user has not set the number, the faster of two groups is chosen: one process per core, or one
    process with one thread per core. If the run is short, or if several processes cannot be used, one process
    is chosen without a comparison. `steps` is the planned number of steps, if it is known before the
    measurement.
    """
    recipe, cores = resolved.recipe, this_machine().cores
    settings = recipe.training
    if "training.processes" in resolved.overrides:
        group = on_error.enter_context(data.make_group(recipe, settings.processes))
        return group, measure_update_seconds(group, settings), []
    max_updates = num_measured_updates(steps)
    single = data.make_group(recipe, 1)
    single_seconds = measure_update_seconds(single, settings, max_updates)
    limits = [] if settings.minutes is None else [60 * settings.minutes]
    limits += [] if steps is None else [steps * single_seconds]
    if min(limits, default=math.inf) < MIN_SECONDS_FOR_PROCESSES or not _can_use_processes(settings):
        return single, single_seconds, []
    group = on_error.enter_context(data.make_group(recipe, cores))
    seconds = measure_update_seconds(group, settings, max_updates)
    if seconds < single_seconds:
        why = f"{seconds * 1000:.0f} ms per update; {single_seconds * 1000:.0f} with threads in one process"
        return group, seconds, [DerivedSetting("training.processes", cores, why)]
    group.close()
    why = f"{single_seconds * 1000:.0f} ms per update; {seconds * 1000:.0f} with {cores} processes"
    return single, single_seconds, [DerivedSetting("training.processes", 1, why)]
