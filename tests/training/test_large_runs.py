"""Runs on large corpora, which are spooled (`data/spool.py`), end with the weights of runs in memory.

To resume, a run on a large corpus does not read unchanged files again.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch

from jumok.config.resolve import Overrides
from jumok.data import spool, store
from jumok.data.store import FEISTEL, SORTED
from jumok.errors import RunFolderError
from jumok.storage.folders import make_folder, read_json_with_checksum
from jumok.storage.model_folder import read_model_with_weights
from jumok.training.events import Finished, Saved
from jumok.training.run import preparation
from jumok.training.run.inputs import Inputs, describe_sources
from jumok.training.run.run_folder import FORMAT, RunFolder
from jumok.training.run.training_run import training_events
from support.digit_lines import digit_lines, write_tsv
from support.digits import TINY

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: dict[str, Any] = {
    **TINY,
    "training.steps": 6,
    "training.validate_every": 3,
    "training.warmup_steps": 2,
}


def refuse_to_read(*_: Any, **__: Any) -> Any:
    raise AssertionError("the text was read again")


@pytest.mark.medium
def test_a_large_run_ends_like_a_small_run_and_resumes_without_reading_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", [line[:2] for line in digit_lines(400)])
    list(training_events(pairs, out=tmp_path / "small", **SETTINGS))
    monkeypatch.setattr(spool, "MIN_SPOOLED_BYTES", 1)
    out = tmp_path / "large"
    for event in training_events(pairs, out=out, **SETTINGS):
        if isinstance(event, Saved):
            break
    assert (out / "sources.json").exists()
    assert not list(out.glob("reading*"))
    with monkeypatch.context() as patched:
        patched.setattr(preparation, "read_sentences", refuse_to_read)
        assert any(isinstance(event, Finished) for event in training_events(pairs, out=out, **SETTINGS))
        list(training_events(pairs, out=out, **SETTINGS))  # a finished run reads nothing either
    weights = [read_model_with_weights(tmp_path / name / "model")[1] for name in ("small", "large")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    os.utime(pairs, ns=(1, 1))  # another modification time: the text is read and compared, once
    list(training_events(pairs, out=out, **SETTINGS))
    with monkeypatch.context() as patched:
        patched.setattr(preparation, "read_sentences", refuse_to_read)
        list(training_events(pairs, out=out, **SETTINGS))
    pairs.write_text(pairs.read_text().replace("zero", "none"))
    with pytest.raises(RunFolderError):
        list(training_events(pairs, out=out, **SETTINGS))


@pytest.mark.parametrize(
    ("first_limit", "has_order", "order"),
    [(100, True, FEISTEL), (10_000, True, SORTED), (10_000, False, SORTED)],
    ids=["large", "below the limit when first encoded", "by an older jumok, which recorded no order"],
)
def test_pairs_that_are_encoded_again_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_limit: int, has_order: bool, order: str
) -> None:
    """`first_limit` is `MAX_SORTED_PAIRS` when the pairs are first encoded. Then the limit becomes 100.

    `has_order` says whether the record of the run names the order.
    """
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", [line[:2] for line in digit_lines(400)])
    folder, inputs = new_run_folder(tmp_path / "run"), Inputs([pairs])
    monkeypatch.setattr(store, "MAX_SORTED_PAIRS", first_limit)
    prepare(folder, inputs)
    record = read_json_with_checksum(folder.record_file)
    if not has_order:
        record.pop("order", None)
        folder._write(record)
    shutil.rmtree(folder.data)
    monkeypatch.setattr(store, "MAX_SORTED_PAIRS", 100)
    assert prepare(folder, inputs).data.store.order == order


def test_a_touched_large_corpus_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MIN_SPOOLED_BYTES", 1)
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", [line[:2] for line in digit_lines(400)])
    folder, inputs = new_run_folder(tmp_path / "run"), Inputs([pairs])
    prepare(folder, inputs)
    assert folder.sources_file.exists()
    os.utime(pairs, ns=(1, 1))
    prepare(folder, inputs)
    monkeypatch.setattr(preparation, "read_sentences", refuse_to_read)
    prepare(folder, inputs)


def test_a_small_run_never_records_its_sources(tmp_path: Path) -> None:
    """A missing sources.json means that the batches of a run without a recorded order are sorted."""
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", [line[:2] for line in digit_lines(400)])
    folder, inputs = new_run_folder(tmp_path / "run"), Inputs([pairs])
    for modified_ns in (1, 2):
        os.utime(pairs, ns=(modified_ns, modified_ns))
        prepare(folder, inputs)
        assert not folder.sources_file.exists()


@pytest.mark.parametrize("min_spooled_bytes", [1, spool.MIN_SPOOLED_BYTES], ids=["large", "small"])
@pytest.mark.parametrize(
    "damaged",
    [None, b"", b'{"source": "one', b"\xff\n", b"[]\n"],
    ids=["lost", "empty", "cut", "bytes", "list"],
)
def test_damaged_validation_pairs_are_read_again_from_the_users_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, min_spooled_bytes: int, damaged: bytes | None
) -> None:
    monkeypatch.setattr(spool, "MIN_SPOOLED_BYTES", min_spooled_bytes)
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", [line[:2] for line in digit_lines(400)])
    folder, inputs = new_run_folder(tmp_path / "run"), Inputs([pairs])
    num_validation_pairs = len(prepare(folder, inputs).data.validation)
    undamaged = folder.validation_file.read_bytes()
    folder.validation_file.unlink()
    if damaged is not None:
        folder.validation_file.write_bytes(damaged)
    with pytest.raises(RunFolderError, match="it reads the validation pairs from your files"):
        prepare(folder, Inputs([]))
    assert len(prepare(folder, inputs).data.validation) == num_validation_pairs
    assert folder.validation_file.read_bytes() == undamaged
    assert len(prepare(folder, Inputs([])).data.validation) == num_validation_pairs


def new_run_folder(path: Path) -> RunFolder:
    """Return a folder with an empty record, as a new run leaves it when it locks its folder."""
    folder = RunFolder(path)
    make_folder(folder.path)
    folder._write({"format": FORMAT})
    return folder


def prepare(folder: RunFolder, inputs: Inputs) -> preparation.PreparedRun:
    """Prepare a run in this folder, a new one or one that an earlier call has prepared."""
    overrides = Overrides.from_settings(**SETTINGS)
    preparing = preparation.prepare_run(folder, folder.record(), overrides, inputs)
    while True:
        try:
            next(preparing)
        except StopIteration as ended:
            prepared: preparation.PreparedRun = ended.value
            return prepared


def test_recorded_sources_are_the_files_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.tsv", "b.tsv", "b.tsv:2"):
        (tmp_path / name).write_text("one\teins\n")
    # A number after a colon is the weight of a corpus, unless there is a file with the whole name.
    sources = describe_sources(Inputs(["a.tsv:1e1", "b.tsv:2", "b.tsv:2:3"]))
    assert sources is not None
    assert [resolved for _, resolved, _, _ in sources["files"]] == [
        str(tmp_path.resolve() / name) for name in ("a.tsv", "b.tsv:2", "b.tsv:2")
    ]


@pytest.mark.parametrize("changes", [False, True])
def test_files_that_change_while_they_are_read_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    pairs = write_tsv(tmp_path / "digits.en-de.tsv", [line[:2] for line in digit_lines(40)])
    inputs, read_sentences = Inputs([pairs]), preparation.read_sentences
    before = describe_sources(inputs)

    def read_then_change(*arguments: Any, **options: Any) -> Any:
        sentences = read_sentences(*arguments, **options)
        if changes:
            pairs.write_text(pairs.read_text() + "one\teins\n")
        return sentences

    monkeypatch.setattr(preparation, "read_sentences", read_then_change)
    folder = RunFolder(tmp_path / "run")
    assert preparation.read_inputs(inputs, Overrides(), folder).sources == (None if changes else before)
