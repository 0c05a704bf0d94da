"""Complete runs on a tiny task: from pairs to a model folder. How runs resume and fail, what they refuse."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice, takewhile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import torch

import jumok
import jumok.training.loop.update
from jumok.config.resolve import Overrides
from jumok.data.corpora import corpus_of_pairs
from jumok.errors import (
    DataError,
    ModelFolderError,
    RecipeError,
    RunFolderError,
    StorageError,
    TrainingError,
    UnsupportedError,
)
from jumok.storage.folders import json_with_checksum
from jumok.storage.model_folder import read_model_with_weights
from jumok.storage.tensors import module_weights
from jumok.training.events import Event, Finished, Progress, Saved, StageDone, Started, Validated, Warned
from jumok.training.loop.checkpoint import load_newest_checkpoint, saved_steps
from jumok.training.loop.update import Worker
from jumok.training.run import finish
from jumok.training.run.training_run import train, training_events
from jumok.training.validation.translation import TranslationValidation
from jumok.types import Pair
from support.digits import ENGLISH, GERMAN, TINY, digit_corpus, digit_pairs

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path

    from jumok.training.loop.update import Update

SHORT = {**TINY, "training.steps": 12, "training.validate_every": 5, "training.warmup_steps": 2}


def run(out: Path, count: int = 200, corpus_seed: int = 1, **settings: Any) -> list[Event]:
    """Train on `count` pairs of digits; return all events."""
    return list(training_events(digit_corpus(count, corpus_seed), out=out, **{**SHORT, **settings}))


def only(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """The folder of a finished run, and its events."""
    out = tmp_path_factory.mktemp("finished") / "run"
    return out, run(out)


class TestCompleteRun:
    def test_events_come_in_order(self, finished_run: tuple[Path, list[Event]]) -> None:
        _, events = finished_run
        stages = [stage.name for stage in only(events, StageDone)]
        assert stages == ["reading", "learning vocabulary", "encoding", "finishing"]
        [started] = only(events, Started)
        assert (started.steps, started.resumed_from) == (12, None)
        assert started.pairs + started.validation_pairs <= 200
        assert started.parameters > 1000
        assert [event.step for event in only(events, Validated)] == [5, 10, 12]
        assert [event.step for event in only(events, Saved)] == [5, 10, 12]
        assert isinstance(events[-1], Finished)
        assert (events[-1].reason, events[-1].steps) == ("done", 12)

    def test_the_run_folder_has_the_documented_files(self, finished_run: tuple[Path, list[Event]]) -> None:
        out, _ = finished_run
        names = {path.name for path in out.iterdir()}
        assert names == {
            "run.json",
            "run.lock",
            "recipe.toml",
            "metrics.jsonl",
            "checkpoints",
            "data",
            "model",
            "pieces.model",
            "validation.jsonl",
        }
        assert {path.name for path in (out / "model").iterdir()} == {
            "README.md",
            "jumok.json",
            "weights.safetensors",
            "pieces.model",
        }
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if line["kind"] == "validation"] == [5, 10, 12]

    def test_the_model_can_be_loaded_and_describes_itself(
        self, finished_run: tuple[Path, list[Event]]
    ) -> None:
        out, events = finished_run
        card, _, _ = read_model_with_weights(out / "model")
        assert card.recipe.languages.source == "en"
        assert card.scores["bleu"].signature
        assert card.read_out is not None
        assert card.facts["steps"] == 12
        assert isinstance(card.facts["int8_costs"], float)
        assert card.corpora[0].name == "digits-1"
        assert events[-1].scores["chrf"] == card.scores["chrf"].value  # type: ignore[union-attr]
        assert len(jumok.load(out / "model").translate(["one two", ""])) == 2

    def test_a_finished_run_is_reported_and_nothing_changes(
        self, finished_run: tuple[Path, list[Event]]
    ) -> None:
        out, events = finished_run
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
        second_events = run(out)
        assert [type(event) for event in second_events] == [Finished]
        assert second_events[0].reason == "already finished"  # type: ignore[union-attr]
        assert second_events[0].scores == events[-1].scores  # type: ignore[union-attr]
        after = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
        assert {path for path in after if after[path] != before.get(path)} <= {out / "run.lock"}

    def test_a_finished_run_refuses_other_settings(self, finished_run: tuple[Path, list[Event]]) -> None:
        with pytest.raises(RunFolderError, match=r"training\.seed: received 13, the run has 1"):
            run(finished_run[0], **{"training.seed": 13})

    def test_the_same_command_gives_the_same_weights(
        self, finished_run: tuple[Path, list[Event]], tmp_path: Path
    ) -> None:
        run(tmp_path / "again")
        first, second = (
            path / "model" / "weights.safetensors" for path in (finished_run[0], tmp_path / "again")
        )
        assert first.read_bytes() == second.read_bytes()

    def test_another_seed_gives_other_weights(
        self, finished_run: tuple[Path, list[Event]], tmp_path: Path
    ) -> None:
        run(tmp_path / "again", **{"training.seed": 2})
        first, second = (
            path / "model" / "weights.safetensors" for path in (finished_run[0], tmp_path / "again")
        )
        assert first.read_bytes() != second.read_bytes()

    def test_max_keys_of_the_location_score_is_derived(self, tmp_path: Path) -> None:
        location = {f"model.{site}_attention": "luong-location" for site in ("decoder", "cross")}
        settings = {**location, "training.steps": 1}
        [started] = only(run(tmp_path / "run", **settings), Started)
        options = {
            site: getattr(started.recipe.model, f"{site}_attention").options for site in ("decoder", "cross")
        }
        # <s> and a translation of 3 · 200 + 10 tokens; a source of 200 tokens and </s>
        assert options == {"decoder": {"max_keys": 611}, "cross": {"max_keys": 201}}
        events = run(tmp_path / "run", **settings)
        assert events[-1].reason == "already finished"


class TestLearning:
    @pytest.mark.medium
    def test_a_model_learns_to_translate_digits(self, tmp_path: Path) -> None:
        """Sequences of digits that are not in the training pairs are translated correctly."""
        settings = {
            **TINY,
            "training.steps": 240,
            "training.validate_every": 80,
            "training.batch_tokens": 512,
            "model.dropout": 0.0,
            "training.warmup_steps": 30,
        }
        corpus = corpus_of_pairs(digit_pairs(2000, max_digits=4), source="en", target="de")
        valid = corpus_of_pairs(digit_pairs(60, 99, max_digits=4), source="en", target="de")
        events = list(training_events(corpus, valid=valid, out=tmp_path / "run", **settings))
        losses = [event.loss for event in only(events, Validated)]
        assert max(losses[1:]) < losses[0] / 4
        assert events[-1].scores["chrf"] > 90  # type: ignore[union-attr]
        assert only(events, Warned) == []  # a healthy run gets no warning
        translator = jumok.load(tmp_path / "run" / "model")
        assert translator.translate(["seven two nine"])[0].text == "sieben zwei neun"


class TestSettingsAndInputs:
    def test_unknown_and_ambiguous_setting_names_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match=r'no setting called .minuts.\. Did you mean "minutes"'):
            next(iter(training_events(digit_corpus(50), out=tmp_path / "run", minuts=3)))
        with pytest.raises(RecipeError, match=r"several settings called 'longest'"):
            next(iter(training_events(digit_corpus(50), out=tmp_path / "run", longest=3)))

    def test_a_run_without_end_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match="would never end"):
            next(iter(training_events(digit_corpus(50), out=tmp_path / "run", patience=0)))

    def test_a_cosine_schedule_needs_a_last_step(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match="nothing says when that is"):
            next(iter(training_events(digit_corpus(50), out=tmp_path / "run", schedule="cosine")))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"model.width": 32, "model.heads": 5}, "5 heads cannot share a width of 32 evenly"),
            ({"model.heads": 3}, "3 heads cannot share the width of any size"),
            ({"training.device": "cpu", "training.precision": "fp16"}, "fp16 is for accelerators"),
            (
                {"model.family": "decoder-only", "model.heads": 3},
                "3 heads cannot share the width of any size",
            ),
            (
                {"model.family": "recurrent", "model.attention": "none", "search.coverage_penalty": 0.2},
                r"needs attention.*Received: search\.coverage_penalty = 0\.2",
            ),
        ],
    )
    def test_incompatible_settings_are_refused_before_anything_is_read_or_written(
        self, tmp_path: Path, settings: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(UnsupportedError, match=message):
            next(iter(training_events("no.tsv", out=tmp_path / "run", **settings)))
        assert list(tmp_path.iterdir()) == []

    def test_training_can_run_in_a_thread(self, tmp_path: Path) -> None:
        """Only the main thread can install signal handlers; a run in another thread has none."""
        with ThreadPoolExecutor(1) as pool:
            events = pool.submit(run, tmp_path / "run", **{"training.steps": 2}).result()
        assert events[-1].steps == 2  # type: ignore[union-attr]

    def test_named_settings_take_precedence_over_a_recipe(self, tmp_path: Path) -> None:
        recipe = Overrides.from_settings(**{**SHORT, "training.steps": 99})
        events = list(training_events(digit_corpus(100), out=tmp_path / "run", recipe=recipe, steps=3))
        assert events[-1].steps == 3  # type: ignore[union-attr]

    def test_a_corpus_too_small_to_hold_out_pairs_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"no sentence to validate on.*--valid"):
            run(tmp_path / "run", count=5)

    def test_validation_pairs_that_are_too_long_are_skipped_and_counted(self, tmp_path: Path) -> None:
        long = Pair(" ".join(["one"] * 300), " ".join(["eins"] * 300))
        valid = corpus_of_pairs([*digit_pairs(20, 9), long], source="en", target="de")
        events = list(training_events(digit_corpus(100), valid=valid, out=tmp_path / "run", **SHORT))
        [encoding] = [stage for stage in only(events, StageDone) if stage.name == "encoding"]
        assert encoding.detail.endswith("skipped: 1 for validation with more than 200 tokens")
        assert only(events, Started)[0].validation_pairs == 20
        alone = corpus_of_pairs([long], source="en", target="de")
        with pytest.raises(DataError, match=r"all 1 validation pairs have more than 200 tokens.*--valid"):
            list(training_events(digit_corpus(100), valid=alone, out=tmp_path / "other", **SHORT))

    def test_training_on_pairs_in_memory(self, tmp_path: Path) -> None:
        pairs = [(pair.source, pair.target) for pair in digit_pairs(100, 1)]
        settings = {**SHORT, "languages.source": "en", "languages.target": "German"}
        folder = train(pairs, valid=pairs[:20], out=tmp_path / "run", **settings)
        card, _, _ = read_model_with_weights(folder)
        assert [corpus.name for corpus in card.corpora] == ["pairs"]
        assert (card.recipe.languages.source, card.recipe.languages.target) == ("en", "de")
        assert train(pairs, valid=pairs[:20], out=tmp_path / "run", **settings) == folder  # already finished
        with pytest.raises(DataError, match="Pair 2 is not a sentence and its translation"):
            train([("a", "b"), ("c",)], out=tmp_path / "other")

    def test_training_on_chosen_columns_in_a_given_encoding(self, tmp_path: Path) -> None:
        rows = [f"{n};{pair.source};{pair.target};x" for n, pair in enumerate(digit_pairs(100, 1))]
        file = tmp_path / "table.csv"
        file.write_bytes("\n".join(rows).encode("cp1252"))
        folder = train(file, out=tmp_path / "run", columns="2,3", encoding="cp1252", **SHORT)
        assert jumok.load(folder, engine="torch").translate(["one"])
        card = (folder / "jumok.json").read_text(encoding="utf-8")
        assert str(tmp_path) not in card, "the model card contains a path of this machine"

    def test_train_returns_the_model_folder(self, tmp_path: Path) -> None:
        folder = train(digit_corpus(100), out=str(tmp_path / "run"), **SHORT)
        assert folder == tmp_path / "run" / "model"

    def test_training_on_files_with_two_tokenizers(self, tmp_path: Path) -> None:
        for name, seed in (("train", 1), ("valid", 2)):
            pairs = digit_pairs(150, seed)
            (tmp_path / f"{name}.en").write_text("".join(f"{pair.source}\n" for pair in pairs))
            (tmp_path / f"{name}.de").write_text("".join(f"{pair.target}\n" for pair in pairs))
        settings = {**SHORT, "text.shared": False, "text.vocab_size": 300}
        events = list(
            training_events(
                [tmp_path / "train.en", tmp_path / "train.de"],
                valid=[tmp_path / "valid.en", tmp_path / "valid.de"],
                out=tmp_path / "run",
                **settings,
            )
        )
        assert events[-1].reason == "done"  # type: ignore[union-attr]
        assert {path.name for path in (tmp_path / "run" / "model").glob("*.model")} == {
            "source.model",
            "target.model",
        }

    def test_training_stops_early_when_patience_runs_out(self, tmp_path: Path) -> None:
        settings = {
            "training.steps": 400,
            "training.validate_every": 4,
            "training.patience": 2,
            "training.learning_rate": 1e-12,  # nothing improves
            "training.stop_on": "chrf",
        }
        events = run(tmp_path / "run", **settings)
        assert events[-1].reason == "patience"  # type: ignore[union-attr]
        assert events[-1].steps < 100  # type: ignore[union-attr]
        assert len(only(events, Validated)) >= 3

    @pytest.mark.parametrize("stop_on", ["bleu", "loss"])
    def test_the_first_validation_is_the_best_so_far_by_bleu_or_by_loss(
        self, tmp_path: Path, stop_on: str
    ) -> None:
        events = run(tmp_path / "run", **{"training.stop_on": stop_on})
        assert only(events, Validated)[0].best

    def test_averaging_keeps_the_checkpoints_and_the_moving_average_that_it_needs(
        self, tmp_path: Path
    ) -> None:
        events = run(
            tmp_path / "run",
            **{"training.average_checkpoints": 3, "training.ema_decay": 0.5, "training.steps": 15},
        )
        assert saved_steps(tmp_path / "run" / "checkpoints") == [5, 10, 15]
        assert events[-1].reason == "done"  # type: ignore[union-attr]
        checkpoint, _ = load_newest_checkpoint(tmp_path / "run" / "checkpoints")
        assert checkpoint is not None
        assert checkpoint.moving_average is not None


def abandon_after(events: Iterator[Event], step: int) -> list[Event]:
    """Abandon a run once a checkpoint of this or a later step is saved, as if its process were killed."""
    past_events = []
    for event in events:
        past_events.append(event)
        if isinstance(event, Saved) and event.step >= step:
            break
    events.close()  # type: ignore[attr-defined]
    return past_events


class TestResuming:
    @pytest.fixture
    def interrupted_run(self, tmp_path: Path) -> Path:
        abandon_after(training_events(digit_corpus(200), out=tmp_path / "run", **SHORT), 10)
        return tmp_path / "run"

    def test_a_run_continues_from_the_last_checkpoint(
        self, interrupted_run: Path, finished_run: tuple[Path, list[Event]]
    ) -> None:
        events = run(interrupted_run)
        [started] = only(events, Started)
        assert started.resumed_from == 10
        assert [event.step for event in only(events, Validated)] == [12]
        first, second = (
            path / "model" / "weights.safetensors" for path in (interrupted_run, finished_run[0])
        )
        assert first.read_bytes() == second.read_bytes()

    @pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.medium)])
    def test_running_statistics_are_resumed(self, tmp_path: Path, processes: int) -> None:
        """Batch norm changes its statistics in every forward pass; they are stored, averaged and resumed."""
        settings = {
            **SHORT,
            "model.norm_kind": "batch",
            "model.positions": "learned",
            "training.average_checkpoints": 2,
            "training.ema_decay": 0.5,
            "training.accumulate": 2,
            "training.processes": processes,
        }
        uninterrupted, interrupted_run = tmp_path / "uninterrupted", tmp_path / "interrupted"
        run(uninterrupted, **settings)
        abandon_after(training_events(digit_corpus(200), out=interrupted_run, **settings), 10)
        resumed = run(interrupted_run, **{"training.processes": processes})
        assert only(resumed, Started)[0].resumed_from == 10
        first, second = (path / "model" / "weights.safetensors" for path in (interrupted_run, uninterrupted))
        assert first.read_bytes() == second.read_bytes()
        _, weights, _ = read_model_with_weights(interrupted_run / "model")
        statistics = [name for name in weights if name.endswith((".mean", ".variance"))]
        # Mean and variance of two norms in the encoder layer, three in the decoder layer, and two after them.
        assert len(statistics) == 2 * (2 + 3 + 2)
        assert all(bool((weights[name] > 0).all()) for name in statistics if name.endswith(".variance"))
        alone, together = (
            jumok.load(interrupted_run / "model").translate(texts) for texts in (["one"], ["one", "two six"])
        )
        assert alone[0].score == pytest.approx(together[0].score, abs=1e-5)

    def test_settings_need_not_be_repeated(self, interrupted_run: Path) -> None:
        events = list(training_events(digit_corpus(200), out=interrupted_run))
        assert events[-1].reason == "done"  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("training.warmup_steps", 100),
            ("training.learning_rate", 0.5),
            ("model.width", 48),
            ("training.seed", 9),
        ],
    )
    def test_changed_settings_are_refused_by_name(self, interrupted_run: Path, name: str, value: Any) -> None:
        with pytest.raises(RunFolderError, match=rf"{name}: received {value!r}, the run has"):
            run(interrupted_run, **{name: value})

    def test_changed_settings_are_refused_before_anything_is_read(self, interrupted_run: Path) -> None:
        def read(noticed: Counter[str]) -> NoReturn:
            pytest.fail("the corpus was read")

        corpus = replace(digit_corpus(200), reader=read)
        with pytest.raises(RunFolderError, match=r"training\.seed: received 9, the run has 1"):
            next(training_events(corpus, out=interrupted_run, seed=9))
        with pytest.raises(RunFolderError, match=r"training\.seed: received 9, the run has 1"):
            next(training_events("no.tsv", out=interrupted_run, seed=9))

    def test_a_changed_corpus_is_refused(self, interrupted_run: Path) -> None:
        with pytest.raises(RunFolderError, match="holds a run on other sentences"):
            run(interrupted_run, count=230)
        with pytest.raises(RunFolderError, match="holds a run on other sentences"):
            run(interrupted_run, corpus_seed=2)

    @pytest.mark.parametrize("name", ["weights.safetensors", "optimiser.safetensors", "state.json"])
    def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(
        self, interrupted_run: Path, name: str, finished_run: tuple[Path, list[Event]]
    ) -> None:
        path = interrupted_run / "checkpoints" / "step-10" / name
        flip_a_bit(path)
        events = run(interrupted_run)
        assert str(path) in only(events, Warned)[0].message
        assert "step 5 is used" in only(events, Warned)[0].advice
        assert only(events, Started)[0].resumed_from == 5
        first, second = (
            folder / "model" / "weights.safetensors" for folder in (interrupted_run, finished_run[0])
        )
        assert first.read_bytes() == second.read_bytes()

    def test_if_all_checkpoints_are_damaged_the_run_fails(self, interrupted_run: Path) -> None:
        for step in saved_steps(interrupted_run / "checkpoints"):
            (interrupted_run / "checkpoints" / f"step-{step}" / "weights.safetensors").unlink()
        with pytest.raises(RunFolderError, match="does not restart from zero"):
            run(interrupted_run)

    def test_deleted_encoded_pairs_are_encoded_again(
        self, interrupted_run: Path, finished_run: tuple[Path, list[Event]]
    ) -> None:
        shutil.rmtree(interrupted_run / "data")
        run(interrupted_run)
        first, second = (
            folder / "model" / "weights.safetensors" for folder in (interrupted_run, finished_run[0])
        )
        assert first.read_bytes() == second.read_bytes()

    def test_a_checkpoint_that_a_killed_session_should_have_removed_is_removed(
        self, interrupted_run: Path
    ) -> None:
        """A session that is killed between saving a checkpoint and removing old ones leaves one too many."""
        shutil.copytree(
            interrupted_run / "checkpoints" / "step-5", interrupted_run / "checkpoints" / "step-1"
        )
        events = training_events(digit_corpus(200), out=interrupted_run)
        assert any(isinstance(event, Started) for event in events)  # runs up to this event
        assert 1 not in saved_steps(interrupted_run / "checkpoints")
        shutil.copytree(
            interrupted_run / "checkpoints" / "step-5", interrupted_run / "checkpoints" / "step-1"
        )
        assert isinstance(list(events)[-1], Finished)
        assert 1 not in saved_steps(interrupted_run / "checkpoints")

    def test_a_transient_read_error_is_not_treated_as_damage(
        self, interrupted_run: Path, monkeypatch: pytest.MonkeyPatch, finished_run: tuple[Path, list[Event]]
    ) -> None:
        real = os.open

        def failing(path: Any, flags: int, *mode: Any, **options: Any) -> int:
            if str(path).endswith("step-10/weights.safetensors"):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return real(path, flags, *mode, **options)

        monkeypatch.setattr(os, "open", failing)
        with pytest.raises(StorageError, match=r"could not be read.*run the same command again"):
            run(interrupted_run)
        monkeypatch.undo()
        assert saved_steps(interrupted_run / "checkpoints") == [5, 10]
        assert only(run(interrupted_run), Started)[0].resumed_from == 10
        first, second = (
            folder / "model" / "weights.safetensors" for folder in (interrupted_run, finished_run[0])
        )
        assert first.read_bytes() == second.read_bytes()

    def test_a_lock_file_that_is_a_symbolic_link_is_refused(
        self, interrupted_run: Path, tmp_path: Path
    ) -> None:
        precious = tmp_path / "precious.txt"
        precious.write_text("content")
        (interrupted_run / "run.lock").unlink()
        (interrupted_run / "run.lock").symlink_to(precious)
        with pytest.raises(StorageError):
            run(interrupted_run)
        assert precious.read_text() == "content"


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 8
    path.write_bytes(bytes(data))


class TestFinishing:
    """A run after its last step: the choice of weights, and the model folder."""

    @pytest.fixture
    def unfinished_run(self, tmp_path: Path) -> Path:
        """A run with the checkpoints 5, 10 and 12. It learns nothing, so its first checkpoint is the best."""
        settings = {**SHORT, "training.learning_rate": 1e-12}
        abandon_after(training_events(digit_corpus(200), out=tmp_path / "run", **settings), 12)
        return tmp_path / "run"

    def test_if_the_best_checkpoint_is_damaged_the_next_best_is_used(self, unfinished_run: Path) -> None:
        damaged = unfinished_run / "checkpoints" / "step-5" / "weights.safetensors"
        flip_a_bit(damaged)
        events = list(training_events(digit_corpus(200), out=unfinished_run))
        warned, worse_than_guessing = only(events, Warned)
        assert worse_than_guessing.message.startswith("the model is worse than guessing")
        assert str(damaged) in warned.message
        assert warned.advice == "Used instead: the checkpoint of step 10."
        card, _, _ = read_model_with_weights(unfinished_run / "model")
        assert card.facts["weights"] == "the checkpoint of step 10"

    def test_if_all_checkpoints_are_damaged_the_weights_in_memory_are_used(
        self, unfinished_run: Path
    ) -> None:
        events = training_events(digit_corpus(200), out=unfinished_run)
        assert any(isinstance(event, Started) for event in events)  # runs up to this event
        for step in saved_steps(unfinished_run / "checkpoints"):
            flip_a_bit(unfinished_run / "checkpoints" / f"step-{step}" / "weights.safetensors")
        rest = list(events)
        advice = [warned.advice for warned in only(rest, Warned)]
        # One warning per damaged checkpoint; the last warning says that the model is worse than guessing.
        assert advice[:-1] == ["Used instead: the weights of step 12."] * 3
        assert rest[-1].reason == "done"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("damaged", "description"),
    [
        ([], "the average of the last 4 checkpoints up to step 1,200"),
        ([1200], "the average of 3 checkpoints (steps 300, 600, 900)"),
        ([600], "the average of 3 checkpoints (steps 300, 900, 1,200)"),
    ],
)
def test_an_average_names_the_checkpoints_that_it_is_made_of(
    damaged: list[int], description: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checkpoint_weights(trainer: Any, step: int) -> dict[str, torch.Tensor]:
        if step in damaged:
            raise ModelFolderError(f"step-{step} cannot be used")
        return {"weight": torch.tensor([float(step)])}

    monkeypatch.setattr(finish, "_checkpoint_weights", checkpoint_weights)
    validations = [SimpleNamespace(step=step) for step in (300, 600, 900, 1200)]
    trainer: Any = SimpleNamespace(
        settings=SimpleNamespace(average_checkpoints=4), state=SimpleNamespace(validations=validations)
    )
    averaging = finish._average_of_last(trainer)
    assert all(isinstance(next(averaging), Warned) for _ in damaged)
    with pytest.raises(StopIteration) as end:
        next(averaging)
    assert end.value.value.description == description


class TestRunFolder:
    def test_a_foreign_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("")
        with pytest.raises(RunFolderError, match=r"not a run of jumok. Received: thesis\.tex"):
            run(tmp_path)

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(RunFolderError, match="is a file"):
            run(tmp_path / "file")

    def test_a_folder_with_a_corpus_is_accepted(self, tmp_path: Path) -> None:
        (tmp_path / "corpus").mkdir()
        assert run(tmp_path, **{"training.steps": 1})[-1].steps == 1  # type: ignore[union-attr]

    def test_two_runs_cannot_use_one_folder(self, tmp_path: Path) -> None:
        (tmp_path / "run.lock").touch()
        with (tmp_path / "run.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(RunFolderError, match="Another process is training"):
                run(tmp_path)

    def test_a_disk_without_locks_is_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_locks(*_: Any) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "flock", no_locks)
        with pytest.raises(RunFolderError, match=r"run\.lock cannot be locked: No locks available"):
            run(tmp_path)

    def test_a_lock_on_a_lock_file_that_another_process_has_removed_does_not_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another process removes the lock file between the opening and the locking by this process."""
        real, lock = fcntl.flock, tmp_path / "run.lock"

        def remove_and_lock(*arguments: Any) -> None:
            lock.unlink()
            real(*arguments)

        def remove_create_and_lock(*arguments: Any) -> None:
            remove_and_lock(*arguments)
            lock.touch()

        for flock in (remove_and_lock, remove_create_and_lock):
            monkeypatch.setattr(fcntl, "flock", flock)
            with pytest.raises(RunFolderError, match="Another process is training"):
                run(tmp_path)

    def test_a_run_that_never_started_leaves_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(DataError):
            run(tmp_path / "run", count=5)
        assert not (tmp_path / "run").exists()
        events = training_events(digit_corpus(200), out=tmp_path / "run", **SHORT)
        # The first stage reads the sentences and writes nothing.
        assert any(isinstance(event, StageDone) for event in events)
        events.close()  # type: ignore[attr-defined]
        assert not (tmp_path / "run").exists()
        # The second stage stores the vocabulary, so the folder stays.
        events = training_events(digit_corpus(200), out=tmp_path / "run", **SHORT)
        assert sum(1 for _ in islice((event for event in events if isinstance(event, StageDone)), 2)) == 2
        events.close()  # type: ignore[attr-defined]
        assert (tmp_path / "run" / "pieces.model").exists()

    def test_a_run_that_never_started_leaves_no_parent_folder(self, tmp_path: Path) -> None:
        with pytest.raises(DataError):
            run(tmp_path / "runs" / "digits" / "first", count=5)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "runs").mkdir()
        with pytest.raises(DataError):
            run(tmp_path / "runs" / "digits" / "first", count=5)
        # A folder that existed before the run is not removed.
        assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]

    def test_a_run_folder_inside_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match="could not be written"):
            run(tmp_path / "file" / "run")

    def test_a_run_of_a_newer_jumok_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_bytes(json_with_checksum({"format": 99}))
        with pytest.raises(RunFolderError, match=r"newer jumok\. Received format 99"):
            run(tmp_path)

    def test_a_run_of_format_1_is_refused(self, tmp_path: Path) -> None:
        """The record of such a run is incomplete, so settings would change in the middle of the run."""
        (tmp_path / "run.json").write_bytes(json_with_checksum({"format": 1, "recipe": {}}))
        with pytest.raises(RunFolderError, match=r"older jumok.*Received format 1.*Start a new run"):
            run(tmp_path)

    def test_derived_settings_are_in_the_record(self, tmp_path: Path) -> None:
        run(tmp_path, **{"training.steps": 1})
        training = json.loads((tmp_path / "run.json").read_text())["recipe"]["training"]
        assert training["beta2"] == pytest.approx(0.99875)  # 1 - 0.02 · 256 / 4096, for updates of 256 tokens

    def test_a_damaged_record_is_named(self, tmp_path: Path) -> None:
        run(tmp_path, **{"training.steps": 1})
        path = tmp_path / "run.json"
        path.write_text(path.read_text().replace('"seed": 1', '"seed": 3'))
        with pytest.raises(RunFolderError, match=r"run\.json cannot be used: its checksum"):
            run(tmp_path, **{"training.steps": 1})

    def test_an_incomplete_record_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_bytes(json_with_checksum({"format": 2, "recipe": {}}))
        with pytest.raises(RunFolderError, match="cannot be continued"):
            run(tmp_path)


class TestFailures:
    @pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EROFS, errno.EIO])
    def test_a_disk_error_in_the_second_save_leaves_the_first_checkpoint_intact(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_number: int
    ) -> None:
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if "step-10" in os.readlink(f"/proc/self/fd/{descriptor}"):  # noqa: PTH115
                raise OSError(error_number, os.strerror(error_number))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match=r"step-10 could not be written.*step 5 is intact"):
            run(tmp_path)
        assert saved_steps(tmp_path / "checkpoints") == [5]
        assert not list((tmp_path / "checkpoints").glob("*.tmp*"))
        monkeypatch.undo()
        assert only(run(tmp_path), Started)[0].resumed_from == 5

    def test_a_learning_rate_of_1000_is_reported_and_no_model_is_made(self, tmp_path: Path) -> None:
        events: list[Event] = []
        settings = {**SHORT, "training.learning_rate": 1000.0}
        with pytest.raises(TrainingError, match=r"No model was made: the validation loss is .*learning_rate"):
            events.extend(training_events(digit_corpus(200), out=tmp_path / "run", **settings))
        assert events  # the events before the error
        assert not (tmp_path / "run" / "model").exists()
        assert not any(event.best for event in only(events, Validated))
        [warned] = [event for event in only(events, Warned) if "skipped" not in event.message]
        # The vocabulary has about 300 tokens, and ln 300 is 5.70.
        assert "giving every token the same probability gives 5.7" in warned.message
        assert "The learning rate is most likely too high" in warned.advice

    def test_a_diverging_training_loss_is_reported_before_the_first_validation(self, tmp_path: Path) -> None:
        settings = {"training.learning_rate": 10.0, "training.validate_every": 40, "training.steps": 40}
        events = training_events(digit_corpus(200), out=tmp_path / "run", **{**SHORT, **settings})
        before = list(takewhile(lambda event: not isinstance(event, Validated), events))
        assert any("the training loss is" in event.message for event in only(before, Warned))
        events.close()  # type: ignore[attr-defined]

    def test_a_time_budget_that_is_too_short_is_reported(self, tmp_path: Path) -> None:
        settings = {**TINY, "training.minutes": 0.001}
        events = list(training_events(digit_corpus(200), out=tmp_path / "run", **settings))
        started = next(i for i, event in enumerate(events) if isinstance(event, Started))
        warned = events[started + 1]
        assert isinstance(warned, Warned)
        assert "0.001 minutes are enough for only 1 update:" in warned.message
        assert "1,000 updates need about" in warned.advice

    def test_targets_much_longer_than_their_sources_train_with_learned_positions(
        self, tmp_path: Path
    ) -> None:
        """An untrained model never ends a translation, so timed translations reach the maximum length."""
        pairs = [Pair(short.source, " ".join(GERMAN)) for short in digit_pairs(300, max_digits=3)]
        validation_pairs = [Pair(" ".join(ENGLISH * 3), " ".join(GERMAN)), *pairs[:40]]
        settings = {
            **TINY,
            "model.positions": "learned",
            "model.max_positions": 131,  # 3 · 40 + 10, and <s>
            "training.max_sentence_tokens": 40,
            "training.minutes": 0.01,
        }
        training, validation = (
            corpus_of_pairs(part, source="en", target="de", name=name)
            for part, name in ((pairs[40:], "training"), (validation_pairs, "validation"))
        )
        events = list(training_events(training, out=tmp_path / "run", valid=validation, **settings))
        assert isinstance(events[-1], Finished)
        # 4 · 40 + 10, and <s>
        with pytest.raises(UnsupportedError, match=r"must cover 171 .*lower .* or search\.max_length_ratio"):
            train(training, out=tmp_path / "refused", **settings, **{"search.max_length_ratio": 4.0})
        assert not (tmp_path / "refused").exists()

    def test_more_minutes_than_a_year_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match=r"training\.minutes.*527040"):  # minutes of 366 days
            train(digit_corpus(200), out=tmp_path / "run", **{**TINY, "training.minutes": 1e9})
        assert not (tmp_path / "run").exists()

    def poison_gradients(self, monkeypatch: pytest.MonkeyPatch, steps: range, poison: float) -> None:
        """Set one number of the gradients to `poison` in these updates of a single process."""
        real = jumok.training.loop.update.squared_norm
        calls = iter(range(1, 1000))  # one call per update

        def squared_norm(gradients: list[torch.Tensor]) -> float:
            if next(calls) in steps:
                gradients[0].view(-1)[3] = poison
            return real(gradients)

        monkeypatch.setattr(jumok.training.loop.update, "squared_norm", squared_norm)

    @pytest.mark.parametrize("norm", ["layer", "batch"])
    @pytest.mark.parametrize("poison", [math.nan, math.inf])
    def test_an_update_with_a_gradient_that_is_not_finite_is_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poison: float, norm: str
    ) -> None:
        outcomes: list[tuple[bool, bool]] = []
        real = Worker.update

        def recorded_update(worker: Worker, *rest: Any) -> Update:
            before = [tensor.clone() for tensor in module_weights(worker.model).values()]
            update = real(worker, *rest)
            same = all(map(torch.equal, before, module_weights(worker.model).values()))
            outcomes.append((update.applied, same))
            return update

        monkeypatch.setattr(Worker, "update", recorded_update)
        self.poison_gradients(monkeypatch, range(4, 6), poison)
        events = run(tmp_path, **{"model.norm_kind": norm})
        assert [applied for applied, _ in outcomes].count(False) == 2
        # Applied updates change the weights and skipped updates do not. The last update is left out, since
        # its learning rate is 0.
        assert all(applied != same for applied, same in outcomes[:-1])
        warnings = [event.message for event in only(events, Warned)]
        assert len(warnings) == 2
        assert f"step 4: the gradient is {poison}" in warnings[0]
        _, weights, _ = read_model_with_weights(tmp_path / "model")
        assert all(bool(tensor.isfinite().all()) for tensor in weights.values())

    def test_too_many_skipped_updates_are_an_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.poison_gradients(monkeypatch, range(7, 1000), math.nan)
        with pytest.raises(TrainingError, match=r"not finite in 10 updates in a row.*step 15 is intact"):
            run(tmp_path, **{"training.steps": 40})
        checkpoint, _ = load_newest_checkpoint(tmp_path / "checkpoints")
        assert checkpoint is not None
        assert all(bool(tensor.isfinite().all()) for tensor in checkpoint.weights.values())

    def test_a_progress_report_that_covers_only_skipped_updates_has_no_loss(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jumok.training.loop.trainer, "STEPS_BETWEEN_REPORTS", 4)
        self.poison_gradients(monkeypatch, range(1, 5), math.nan)
        progress = only(run(tmp_path), Progress)
        assert math.isnan(progress[0].loss)
        assert math.isnan(progress[0].perplexity)
        assert math.isfinite(progress[1].loss)
        first = (tmp_path / "metrics.jsonl").read_text().splitlines()[0]
        assert '"loss": null, "perplexity": null' in first

    def test_diverging_weights_are_reported_and_the_good_checkpoint_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def rate(step: int, *_: Any) -> float:
            return 0.01 if step <= 5 else 1e30

        monkeypatch.setattr(jumok.training.loop.trainer, "learning_rate", rate)
        events: list[Event] = []
        with pytest.raises(TrainingError, match=r"not finite in 10 updates in a row.*step 5 is intact"):
            events.extend(training_events(digit_corpus(200), out=tmp_path, **{**SHORT, "training.steps": 40}))
        messages = [warned.message for warned in only(events, Warned)]
        assert sum("the validation loss is nan" in message for message in messages) == 1
        assert saved_steps(tmp_path / "checkpoints") == [5, 10, 15]  # the best one and the newest two

    def test_no_model_is_made_of_weights_that_diverged_from_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match=r"No model was made.*validation loss is nan"):
            run(tmp_path, **{"training.steps": 5, "training.learning_rate": 1e30})
        assert not (tmp_path / "model").exists()


class Clock:
    """Replaces `time.perf_counter`. Only calls of methods that were passed to `advance_on` take time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self._monkeypatch = 0.0, monkeypatch
        monkeypatch.setattr(time, "perf_counter", lambda: self.seconds)

    def advance_on(self, owner: type, method: str, *, seconds: float, result: Any = None) -> None:
        """Let every call of the method take `seconds`. If `result` is set, the call only returns it."""
        real = getattr(owner, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            self.seconds += seconds
            return real(*arguments, **options) if result is None else result

        self._monkeypatch.setattr(owner, method, timed)


class TestTime:
    @pytest.mark.medium
    def test_a_run_takes_the_minutes_that_were_set(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only updates and validations move this clock, so a busy machine does not matter."""
        clock = Clock(monkeypatch)
        clock.advance_on(Worker, "update", seconds=0.1)
        clock.advance_on(TranslationValidation, "validate", seconds=1.0)
        clock.advance_on(TranslationValidation, "estimate_seconds", seconds=1.0, result=1.0)
        events = list(training_events(digit_corpus(200), out=tmp_path, minutes=0.75, **TINY))
        assert events[-1].reason == "done"  # type: ignore[union-attr]
        assert 0.85 * 45 < clock.seconds < 45  # 0.75 minutes are 45 s; a run plans to use most of them
        assert only(events, Progress)[-1].seconds_left is not None

    @pytest.mark.medium
    def test_minutes_that_a_run_of_steps_is_given_later_are_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The run has stored its costs in updates, not in seconds, because its first limit was in steps."""
        clock = Clock(monkeypatch)
        clock.advance_on(Worker, "update", seconds=0.1)
        clock.advance_on(TranslationValidation, "validate", seconds=1.0)
        ten_updates = 10.0 * TINY["training.batch_tokens"]  # in tokens: one second, as above
        clock.advance_on(TranslationValidation, "cost_in_tokens", seconds=0.0, result=ten_updates)
        settings = {**TINY, "training.validate_every": 100, "training.warmup_steps": 2}
        list(training_events(digit_corpus(200), out=tmp_path, steps=20, **settings))
        events = list(training_events(digit_corpus(200), out=tmp_path, minutes=0.75, **settings))
        assert events[-1].reason == "done"  # type: ignore[union-attr]
        assert 0.85 * 45 < events[-1].seconds < 45  # type: ignore[union-attr]

    @pytest.mark.medium
    def test_if_the_machine_becomes_slower_the_plan_is_revised_and_stored(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = Worker.update

        def slow(*arguments: Any, **options: Any) -> Update:
            time.sleep(0.02)
            return real(*arguments, **options)

        limits = {"training.steps": None, "training.minutes": 0.1}
        settings = {**SHORT, **limits, "training.validate_every": 25, "training.warmup_steps": 5}
        events = []
        for event in training_events(digit_corpus(200), out=tmp_path, **settings):
            events.append(event)
            if isinstance(event, Started):  # the speed was measured before this event
                monkeypatch.setattr(Worker, "update", slow)
        planned = only(events, Started)[0].steps
        plan = json.loads((tmp_path / "run.json").read_text())["plan"]
        assert plan[0] == [0, planned]
        assert len(plan) > 1
        assert events[-1].steps == plan[-1][1] < planned  # type: ignore[union-attr]
        # Without checkpoints, the run begins again at step 0, with the plan that it had before any revision.
        for folder in ("checkpoints", "model"):
            shutil.rmtree(tmp_path / folder)
        resumed = training_events(digit_corpus(200), out=tmp_path, **settings)
        assert next(event for event in resumed if isinstance(event, Started)).steps == planned
        resumed.close()  # type: ignore[attr-defined]
